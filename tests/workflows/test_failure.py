"""A handler that raises, a run that is cancelled, a stream that is left: nothing leaks, and the instance is free."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentbench import (
    Executor,
    InMemoryCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
)
from tests.parts.errors import raises
from tests.parts.executors import Fail, Pass, Wait, brief, chain, collect


def split() -> tuple[Workflow, Wait, Fail]:
    """s fans out to one that waits and one that fails."""
    source, wait, fail = Pass("s"), Wait("wait"), Fail("fail")
    return WorkflowBuilder(start_executor=source).add_fan_out_edges(source, [wait, fail]).build(), wait, fail


async def test_a_failure_ends_the_stream_with_its_details():
    seen: list[Any] = []
    with pytest.raises(KeyError):
        await collect(chain(Pass("s"), Fail("f")).run("x", stream=True), seen)
    assert brief(seen)[-3:] == ["executor_failed f", "failed", "status FAILED"]
    assert not any(e.type == "superstep_completed" for e in seen)
    assert {e.details.executor_id for e in seen if e.details is not None} == {"f"}
    assert all("KeyError" in (e.details.traceback or "") for e in seen if e.details is not None)


async def test_nothing_of_the_failed_superstep_stays():
    workflow, _, fail = split()
    with pytest.raises(KeyError):
        await workflow.run("x")
    assert workflow.state.export_state() == {}
    assert not workflow.state.has("written by the broken")
    assert workflow.run_state.messages == {}
    assert workflow.run_state.requests == {}
    fail.broken = False


async def test_state_of_the_supersteps_before_stays():
    class Mark(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[str]) -> None:
            ctx.set_state("mark", text)
            await ctx.send_message(text)

    workflow = chain(Mark("m"), Fail("f"))
    with pytest.raises(KeyError):
        await workflow.run("x")
    assert workflow.state.export_state() == {"mark": "x"}


async def test_siblings_of_the_failed_one_are_cancelled_and_awaited():
    workflow, wait, _ = split()
    events: list[Any] = []
    with pytest.raises(KeyError):
        await collect(workflow.run("x", stream=True), events)
    assert wait.ended == "cancelled"
    wait.gate.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert wait.ended == "cancelled"
    assert not any(e.type == "output" for e in events)


async def test_the_workflow_runs_again_at_once():
    workflow, wait, fail = split()
    with pytest.raises(KeyError):
        await workflow.run("x")
    fail.broken = False
    wait.gate.set()
    assert sorted((await workflow.run("y")).outputs) == ["late", "mended"]


async def test_two_failures_are_both_reported_and_the_first_is_raised():
    source, first, second = Pass("s"), Fail("first"), Fail("second")
    first.error, second.error = ValueError("1"), ValueError("2")
    workflow = WorkflowBuilder(start_executor=source).add_fan_out_edges(source, [first, second]).build()
    seen: list[Any] = []
    with raises(ValueError, "1"):
        await collect(workflow.run("x", stream=True), seen)
    assert [e.executor_id for e in seen if e.type == "executor_failed"] == ["first", "second"]


async def test_no_checkpoint_is_taken_of_a_broken_superstep():
    storage = InMemoryCheckpointStorage()
    workflow = chain(Pass("s"), Pass("t"), Fail("f"), name="n", checkpoint_storage=storage)
    with pytest.raises(KeyError):
        await workflow.run("x")
    assert [c.iteration_count for c in await storage.list_checkpoints(workflow_name="n")] == [0, 1]


# ---- cancellation --------------------------------------------------------------------------------

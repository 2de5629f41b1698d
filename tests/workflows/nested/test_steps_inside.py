"""A run can be stepped inside its sub-workflows: their supersteps end where a step ends, too."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentbench import (
    InMemoryCheckpointStorage,
    StepReport,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    WorkflowRun,
    WorkflowRunState,
    executor,
)

CALLS: list[str] = []


@executor(id="first")
async def first(text: str, ctx: WorkflowContext[str]) -> None:
    CALLS.append(f"first {text}")
    await ctx.send_message(text + "1")


@executor(id="second")
async def second(text: str, ctx: WorkflowContext[str, str]) -> None:
    CALLS.append(f"second {text}")
    await ctx.yield_output(text + "2")


@executor(id="last")
async def last(text: str, ctx: WorkflowContext[str, str]) -> None:
    CALLS.append(f"last {text}")
    await ctx.yield_output(text)


def pair() -> Workflow:
    return WorkflowBuilder(start_executor=first, name="pair").add_edge(first, second).build()


def nested(depth: int = 1) -> Workflow:
    inner = pair()
    for level in range(depth):
        node = WorkflowExecutor(inner, f"level{level}")
        inner = WorkflowBuilder(start_executor=node, name=f"around{level}").add_edge(node, last).build()
    return inner


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    CALLS.clear()


async def steps(run: WorkflowRun, *, inside: bool) -> list[StepReport]:
    reports = []
    while run.status not in (WorkflowRunState.IDLE, WorkflowRunState.IDLE_WITH_PENDING_REQUESTS):
        reports.append(await run.step(inside=inside))
    return reports


async def test_a_step_inside_ends_after_a_superstep_of_the_sub_workflow():
    run = nested().start("a")
    report = await run.step(inside=True)
    assert str(report.pause_reason) == "inside level0, after its superstep 0"
    assert report.pause_reason is not None
    assert report.pause_reason.kind == "inside"
    assert CALLS == ["first a"]
    assert not [event for event in report.events if event.type == "superstep_completed"]
    assert {event.data.type for event in report.events if event.type == "sub_workflow"} >= {"executor_completed"}
    report = await run.step(inside=True)
    assert CALLS == ["first a", "second a1"]
    assert report.pause_reason is None
    assert report.outputs == []
    await run.step(inside=True)
    assert CALLS[-1] == "last a12"


@pytest.mark.parametrize("depth", [1, 2, 3])
async def test_stepping_inside_does_what_a_run_does(depth):
    expected = (await nested(depth).run("a")).get_outputs()
    run = nested(depth).start("a")
    reports = await steps(run, inside=True)
    assert (await run.result()).get_outputs() == expected
    plain = nested(depth).start("a")
    assert len(reports) > len(await steps(plain, inside=False))
    whole = await steps(nested(depth).start("a"), inside=False)
    types = [[event.type for report in each for event in report.events] for each in (reports, whole)]
    assert types[0] == types[1]


async def test_the_path_names_all_nodes_around():
    run = nested(2).start("a")
    report = await run.step(inside=True)
    assert str(report.pause_reason) == "inside level1/level0, after its superstep 0"


async def test_a_plain_step_goes_on_to_the_end_of_the_superstep_around():
    run = nested().start("a")
    await run.step(inside=True)
    report = await run.step()
    assert report.pause_reason is None
    assert CALLS == ["first a", "second a1"]
    assert [message.data for message in report.emitted] == ["a12"]


async def test_a_run_that_waits_inside_can_be_cancelled_and_retried():
    storage = InMemoryCheckpointStorage()
    run = nested().start("a", checkpoint_storage=storage)
    await run.step(inside=True)
    await run.cancel()
    assert run.status is WorkflowRunState.CANCELLED
    again = nested().start("a")
    assert (await again.result()).get_outputs() == ["a12"]


async def test_a_run_that_waits_inside_can_be_put_back():
    @executor(id="before")
    async def before(text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(text)

    node = WorkflowExecutor(pair(), "node")
    workflow = WorkflowBuilder(start_executor=before).add_edge(before, node).add_edge(node, last).build()
    run = workflow.start("a", checkpoint_storage=InMemoryCheckpointStorage())
    await run.step()
    report = await run.step(inside=True)
    assert report.pause_reason is not None
    assert await run.plan() == []
    await run.restore_checkpoint(run.checkpoints[0])
    assert [planned.target for planned in await run.plan()] == ["node"]
    assert (await run.result()).get_outputs() == ["a12"]


async def test_runs_inside_several_nodes_take_turns():
    @executor(id="both")
    async def both(text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(text)

    left, right = WorkflowExecutor(pair(), "left"), WorkflowExecutor(pair(), "right")
    builder = WorkflowBuilder(start_executor=both).add_fan_out_edges(both, [left, right])
    run = builder.add_edge(left, last).add_edge(right, last).build().start("a")
    await run.step()
    reasons: list[Any] = []
    while (report := await run.step(inside=True)).pause_reason is not None:
        reasons.append(str(report.pause_reason))
    assert reasons == [f"inside {side}, after its superstep 0" for side in ("left", "right")]
    assert sorted(CALLS) == ["first a", "first a", "second a1", "second a1"]


async def test_listeners_have_the_events_where_a_step_ends():
    run = nested().start("a")
    heard: list[str] = []
    run.listen(lambda events: heard.extend(event.type for event in events))
    report = await run.step(inside=True)
    assert heard == [event.type for event in report.events]


async def test_a_failure_inside_ends_the_step():
    @executor(id="broken")
    async def broken(text: str, ctx: WorkflowContext[str, str]) -> None:
        raise ZeroDivisionError(text)

    inner = WorkflowBuilder(start_executor=first).add_edge(first, broken).build()
    run = WorkflowBuilder(start_executor=WorkflowExecutor(inner, "inside")).build().start("a")
    await run.step(inside=True)
    with pytest.raises(ZeroDivisionError):
        await run.step(inside=True)
    assert run.status is WorkflowRunState.FAILED
    assert not asyncio.all_tasks() - {asyncio.current_task()}

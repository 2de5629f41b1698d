"""Handlers that a placement calls elsewhere, and what the run does with their records."""

import asyncio
from typing import Any, Never

import pytest

from agentbench import Executor, RunOptions, WorkflowBuilder, WorkflowContext, executor, handler, response_handler
from agentbench.exceptions import ExecutorTimeoutError, MessageLimitError
from tests.parts.elsewhere import Elsewhere
from tests.parts.errors import raises


class Ask(Executor):
    """Asks, sends and writes; then takes the answer."""

    placement = "workers"

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        ctx.set_state("asked", [*ctx.get_state("asked", []), text])
        await ctx.request_info(text, str)
        await ctx.send_message(text.upper())

    @response_handler
    async def on_answer(self, question: str, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(f"{question} {answer}")


@executor
async def end(text: str, ctx: WorkflowContext[Never, str]) -> None:
    await ctx.yield_output(text)


def flow(first: Executor) -> Any:
    return WorkflowBuilder(start_executor=first).add_edge(first, end).build()


async def test_only_executors_with_a_placement_are_called_elsewhere():
    there = Elsewhere()
    run = flow(Ask("ask")).start("why", options=RunOptions(workers=there))
    await run.result()
    (request,) = run.pending_requests
    await run.respond(request.request_id, "because")
    await run.result()
    assert (run.outputs, run.state) == (["WHY", "why because"], {"asked": ["why"]})
    assert set(there.prepared) == {"ask"}
    assert [call.data for call in there.calls] == ["why", "because"]
    workers = {event.executor_id: event.worker for event in run.events if event.type == "executor_completed"}
    assert workers == {"ask": "there", "end": None}


async def test_executors_of_a_sub_workflow_are_called_elsewhere_too():
    from agentbench import WorkflowExecutor

    there = Elsewhere()
    inner = WorkflowExecutor(WorkflowBuilder(start_executor=Ask("ask")).build(), "inner")
    await WorkflowBuilder(start_executor=inner).build().run("why", options=RunOptions(workers=there))
    assert there.prepared == ["ask"]


async def test_the_state_is_that_of_the_start_of_the_superstep():
    class Grow(Executor):
        placement = "workers"

        @handler
        async def grow(self, n: int, ctx: WorkflowContext[Never, int]) -> None:
            ctx.set_state("n", ctx.get_state("n", 0) + n)
            await ctx.yield_output(ctx.get_state("n"))

    @executor
    async def begin(n: int, ctx: WorkflowContext[int]) -> None:
        ctx.set_state("n", 10)
        await ctx.send_message(n)

    nodes = [Grow("a"), Grow("b")]
    workflow = WorkflowBuilder(start_executor=begin).add_fan_out_edges(begin, nodes).build()
    run = workflow.start(1, options=RunOptions(workers=Elsewhere()))
    assert (await run.result()).get_outputs() == [11, 11]
    assert run.state == {"n": 11}


async def test_a_lost_worker_counts_as_an_attempt_and_so_does_a_retry():
    class Once(Executor):
        placement = "workers"
        failures = 0

        @handler
        async def fail_once(self, text: str, ctx: WorkflowContext[str]) -> None:
            await ctx.send_message(text)
            if not self.failures:
                self.failures += 1
                raise ConnectionError(text)

    run = flow(Once("once", retries=1)).start("x", options=RunOptions(workers=Elsewhere("lost", "kept"), observe=True))
    assert (await run.result()).get_outputs() == ["x"]
    stamps = [(e.type, e.attempt, e.worker) for e in run.events if e.executor_id == "once"]
    assert stamps == [
        ("executor_invoked", 1, None),
        ("warning", 2, "kept"),
        ("executor_completed", 4, "kept"),
    ]


async def test_a_timeout_and_a_cancellation_reach_the_placement():
    @executor(on="workers", timeout=0.001)
    async def endless(text: str, ctx: WorkflowContext) -> None:
        await asyncio.Event().wait()

    there = Elsewhere()
    with raises(ExecutorTimeoutError, executor_id="endless"):
        await WorkflowBuilder(start_executor=endless).build().run("x", options=RunOptions(workers=there))
    assert len(there.ended) == 1


async def test_types_and_limits_are_checked_where_the_record_is_applied():
    @executor(on="workers", output=str)
    async def wrong(text: str, ctx: WorkflowContext[str]) -> None:
        for _ in range(3):
            await ctx.send_message(3)  # type: ignore[arg-type]

    options = RunOptions(workers=Elsewhere(), max_messages=2)
    with raises(MessageLimitError, max_messages=2):
        await flow(wrong).run("x", options=options)
    strict = WorkflowBuilder(start_executor=wrong, check_types="error").add_edge(wrong, end).build()
    with raises(TypeError, "'wrong'", "int", "str"):
        await strict.run("x", options=RunOptions(workers=Elsewhere()))


async def test_nothing_begins_if_the_placement_refuses_an_executor():
    class Refusing(Elsewhere):
        async def prepare(self, executors: Any) -> None:
            raise PermissionError

    run = flow(Ask("ask")).start("x", options=RunOptions(workers=Refusing()))
    with pytest.raises(PermissionError):
        await run.result()
    assert [event.type for event in run.events if event.executor_id] == []

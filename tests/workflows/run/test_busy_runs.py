"""Runs whose handlers never wait: others get their turn, and messages that multiply end in a named error."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentbench import (
    BoundaryOutcome,
    Executor,
    RunOptions,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowRunnerException,
    executor,
    handler,
)
from agentbench.exceptions import MessageLimitError
from tests.parts.errors import raises


class Again(Executor):
    """Sends its number to itself so many times."""

    def __init__(self, times: int) -> None:
        super().__init__("again")
        self.times, self.calls, self.called = times, 0, asyncio.Event()

    @handler
    async def on_int(self, number: int, ctx: WorkflowContext[int]) -> None:
        self.calls += 1
        self.called.set()
        for _ in range(self.times):
            await ctx.send_message(number)


def loop(node: Executor, **settings: Any) -> Any:
    return WorkflowBuilder(start_executor=node, **settings).add_edge(node, node).build()


@pytest.mark.parametrize(("times", "start"), [(1, None), (0, 40_000)])
async def test_a_run_whose_handlers_never_wait_can_be_cancelled(times: int, start: int | None):
    """Many supersteps in a row, and one superstep with many messages for one executor."""
    node = Again(times)

    class Many(Executor):
        @handler
        async def on_int(self, number: int, ctx: WorkflowContext[int]) -> None:
            for _ in range(start or 1):
                await ctx.send_message(number)

    many = Many("many")
    builder = WorkflowBuilder(start_executor=many, max_iterations=100_000).add_edge(many, node)
    workflow = builder.add_edge(node, node).build()
    run = asyncio.ensure_future(workflow.run(1))
    await node.called.wait()
    assert not run.done()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert node.calls < 40_000
    workflow.reset()
    assert (await WorkflowBuilder(start_executor=Again(0)).build().run(1)).outputs == []


async def test_a_deadline_is_kept_over_busy_handlers():
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(loop(Again(1), max_iterations=10_000_000).run(1), 0.05)


async def test_messages_that_multiply_end_in_a_named_error():
    workflow = loop(Again(2), name="twice")
    with raises(WorkflowRunnerException, "131,072", "max_messages") as caught:
        await workflow.run(1)
    assert isinstance(caught.value, MessageLimitError)
    error = caught.value
    assert (error.workflow_name, error.superstep, error.max_messages) == ("twice", 16, 100_000)
    assert error.queued == {"again": 131_072}


async def test_a_handler_that_sends_without_end_is_stopped_at_the_limit():
    @executor(id="talker")
    async def talk(number: int, ctx: WorkflowContext[int]) -> None:
        while True:
            await ctx.send_message(number)

    workflow = WorkflowBuilder(start_executor=talk, max_messages=50).build()
    with raises(MessageLimitError, "51", "(51)", "50"):
        await workflow.run(1)


async def test_the_limit_of_messages_is_set_by_builder_and_run():
    for workflow, options, queued in (
        (loop(Again(2)), RunOptions(max_messages=10), 16),
        (loop(Again(2), max_messages=100), None, 128),
        (loop(Again(2), max_messages=100), RunOptions(max_messages=5), 8),
        (WorkflowBuilder(start_executor=Again(5)).max_messages(4).build(), None, 5),
    ):
        with pytest.raises(MessageLimitError) as caught:
            await workflow.run(1, options=options)
        assert caught.value.queued == {"again": queued}
    with raises(ValueError, "max_messages", "-1", "0"):
        WorkflowBuilder(max_messages=-1)
    with raises(TypeError, "'many'", "max_messages"):
        RunOptions(max_messages="many")  # type: ignore[arg-type]


async def test_the_messages_of_a_boundary_hook_count_too():
    class Doubling:
        failure_policy = "cancel"
        reachability = True

        def signature(self) -> None:
            return None

        async def at_boundary(self, view: Any) -> BoundaryOutcome:
            return BoundaryOutcome(messages=[("again", 1)] * 2 * len(view.deliveries))

        async def on_responses(self, answers: Any, view: Any) -> BoundaryOutcome:
            return BoundaryOutcome()

    builder = WorkflowBuilder(start_executor=Again(0), max_messages=50).boundary_hook(Doubling())  # type: ignore[arg-type]
    with pytest.raises(MessageLimitError) as caught:
        await builder.build().run(1)
    assert caught.value.queued == {"internal:again": 64}

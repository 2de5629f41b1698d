"""Levels of nesting change nothing of what a workflow does, only where."""

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentbench import (
    Executor,
    InMemoryCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    handler,
    response_handler,
)


class Act(Executor):
    """Does what each letter says: `y` yields, `r` requests."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        for place, letter in enumerate(text):
            if letter == "y":
                await ctx.yield_output(f"{place}")
            else:
                await ctx.request_info(place, str, request_id=f"r{place}")

    @response_handler
    async def on_word(self, place: int, word: str, ctx: WorkflowContext[str, str]) -> None:
        seen = ctx.get_state("seen", [])
        ctx.set_state("seen", [*seen, place])
        await ctx.yield_output(f"{place}{word}{len(seen)}")


def build(depth: int) -> Workflow:
    workflow = WorkflowBuilder(start_executor=Act("act"), name="inmost").build()
    for level in range(depth):
        node = WorkflowExecutor(workflow, f"level{level}", allow_direct_output=True, propagate_request=True)
        workflow = WorkflowBuilder(start_executor=node, name=f"level {level}").build()
    return workflow


async def run(text: str, depth: int, *, in_new_process: bool) -> list[Any]:
    """Return the outputs before and after all requests are answered, and the requests."""
    storage, workflow = InMemoryCheckpointStorage(), build(depth)
    first = await workflow.run(text, checkpoint_storage=storage)
    requests = {event.request_id: event.data for event in first.get_request_info_events()}
    if not requests:
        return [first.get_outputs()]
    responses = {request_id: f"<{data}>" for request_id, data in requests.items()}
    settings: dict[str, Any] = {}
    if in_new_process:
        latest = await storage.get_latest(workflow_name=workflow.name)
        assert latest is not None
        workflow, settings = build(depth), {"checkpoint_id": latest.checkpoint_id}
    second = await workflow.run(responses=responses, checkpoint_storage=storage, **settings)
    return [first.get_outputs(), requests, second.get_outputs()]


@given(text=st.text("yr", max_size=5), depth=st.integers(1, 3), in_new_process=st.booleans())
def test_outputs_and_requests_are_the_same_at_any_depth(text, depth, in_new_process):
    flat = asyncio.run(run(text, 0, in_new_process=False))
    assert asyncio.run(run(text, depth, in_new_process=in_new_process)) == flat

"""The state of a run as a value: taken, put back, and refused, without any storage."""

from __future__ import annotations

from typing import Any

from agentbench import Executor, Workflow, WorkflowContext, handler, response_handler
from agentbench.workflows.persist.snapshot import restore, snapshot
from tests.parts.executors import chain


class Counts(Executor):
    """Counts its messages in a field, which it saves."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.count = 0

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[str]) -> None:
        self.count += 1
        ctx.set_state("last", text)
        await ctx.send_message(text)

    async def on_checkpoint_save(self) -> dict[str, Any]:
        return {"count": self.count}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        self.count = state["count"]


class Ask(Executor):
    """Requests a word, then yields it."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.request_info(text, str)

    @response_handler
    async def on_word(self, request: str, word: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(f"{request}: {word}")


def asking() -> Workflow:
    return chain(Counts("a"), Ask("ask"))


async def test_a_snapshot_goes_on_in_another_instance():
    first = asking()
    request = (await first.run("q")).get_request_info_events()[0]
    saved = await snapshot(first.graph, first.run_state)
    second = asking()
    await restore(second.graph, second.run_state, saved)
    assert second.run_state.superstep == first.run_state.superstep
    assert second.state.get("last") == "q"
    assert second.executors["a"].count == 1  # type: ignore[attr-defined]
    result = await second.run(responses={request.request_id: "word"})
    assert result.get_outputs() == (await first.run(responses={request.request_id: "word"})).get_outputs()


async def test_a_snapshot_is_not_changed_by_what_the_run_does_later():
    workflow = asking()
    await workflow.run("q")
    saved = await snapshot(workflow.graph, workflow.run_state)
    before = (saved.superstep, dict(saved.state), list(saved.requests))
    workflow.reset()
    await workflow.run("other")
    assert (saved.superstep, dict(saved.state), list(saved.requests)) == before

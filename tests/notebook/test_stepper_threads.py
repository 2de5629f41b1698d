"""A stepper and the threads around it: closing in time, listeners in order, and interrupts of whoever waits."""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections.abc import Callable
from typing import Any

import pytest

from agentbench import (
    Executor,
    InMemoryCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowContext,
    _bridge,
    handler,
    response_handler,
)
from agentbench._bridge import engine_thread
from agentbench.exceptions import StepperClosed
from agentbench.notebook import Stepper, stepper


class Ask(Executor):
    @handler
    async def ask(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        ctx.set_state("text", text)
        await ctx.request_info(text, bool)

    @response_handler
    async def answered(self, asked: str, ok: bool, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(asked if ok else "no")


class Pass(Executor):
    @handler
    async def take(self, text: str, ctx: WorkflowContext[str]) -> None:
        ctx.set_state("topic", text)
        await ctx.send_message(text)


def asking() -> Workflow:
    first, ask = Pass(id="first"), Ask(id="ask")
    return WorkflowBuilder(start_executor=first, name="asking").add_edge(first, ask).build()


# --- closing ----------------------------------------------------------------------------------------------------------


async def test_a_stepper_that_is_closed_before_its_run_is_open_stays_closed_and_frees_the_workflow() -> None:
    flow = asking()
    panel = stepper(flow, "Publish?", loop="kernel")
    panel.close()
    assert panel.status == "closed"
    for _ in range(100):
        await asyncio.sleep(0)
    assert panel.status == "closed"
    with pytest.raises(StepperClosed):
        await panel.astep()
    assert (await flow.run("dogs")).get_final_state() == "IDLE_WITH_PENDING_REQUESTS"


# --- listening --------------------------------------------------------------------------------------------------------


def test_status_changes_are_heard_in_order_on_the_thread_of_the_run() -> None:
    panel = stepper(asking(), "Publish?")
    heard: list[tuple[str, int | None]] = []
    panel.on("status", lambda status: heard.append((str(status), threading.get_ident())))
    panel.run()
    panel.close()
    assert [status for status, _ in heard] == ["running", "waiting", "closed"]
    assert {thread for _, thread in heard} == {engine_thread()._thread.ident}


# --- interrupts -------------------------------------------------------------------------------------------------------


class Slow(InMemoryCheckpointStorage):
    """A storage that can be made to load for ever."""

    def __init__(self) -> None:
        super().__init__()
        self.stuck = False
        self.cancelled = 0

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        if self.stuck:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        return await super().load(checkpoint_id)


@pytest.mark.parametrize(
    "call",
    [lambda panel: panel.edit("text", "b"), lambda panel: panel.fork(), lambda panel: panel.state],
    ids=["edit", "fork", "state"],
)
def test_an_interrupt_between_the_begin_of_a_call_and_its_wait_ends_its_work(
    monkeypatch: pytest.MonkeyPatch, call: Callable[[Stepper], object]
) -> None:
    storage = Slow()
    panel = stepper(asking(), "a", storage=storage)
    panel.run()
    panel.respond(panel.pending[0].request_id, True)
    panel.run()
    panel.back()
    storage.stuck = True
    handed_over: list[_bridge.EngineFuture[Any]] = []

    def interrupted(future: _bridge.EngineFuture[Any], **_: Any) -> None:
        handed_over.append(future)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_bridge, "wait_sync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            call(panel)
    [future] = handed_over
    assert future.cancelling
    future.wait_until_done(20.0)
    assert future.cancelled()
    storage.stuck = False
    panel.close()


# --- panels that show themselves --------------------------------------------------------------------------------------


def test_a_run_shows_its_panel_where_a_person_has_to_answer_and_a_fork_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = importlib.import_module("agentbench.notebook.stepping.stepper")
    shown: list[object] = []
    monkeypatch.setattr(module, "in_kernel", lambda: True)
    monkeypatch.setattr(module, "show_in_cell", shown.append)
    monkeypatch.setattr(module, "at_end_of_cell", lambda call: call())
    panel = stepper(asking(), "Publish?")
    panel.run()
    assert shown == [panel]
    start = panel.checkpoints[0].checkpoint_id
    forks = [panel.fork(start, edits={"topic": topic}) for topic in ("a", "b")]
    assert [fork.run() for fork in forks] == ["waiting", "waiting"]
    assert shown == [panel]
    forks[0].show()
    assert shown == [panel, forks[0]]
    for each in (*forks, panel):
        each.close()


# --- exits ------------------------------------------------------------------------------------------------------------


class Exit(Executor):
    tries = 0

    @handler
    async def leave(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        self.tries += 1
        if self.tries == 1:
            raise SystemExit(3)
        await ctx.yield_output(text)


def test_an_executor_that_exits_has_failed_and_its_superstep_can_be_taken_again() -> None:
    first, last = Pass(id="first"), Exit(id="exit")
    panel = stepper(WorkflowBuilder(start_executor=first, name="exits").add_edge(first, last).build(), "x")
    assert panel.run() == "failed"
    assert isinstance(panel.error, SystemExit)
    assert "SystemExit: 3" in panel._screen.state.banner.text
    panel.step()
    assert (panel.status, panel.superstep) == ("done", 1)
    panel.close()

"""A real run driven through its stepper by whatever somebody may ask, in whatever order; and what always holds."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agentbench import (
    Executor,
    InMemoryCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    response_handler,
    run_sync,
)
from agentbench._clock import CountingIds, TickingClock
from agentbench.exceptions import StepperStateError
from agentbench.notebook import Stepper, stepper

AT_REST = ("ready", "paused", "waiting", "done", "failed", "cancelled")


@dataclass
class Question:
    prompt: str


class Count(Executor):
    """Counts down, one superstep each; asks a person at 4, and raises at 2 where the state says so."""

    @handler
    async def count(self, left: int, ctx: WorkflowContext[int, str]) -> None:
        if left == 2 and ctx.get_state("raises"):
            raise ValueError("two")
        ctx.set_state("left", left)
        ctx.set_state("trail", [*(ctx.get_state("trail") or []), left])
        if left == 4:
            await ctx.request_info(Question("on?"), bool)
        elif left:
            await ctx.send_message(left - 1)
        else:
            ctx.set_state("raises", value=True)
            await ctx.yield_output("zero")

    @response_handler
    async def answered(self, asked: Question, ok: bool, ctx: WorkflowContext[int, str]) -> None:
        ctx.set_state("raises", not ok)
        await ctx.send_message(3)


def counting() -> Workflow:
    one, other = Count(id="one"), Count(id="other")
    return WorkflowBuilder(start_executor=one, name="counting").add_edge(one, other).add_edge(other, one).build()


async def _others() -> set[str]:
    """Tasks on the loop of the runs, the asking one and what is about to end left out."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return {repr(task.get_coro()) for task in asyncio.all_tasks() - {asyncio.current_task()}}


def refusal_of(act: Callable[[], object]) -> StepperStateError | None:
    try:
        act()
    except StepperStateError as error:
        return error
    return None


class StepperMachine(RuleBasedStateMachine):
    """Drives one stepper; `self.kept` holds the forks, which must not be touched by what is done to it."""

    @initialize(left=st.integers(1, 8))
    def begin(self, left: int) -> None:
        run_sync(asyncio.sleep(0))
        self.tasks = run_sync(_others())
        self.threads = set(threading.enumerate())
        self.storage = InMemoryCheckpointStorage()
        self.panel = stepper(
            counting(), left, storage=self.storage, max_supersteps=6, clock=TickingClock(), ids=CountingIds()
        )
        self.seen: dict[str, str] = {}
        self.kept: list[tuple[Stepper, tuple[Any, ...]]] = []

    def ask(self, call: str, act: Callable[[], object]) -> bool:
        """Do something; it is refused exactly where it is not allowed. Returns whether it was done."""
        before = self.facts(self.panel)
        allowed = call in self.panel.allowed
        refused = refusal_of(act)
        if refused is None:
            assert allowed, call
            return True
        assert not allowed or self.waits_after_fork(call), (call, str(refused))
        assert refused.allowed == self.panel.allowed
        if not allowed:
            assert self.facts(self.panel) == before
        return False

    def waits_after_fork(self, call: str) -> bool:
        """A step from a checkpoint at which a person is asked makes the new run, and says that it waits."""
        return call == "step" and self.panel.status in ("waiting", "done")

    def facts(self, panel: Stepper) -> tuple[Any, ...]:
        return (panel.status, panel.run_id, panel.superstep, panel.checkpoints, panel.checkpoint_id, len(panel.reports))

    # ---- commands ----------------------------------------------------------------------------------------------------

    @rule(count=st.integers(1, 3))
    def step(self, count: int) -> None:
        taken = len(self.panel.reports)
        edited, viewing = bool(self.panel.edits()), self.viewing
        old_run = self.panel.run_id
        if self.ask("step", lambda: self.panel.step(count)):
            assert 1 <= len(self.panel.reports) - taken <= count
            assert (self.panel.run_id != old_run) == (edited or viewing)
            assert not self.viewing

    @rule(until=st.sampled_from([None, "request", lambda report: report.superstep % 2 == 1]))
    def run(self, until: Any) -> None:
        taken = len(self.panel.reports)
        if self.ask("run", lambda: self.panel.run(until=until)):
            assert len(self.panel.reports) - taken <= 6
            assert self.panel.status != "ready" or self.panel.hit is None

    @rule(count=st.integers(1, 3))
    def back(self, count: int) -> None:
        executed = len(self.panel.reports)
        self.ask("back", lambda: self.panel.back(count))
        assert len(self.panel.reports) == executed

    @rule()
    def forward(self) -> None:
        self.ask("forward", self.panel.forward)

    @rule(data=st.data())
    def goto(self, data: st.DataObject) -> None:
        wanted = data.draw(st.sampled_from(["input", *(info.checkpoint_id for info in self.panel.checkpoints)]))
        self.panel.goto(wanted)
        assert self.panel.checkpoint_id == wanted

    @rule()
    def branch(self) -> None:
        shown, reports, edits = self.panel.checkpoint_id, len(self.panel.reports), self.panel.edits()
        given = self.panel.handle.input
        if self.ask("fork", self.panel.branch):
            if shown == "input":
                assert (self.panel.checkpoints, self.panel.checkpoint_id) == ([], "input")
            else:
                copy = self.panel.checkpoints[-1]
                assert (copy.forked_from, copy.source) == (shown, "update" if edits else "fork")
            assert [self.panel.handle.input] == ([edit.after for edit in edits if edit.path == "input"] or [given])
            assert len(self.panel.reports) == reports
            assert self.panel.status in ("ready", "waiting")
            assert all(self.panel.state[edit.path] == edit.after for edit in edits if edit.path in ("left", "trail"))
            assert self.panel.edits() == []

    @precondition(lambda self: len(self.kept) < 3)
    @rule(edit=st.booleans())
    def fork(self, edit: bool) -> None:
        made: list[Stepper] = []
        before = self.facts(self.panel)
        edits = {"left": 7} if edit and "left" in self.panel.state else {}
        if self.ask("fork", lambda: made.append(self.panel.fork(edits=edits))):
            assert self.facts(self.panel) == before
            assert made[0].run_id != self.panel.run_id
            assert [each.text for each in made[0].breakpoints] == [each.text for each in self.panel.breakpoints]
            self.kept.append((made[0], self.facts(made[0])))

    @rule(path=st.sampled_from(["left", "trail", "trail[0]", "messages[0]", "input"]), value=st.integers(0, 9))
    def edit(self, path: str, value: int) -> None:
        shown = self.panel.checkpoint_id
        held = "edit" in self.panel.allowed and self.holds(path)
        wanted = [value] if path == "trail" else value
        if not held and "edit" in self.panel.allowed:
            return
        if self.ask("edit", lambda: self.panel.edit(path, wanted)):
            assert [edit.after for edit in self.panel.edits() if edit.path == path] == [wanted]
            assert self.panel.checkpoint_id == shown

    def holds(self, path: str) -> bool:
        if self.panel.checkpoint_id == "input" or path == "input":
            return self.panel.checkpoint_id == path
        held = run_sync(self.storage.load(self.panel.checkpoint_id or ""))
        if path == "messages[0]":
            data = [message.data for queued in held.messages.values() for message in queued]
            return bool(data) and isinstance(data[0], int) and not isinstance(data[0], bool)
        return path.partition("[")[0] in held.state and not self.panel.edits()

    @rule()
    def discard(self) -> None:
        self.panel.discard_edits()
        assert self.panel.edits() == []

    @rule(
        where=st.sampled_from(
            [
                "one",
                "after:other",
                3,
                int,
                lambda state: state["left"] == 5,
                lambda state: state.get("raises"),
                "failure",
            ]
        ),
        once=st.booleans(),
    )
    def break_at(self, where: Any, once: bool) -> None:
        assert self.panel.break_at(where, once=once) in self.panel.breakpoints

    @rule()
    def clear(self) -> None:
        self.panel.clear()
        assert self.panel.breakpoints == []

    @rule(ok=st.booleans())
    def respond(self, ok: bool) -> None:
        for request in self.panel.pending:
            self.panel.respond(request.request_id, ok)
        assert self.panel.pending == []

    @rule()
    def pause(self) -> None:
        self.ask("pause", self.panel.pause)

    @rule()
    def stop(self) -> None:
        if self.ask("stop", self.panel.stop):
            assert self.panel.status == "cancelled"

    @rule()
    def show_again(self) -> None:
        executed, status = len(self.panel.reports), self.panel.status
        if self.ask("show_again", lambda: self.panel.show_again(speed=1e6)):
            assert (len(self.panel.reports), self.panel.status, self.viewing) == (executed, status, False)

    # ---- what always holds -------------------------------------------------------------------------------------------

    @property
    def viewing(self) -> bool:
        return self.panel.checkpoint_id != (
            self.panel.checkpoints[-1].checkpoint_id if self.panel.checkpoints else "input"
        )

    @invariant()
    def nothing_stored_is_ever_changed(self) -> None:
        for info in run_sync(self.storage.list_infos()):
            content = repr(run_sync(self.storage.load(info.checkpoint_id)).to_dict())
            assert self.seen.setdefault(info.checkpoint_id, content) == content
        assert len(self.seen) == len(run_sync(self.storage.list_infos()))

    @invariant()
    def each_checkpoint_on_the_line_follows_the_one_before(self) -> None:
        line = self.panel.checkpoints
        assert [info.previous_checkpoint_id for info in line[1:]] == [info.checkpoint_id for info in line[:-1]]
        assert len({info.checkpoint_id for info in line}) == len(line)

    @invariant()
    def the_reports_are_in_order(self) -> None:
        supersteps = [report.superstep for report in self.panel.reports]
        assert all(after <= before + 1 for before, after in pairwise(supersteps))
        for report in self.panel.reports:
            numbers = [event.seq for event in report.events]
            assert numbers == sorted(numbers)

    @invariant()
    def the_forks_are_left_alone(self) -> None:
        for panel, facts in self.kept:
            assert self.facts(panel) == facts

    @invariant()
    def it_is_at_rest_and_no_task_is_left_over(self) -> None:
        assert self.panel.status in AT_REST
        assert run_sync(_others()) <= self.tasks
        assert set(threading.enumerate()) <= self.threads

    def teardown(self) -> None:
        if hasattr(self, "panel"):
            for panel in (self.panel, *(panel for panel, _ in self.kept)):
                panel.close()
                assert panel.status == "closed"
            assert run_sync(_others()) <= self.tasks


StepperMachine.TestCase.settings = settings(stateful_step_count=25)
TestStepperMachine = StepperMachine.TestCase

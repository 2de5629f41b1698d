"""Pure: what a stepper decides. Requests of people and reports of the engine go in, instructions come out.

No widget, no loop, no clock: `StepperModel.handle` is the whole stepper as a table, and `stepping.stepper` carries out
its instructions. A request that is not allowed now raises `StepperStateError`; widgets disable their buttons.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agentbench.exceptions import StepperStateError
from agentbench.notebook.history.log import LogLine, lines_of_event, lines_of_report
from agentbench.notebook.history.usage import tokens_of
from agentbench.notebook.stepping.model.knowledge import LOG_LINES, Goal, StepperKnowledge
from agentbench.notebook.stepping.model.messages import (
    IN_FLIGHT,
    AnswerTaken,
    BackRequested,
    BranchRequested,
    BreakpointsChecked,
    BreakpointsCleared,
    BreakpointSet,
    CheckBreakpoints,
    CloseRequested,
    EditsDiscarded,
    EditStaged,
    EventEmitted,
    Fork,
    Forked,
    ForwardRequested,
    GotoRequested,
    Instruction,
    Interrupted,
    LiveRequested,
    PauseRequested,
    Release,
    Rest,
    Rested,
    Restore,
    Restored,
    RunRequested,
    ShowAgainRequested,
    Started,
    StepEnded,
    StepFailed,
    StepperStatus,
    StepRequested,
    Stimulus,
    Stopped,
    StopRequested,
    StopRun,
    TakeStep,
    Until,
)
from agentbench.workflows.run.break_places import pause_reason
from agentbench.workflows.run.report import StepReport

__all__ = ["LOG_LINES", "StepperModel"]


class StepperModel(StepperKnowledge):
    """One stepper: its state, how each stimulus changes it, and which instruction follows."""

    def handle(self, stimulus: Stimulus) -> Instruction | None:
        """Take in one stimulus and return the instruction that follows, `None` for none.

        Raises:
            StepperStateError: If the request is not allowed now. Nothing has changed then.
            StepperClosed: If the stepper is closed.
        """
        react: Callable[[Any], Instruction | None] = getattr(self, _REACTIONS[type(stimulus)])
        return react(stimulus)

    # ---- people ----------------------------------------------------------------------------------------------------

    def _on_step_requested(self, request: StepRequested) -> Instruction | None:
        self.require("step")
        return self._set_out(
            request, request.count, StepperStatus.STEPPING if request.count == 1 else StepperStatus.RUNNING
        )

    def _on_run_requested(self, request: RunRequested) -> Instruction | None:
        if request.through and self.status is StepperStatus.WAITING and self.viewing is None and not self.facts.planned:
            self._goal = Goal(request.limit, request)
            return None
        self.require("run")
        self._check_until(request.until)
        return self._set_out(request, request.limit, StepperStatus.RUNNING)

    def _check_until(self, until: Until | None) -> None:
        if until == "breakpoint" and not self.breakpoints:
            msg = "until='breakpoint' needs one. Set it first: break_at('review')."
            raise ValueError(msg)
        last = self.facts.superstep if self.viewing is None else self.past[self.viewing].info.iteration
        if isinstance(until, int) and last is not None and until <= last:
            msg = f"until={until} is over: superstep {last} was the last. back() and goto() show earlier ones."
            raise ValueError(msg)

    def _set_out(self, request: StepRequested | RunRequested, count: int, status: StepperStatus) -> Instruction | None:
        forks = self.viewing is not None or bool(self.edits)
        if forks and not request.confirmed:
            self.confirming = request
            return None
        self._goal = Goal(count, request)
        self.note = None
        self.confirming = None
        self._playing_at = None
        failed, self.status = self.status is StepperStatus.FAILED, status
        if forks:
            return self._fork_from(self.displayed or 0)
        unchecked = self.board.unchecked if isinstance(request, RunRequested) and not failed else ()
        self.board.hit = None
        if failed:
            return Restore(self.past[-1].info if self.past else None)
        return CheckBreakpoints(unchecked) if unchecked else self._next_step()

    def _fork_from(self, index: int) -> Fork:
        self._forking = index
        info = self.past[index].info
        return Fork(info, self._desk.of(info.checkpoint_id))

    def _next_step(self) -> TakeStep:
        self.activity.begin()
        until = None if self._goal is None else self._goal.until
        return TakeStep(until if callable(until) else None)

    def _rest(self, delay_s: float) -> Rest:
        self._turn += 1
        return Rest(delay_s, self._turn)

    def _on_pause_requested(self, request: PauseRequested) -> None:
        self.require("pause")
        self._playing_at = None
        if self._goal is not None:
            self._goal.pause_wanted = True

    def _on_stop_requested(self, request: StopRequested) -> Instruction:
        self.require("stop")
        self.stop_wanted = True
        self._look_at(None)
        if self.status is StepperStatus.WAITING:
            self._goal = None
        return StopRun()

    def _on_back_requested(self, request: BackRequested) -> None:
        self.require("back")
        self._look_at(max(0, (self.displayed or 0) - request.count))

    def _on_forward_requested(self, request: ForwardRequested) -> None:
        self.require("forward")
        self._look_at((self.displayed or 0) + request.count)

    def _on_goto_requested(self, request: GotoRequested) -> None:
        self.require_open()
        if self.status in IN_FLIGHT:
            raise StepperStateError(str(self.status), self.allowed, "goto")
        self._look_at(self.line.index_of(request.checkpoint_id))

    def _on_live_requested(self, request: LiveRequested) -> None:
        self.require_open()
        self._look_at(None)

    def _on_show_again_requested(self, request: ShowAgainRequested) -> Instruction:
        self.require("show_again")
        self._look_at(self.viewing or 0)
        self._playing_at = request.speed
        return self._rest(1.0 / request.speed)

    def _on_branch_requested(self, request: BranchRequested) -> Instruction:
        self.require("fork")
        index = (self.displayed or 0) if request.checkpoint_id is None else self.line.index_of(request.checkpoint_id)
        self._look_at(None)
        self._goal = None
        self.note = None
        self.status = StepperStatus.STEPPING  # no other request is allowed until the new run is open
        return self._fork_from(index)

    def _on_breakpoint_set(self, request: BreakpointSet) -> None:
        self.require_open()
        self.board.add(request.breakpoint)

    def _on_breakpoints_cleared(self, request: BreakpointsCleared) -> None:
        self.require_open()
        self.board.remove(request.ids)

    def _on_edit_staged(self, request: EditStaged) -> None:
        self.require("edit")
        self.line.index_of(request.checkpoint_id)
        self._playing_at = None
        self.confirming = None
        self._desk.stage(request.checkpoint_id, request.edit)

    def _on_edits_discarded(self, request: EditsDiscarded) -> None:
        self.require_open()
        self.confirming = None
        self._desk.discard(request.checkpoint_id or self.line.displayed_id, request.path)

    def _on_close_requested(self, request: CloseRequested) -> Instruction | None:
        if self.status is StepperStatus.CLOSED:
            return None
        self._look_at(None)
        self._goal = None
        self.status = StepperStatus.CLOSED
        return Release()

    def _look_at(self, index: int | None) -> None:
        self.confirming = None
        self._playing_at = None
        self.line.look_at(index)

    # ---- engine ----------------------------------------------------------------------------------------------------

    def _on_started(self, outcome: Started) -> None:
        if self.status is StepperStatus.CLOSED:
            return
        self.line.begin(outcome.line)
        self._learn(outcome.facts)
        if self._goal is None:
            self.status = self._status_at_rest()

    def _on_event_emitted(self, outcome: EventEmitted) -> None:
        self.activity.see(outcome.event)
        self.tokens += tokens_of(outcome.event)
        self.note_down(lines_of_event(outcome.event))

    def _on_step_ended(self, outcome: StepEnded) -> Instruction | None:
        self.reports.append(outcome.report)
        self.elapsed_s += outcome.report.duration_s or 0.0
        self._learn(outcome.facts)
        self.note_down(lines_of_report(outcome.report))
        if self.status is StepperStatus.CLOSED:
            return None
        self.board.move_on(checked=True)
        self.board.take(outcome.hits)
        if any(hit.error is not None for hit in outcome.hits):
            self.facts = replace(self.facts, pause_reason=pause_reason(outcome.hits))
        if self._goal is None:
            return None
        self._goal.left -= 1
        if isinstance(outcome.reached, Exception):
            self.note = f"until= raised {type(outcome.reached).__name__}: {outcome.reached}"
        if self._goes_on(outcome):
            return self._rest(self._goal.delay_s) if self._goal.delay_s else self._next_step()
        self._arrive(stays=bool(outcome.hits))
        return None

    def _on_breakpoints_checked(self, outcome: BreakpointsChecked) -> Instruction | None:
        self.board.take(outcome.hits)
        if self._goal is None or self.stop_wanted:
            return None
        if not outcome.hits and not self._goal.pause_wanted:
            return self._next_step()
        self.facts = replace(self.facts, pause_reason=pause_reason(outcome.hits))
        self._arrive(stays=True)
        return None

    def _on_rested(self, outcome: Rested) -> Instruction | None:
        if outcome.turn != self._turn:
            return None
        if self._playing_at is not None:
            return self._show_next(self._playing_at)
        if self._goal is None or self.stop_wanted:
            return None
        if self._goal.pause_wanted:
            self._arrive()
            return None
        return self._next_step()

    def _show_next(self, speed: float) -> Instruction | None:
        self.line.look_at((self.displayed or 0) + 1)
        if self.viewing is not None:
            return self._rest(1.0 / speed)
        self._playing_at = None
        return None

    def _goes_on(self, outcome: StepEnded) -> bool:
        goal = self._goal
        if goal is None or not outcome.facts.status.startswith("IN_PROGRESS") or self.stop_wanted:
            return False
        if goal.left <= 0 and isinstance(goal.request, RunRequested):
            self.note = f"max_supersteps={goal.request.limit} were taken. Run goes on."
        if goal.left <= 0 or self._is_far_enough(goal.until, outcome.report):
            return False
        return not (goal.pause_wanted or outcome.facts.pause_reason or outcome.hits or outcome.reached)

    def _is_far_enough(self, until: Until | None, report: StepReport) -> bool:
        if isinstance(until, int):
            return report.superstep >= until
        return until == "request" and bool(report.requests)

    def _arrive(self, *, stays: bool = False) -> None:
        """Come to rest: nothing is in flight any more. `stays`: the run does not go on by itself either."""
        self.status = self._status_at_rest()
        if self.facts.pause_reason is not None:
            self.note = f"Paused: {self.facts.pause_reason}"
        goal = self._goal
        waits = self.status is StepperStatus.WAITING and goal is not None and goal.through and goal.until != "request"
        if stays or not waits:
            self._goal = None
        self.stop_wanted = False

    def _on_step_failed(self, outcome: StepFailed) -> None:
        self._learn(outcome.facts)
        if self.status is StepperStatus.CLOSED:
            return
        self._goal = None
        self.stop_wanted = False
        at_rest = self._status_at_rest()
        # What fails without the run having failed (a fork, a plan, a save) leaves the run as it was.
        self.status = at_rest
        if at_rest is not StepperStatus.FAILED:
            self.note = f"{type(outcome.error).__name__}: {outcome.error}"

    def _on_answer_taken(self, outcome: AnswerTaken) -> Instruction | None:
        in_flight = self.status in IN_FLIGHT
        self._learn(outcome.facts, at_rest=not in_flight)
        if in_flight or self.status is StepperStatus.CLOSED:
            return None
        goal = self._goal
        self.status = self._status_at_rest()
        if goal is not None and goal.through and goal.left > 0 and self.viewing is None:
            self.status = StepperStatus.RUNNING
            return self._next_step()
        self._goal = None
        return None

    def _on_forked(self, outcome: Forked) -> Instruction | None:
        origin, old_run = self.past[self._forking].info, self.facts.run_id
        edits = self._desk.of(origin.checkpoint_id)
        self._desk.discard(origin.checkpoint_id)
        self.line.branch(self._forking, outcome.copy)
        self._look_at(None)
        self.activity.reset()
        self.board.move_on(checked=True)
        self._learn(outcome.facts)
        line = LogLine.of_fork(old_run, origin.iteration, outcome.facts.run_id)
        self.note_down([line, *map(LogLine.of_edit, edits)])
        self.note = line.text
        return self._go_after_return()

    def _on_restored(self, outcome: Restored) -> Instruction | None:
        self.activity.reset()
        self.board.move_on(checked=True)
        self._learn(outcome.facts)
        return self._go_after_return()

    def _go_after_return(self) -> Instruction | None:
        if self.status is StepperStatus.CLOSED or self.stop_wanted:
            return None
        if self._goal is not None and self._status_at_rest() in (StepperStatus.READY, StepperStatus.PAUSED):
            return self._next_step()
        self._arrive()
        return None

    def _on_stopped(self, outcome: Stopped) -> None:
        self._learn(outcome.facts)
        self._goal = None
        if self.status is not StepperStatus.CLOSED:
            self.status = self._status_at_rest()
        self.stop_wanted = False

    def _on_interrupted(self, outcome: Interrupted) -> None:
        in_flight = self.status in IN_FLIGHT
        self._learn(outcome.facts)
        self._goal = None
        self._playing_at = None
        self.stop_wanted = False
        if self.status is not StepperStatus.CLOSED:
            self.status = self._status_at_rest()
            self.note = "The cell was interrupted; the superstep in flight was cancelled." if in_flight else None


_REACTIONS: dict[type, str] = {
    StepRequested: "_on_step_requested",
    RunRequested: "_on_run_requested",
    PauseRequested: "_on_pause_requested",
    StopRequested: "_on_stop_requested",
    BackRequested: "_on_back_requested",
    ForwardRequested: "_on_forward_requested",
    GotoRequested: "_on_goto_requested",
    LiveRequested: "_on_live_requested",
    ShowAgainRequested: "_on_show_again_requested",
    BranchRequested: "_on_branch_requested",
    BreakpointSet: "_on_breakpoint_set",
    BreakpointsCleared: "_on_breakpoints_cleared",
    EditStaged: "_on_edit_staged",
    EditsDiscarded: "_on_edits_discarded",
    CloseRequested: "_on_close_requested",
    Started: "_on_started",
    EventEmitted: "_on_event_emitted",
    StepEnded: "_on_step_ended",
    StepFailed: "_on_step_failed",
    BreakpointsChecked: "_on_breakpoints_checked",
    Rested: "_on_rested",
    AnswerTaken: "_on_answer_taken",
    Forked: "_on_forked",
    Restored: "_on_restored",
    Stopped: "_on_stopped",
    Interrupted: "_on_interrupted",
}

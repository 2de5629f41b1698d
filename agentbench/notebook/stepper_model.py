"""Pure: what a stepper decides. What people ask and what the engine reports goes in, what to do comes out.

No widget, no loop, no clock: `StepperModel.handle` is the whole stepper as a table, and `agentbench.notebook.stepper`
carries out what it says. Asking for what is not allowed now raises `StepperStateError`; widgets disable their buttons.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agentbench.exceptions import StepperStateError
from agentbench.notebook.breakpoints import pause_reason
from agentbench.notebook.step_log import LogLine, lines_of_event, lines_of_report
from agentbench.notebook.stepper_knowledge import LOG_LINES, Goal, StepperKnowledge
from agentbench.notebook.stepper_messages import (
    IN_FLIGHT,
    AnswerTaken,
    AskBreakpoints,
    BackAsked,
    BranchAsked,
    BreakpointsAsked,
    BreakpointsCleared,
    BreakpointSet,
    CloseAsked,
    EditsDiscarded,
    EditStaged,
    EventSeen,
    Fork,
    Forked,
    ForwardAsked,
    GotoAsked,
    Instruction,
    Interrupted,
    LiveAsked,
    PauseAsked,
    Release,
    Rest,
    Rested,
    Restore,
    Restored,
    RunAsked,
    ShowAgainAsked,
    Started,
    StepAsked,
    StepEnded,
    StepFailed,
    StepperStatus,
    Stimulus,
    StopAsked,
    Stopped,
    StopRun,
    TakeStep,
    Until,
)
from agentbench.notebook.usage_model import tokens_of
from agentbench.workflows.run.report import StepReport

__all__ = ["LOG_LINES", "StepperModel"]


class StepperModel(StepperKnowledge):
    """One stepper: what it knows, and how that and what is to be done change with each stimulus."""

    def handle(self, stimulus: Stimulus) -> Instruction | None:
        """Take in one stimulus and say what is to be done, `None` for nothing.

        Raises:
            StepperStateError: If something is asked that is not allowed now. Nothing has changed then.
            StepperClosed: If anything is asked of a closed stepper.
        """
        react: Callable[[Any], Instruction | None] = getattr(self, _REACTIONS[type(stimulus)])
        return react(stimulus)

    # ---- people ----------------------------------------------------------------------------------------------------

    def _on_step_asked(self, asked: StepAsked) -> Instruction | None:
        self.require("step")
        return self._set_out(asked, asked.count, StepperStatus.STEPPING if asked.count == 1 else StepperStatus.RUNNING)

    def _on_run_asked(self, asked: RunAsked) -> Instruction | None:
        if asked.through and self.status is StepperStatus.WAITING and self.viewing is None and not self.facts.planned:
            self._goal = Goal(asked.limit, asked)
            return None
        self.require("run")
        self._check_until(asked.until)
        return self._set_out(asked, asked.limit, StepperStatus.RUNNING)

    def _check_until(self, until: Until | None) -> None:
        if until == "breakpoint" and not self.breakpoints:
            msg = "until='breakpoint' needs one. Set it first: break_at('review')."
            raise ValueError(msg)
        last = self.facts.superstep if self.viewing is None else self.past[self.viewing].info.iteration
        if isinstance(until, int) and last is not None and until <= last:
            msg = f"until={until} is over: superstep {last} was the last. back() and goto() show earlier ones."
            raise ValueError(msg)

    def _set_out(self, asked: StepAsked | RunAsked, count: int, status: StepperStatus) -> Instruction | None:
        forks = self.viewing is not None or bool(self.edits)
        if forks and not asked.confirmed:
            self.confirming = asked
            return None
        self._goal = Goal(count, asked)
        self.note = None
        self.confirming = None
        self._playing_at = None
        failed, self.status = self.status is StepperStatus.FAILED, status
        if forks:
            return self._fork_from(self.shown or 0)
        unasked = self.board.unasked if isinstance(asked, RunAsked) and not failed else ()
        self.board.hit = None
        if failed:
            return Restore(self.past[-1].info)
        return AskBreakpoints(unasked) if unasked else self._next_step()

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

    def _on_pause_asked(self, asked: PauseAsked) -> None:
        self.require("pause")
        self._playing_at = None
        if self._goal is not None:
            self._goal.pause_wanted = True

    def _on_stop_asked(self, asked: StopAsked) -> Instruction:
        self.require("stop")
        self.stop_wanted = True
        self._look_at(None)
        if self.status is StepperStatus.WAITING:
            self._goal = None
        return StopRun()

    def _on_back_asked(self, asked: BackAsked) -> None:
        self.require("back")
        self._look_at(max(0, (self.shown or 0) - asked.count))

    def _on_forward_asked(self, asked: ForwardAsked) -> None:
        self.require("forward")
        self._look_at((self.shown or 0) + asked.count)

    def _on_goto_asked(self, asked: GotoAsked) -> None:
        self.require_open()
        if self.status in IN_FLIGHT:
            raise StepperStateError(str(self.status), self.allowed, "goto")
        self._look_at(self.line.index_of(asked.checkpoint_id))

    def _on_live_asked(self, asked: LiveAsked) -> None:
        self.require_open()
        self._look_at(None)

    def _on_show_again_asked(self, asked: ShowAgainAsked) -> Instruction:
        self.require("show_again")
        self._look_at(self.viewing or 0)
        self._playing_at = asked.speed
        return self._rest(1.0 / asked.speed)

    def _on_branch_asked(self, asked: BranchAsked) -> Instruction:
        self.require("fork")
        index = (self.shown or 0) if asked.checkpoint_id is None else self.line.index_of(asked.checkpoint_id)
        self._look_at(None)
        self._goal = None
        self.note = None
        self.status = StepperStatus.STEPPING  # nothing else can be asked until it is there
        return self._fork_from(index)

    def _on_breakpoint_set(self, asked: BreakpointSet) -> None:
        self.require_open()
        self.board.add(asked.breakpoint)

    def _on_breakpoints_cleared(self, asked: BreakpointsCleared) -> None:
        self.require_open()
        self.board.remove(asked.ids)

    def _on_edit_staged(self, asked: EditStaged) -> None:
        self.require("edit")
        self.line.index_of(asked.checkpoint_id)
        self._playing_at = None
        self.confirming = None
        self._desk.stage(asked.checkpoint_id, asked.edit)

    def _on_edits_discarded(self, asked: EditsDiscarded) -> None:
        self.require_open()
        self.confirming = None
        self._desk.discard(asked.checkpoint_id or self.line.shown_id, asked.path)

    def _on_close_asked(self, asked: CloseAsked) -> Instruction | None:
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

    def _on_started(self, told: Started) -> None:
        if self.status is StepperStatus.CLOSED:
            return
        self.line.begin(told.line)
        self._learn(told.facts)
        if self._goal is None:
            self.status = self._status_at_rest()

    def _on_event_seen(self, told: EventSeen) -> None:
        self.activity.see(told.event)
        self.tokens += tokens_of(told.event)
        self.note_down(lines_of_event(told.event))

    def _on_step_ended(self, told: StepEnded) -> Instruction | None:
        self.reports.append(told.report)
        self.elapsed_s += told.report.duration_s or 0.0
        self._learn(told.facts)
        self.note_down(lines_of_report(told.report))
        if self.status is StepperStatus.CLOSED:
            return None
        self.board.move_on(asked=True)
        self.board.take(told.hits)
        if any(hit.error is not None for hit in told.hits):
            self.facts = replace(self.facts, pause_reason=pause_reason(told.hits))
        if self._goal is None:
            return None
        self._goal.left -= 1
        if isinstance(told.reached, Exception):
            self.note = f"until= raised {type(told.reached).__name__}: {told.reached}"
        if self._goes_on(told):
            return self._rest(self._goal.delay_s) if self._goal.delay_s else self._next_step()
        self._arrive(stays=bool(told.hits))
        return None

    def _on_breakpoints_asked(self, told: BreakpointsAsked) -> Instruction | None:
        self.board.take(told.hits)
        if self._goal is None or self.stop_wanted:
            return None
        if not told.hits and not self._goal.pause_wanted:
            return self._next_step()
        self.facts = replace(self.facts, pause_reason=pause_reason(told.hits))
        self._arrive(stays=True)
        return None

    def _on_rested(self, told: Rested) -> Instruction | None:
        if told.turn != self._turn:
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
        self.line.look_at((self.shown or 0) + 1)
        if self.viewing is not None:
            return self._rest(1.0 / speed)
        self._playing_at = None
        return None

    def _goes_on(self, told: StepEnded) -> bool:
        goal = self._goal
        if goal is None or not told.facts.status.startswith("IN_PROGRESS") or self.stop_wanted:
            return False
        if goal.left <= 0 and isinstance(goal.asked, RunAsked):
            self.note = f"max_supersteps={goal.asked.limit} were taken. Run goes on."
        if goal.left <= 0 or self._is_far_enough(goal.until, told.report):
            return False
        return not (goal.pause_wanted or told.facts.pause_reason or told.hits or told.reached)

    def _is_far_enough(self, until: Until | None, report: StepReport) -> bool:
        if isinstance(until, int):
            return report.superstep >= until
        return until == "request" and bool(report.requests)

    def _arrive(self, *, stays: bool = False) -> None:
        """Nothing is in flight any more. `stays`: the run does not go on by itself either."""
        self.status = self._status_at_rest()
        if self.facts.pause_reason is not None:
            self.note = f"Paused: {self.facts.pause_reason}"
        goal = self._goal
        waits = self.status is StepperStatus.WAITING and goal is not None and goal.through and goal.until != "request"
        if stays or not waits:
            self._goal = None
        self.stop_wanted = False

    def _on_step_failed(self, told: StepFailed) -> None:
        self._learn(told.facts)
        if self.status is StepperStatus.CLOSED:
            return
        self._goal = None
        self.stop_wanted = False
        at_rest = self._status_at_rest()
        # What fails without the run having failed (a fork, a plan, a save) leaves the run as it was.
        self.status = at_rest
        if at_rest is not StepperStatus.FAILED:
            self.note = f"{type(told.error).__name__}: {told.error}"

    def _on_answer_taken(self, told: AnswerTaken) -> Instruction | None:
        in_flight = self.status in IN_FLIGHT
        self._learn(told.facts, at_rest=not in_flight)
        if in_flight or self.status is StepperStatus.CLOSED:
            return None
        goal = self._goal
        self.status = self._status_at_rest()
        if goal is not None and goal.through and goal.left > 0 and self.viewing is None:
            self.status = StepperStatus.RUNNING
            return self._next_step()
        self._goal = None
        return None

    def _on_forked(self, told: Forked) -> Instruction | None:
        origin, old_run = self.past[self._forking].info, self.facts.run_id
        edits = self._desk.of(origin.checkpoint_id)
        self._desk.discard(origin.checkpoint_id)
        self.line.branch(self._forking, told.copy)
        self._look_at(None)
        self.activity.forget()
        self.board.move_on(asked=True)
        self._learn(told.facts)
        line = LogLine.of_fork(old_run, origin.iteration, told.facts.run_id)
        self.note_down([line, *map(LogLine.of_edit, edits)])
        self.note = line.text
        return self._go_after_return()

    def _on_restored(self, told: Restored) -> Instruction | None:
        self.activity.forget()
        self.board.move_on(asked=True)
        self._learn(told.facts)
        return self._go_after_return()

    def _go_after_return(self) -> Instruction | None:
        if self.status is StepperStatus.CLOSED or self.stop_wanted:
            return None
        if self._goal is not None and self._status_at_rest() in (StepperStatus.READY, StepperStatus.PAUSED):
            return self._next_step()
        self._arrive()
        return None

    def _on_stopped(self, told: Stopped) -> None:
        self._learn(told.facts)
        self._goal = None
        if self.status is not StepperStatus.CLOSED:
            self.status = self._status_at_rest()
        self.stop_wanted = False

    def _on_interrupted(self, told: Interrupted) -> None:
        in_flight = self.status in IN_FLIGHT
        self._learn(told.facts)
        self._goal = None
        self._playing_at = None
        self.stop_wanted = False
        if self.status is not StepperStatus.CLOSED:
            self.status = self._status_at_rest()
            self.note = "The cell was interrupted; the superstep in flight was given up." if in_flight else None


_REACTIONS: dict[type, str] = {
    StepAsked: "_on_step_asked",
    RunAsked: "_on_run_asked",
    PauseAsked: "_on_pause_asked",
    StopAsked: "_on_stop_asked",
    BackAsked: "_on_back_asked",
    ForwardAsked: "_on_forward_asked",
    GotoAsked: "_on_goto_asked",
    LiveAsked: "_on_live_asked",
    ShowAgainAsked: "_on_show_again_asked",
    BranchAsked: "_on_branch_asked",
    BreakpointSet: "_on_breakpoint_set",
    BreakpointsCleared: "_on_breakpoints_cleared",
    EditStaged: "_on_edit_staged",
    EditsDiscarded: "_on_edits_discarded",
    CloseAsked: "_on_close_asked",
    Started: "_on_started",
    EventSeen: "_on_event_seen",
    StepEnded: "_on_step_ended",
    StepFailed: "_on_step_failed",
    BreakpointsAsked: "_on_breakpoints_asked",
    Rested: "_on_rested",
    AnswerTaken: "_on_answer_taken",
    Forked: "_on_forked",
    Restored: "_on_restored",
    Stopped: "_on_stopped",
    Interrupted: "_on_interrupted",
}

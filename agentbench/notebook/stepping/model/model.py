"""Pure: the state and the decisions of a stepper. Commands of people and reports of the engine are its methods.

No widget, no loop, no clock: a method changes the state and returns the instruction that follows, `None` for none.
The session carries it out. A command that is not allowed now raises `StepperStateError` and changes nothing.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from agentbench._text.phrases import count_text
from agentbench.checkpoints.editing import Edit, StepperEdits
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.exceptions import StepperClosed, StepperStateError
from agentbench.notebook.history.activity import Activity, ElementStates, RunRecord, course_of
from agentbench.notebook.history.log import LogLine, lines_of_event, lines_of_report
from agentbench.notebook.history.usage import tokens_of
from agentbench.notebook.stepping.model.break_places import (
    Breakpoint,
    Hit,
    StatePredicate,
    StepperBreakpoints,
    Where,
    breakpoint_at,
    pause_reason,
)
from agentbench.notebook.stepping.model.commands import BUTTONS, COMMANDS
from agentbench.notebook.stepping.model.messages import (
    IN_FLIGHT,
    AllowCalls,
    CancelRun,
    CheckBreakpoints,
    Fork,
    Goal,
    Instruction,
    Redo,
    Restore,
    RunFacts,
    StepEnded,
    StepperCheckpoints,
    StepperStatus,
    TakeStep,
    Until,
    Wait,
    check_count,
    check_speed,
    check_until,
)
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.run.step_report import StepReport

LOG_LINES = 200

_S = StepperStatus
_CALLS = (*(button.name for button in BUTTONS), "show_again")
_ENDED = {"FAILED": _S.FAILED, "CANCELLED": _S.CANCELLED}


class StepperModel:
    """The model of one stepper.

    Attributes:
        activity: States of the elements of the graph.
        limit: Maximum number of supersteps of one run.
        nests: Whether the workflow has sub-workflows.
    """

    def __init__(self, name: str, activity: Activity, limit: int = 1000, *, nests: bool = False) -> None:
        self.name = name
        self.activity = activity
        self.limit = limit
        self.nests = nests
        self.changed: tuple[str, ...] = ()  # parts of the graph whose code was changed since the run began
        self.is_redo = False
        self.before_redo: Any = None  # the output of the run that was done again
        self.is_inside = False  # the superstep in flight waits after a superstep of a sub-workflow
        self.revision = 0  # grows with every change except those by single events
        self.status = _S.READY
        self.facts = RunFacts(run_id="")
        self.reports: list[StepReport] = []
        self.record = RunRecord()
        self.tokens = 0
        self.elapsed_s = 0.0
        self.log: deque[LogLine] = deque(maxlen=LOG_LINES)
        self.log_total = 0
        self.confirming: Goal | None = None  # a step or a run that would fork
        self.note: str | None = None
        self.stop_wanted = False
        self.checkpoints = StepperCheckpoints()
        self.breakpoints = StepperBreakpoints()
        self.staged_edits = StepperEdits()
        self._goal: Goal | None = None
        self._waits = 0
        self.playing: float | None = None  # checkpoints per second of a replay, which executes nothing
        self._paused_states: ElementStates = {}

    @property
    def allowed(self) -> tuple[str, ...]:
        """The commands that are allowed now, in the order of the buttons."""
        names = {name for name in _CALLS if self.status in (COMMANDS[name].statuses or ())}
        if self.status is _S.WAITING and self.facts.planned:
            names |= {"step", "run"}
        if self.checkpoints.viewing is not None:
            names |= {"step", "run", "forward", "edit"}
        if self.playing:
            names.add("pause")
        needed = {"back": 2, "show_again": 2, "fork": 1, "edit": 1}  # minimum number of checkpoints
        there = {**dict.fromkeys(needed, len(self.checkpoints.past)), "back": (self.checkpoints.displayed or 0) + 1}
        return tuple(name for name in _CALLS if name in names and there.get(name, 0) >= needed.get(name, 0))

    @property
    def goes_on_after_answer(self) -> bool:
        """Whether the run waits for a person now and continues automatically after the answer."""
        goal = self._goal
        return self.status is _S.WAITING and goal is not None and goal.through and goal.until != "request"

    @property
    def pausing(self) -> bool:
        """Whether a pause was requested and the superstep in flight has not ended yet."""
        return self._goal is not None and self._goal.pausing

    def still_waits(self, number: int) -> bool:
        """Whether the wait with that number is still needed."""
        moves = self._goal is not None and not self._goal.pausing and not self.stop_wanted
        return number == self._waits and (moves or self.playing is not None)

    @property
    def displayed_record(self) -> RunRecord:
        """The record of the run up to the displayed checkpoint."""
        viewed = self.checkpoints.viewed
        if viewed is None:
            return self.record
        record, checkpoints = RunRecord(), [report.checkpoint for report in self.reports]
        n_reports = checkpoints.index(viewed) + 1 if viewed in checkpoints else 0  # else of the previous run
        for report in self.reports[:n_reports]:
            record.add(report)
        return record

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The staged edits of the displayed checkpoint, in the order in which they are applied."""
        return self.staged_edits.of(self.checkpoints.displayed_id)

    @property
    def superstep_text(self) -> str:
        """The failed superstep, otherwise the last finished one, in words."""
        failed = self.status is _S.FAILED and self.reports
        number = self.reports[-1].superstep if failed else self.facts.superstep
        return "no superstep yet" if number is None or number < 0 else f"superstep {number}"

    @property
    def states(self) -> ElementStates:
        """The displayed states of the graph: the current ones, or those of the checkpoint being viewed."""
        if self.checkpoints.viewing is not None:
            return self.checkpoints.past[self.checkpoints.viewing].states
        return course_of((past.states for past in self.checkpoints.past[-1:]), self.activity.states())

    def require_open(self) -> None:
        """Raise `StepperClosed` if the stepper is closed."""
        if self.status is _S.CLOSED:
            raise StepperClosed

    def require(self, call: str) -> None:
        """Raise `StepperStateError` unless the command is in `allowed`, which the error lists."""
        self.require_open()
        if call not in self.allowed:
            raise StepperStateError(str(self.status), self.allowed, call)

    def note_down(self, lines: Sequence[LogLine]) -> None:
        """Add lines to the log."""
        self.log.extend(lines)
        self.log_total += len(lines)

    def step(self, count: int = 1, *, inside: bool = False, confirmed: bool = False) -> Instruction | None:
        """Execute `count` supersteps, or one `inside`. `confirmed`: the person agrees to a fork if one is needed."""
        goal = Goal(check_count(count, "n"), inside)
        self.require("step")
        return self._set_out(goal, confirmed=confirmed)

    def run(
        self,
        until: Until | None = None,
        *,
        speed: float | None = None,
        through: bool = False,
        confirmed: bool = False,
    ) -> Instruction | None:
        """Execute supersteps until the end; `Goal` explains the arguments."""
        speed = None if speed is None else check_speed(speed, "supersteps")
        goal = Goal(self.limit, runs=True, until=check_until(until), speed=speed, through=through)
        if through and self.status is _S.WAITING and self.checkpoints.viewing is None and not self.facts.planned:
            self._goal = goal
            return None
        self.require("run")
        if until == "breakpoint" and not self.breakpoints.all:
            msg = "until='breakpoint' needs a breakpoint. Set one first: break_at('review')."
            raise ValueError(msg)
        last = self.facts.superstep if self.checkpoints.viewed is None else self.checkpoints.viewed.iteration
        if isinstance(until, int) and last is not None and until <= last:
            msg = f"until={until} has already passed: the run is at superstep {last}. Use back() or goto() first."
            raise ValueError(msg)
        return self._set_out(goal, confirmed=confirmed)

    def confirm(self) -> Instruction | None:
        """Agree to the fork that a step or a run needs."""
        if self.confirming is None:
            return None
        self.require("run" if self.confirming.runs else "step")
        return self._set_out(self.confirming, confirmed=True)

    def decline(self) -> None:
        """Remove the question about a fork."""
        self.confirming = None

    def _set_out(self, goal: Goal, *, confirmed: bool) -> Instruction | None:
        if (forks := self.checkpoints.viewing is not None or bool(self.edits)) and not confirmed:
            self.confirming = goal
            return None
        self._goal = goal
        self.note = self.confirming = self.playing = None
        failed = self.status is _S.FAILED
        self.status = _S.RUNNING if goal.runs or goal.left > 1 else _S.STEPPING
        if forks:
            return self._fork(self.checkpoints.displayed or 0)
        self.breakpoints.hit = None
        if failed:
            saved = self.checkpoints.saved
            return Restore(saved[-1] if saved else None)
        unchecked = self.breakpoints.unchecked if goal.runs else ()
        return CheckBreakpoints(unchecked) if unchecked else self._next_step()

    def _fork(self, index: int) -> Fork:
        info = self.checkpoints.past[index].info
        return Fork(info, self.staged_edits.of(info.checkpoint_id))

    def _next_step(self) -> TakeStep:
        goal = self._goal or Goal()
        if not self.is_inside:
            self.activity.begin()
        self.is_inside = False
        return TakeStep(goal.until if callable(goal.until) else None, goal.inside)

    def _wait(self, speed: float) -> Wait:
        self._waits += 1
        return Wait(1.0 / speed, self._waits)

    def pause(self) -> None:
        """Pause after the superstep in flight, or the replay at once."""
        self.require("pause")
        self.playing = None
        if self._goal is not None:
            self._goal.pausing = True

    def stop(self) -> Instruction:
        """End the run."""
        self.require("stop")
        self.stop_wanted = True
        self._look_at(None)
        if self.status is _S.WAITING:
            self._goal = None
        return CancelRun()

    def close(self) -> Instruction | None:
        """End the run; no request is allowed afterwards."""
        if self.status is _S.CLOSED:
            return None
        self._look_at(None)
        self._goal = None
        self.status = _S.CLOSED
        return CancelRun(at_once=True)

    def go_back(self, count: int = 1) -> None:
        """Show the checkpoint `count` before the displayed one."""
        count = check_count(count, "n")
        self.require("back")
        self._look_at(max(0, (self.checkpoints.displayed or 0) - count))

    def go_forward(self, count: int = 1) -> None:
        """Show the checkpoint `count` after the displayed one."""
        count = check_count(count, "n")
        self.require("forward")
        self._look_at((self.checkpoints.displayed or 0) + count)

    def go_to(self, checkpoint_id: str) -> None:
        """Show this checkpoint; `LookupError` if it does not lead to the current state."""
        self.require_open()
        if self.status in IN_FLIGHT:
            raise StepperStateError(str(self.status), self.allowed, "goto")
        self._look_at(self.checkpoints.index_of(checkpoint_id))

    def show_now(self) -> None:
        """Show the current state again."""
        self.require_open()
        self._look_at(None)

    def _look_at(self, index: int | None) -> None:
        self.confirming = self.playing = None
        self.checkpoints.look_at(index)

    def show_again(self, speed: float) -> Instruction:
        """Show the stored checkpoints one after another up to the current state, `speed` per second."""
        speed = check_speed(speed, "checkpoints")
        self.require("show_again")
        self._look_at(self.checkpoints.viewing or 0)
        self.playing = speed
        return self._wait(speed)

    def branch(self, checkpoint_id: str | None = None) -> Instruction:
        """Start a new run from a checkpoint, `None` for the displayed one; nothing is executed yet."""
        self.require("fork")
        index = (self.checkpoints.displayed or 0) if checkpoint_id is None else self.checkpoints.index_of(checkpoint_id)
        self._look_at(None)
        self._goal = self.note = None
        self.status = _S.STEPPING  # no other command is allowed until the new run is open
        return self._fork(index)

    @property
    def redo_from(self) -> int | None:
        """The first superstep in which an executor with changed code took part, `None` if there is none."""
        owners = {re.split("->|/", part)[0] for part in self.changed}
        ran = [past.info.iteration for past in self.checkpoints.past if owners & set(past.info.writers)]
        if not ran:  # a run of one superstep saves no checkpoint with its executors
            began = [(report.superstep, event) for report in self.reports for event in report.events]
            ran = [n for n, event in began if event.type == "executor_invoked" and event.executor_id in owners]
        return next(iter(ran), None)

    def redo(self, since: int | None = None, workflow: Any = None, new_calls: Any = "ask") -> Instruction:
        """Start a new run that does supersteps again with changed code, and run it."""
        self.require("fork")
        self._look_at(None)
        self._goal = self.note = None
        self.status = _S.STEPPING  # no other command is allowed until the new run is open
        return Redo(self.redo_from if since is None else since, workflow, new_calls)

    def allow_calls(self, which: Literal["this", "all"]) -> Instruction | None:
        """Let the model request that waits be sent, if one does, and run."""
        return None if self.facts.new_call is None or self.status is not _S.PAUSED else AllowCalls(which)

    def take_redo(self, facts: RunFacts, copy: CheckpointInfo | None) -> Instruction | None:
        """Switch to the run of a redo and run it; `copy` is the checkpoint it starts from, `None` for the input."""
        self.before_redo = self.record.outputs[-1][1].data if self.record.outputs else None
        self.changed, self.is_redo = (), True
        if copy is None:
            self.checkpoints.begin_again()
        else:
            origin = copy.previous_checkpoint_id or copy.checkpoint_id
            self.checkpoints.branch(self.checkpoints.past[self.checkpoints.index_of(origin)].info, copy)
        leading = [past.info for past in self.checkpoints.past]
        self.record = RunRecord()  # the outputs of the supersteps that are executed again do not count twice
        for report in self.reports:
            if report.checkpoint in leading:
                self.record.add(report)
        iteration = -1 if copy is None else copy.iteration
        self.note_down([LogLine.of_fork(self.facts.run_id, iteration, facts.run_id)])
        following = self.take_restore(facts)
        return self.run(through=True) if self.status in (_S.READY, _S.PAUSED) else following

    def stage_edit(self, checkpoint_id: str, edit: Edit) -> None:
        """Stage an edit of a checkpoint for a fork from it; replaces a staged edit of the same path."""
        self.require("edit")
        self.checkpoints.index_of(checkpoint_id)
        self.confirming = self.playing = None
        self.staged_edits.stage(checkpoint_id, edit)

    def discard_edits(self, path: str | None = None, checkpoint_id: str | None = None) -> None:
        """Drop the staged edit of `path`, or all, of a checkpoint; `None` for the displayed one."""
        self.require_open()
        self.confirming = None
        self.staged_edits.discard(checkpoint_id or self.checkpoints.displayed_id, path)

    def break_at(self, where: Where, *, when: StatePredicate | None = None, once: bool = False) -> Breakpoint:
        """Set a breakpoint, or return the existing one; raises the errors of `Stepper.break_at`."""
        self.require_open()
        new = breakpoint_at(self.breakpoints.next_id, where, when=when, once=once, executors=self.activity.nodes)
        for existing in self.breakpoints.all:
            if existing.is_same_place(new) and (existing.when, existing.once) == (new.when, new.once):
                return existing
        self.breakpoints.add(new)
        return new

    def clear(self, where: Where | Breakpoint | None = None) -> None:
        """Remove one breakpoint, those at a place, the one with an id, or all; raises the errors of `Stepper.clear`."""
        self.require_open()
        removed = [point.id for point in self.breakpoints.all if where is None or where in (point, point.id)]
        if where is not None and not removed and not isinstance(where, Breakpoint):
            meant = breakpoint_at("", where, executors=self.activity.nodes)
            removed = [point.id for point in self.breakpoints.all if point.is_same_place(meant)]
        self.breakpoints.remove(removed)

    def start(self, facts: RunFacts, lineage: Sequence[CheckpointInfo] = ()) -> None:
        """Take over a newly opened run; `lineage`: the checkpoints that lead to it, oldest first."""
        if self.status is _S.CLOSED:
            return
        self.checkpoints.begin(lineage)
        self._take_facts(facts)
        if self._goal is None:
            self.status = self._paused_status()

    def see(self, event: WorkflowEvent[Any]) -> None:
        """Process one event of the superstep in flight."""
        self.activity.see(event)
        self.tokens += tokens_of(event)
        self.note_down(lines_of_event(event))

    def pause_inside(self, facts: RunFacts) -> None:
        """Process the end of a superstep of a sub-workflow, within an outer superstep in flight."""
        self.facts, self.is_inside = facts, True
        if self.status is not _S.CLOSED:
            self._arrive(stays=True)

    def end_step(self, outcome: StepEnded) -> Instruction | None:
        """Process the end of a superstep."""
        self.reports.append(outcome.report)
        self.record.add(outcome.report)
        self.elapsed_s += outcome.report.duration_s or 0.0
        self._take_facts(outcome.facts)
        self.note_down(lines_of_report(outcome.report))
        if self.status is _S.CLOSED:
            return None
        self.breakpoints.enter_boundary(checked=True)
        self.breakpoints.record_hits(outcome.hits)
        if any(hit.error is not None for hit in outcome.hits):
            self.facts = replace(self.facts, pause_reason=pause_reason(outcome.hits))
        if self._goal is None:
            return None
        self._goal.left -= 1
        if isinstance(outcome.reached, Exception):
            self.note = f"until= raised {type(outcome.reached).__name__}: {outcome.reached}"
        if self._goes_on(self._goal, outcome):
            return self._wait(self._goal.speed) if self._goal.speed else self._next_step()
        return self._arrive(stays=bool(outcome.hits))

    def _goes_on(self, goal: Goal, outcome: StepEnded) -> bool:
        if not outcome.facts.status.startswith("IN_PROGRESS") or self.stop_wanted:
            return False
        if goal.left <= 0 and goal.runs:
            self.note = f"Paused after {count_text(self.limit, 'superstep')} (max_supersteps). Press Run to continue."
        reached = outcome.reached
        if isinstance(goal.until, int):
            reached = reached or outcome.report.superstep >= goal.until
        elif goal.until == "request":
            reached = reached or bool(outcome.report.requests)
        return not (goal.left <= 0 or goal.pausing or outcome.facts.pause_reason or outcome.hits or reached)

    def take_hits(self, hits: Sequence[Hit]) -> Instruction | None:
        """Process the breakpoints that were reached at the current boundary."""
        self.breakpoints.record_hits(hits)
        if self._goal is None or self.stop_wanted:
            return None
        if not hits and not self._goal.pausing:
            return self._next_step()
        self.facts = replace(self.facts, pause_reason=pause_reason(hits))
        return self._arrive(stays=True)

    def end_wait(self, number: int) -> Instruction | None:
        """Process the end of a wait, by its time or by another command."""
        if number != self._waits:
            return None
        if self.playing is not None:
            self.checkpoints.look_at((self.checkpoints.displayed or 0) + 1)
            if self.checkpoints.viewing is None:
                self.playing = None
            return self._wait(self.playing) if self.playing else None
        if self._goal is None or self.stop_wanted:
            return None
        return self._arrive() if self._goal.pausing else self._next_step()

    def take_answer(self, facts: RunFacts) -> Instruction | None:
        """Process the facts of a run that accepted an answer."""
        in_flight = self.status in IN_FLIGHT
        self._take_facts(facts, is_paused=not in_flight)
        if in_flight or self.status is _S.CLOSED:
            return None
        goal, self.status = self._goal, self._paused_status()
        if goal is None or not goal.through or goal.left <= 0 or self.checkpoints.viewed is not None:
            self._goal = None
            return None
        self.status = _S.RUNNING
        return self._next_step()

    def take_fork(self, fork: Fork, facts: RunFacts, copy: CheckpointInfo | None = None) -> Instruction | None:
        """Switch to a new run that starts from a checkpoint; `copy` is the checkpoint saved for it, with the edits."""
        self.staged_edits.discard(fork.checkpoint.checkpoint_id)
        self.checkpoints.branch(fork.checkpoint, copy)
        self._look_at(None)
        line = LogLine.of_fork(self.facts.run_id, fork.checkpoint.iteration, facts.run_id)
        self.note_down([line, *map(LogLine.of_edit, fork.edits)])
        self.note = line.text
        return self.take_restore(facts)

    def take_restore(self, facts: RunFacts) -> Instruction | None:
        """Process a restored run: it is at its last good checkpoint, or at that of a fork."""
        self.activity.reset()
        self.is_inside = False
        self.breakpoints.enter_boundary(checked=True)
        self._take_facts(facts)
        if self.status is _S.CLOSED or self.stop_wanted:
            return None
        if self._goal is None or self._paused_status() not in (_S.READY, _S.PAUSED):
            return self._arrive()
        return self._next_step()

    def take_interrupt(self, facts: RunFacts) -> None:
        """Process an interrupt of the cell that drove the run (the stop button of the notebook)."""
        cut = self.status in IN_FLIGHT
        self.rest(facts, "The cell was interrupted; the superstep in flight was cancelled." if cut else None)

    def rest(self, facts: RunFacts, note: str | None = None) -> None:
        """Process the end of all activity: a stop, an interrupt, or the error in `note`."""
        self._take_facts(facts)
        self.is_inside = False
        self._goal = self.playing = None
        self.stop_wanted = False
        if self.status is not _S.CLOSED:
            self.status, self.note = self._paused_status(), note

    def _arrive(self, *, stays: bool = False) -> Instruction | None:
        """Set the status after the last superstep of a goal. `stays`: the run does not continue automatically."""
        self.status = self._paused_status()
        if self.facts.pause_reason is not None:
            self.note = f"Paused: {self.facts.pause_reason}"
        if stays or not self.goes_on_after_answer:
            self._goal = None
        self.stop_wanted = False
        return None

    def _paused_status(self) -> StepperStatus:
        facts = self.facts
        if facts.status in _ENDED:
            return _ENDED[facts.status]
        if facts.requests and (facts.status == "IDLE_WITH_PENDING_REQUESTS" or not facts.planned):
            return _S.WAITING
        if facts.status.startswith("IDLE") and not facts.planned:
            return _S.DONE
        is_new = facts.status == "STARTED" and facts.pause_reason is None
        return _S.READY if is_new else _S.PAUSED

    def _take_facts(self, facts: RunFacts, *, is_paused: bool = True) -> None:
        """Store the facts of the run and the checkpoints that it saved."""
        self.facts = facts
        waiting = [request.source_executor_id for request in facts.requests]
        if is_paused:
            self.activity.rest(facts.planned, waiting)
        else:
            self.activity.wait_for(waiting)
        before = self._paused_states
        if is_paused:
            self._paused_states = self.activity.states()
        self.checkpoints.add_missing(facts.checkpoints, before, self._paused_states)

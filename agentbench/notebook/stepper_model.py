"""Pure: what a stepper knows and decides. What people ask and what the engine reports goes in, what to do comes out.

No widget, no loop, no clock: `StepperModel.handle` is the whole stepper as a table, and `agentbench.notebook.stepper`
carries out what it says. Asking for what is not allowed now raises `StepperStateError`; widgets disable their buttons.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agentbench.checkpoints.info import CheckpointInfo
from agentbench.exceptions import StepperClosed, StepperStateError
from agentbench.notebook.activity import Activity, Moment
from agentbench.notebook.step_log import LogLine, lines_of_event, lines_of_report, tokens_of
from agentbench.notebook.stepper_messages import (
    ALLOWED,
    IN_FLIGHT,
    AnswerTaken,
    BackAsked,
    CloseAsked,
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
    RunFacts,
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
)
from agentbench.workflow.report import StepReport

__all__ = ["LOG_LINES", "Past", "StepperModel"]

LOG_LINES = 200


@dataclass(slots=True)
class _Goal:
    """What is being driven at."""

    left: int
    asked: StepAsked | RunAsked
    pause_wanted: bool = False

    @property
    def delay_s(self) -> float:
        speed = self.asked.speed if isinstance(self.asked, RunAsked) else None
        return 1.0 / speed if speed else 0.0

    @property
    def through(self) -> bool:
        return isinstance(self.asked, RunAsked) and self.asked.through


@dataclass(slots=True)
class Past:
    """What is remembered of a checkpoint: the picture of its moment, and what it is called."""

    info: CheckpointInfo
    moment: Moment
    label: str = field(init=False)

    def __post_init__(self) -> None:
        """Name it once: the line of checkpoints is read at each drawing."""
        said = {"answer": ", answered", "fork": ", forked", "update": ", edited"}.get(self.info.source, "")
        self.label = f"superstep {self.info.iteration}{said}"


class StepperModel:
    """The state of one stepper.

    Args:
        name: What the header calls it.
        activity: The graph whose elements are watched.
    """

    def __init__(self, name: str, activity: Activity) -> None:
        self.name = name
        self.activity = activity
        self.status = StepperStatus.READY
        self.facts = RunFacts(run_id="")
        self.reports: list[StepReport] = []
        self.tokens = 0
        self.elapsed_s = 0.0
        self.log: deque[LogLine] = deque(maxlen=LOG_LINES)
        self.log_total = 0
        self.past: list[Past] = []
        self.viewing: int | None = None
        self.confirming: StepAsked | RunAsked | None = None
        self.note: str | None = None
        self.stop_wanted = False
        self._goal: _Goal | None = None
        self._last_rest: Moment = {}
        self._kept = 0  # checkpoints of earlier runs that the present one descends from

    # ---- what can be asked ---------------------------------------------------------------------------------------

    @property
    def allowed(self) -> tuple[str, ...]:
        """What can be asked now, in the order of the buttons."""
        names = set(ALLOWED[self.status])
        if self.status is StepperStatus.WAITING and self.facts.planned:
            names |= {"step", "run"}
        if self.status is StepperStatus.FAILED and not self.past:
            names.discard("step")
        if self.viewing is not None:
            names |= {"step", "run", "forward"}
        if (self.viewing if self.viewing is not None else len(self.past) - 1) <= 0:
            names.discard("back")
        return tuple(name for name in ("step", "run", "pause", "stop", "back", "forward") if name in names)

    @property
    def going_through(self) -> bool:
        """Whether the run waits for a person now and goes on by itself afterwards."""
        return self.status is StepperStatus.WAITING and self._goal is not None and self._goal.through

    @property
    def pausing(self) -> bool:
        """Whether a pause was asked for and the superstep in flight is not over yet."""
        return self._goal is not None and self._goal.pause_wanted

    @property
    def shown(self) -> int | None:
        """Index of the checkpoint that is shown, `None` before the first."""
        if self.viewing is not None:
            return self.viewing
        return len(self.past) - 1 if self.past else None

    @property
    def moment(self) -> Moment:
        """The picture that is shown: of now, or of the checkpoint being viewed."""
        return self.activity.moment() if self.viewing is None else self.past[self.viewing].moment

    def handle(self, stimulus: Stimulus) -> Instruction | None:
        """Take in one stimulus and say what is to be done, `None` for nothing.

        Raises:
            StepperStateError: If something is asked that is not allowed now. Nothing has changed then.
            StepperClosed: If anything is asked of a closed stepper.
        """
        react: Callable[[Any], Instruction | None] = getattr(self, _REACTIONS[type(stimulus)])
        return react(stimulus)

    def require_open(self) -> None:
        """Refuse what a closed stepper cannot do.

        Raises:
            StepperClosed: It is closed.
        """
        if self.status is StepperStatus.CLOSED:
            raise StepperClosed

    def _require(self, call: str) -> None:
        self.require_open()
        if call not in self.allowed:
            raise StepperStateError(str(self.status), self.allowed, call)

    # ---- people ----------------------------------------------------------------------------------------------------

    def _on_step_asked(self, asked: StepAsked) -> Instruction | None:
        self._require("step")
        return self._set_out(asked, asked.count, StepperStatus.STEPPING if asked.count == 1 else StepperStatus.RUNNING)

    def _on_run_asked(self, asked: RunAsked) -> Instruction | None:
        if asked.through and self.status is StepperStatus.WAITING and self.viewing is None and not self.facts.planned:
            self._goal = _Goal(asked.limit, asked)
            return None
        self._require("run")
        return self._set_out(asked, asked.limit, StepperStatus.RUNNING)

    def _set_out(self, asked: StepAsked | RunAsked, count: int, status: StepperStatus) -> Instruction | None:
        if self.viewing is not None and not asked.confirmed:
            self.confirming = asked
            return None
        self._goal = _Goal(count, asked)
        self.note = None
        self.confirming = None
        failed, self.status = self.status is StepperStatus.FAILED, status
        if self.viewing is not None:
            return Fork(self.past[self.viewing].info)
        if failed:
            return Restore(self.past[-1].info)
        return self._next_step()

    def _next_step(self) -> TakeStep:
        self.activity.begin()
        return TakeStep()

    def _on_pause_asked(self, asked: PauseAsked) -> None:
        self._require("pause")
        if self._goal is not None:
            self._goal.pause_wanted = True

    def _on_stop_asked(self, asked: StopAsked) -> Instruction:
        self._require("stop")
        self.stop_wanted = True
        self._look_at(None)
        if self.status is StepperStatus.WAITING:
            self._goal = None
        return StopRun()

    def _on_back_asked(self, asked: BackAsked) -> None:
        self._require("back")
        self._look_at(max(0, (self.shown or 0) - asked.count))

    def _on_forward_asked(self, asked: ForwardAsked) -> None:
        self._require("forward")
        self._look_at((self.shown or 0) + asked.count)

    def _on_goto_asked(self, asked: GotoAsked) -> None:
        self.require_open()
        if self.status in IN_FLIGHT:
            raise StepperStateError(str(self.status), self.allowed, "goto")
        self._look_at(self.index_of(asked.checkpoint_id))

    def _on_live_asked(self, asked: LiveAsked) -> None:
        self.require_open()
        self._look_at(None)

    def _on_close_asked(self, asked: CloseAsked) -> Instruction | None:
        if self.status is StepperStatus.CLOSED:
            return None
        self._look_at(None)
        self._goal = None
        self.status = StepperStatus.CLOSED
        return Release()

    def index_of(self, checkpoint_id: str) -> int:
        """Place of a checkpoint on the line that leads to now.

        Raises:
            LookupError: If it is not on that line.
        """
        for index, past in enumerate(self.past):
            if past.info.checkpoint_id == checkpoint_id:
                return index
        known = ", ".join(past.info.checkpoint_id for past in self.past) or "none yet"
        msg = f"Checkpoint {checkpoint_id!r} is not on the line of this run. Its checkpoints are: {known}."
        raise LookupError(msg)

    def _look_at(self, index: int | None) -> None:
        self.confirming = None
        self.viewing = None if index is None or index >= len(self.past) - 1 else index

    # ---- engine ----------------------------------------------------------------------------------------------------

    def _on_started(self, told: Started) -> None:
        self.past = [Past(info, dict.fromkeys(info.writers, "done")) for info in told.line]
        self._kept = len(self.past)
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
        if self.status is StepperStatus.CLOSED or self._goal is None:
            return None
        self._goal.left -= 1
        if isinstance(told.reached, Exception):
            self.note = f"until= raised {type(told.reached).__name__}: {told.reached}"
        if self._goes_on(told):
            return Rest(self._goal.delay_s) if self._goal.delay_s else self._next_step()
        self._arrive()
        return None

    def _on_rested(self, told: Rested) -> Instruction | None:
        if self._goal is None or self.stop_wanted:
            return None
        if self._goal.pause_wanted:
            self._arrive()
            return None
        return self._next_step()

    def _goes_on(self, told: StepEnded) -> bool:
        goal = self._goal
        if goal is None or not told.facts.status.startswith("IN_PROGRESS") or self.stop_wanted:
            return False
        asked = goal.asked
        until = asked.until if isinstance(asked, RunAsked) else None
        if until is not None and told.report.superstep >= until:
            return False
        if goal.left <= 0 and isinstance(asked, RunAsked):
            self.note = f"max_supersteps={asked.limit} were taken. Run goes on."
        return goal.left > 0 and not (goal.pause_wanted or told.facts.pause_reason or told.reached)

    def _arrive(self) -> None:
        """Nothing is in flight any more."""
        self.status = self._status_at_rest()
        if self.facts.pause_reason is not None:
            self.note = f"Paused: {self.facts.pause_reason}"
        if not (self.status is StepperStatus.WAITING and self._goal is not None and self._goal.through):
            self._goal = None
        self.stop_wanted = False

    def _status_at_rest(self) -> StepperStatus:
        facts = self.facts
        if facts.status in _ENDED:
            return _ENDED[facts.status]
        if facts.requests and (facts.status == "IDLE_WITH_PENDING_REQUESTS" or not facts.planned):
            return StepperStatus.WAITING
        if facts.status.startswith("IDLE") and not facts.planned:
            return StepperStatus.DONE
        return StepperStatus.READY if facts.status == "STARTED" else StepperStatus.PAUSED

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
        viewed = self.past[self.viewing or 0]
        old_run = self.facts.run_id
        self._kept = (self.viewing or 0) + 1
        self.past = self.past[: self._kept]
        self._look_at(None)
        self.activity.forget()
        self._learn(told.facts)
        line = LogLine.of_fork(old_run, viewed.info.iteration, told.facts.run_id)
        self.note_down([line])
        self.note = line.text
        return self._go_after_return()

    def _on_restored(self, told: Restored) -> Instruction | None:
        self.activity.forget()
        self._learn(told.facts)
        return self._go_after_return()

    def _go_after_return(self) -> Instruction | None:
        at_rest = self._status_at_rest()
        if self._goal is None or self.status is StepperStatus.CLOSED:
            return None
        if at_rest in (StepperStatus.READY, StepperStatus.PAUSED):
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
        self.stop_wanted = False
        if self.status is not StepperStatus.CLOSED:
            self.status = self._status_at_rest()
            self.note = "The cell was interrupted; the superstep in flight was given up." if in_flight else None

    def note_down(self, lines: list[LogLine]) -> None:
        """Add lines to the log."""
        self.log.extend(lines)
        self.log_total += len(lines)

    def _learn(self, facts: RunFacts, *, at_rest: bool = True) -> None:
        """Take in what the handle tells, and remember the picture of a new checkpoint."""
        self.facts = facts
        waiting = [request.source_executor_id for request in facts.requests]
        if at_rest:
            self.activity.rest(facts.planned, waiting)
        else:
            self.activity.wait_for(waiting)
        # A superstep that takes up an answer saves twice: first what stood before it.
        line = self.past[self._kept :]
        if line and line[-1].info not in facts.checkpoints[len(line) - 1 : len(line)]:
            line = []  # the run was put back to an earlier checkpoint
        line += [Past(info, self._last_rest) for info in facts.checkpoints[len(line) :]]
        if at_rest:
            self._last_rest = self.activity.moment()
            if line:
                line[-1].moment = self._last_rest
        self.past[self._kept :] = line


_ENDED = {"FAILED": StepperStatus.FAILED, "CANCELLED": StepperStatus.CANCELLED}

_REACTIONS: dict[type, str] = {
    StepAsked: "_on_step_asked",
    RunAsked: "_on_run_asked",
    PauseAsked: "_on_pause_asked",
    StopAsked: "_on_stop_asked",
    BackAsked: "_on_back_asked",
    ForwardAsked: "_on_forward_asked",
    GotoAsked: "_on_goto_asked",
    LiveAsked: "_on_live_asked",
    CloseAsked: "_on_close_asked",
    Started: "_on_started",
    EventSeen: "_on_event_seen",
    StepEnded: "_on_step_ended",
    StepFailed: "_on_step_failed",
    Rested: "_on_rested",
    AnswerTaken: "_on_answer_taken",
    Forked: "_on_forked",
    Restored: "_on_restored",
    Stopped: "_on_stopped",
    Interrupted: "_on_interrupted",
}

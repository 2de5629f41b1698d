"""One run as a stepper drives it: what its handle tells between two supersteps, a superstep, a way back, a branch.

Everything here is a coroutine on the loop of the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from agentbench._clock import iso_utc, runtime_defaults
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.storage import CheckpointStorage, SupportsCheckpointInfos
from agentbench.exceptions import RequestAlreadyAnswered
from agentbench.notebook.breakpoints import Boundary, Breakpoint, Hit, find_hits, pause_reason
from agentbench.notebook.stepper_edits import Edit, updates_of
from agentbench.notebook.stepper_messages import RunFacts, StepEnded, StepFailed
from agentbench.workflows.engine.boundary import PauseReason
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.run.report import PlannedDelivery, StepReport
from agentbench.workflows.run.run import WorkflowRun

__all__ = ["DrivenRun", "line_to"]


class DrivenRun:
    """A handle, and what a stepper remembers of its run.

    Args:
        handle: The run. Only one stepper drives it.
        storage: Where its checkpoints are.
        base: Superstep of the checkpoint that it goes on from, `None` for fresh input.
        breakpoints: Gives those that are set.
        on_event: Called with each event as it comes.

    Attributes:
        handle: The run.
    """

    def __init__(
        self,
        handle: WorkflowRun,
        storage: CheckpointStorage,
        *,
        base: int | None,
        breakpoints: Callable[[], Sequence[Breakpoint]],
        on_event: Callable[[WorkflowEvent[Any]], object],
    ) -> None:
        self.handle = handle
        self._storage = storage
        self._base = base
        self._breakpoints = breakpoints
        self._on_event = on_event
        self._is_new = True  # nothing was executed since it began, or was put back
        self._read = self._ahead = 0  # events that the listener got; events beyond, that were told before it got them
        self._hits: tuple[Hit, ...] | None = None
        self._answered: dict[str, str] = {}  # request id -> when
        self._unsaved_answers: dict[str, Any] = {}
        handle.pause_when(self._reason_to_pause)
        handle.listen(self._hear)

    # ---- between two supersteps --------------------------------------------------------------------------------------

    async def facts(self, *, planned: Sequence[PlannedDelivery] | None = None) -> RunFacts:
        """What the handle tells now.

        Args:
            planned: What the next superstep will deliver, if that is known already.
        """
        handle = self.handle
        status = "STARTED" if self._is_new else str(handle.status)
        if planned is None:
            planned = await self._planned(status)
        # A run that has yet to begin with fresh input clears what its instance still holds.
        asks = status != "CANCELLED" and (bool(planned) or not self._is_new or self._base is not None)
        return RunFacts(
            run_id=handle.run_id,
            status=status,
            superstep=self._superstep,
            checkpoints=handle.checkpoints_so_far,
            requests=tuple(handle.pending_requests) if asks else (),
            planned=tuple(planned),
            error=handle.error,
            pause_reason=handle.pause_reason,
        )

    @property
    def _superstep(self) -> int | None:
        """The last finished one; a branch whose first superstep failed stands where it began."""
        base, told = self._base, self.handle.superstep
        return base if self._is_new or (base is not None and told < base) else told

    async def _planned(self, status: str) -> Sequence[PlannedDelivery]:
        if status in ("FAILED", "CANCELLED"):
            return ()
        try:
            return await self.handle.plan()
        except Exception:  # noqa: BLE001 - a condition or a hook raised; the next superstep raises it to whoever takes it
            return ()

    def hits(self, breakpoints: Sequence[Breakpoint], report: StepReport | None, facts: RunFacts) -> tuple[Hit, ...]:
        """The breakpoints that are reached where the run stands."""
        if not breakpoints or facts.status in ("IDLE", "CANCELLED"):
            return ()
        if facts.status == "FAILED":
            breakpoints = [each for each in breakpoints if each.kind == "failure"]
        goes_on = facts.status in ("STARTED", "IN_PROGRESS", "IN_PROGRESS_PENDING_REQUESTS")
        last = -1 if facts.superstep is None else facts.superstep
        at = Boundary(report, last + 1 if goes_on else None, facts.planned, self.handle.state)
        return find_hits(breakpoints, at)

    def _reason_to_pause(self, report: StepReport, plan: list[PlannedDelivery]) -> PauseReason | None:
        breakpoints = self._breakpoints()
        if not breakpoints:
            return None
        self._hits = find_hits(breakpoints, Boundary(report, report.superstep + 1, plan, self.handle.state))
        return pause_reason(self._hits)

    async def answer(self, request_id: str, value: Any) -> None:
        """Send an answer.

        Raises:
            RequestAlreadyAnswered: It was answered before.
            ValueError: There is no such request, or the answer is not of its type.
        """
        open_ids = {request.request_id for request in self.handle.pending_requests}
        if request_id in self._answered and request_id not in open_ids:
            raise RequestAlreadyAnswered(request_id, self._answered[request_id])
        if not open_ids:
            msg = f"There is no request {request_id!r}: none is open. Requests are in `pending` once the run asks."
            raise ValueError(msg)
        await self.handle.send_response(request_id, value)
        self._answered[request_id] = iso_utc(runtime_defaults().clock.time_ns())
        self._unsaved_answers[request_id] = value

    # ---- a superstep -------------------------------------------------------------------------------------------------

    async def step(self, until: Callable[[StepReport], object] | None) -> StepEnded | StepFailed:
        """Take a superstep; its events are told while it lasts.

        Args:
            until: The caller's own condition for an end, asked of its report.
        """
        handle, before = self.handle, self.handle.event_count
        self._hits = None
        error = await self._step(handle)
        facts = await self.facts()
        if error is not None and facts.status not in ("FAILED", "CANCELLED"):
            return StepFailed(error, facts)
        if error is not None and not isinstance(error, (Exception, asyncio.CancelledError)):
            # An executor that raises SystemExit cancels its run; whoever steps it has not asked for that.
            facts = replace(facts, status="FAILED", error=error)
        self._unsaved_answers.clear()
        events = handle.events_since(before)
        report = StepReport(
            handle.superstep if facts.status != "FAILED" else _number_of(events, handle.superstep),
            events,
            handle.status,
            next((event.completion_info for event in events if event.completion_info is not None), None),
            handle.pause_reason,
            handle.pending_messages,
        )
        return StepEnded(report, facts, _has_reached(until, report), self._hits_of(report, facts))

    def _hits_of(self, report: StepReport, facts: RunFacts) -> tuple[Hit, ...]:
        """The handle asks only where the run goes on by itself, and where nothing else pauses it."""
        return self.hits(self._breakpoints(), report, facts) if self._hits is None else self._hits

    async def _step(self, handle: WorkflowRun) -> BaseException | None:
        self._is_new = False
        task = asyncio.ensure_future(handle.step())
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait((task,))
            raise
        finally:
            self._tell_rest()
        return asyncio.CancelledError() if task.cancelled() else task.exception()

    def _hear(self, events: Sequence[WorkflowEvent[Any]]) -> None:
        known = min(self._ahead, len(events))
        self._ahead -= known
        self._read += len(events)
        for event in events[known:]:
            self._on_event(event)

    def _tell_rest(self) -> None:
        """Tell what nobody has read: how a run ends that is broken off."""
        rest = self.handle.events_since(self._read + self._ahead)
        self._ahead += len(rest)
        for event in rest:
            self._on_event(event)

    async def cancel(self) -> RunFacts:
        """End the run; the superstep in flight is broken off."""
        await self.handle.cancel()
        self._tell_rest()
        return RunFacts(
            run_id=self.handle.run_id,
            status="CANCELLED",
            superstep=self._superstep if self.handle.event_count else self._base,
            checkpoints=self.handle.checkpoints_so_far,
            error=self.handle.error,
        )

    # ---- back and sideways -------------------------------------------------------------------------------------------

    async def restore(self, info: CheckpointInfo) -> RunFacts:
        """Put the same run back to a checkpoint."""
        await self.handle.restore_checkpoint(info)
        self._base, self._is_new = info.iteration, True
        return await self.facts()

    async def facts_after_interrupt(self) -> RunFacts:
        """The superstep in flight was given up; what was saved before it is where the run stands."""
        last = self.handle.last_checkpoint
        if str(self.handle.status) != "CANCELLED" or last is None:
            return await self.facts()
        return await self.restore(last)

    async def forked(self, info: CheckpointInfo, edits: Sequence[Edit], **more: Any) -> WorkflowRun:
        """Start a new run from a checkpoint; neither this run nor anything stored is changed.

        Args:
            info: Where it begins.
            edits: What is changed there.
            more: What else `WorkflowRun.fork` takes.
        """
        updates = updates_of(await self._storage.load(info.checkpoint_id), edits)
        return await self.handle.fork(info, state_updates=updates.state or None, messages=updates.messages, **more)

    async def branched(self, info: CheckpointInfo, edits: Sequence[Edit]) -> DrivenRun:
        """The same, on this instance and with the answers that were given since; this run can only be read then."""
        answers = dict(self._unsaved_answers) if info == self.handle.last_checkpoint else {}
        handle = await self.forked(info, edits)
        branch = DrivenRun(
            handle, self._storage, base=info.iteration, breakpoints=self._breakpoints, on_event=self._on_event
        )
        await branch.take_over(answers)
        return branch

    async def take_over(self, answers: dict[str, Any]) -> None:
        """Give answers that another run got before this one branched off."""
        await self.handle.plan()  # restores the checkpoint, and with it the questions
        for request_id in [request.request_id for request in self.handle.pending_requests]:
            if request_id in answers:
                await self.answer(request_id, answers[request_id])

    async def origin(self) -> CheckpointInfo | None:
        """The checkpoint that the run began at, `None` for fresh input."""
        checkpoint_id = self.handle.started_from
        return None if checkpoint_id is None else CheckpointInfo.of(await self._storage.load(checkpoint_id))


async def line_to(storage: CheckpointStorage, base: CheckpointInfo | str) -> list[CheckpointInfo]:
    """The checkpoints that lead to one, oldest first, itself included; as far back as the storage knows them."""
    checkpoint_id = base if isinstance(base, str) else base.checkpoint_id
    last = CheckpointInfo.of(await storage.load(checkpoint_id))
    if not isinstance(storage, SupportsCheckpointInfos):
        return [last]
    known = {info.checkpoint_id: info for info in await storage.list_infos(workflow_name=last.workflow_name)}
    line = [last]
    while (before := known.pop(line[0].previous_checkpoint_id or "", None)) is not None:
        line.insert(0, before)
    return line


def _number_of(events: Sequence[WorkflowEvent[Any]], last: int) -> int:
    """The superstep that failed: the one that was begun, or the start executors'."""
    begun = [event.iteration for event in events if event.type == "superstep_started" and event.iteration is not None]
    return begun[-1] if begun else last


def _has_reached(until: Callable[[StepReport], object] | None, report: StepReport) -> bool | Exception:
    if until is None:
        return False
    try:
        return bool(until(report))
    except Exception as error:  # noqa: BLE001 - user code; its error pauses the run and is shown
        return error

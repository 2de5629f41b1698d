"""One run driven by a stepper. Its coroutines run on the run's loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agentbench._clock import iso_utc, runtime_defaults
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.editing import Edit, updates_of
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.storage import CheckpointStorage, SupportsCheckpointInfos
from agentbench.exceptions import RequestAlreadyAnswered
from agentbench.notebook.stepping.model.break_places import Boundary, Breakpoint, Hit, find_hits, pause_reason
from agentbench.notebook.stepping.model.messages import INPUT, Redo, RunFacts, StepEnded
from agentbench.revisions.current_code import current_workflow
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.message import WITHDRAWN, WORKFLOW_SOURCE, WorkflowMessage
from agentbench.workflows.run.execution import ABSENT
from agentbench.workflows.run.run import WorkflowRun
from agentbench.workflows.run.step_report import PlannedDelivery, StepReport

if TYPE_CHECKING:
    from agentbench.agents.sessions.session import AgentSession


class DrivenRun:
    """A run's handle and the stepper's own facts about it; `base` is the superstep after which the run resumes."""

    def __init__(
        self,
        handle: WorkflowRun,
        storage: CheckpointStorage,
        base: int | None,
        breakpoints: Callable[[], Sequence[Breakpoint]],
        on_event: Callable[[WorkflowEvent[Any]], object],
    ) -> None:
        self.handle = handle
        self._storage = storage
        self._base = base
        self._breakpoints = breakpoints
        self._on_event = on_event
        self._is_new = True  # no superstep was executed since the start or the last restore
        self._answered: dict[str, str] = {}  # request id -> time of the answer
        self._unsaved_answers: dict[str, Any] = {}
        self._begun: list[WorkflowEvent[Any]] = []  # of the superstep in flight, paused in a sub-workflow
        handle.listen(lambda events: [on_event(event) for event in events])

    async def facts(self, *, planned: Sequence[PlannedDelivery] | None = None) -> RunFacts:
        """Return the current facts of the run; pass `planned`, the deliveries of the next superstep, if known."""
        handle, base = self.handle, self._base
        status = "STARTED" if self._is_new else str(handle.status)
        if status in ("FAILED", "CANCELLED"):
            planned = ()
        elif planned is None:
            try:
                planned = await handle.plan()
            except Exception:  # noqa: BLE001 - a condition or a hook raised; the next superstep raises it again
                planned = ()
        # If the first superstep of a branch failed, the handle does not know the superstep of its checkpoints.
        is_before = self._is_new or (base is not None and handle.superstep < base)
        return RunFacts(
            run_id=handle.run_id,
            status=status,
            superstep=(None if base == -1 else base) if is_before else handle.superstep,
            checkpoints=handle.checkpoints,
            requests=() if status == "CANCELLED" else tuple(handle.pending_requests),
            planned=tuple(planned),
            error=handle.error,
            pause_reason=handle.pause_reason,
            new_call=handle.new_call,
        )

    def hits(self, breakpoints: Sequence[Breakpoint], report: StepReport | None, facts: RunFacts) -> tuple[Hit, ...]:
        """Return the breakpoints that are reached at the current boundary."""
        if not breakpoints or facts.status in ("IDLE", "CANCELLED"):
            return ()
        if facts.status == "FAILED":
            breakpoints = [point for point in breakpoints if point.kind == "failure"]
        goes_on = facts.status in ("STARTED", "IN_PROGRESS", "IN_PROGRESS_PENDING_REQUESTS")
        last = -1 if facts.superstep is None else facts.superstep
        at = Boundary(report, last + 1 if goes_on else None, facts.planned, self.handle.state)
        return find_hits(breakpoints, at)

    def sessions_with_queue(self) -> dict[str, AgentSession]:
        """Return the sessions of the agents that take messages while they run, by the id of their node."""
        executors: Mapping[str, Any] = self.handle.executors
        nodes = [node for node in executors.values() if hasattr(node, "agent") and hasattr(node, "session")]
        if not nodes:
            return {}
        from agentbench.agents.sessions.injection import MessageInjectionMiddleware

        kind = MessageInjectionMiddleware
        takes = [node for node in nodes if any(isinstance(one, kind) for one in getattr(node.agent, "middleware", ()))]
        return {node.id: node.session for node in takes}

    async def answer(self, request_id: str, value: Any) -> None:
        """Send a response, or withdraw the request; raises the errors of `Stepper.respond`."""
        open_ids = {request.request_id for request in self.handle.pending_requests}
        if request_id in self._answered and request_id not in open_ids:
            raise RequestAlreadyAnswered(request_id, self._answered[request_id])
        if not open_ids:
            msg = f"There is no request {request_id!r}: no request is open. `pending` lists the open requests."
            raise ValueError(msg)
        if value is WITHDRAWN:
            await self.handle.cancel_pending_requests(request_id)
        else:
            await self.handle.respond(request_id, value)
        self._answered[request_id] = iso_utc(runtime_defaults().clock.time_ns())
        self._unsaved_answers[request_id] = value

    async def step(self, until: Callable[[StepReport], object] | None, *, inside: bool) -> StepEnded | RunFacts:
        """Run a superstep; `until` is the caller's own end condition, called with the report.

        With `inside` it may stop after a superstep of a sub-workflow; then only the facts of the run are returned.
        A raised exception comes from the engine, not from an executor; the run has not failed.
        """
        before, error = self.handle.last_report, await self._step(inside)
        facts = await self.facts()
        if error is not None and facts.status not in ("FAILED", "CANCELLED"):
            raise error
        if error is not None and not isinstance(error, (Exception, asyncio.CancelledError)):
            # An executor that raises SystemExit cancels its run, which the stepper displays as a failure.
            facts = replace(facts, status="FAILED", error=error)
        self._unsaved_answers.clear()
        report = self.handle.last_report
        if report is None or report is before:  # the run was stopped before the superstep began
            report = StepReport(self.handle.superstep, [], self.handle.status)
        if error is None and facts.pause_reason is not None and facts.pause_reason.kind in ("inside", "new_call"):
            self._begun += report.events
            return facts
        report, self._begun = replace(report, events=[*self._begun, *report.events]), []
        hits = self.hits(self._breakpoints(), report, facts)
        if hits and facts.status.startswith("IN_PROGRESS"):
            report = replace(report, pause_reason=pause_reason(hits))
            self.handle.note_pause(report.pause_reason)
            facts = replace(facts, pause_reason=report.pause_reason)
        try:
            reached: bool | Exception = until is not None and bool(until(report))
        except Exception as raised:  # noqa: BLE001 - user code; its error pauses the run and is displayed
            reached = raised
        return StepEnded(report, facts, reached, hits)

    async def _step(self, inside: bool) -> BaseException | None:
        self._is_new = False
        task = asyncio.ensure_future(self.handle.step(inside=inside))
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait((task,))
            raise
        return asyncio.CancelledError() if task.cancelled() else task.exception()

    async def cancel(self) -> RunFacts:
        """Cancel the run and the superstep in flight."""
        await self.handle.cancel()
        return replace(await self.facts(planned=()), status="CANCELLED", requests=(), pause_reason=None)

    async def restore(self, info: CheckpointInfo | None) -> RunFacts:
        """Restore the same run to a checkpoint; `None` restores it to its input."""
        self._begun = []
        if info is None:
            await self.handle.retry()
        else:
            await self.handle.restore_checkpoint(info)
            self._base = info.iteration
        self._is_new = True
        return await self.facts()

    async def knows_input(self) -> bool:
        """Whether the input is known, with which the run or the one that it continues was started."""
        return await self.handle._find_input() is not ABSENT  # noqa: SLF001 - `input` blocks

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        """Return the content of a checkpoint, or of the input as one before superstep 0."""
        if checkpoint_id != INPUT:
            return await self._storage.load(checkpoint_id)
        return input_checkpoint(await self.handle._find_input())  # noqa: SLF001 - `input` blocks

    async def fork(self, info: CheckpointInfo, edits: Sequence[Edit], **more: Any) -> WorkflowRun:
        """Start a new run from a checkpoint or from the input; this run and its stored checkpoints do not change."""
        content = await self.load(info.checkpoint_id)
        updates = updates_of(content, edits)
        if info.checkpoint_id == INPUT:
            message = (updates.messages or content.messages)[WORKFLOW_SOURCE][0].data
            return await self.handle.fork(INPUT, **{"message": message, **more})
        return await self.handle.fork(info, state_updates=updates.state or None, messages=updates.messages, **more)

    async def redo(self, instruction: Redo) -> tuple[DrivenRun, CheckpointInfo | None]:
        """Start a run that does supersteps again; returns it and its first checkpoint, `None` for the input."""
        workflow = instruction.workflow or current_workflow(self.handle)
        handle = await self.handle.redo(instruction.since, workflow, instruction.new_calls)
        begin = None
        if handle.started_from is not None:
            begin = CheckpointInfo.of(await self._storage.load(handle.started_from))
        base = None if begin is None else begin.iteration
        redone = DrivenRun(handle, self._storage, base, self._breakpoints, self._on_event)
        await handle.plan()
        return redone, begin

    async def branch(self, info: CheckpointInfo, edits: Sequence[Edit]) -> DrivenRun:
        """Fork on the same workflow instanceand send the later responses again; afterwards this run is read-only."""
        answers = dict(self._unsaved_answers) if info == self.handle.last_checkpoint else {}
        handle = await self.fork(info, edits)
        if self._begun:
            await self.handle.cancel()
        branch = DrivenRun(handle, self._storage, info.iteration, self._breakpoints, self._on_event)
        await handle.plan()  # restores the checkpoint and its requests
        for request in list(handle.pending_requests):
            if request.request_id in answers:
                await branch.answer(request.request_id, answers[request.request_id])
        return branch


def input_checkpoint(message: Any) -> WorkflowCheckpoint:
    """Return the input of a run as the checkpoint that a run with `save_input` would begin with."""
    messages = {WORKFLOW_SOURCE: [WorkflowMessage(message, WORKFLOW_SOURCE)]}
    return WorkflowCheckpoint("", "", INPUT, messages=messages, iteration_count=-1)


async def ancestors_of(storage: CheckpointStorage, checkpoint_id: str) -> list[CheckpointInfo]:
    """Return a checkpoint and its ancestors, oldest first, as far back as the storage has them."""
    last = CheckpointInfo.of(await storage.load(checkpoint_id))
    if not isinstance(storage, SupportsCheckpointInfos):
        return [last]
    infos = {info.checkpoint_id: info for info in await storage.list_infos(workflow_name=last.workflow_name)}
    lineage = [last]
    while (before := infos.pop(lineage[0].previous_checkpoint_id or "", None)) is not None:
        lineage.insert(0, before)
    return lineage

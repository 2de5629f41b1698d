"""The engine's side of a stepper: carries out what the model says, one thing at a time, and tells it what came of it.

Everything that touches the run's handle is a coroutine on one loop, the engine thread's unless the stepper was bound to
the kernel's. `ask` may be called from any thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, TypeVar

from agentbench._bridge import EngineFuture, submit
from agentbench._clock import iso_utc, runtime_defaults
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.storage import CheckpointStorage, SupportsCheckpointInfos
from agentbench.exceptions import RequestAlreadyAnswered
from agentbench.notebook.escaping import esc
from agentbench.notebook.step_log import LogLine
from agentbench.notebook.stepper_messages import (
    IN_FLIGHT,
    AnswerTaken,
    EventSeen,
    Fork,
    Forked,
    Instruction,
    Interrupted,
    Release,
    Rest,
    Rested,
    Restore,
    Restored,
    RunFacts,
    Started,
    StepEnded,
    StepFailed,
    Stimulus,
    Stopped,
    StopRun,
    TakeStep,
)
from agentbench.notebook.stepper_model import StepperModel
from agentbench.workflow.events import WorkflowEvent
from agentbench.workflow.report import StepReport
from agentbench.workflow.run import WorkflowRun

__all__ = ["StepperSession", "Until", "line_to"]

T = TypeVar("T")
Until = Callable[[StepReport], object]

_LOOK_S = 0.05  # how often a superstep in flight is looked at: as often as a page is drawn


class StepperSession:
    """Drives one `WorkflowRun` after the other on behalf of a model.

    Args:
        model: Decides.
        storage: Where the runs save their checkpoints.
        loop: The loop of the runs, `None` for the engine thread's.
        on_change: Called after each change of the model, from any thread; must return at once.
        on_event: Called with the kind and the object of what happened, on the loop of the runs.
    """

    def __init__(
        self,
        model: StepperModel,
        storage: CheckpointStorage,
        *,
        loop: asyncio.AbstractEventLoop | None,
        on_change: Callable[[], object],
        on_event: Callable[[str, Any], object],
    ) -> None:
        self.model = model
        self.storage = storage
        self.loop = loop
        self.handle: WorkflowRun | None = None
        self.until: Until | None = None
        #: What a fork, a restore or a plan raised, for the caller who waits; the run itself has not failed.
        self.error: BaseException | None = None
        self._on_change = on_change
        self._on_event = on_event
        self._lock = threading.RLock()
        self._turn = asyncio.Lock()
        self._hurry = asyncio.Event()
        self._moved = asyncio.Event()
        self._base: int | None = None  # superstep of the checkpoint that the present run went on from
        self._answered: dict[str, str] = {}
        self._background: set[EngineFuture[Any]] = set()
        self._settling = False
        self._handed_over: Instruction | None = None

    # ---- any thread --------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def reading(self) -> Any:
        """Hold the model still while it is read."""
        with self._lock:
            yield self.model

    def ask(self, stimulus: Stimulus) -> Instruction | None:
        """Tell the model something. From any thread; raises what `StepperModel.handle` raises."""
        with self._lock:
            before = self.model.status
            instruction = self.model.handle(stimulus)
            after = self.model.status
        if after is not before:
            self._on_event("status", after)
        self._on_change()
        return instruction

    def begin(self, stimulus: Stimulus, *, through: bool = False) -> EngineFuture[None] | None:
        """Ask for something and start what is to be done.

        Args:
            stimulus: What is asked; raises what `StepperModel.handle` raises.
            through: Whether it is done only when the run does not wait for a person any more.

        Returns:
            A future that ends with it, `None` when nothing is to be done.
        """
        instruction = self.ask(stimulus)
        self.nudge()
        if instruction is None and not through:
            return None
        begun: list[bool] = []

        async def work() -> None:
            begun.append(True)
            await self.carry_out(instruction, through=through)

        def ended(done: Future[None]) -> None:
            if done.cancelled() and not begun:  # the caller was interrupted before the work could begin
                self.ask(Interrupted(self.model.facts))

        future = self.start(work())
        future.add_done_callback(ended)
        return future

    def note_down(self, text: str) -> None:
        """Add a line about something that went wrong beside the run. From any thread."""
        with self._lock:
            self.model.note_down([LogLine("error", esc(text, into="line", limit=400))])
        self._on_change()

    def start(self, work: Coroutine[Any, Any, T]) -> EngineFuture[T]:
        """Start work on the loop of the runs."""
        return submit(work, loop=self.loop)

    def nudge(self) -> None:
        """Cut a pause for the eye short, so that what was just asked is seen to."""
        if self.handle is not None:
            self._keep(self.start(self._set_hurry()))

    def _keep(self, future: EngineFuture[Any]) -> None:
        self._background.add(future)
        future.add_done_callback(self._background.discard)

    # ---- the loop of the runs ----------------------------------------------------------------------------------------

    async def open(self, start: Callable[[], WorkflowRun], base: CheckpointInfo | str | None = None) -> None:
        """Start a run.

        Args:
            start: Makes the handle.
            base: The checkpoint that it goes on from, if it does.

        Raises:
            GraphMismatchError: The checkpoint belongs to another graph; its `differences` say which.
            WorkflowCheckpointException: It cannot be loaded.
        """
        line = [] if base is None else await line_to(self.storage, base)
        self._base = line[-1].iteration if line else None
        self.handle = start()
        try:
            facts = await self._facts()
        except BaseException:
            await self.handle.cancel()  # the workflow is free again
            raise
        self.ask(Started(facts, line))

    async def carry_out(self, instruction: Instruction | None, *, through: bool = False) -> None:
        """Do what the model says until it says nothing more; with `through`, wait for people in between."""
        try:
            await self._carry_on(instruction)
            if through:
                await self._settle()
        except asyncio.CancelledError:
            self.ask(Interrupted(await self._facts_after_interrupt()))
            raise
        finally:
            self._moved.set()

    async def _carry_on(self, instruction: Instruction | None) -> None:
        while instruction is not None:
            instruction = await self._do(instruction)

    async def _settle(self) -> None:
        """Wait until the run neither moves nor is going to move by itself once a person has answered."""
        self._settling = True
        try:
            while self.model.going_through or self.model.status in IN_FLIGHT:
                self._moved.clear()
                await self._moved.wait()
                instruction, self._handed_over = self._handed_over, None
                await self._carry_on(instruction)
        finally:
            self._settling = False

    async def answer(self, request_id: str, value: Any) -> None:
        """Send an answer, and go on if the run was told to.

        Raises:
            RequestAlreadyAnswered: It was answered before.
            ValueError: There is no such request, or the answer is not of its type.
        """
        handle = self._require_handle()
        async with self._turn:
            if request_id in self._answered and all(r.request_id != request_id for r in handle.pending_requests):
                raise RequestAlreadyAnswered(request_id, self._answered[request_id])
            await handle.send_response(request_id, value)
            self._answered[request_id] = iso_utc(runtime_defaults().clock.time_ns())
            facts = await self._facts()
        instruction = self.ask(AnswerTaken(request_id, facts))
        self._on_event("answer", (request_id, value))
        if self._settling:
            self._handed_over = instruction
        elif instruction is not None:
            self._keep(self.start(self.carry_out(instruction)))
        self._moved.set()

    async def checkpoint(self, checkpoint_id: str) -> WorkflowCheckpoint:
        """Load what a checkpoint holds."""
        return await self.storage.load(checkpoint_id)

    async def _set_hurry(self) -> None:
        self._hurry.set()
        self._moved.set()

    def _require_handle(self) -> WorkflowRun:
        if self.handle is None:
            msg = "The session was not opened."
            raise RuntimeError(msg)
        return self.handle

    async def _do(self, instruction: Instruction) -> Instruction | None:
        if isinstance(instruction, Rest):
            self._hurry.clear()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), instruction.delay_s)
            return self.ask(Rested())
        if isinstance(instruction, StopRun):
            return await self._stop()
        if isinstance(instruction, Release):
            await self._require_handle().cancel()
            return None
        async with self._turn:
            if isinstance(instruction, TakeStep):
                return await self._take_step()
            return await self._go_back(instruction)

    async def _take_step(self) -> Instruction | None:
        handle = self._require_handle()
        events, error = await self._watched_step(handle)
        facts = await self._facts()
        if error is not None and facts.status not in ("FAILED", "CANCELLED"):
            self.error = error
            return self.ask(StepFailed(error, facts))
        report = StepReport(
            handle.superstep if facts.status != "FAILED" else _number_of(events, handle.superstep),
            events,
            handle.status,
            next((event.completion_info for event in events if event.completion_info is not None), None),
            handle.pause_reason,
            handle.pending_messages,
        )
        reached = self._has_reached(report)
        self._on_event("step", report)
        return self.ask(StepEnded(report, facts, reached))

    async def _watched_step(self, handle: WorkflowRun) -> tuple[list[WorkflowEvent[Any]], BaseException | None]:
        """Take a superstep and tell of its events while it lasts.

        Returns:
            Its events, and its error if it raised one.
        """
        seen = before = len(handle.events)
        task = asyncio.ensure_future(handle.step())
        try:
            while not task.done():
                await asyncio.wait((task,), timeout=_LOOK_S)
                events = handle.events
                self._tell_events(events[seen:])
                seen = len(events)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait((task,))
            self._tell_events(handle.events[seen:])
            raise
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        return events[before:], error

    def _tell_events(self, events: list[WorkflowEvent[Any]]) -> None:
        for event in events:
            self.ask(EventSeen(event))
            self._tell(event)

    def _tell(self, event: WorkflowEvent[Any]) -> None:
        self._on_event("event", event)
        if event.type != "status":  # the stepper's own status is told under that name
            self._on_event(event.type, event)

    def _has_reached(self, report: StepReport) -> bool | Exception:
        if self.until is None:
            return False
        try:
            return bool(self.until(report))
        except Exception as error:  # noqa: BLE001 - user code; its error pauses the run and is shown
            return error

    async def _go_back(self, instruction: Fork | Restore) -> Instruction | None:
        handle = self._require_handle()
        info = instruction.checkpoint
        try:
            if isinstance(instruction, Fork):
                self.handle = await handle.fork(info)
                self._answered.clear()
            else:
                await handle.restore_checkpoint(info)
            self._base = info.iteration
            facts = await self._facts(began=False)
        except Exception as error:  # noqa: BLE001 - storages and executors' restore hooks are user code
            self.error = error
            return self.ask(StepFailed(error, await self._facts()))
        return self.ask(Forked(facts) if isinstance(instruction, Fork) else Restored(facts))

    async def _stop(self) -> Instruction | None:
        handle = self._require_handle()
        handle.stop()
        async with self._turn:  # whoever drives has seen the end of its superstep
            await handle.cancel()
            superstep = handle.superstep if handle.events else self._base
            facts = replace(await self._facts(), status="CANCELLED", superstep=superstep, planned=(), requests=())
        return self.ask(Stopped(facts))

    async def _facts_after_interrupt(self) -> RunFacts:
        """The superstep in flight was given up; what was saved before it is where the run stands."""
        handle = self._require_handle()
        last = handle.last_checkpoint
        if str(handle.status) != "CANCELLED" or last is None:
            return await self._facts()
        await handle.restore_checkpoint(last)
        self._base = last.iteration
        return await self._facts(began=False)

    async def _facts(self, *, began: bool = True) -> RunFacts:
        """What the handle tells between two supersteps.

        Args:
            began: `False` right after a return to a checkpoint, when nothing of the new line was executed yet.
        """
        handle = self._require_handle()
        status = str(handle.status) if began else "STARTED"
        fresh = status == "STARTED"
        planned = [] if status in ("FAILED", "CANCELLED") else await handle.plan()
        return RunFacts(
            run_id=handle.run_id,
            status=status,
            superstep=self._base if fresh else handle.superstep,
            checkpoints=tuple(handle.checkpoints),
            requests=tuple(handle.pending_requests) if planned or not fresh or self._base is not None else (),
            planned=tuple(planned),
            error=handle.error,
            pause_reason=handle.pause_reason,
        )


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


def _number_of(events: list[WorkflowEvent[Any]], last: int) -> int:
    """The superstep that failed: the one that was begun, or the start executors'."""
    begun = [event.iteration for event in events if event.type == "superstep_started" and event.iteration is not None]
    return begun[-1] if begun else last

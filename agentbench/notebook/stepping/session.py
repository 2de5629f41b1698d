"""The engine's side of a stepper: it carries out the model's instructions one at a time and reports the results.

Everything that touches the run's handle is a coroutine on one loop, the engine thread's unless the stepper was bound to
the kernel's. `dispatch` may be called from any thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from agentbench._bridge import EngineFuture, engine_thread, submit
from agentbench._text.escape import esc
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint, id_of
from agentbench.checkpoints.editing import Edit, make_edit, updates_of
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.storage import CheckpointStorage
from agentbench.exceptions import InvalidEdit, StateValidationError
from agentbench.notebook.history.log import LogKind, LogLine
from agentbench.notebook.runtime.kernel import cell_number
from agentbench.notebook.stepping.driven_run import DrivenRun, ancestors_of
from agentbench.notebook.stepping.model.messages import (
    IN_FLIGHT,
    INPUT_POSITION,
    AllowCalls,
    CancelRun,
    CheckBreakpoints,
    Fork,
    Instruction,
    Redo,
    Restore,
    StepEnded,
    StepperStatus,
    TakeStep,
    Wait,
)
from agentbench.notebook.stepping.model.model import StepperModel
from agentbench.revisions.current_code import note_code
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.run.run import WorkflowRun
from agentbench.workflows.run.step_report import StepReport

T = TypeVar("T")

Start = Callable[[Callable[[str], object]], Awaitable[WorkflowRun]]
"""Makes the handle of a run; receives a function that adds a line to the log."""

Change = Callable[[StepperModel], Instruction | None]
"""A command of a person or a report of the engine: calls a method of the model and returns its result."""


class StepperSession:
    """Drives one `WorkflowRun` after another as a model decides, on `loop`; `None` is the engine thread's loop.

    `on_change` is called from any thread and must return immediately; `on_event` on the loop of the runs.
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
        self.earlier: Sequence[StepReport] = ()  # supersteps of the steppers that this one was forked from
        self.error: BaseException | None = None
        """An error of a fork, a restore or a plan, for the waiting caller; the run itself has not failed."""
        self.before_redo: WorkflowRun | None = None
        """The run that the current one does again."""
        self._run: DrivenRun | None = None
        self._on_change = on_change
        self._on_event = on_event
        self._lock = threading.RLock()
        self._turn = asyncio.Lock()
        self._wait_over = asyncio.Event()
        self._moved = asyncio.Event()
        self._settling = False  # a task waits for answers and carries out the instructions that follow
        self._handed_over: Instruction | None = None

    @property
    def handle(self) -> WorkflowRun | None:
        """The current run, `None` until it is open."""
        return None if self._run is None else self._run.handle

    @property
    def _loop_of_runs(self) -> asyncio.AbstractEventLoop:
        return self.loop or engine_thread().loop

    @property
    def on_own_loop(self) -> bool:
        """Whether the caller runs on the loop of the runs, where waiting would block forever."""
        try:
            return asyncio.get_running_loop() is self._loop_of_runs
        except RuntimeError:
            return False

    def call_on_loop(self, call: Callable[[], object]) -> None:
        """Call a function on the loop of the runs, where reading a run is free of races."""
        with contextlib.suppress(RuntimeError):  # the loop was closed because the process ends
            self._loop_of_runs.call_soon_threadsafe(call)

    def call_later(self, delay_s: float, call: Callable[[], object]) -> None:
        """Call a function on the loop of the runs after a delay."""
        self.call_on_loop(lambda: self._loop_of_runs.call_later(delay_s, call))

    @contextlib.contextmanager
    def reading(self) -> Iterator[StepperModel]:
        """Lock the model for reading."""
        with self._lock:
            yield self.model

    def dispatch(self, change: Callable[[StepperModel], T]) -> T:
        """Change the model; returns the result and raises the errors of its method. Callable from any thread."""
        with self._lock:
            before, played = self.model.status, self.model.playing
            result = change(self.model)
            self.model.revision += 1
            if self.model.status is not before:
                self.call_on_loop(partial(self._on_event, "status", self.model.status))
        if played and not self.model.playing:
            self.end_wait()
        self._on_change()
        return result

    def begin(self, change: Change, *, through: bool = False) -> EngineFuture[None]:
        """Change the model and start the resulting instruction; raises the errors of the model's method.

        With `through`, the future ends only when the run no longer waits for a person.
        """
        instruction = self.dispatch(change)
        self.end_wait()
        begun: list[bool] = []

        async def work() -> None:
            begun.append(True)
            await self.carry_out(instruction, through=through)

        def on_done(done: Future[None]) -> None:
            if done.cancelled() and not begun:  # the caller was interrupted before the work could begin
                self.dispatch(lambda model: model.take_interrupt(model.facts))

        future = self.start(work())
        future.add_done_callback(on_done)
        return future

    def note_down(self, text: str, *, kind: LogKind = "error") -> None:
        """Log an error, or other news, outside the run. Callable from any thread."""
        self.dispatch(lambda model: model.note_down([LogLine(kind, esc(text, into="line", limit=400))]))

    def start(self, work: Coroutine[Any, Any, T]) -> EngineFuture[T]:
        """Start a coroutine on the loop of the runs."""
        return submit(work, loop=self.loop)

    def end_wait(self) -> None:
        """End a wait between two supersteps, so that the latest command is carried out immediately."""
        if self._run is not None:
            self.call_on_loop(self._wait_over.set)
            self.call_on_loop(self._moved.set)

    async def open(self, start: Start) -> None:
        """Start a run; raises the errors of `stepper` for its checkpoint."""
        handle = await start(self.note_down)
        try:
            lineage = [] if handle.started_from is None else await ancestors_of(self.storage, handle.started_from)
            base = lineage[-1].iteration if lineage else None
            run = DrivenRun(handle, self.storage, base, lambda: self.model.breakpoints.all, self._emit_event)
            facts = await run.facts(planned=await handle.plan())
        except BaseException:
            await handle.cancel()  # frees the workflow
            raise
        self._run = run
        if cell_number() is not None:  # only in notebooks code changes while a stepper is open
            note_code(handle.workflow)
        if not (lineage and lineage[0].iteration < 0) and await run.knows_input():
            lineage = [INPUT_POSITION, *lineage]
        self.dispatch(lambda model: model.start(facts, lineage))
        if self.model.status is StepperStatus.CLOSED:  # closed before there was a run to cancel
            await handle.cancel()

    async def carry_out(self, instruction: Instruction | None, *, through: bool = False) -> None:
        """Carry out instructions until none follows; `through` waits for answers in between."""
        try:
            while True:
                while instruction is not None:
                    instruction = await self._do(instruction)
                self._settling = through or self._settling
                if not (through and (self.model.goes_on_after_answer or self.model.status in IN_FLIGHT)):
                    break
                self._moved.clear()
                await self._moved.wait()
                instruction, self._handed_over = self._handed_over, None
        except asyncio.CancelledError:
            run = self._require_run()
            if self.model.status in IN_FLIGHT and str(run.handle.status) == "CANCELLED":
                facts = await run.restore(run.handle.last_checkpoint)  # the state before the superstep
            else:
                facts = await run.facts()
            self.dispatch(lambda model: model.take_interrupt(facts))
            raise
        finally:
            self._settling = self._settling and not through
            self._moved.set()

    def answer(self, request_id: str, value: Any) -> EngineFuture[None]:
        """Send an answer to the run and continue if requested; the future ends when the run has accepted it."""
        with self._lock:
            self.model.require_open()
        return self.start(self._answer(request_id, value))

    async def _answer(self, request_id: str, value: Any) -> None:
        async with self._turn:
            run = self._require_run()
            await run.answer(request_id, value)
            facts = await run.facts()
        instruction = self.dispatch(lambda model: model.take_answer(facts))
        self._on_event("answer", (request_id, value))
        if self._settling:
            self._handed_over = instruction
        elif instruction is not None:
            self.start(self.carry_out(instruction))
        self._moved.set()

    @property
    def agents_with_queue(self) -> frozenset[str]:
        """The ids of the nodes whose agents take messages while they run."""
        return frozenset(() if self._run is None else self._run.sessions_with_queue())

    def enqueue(self, executor_id: str, text: str) -> None:
        """Add a message to an agent that runs, and log it; `LookupError` if it takes none."""
        from agentbench.agents.sessions.injection import enqueue_messages

        enqueue_messages(self._require_run().sessions_with_queue()[executor_id], text)
        self.note_down(f"Message to {executor_id}: {text}", kind="text")

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        """Return the content of a checkpoint, or of the input as one before superstep 0."""
        return await self._require_run().load(checkpoint_id)

    async def stage(self, path: str, value: Any, checkpoint_id: str | None = None) -> Edit:
        """Check and stage an edit of a checkpoint, `None` for the displayed one; raises like `Stepper.edit`."""
        with self._lock:
            self.model.require("edit")
            checkpoint_id = checkpoint_id or self.model.checkpoints.displayed_id or ""
            staged = self.model.staged_edits.of(checkpoint_id)
        edit = self._make_edit(await self.load(checkpoint_id), path, value, staged)
        self.dispatch(lambda model: model.stage_edit(checkpoint_id, edit))
        return edit

    def _make_edit(self, content: WorkflowCheckpoint, path: str, value: Any, staged: tuple[Edit, ...]) -> Edit:
        """Make an edit that fits the current value and, in a state graph, its field."""
        hook: Any = self._require_run().handle.workflow.boundary_hook
        edit = make_edit(content, path, value, staged, getattr(hook, "field_names", ()))
        try:
            if hasattr(hook, "check_state"):
                checked = hook.check_state(updates_of(content, (*staged, edit)).state)
                if edit.steps[1:] == (path,):
                    edit = replace(edit, after=checked[path])
        except StateValidationError as error:
            raise InvalidEdit(path, error.message) from error
        return edit

    async def fork(
        self, checkpoint: CheckpointInfo | str | None, edits: Mapping[str, Any] | None, workflow: Any, **more: Any
    ) -> WorkflowRun:
        """Start a new run from a checkpoint, on another instance; `Stepper.fork` documents the arguments."""
        with self._lock:
            self.model.require("fork")
            wanted = id_of(checkpoint or self.model.checkpoints.displayed_id or "")
            info = self.model.checkpoints.past[self.model.checkpoints.index_of(wanted)].info
            wanted = info.checkpoint_id
            staged = self.model.staged_edits.of(wanted)
        if edits is not None:
            content, staged = await self.load(wanted), ()
            for path, value in edits.items():
                staged = (*staged, self._make_edit(content, path, value, staged))
        async with self._turn:
            run = self._require_run()
            if workflow is None:
                try:
                    workflow = run.handle.workflow.clone(copy_executors=True)
                except Exception:  # noqa: BLE001 - copying executors runs foreign code; clone() shares them
                    workflow = run.handle.workflow.clone()
            handle = await run.fork(info, staged, workflow=workflow, **more)
        if edits is None:
            self.dispatch(lambda model: model.discard_edits(checkpoint_id=wanted))
        return handle

    def _require_run(self) -> DrivenRun:
        if self._run is None:
            msg = "The session has no run yet. Call open() first."
            raise RuntimeError(msg)
        return self._run

    async def _do(self, instruction: Instruction) -> Instruction | None:
        if isinstance(instruction, Wait):
            return await self._wait(instruction)
        if isinstance(instruction, CancelRun):
            if not instruction.at_once:
                await self._stop()
            elif self._run is not None:
                await self._run.handle.cancel()
            return None
        run = self._require_run()
        async with self._turn:
            try:
                if isinstance(instruction, TakeStep):
                    return await self._step(run, instruction)
                if isinstance(instruction, AllowCalls):
                    run.handle.allow_new_calls(instruction.which)
                    return self.dispatch(lambda model: model.run(through=True))
                if isinstance(instruction, CheckBreakpoints):
                    reports = self.model.reports
                    hits = run.hits(instruction.breakpoints, reports[-1] if reports else None, await run.facts())
                    return self.dispatch(lambda model: model.take_hits(hits))
                going = asyncio.ensure_future(self._go_back(run, instruction))
                try:
                    return await asyncio.shield(going)
                except asyncio.CancelledError:
                    await asyncio.wait((going,))  # an interrupted fork would leave two runs on one instance
                    raise
            except Exception as error:  # noqa: BLE001 - of storages and of executors' restore hooks, which are user code
                self.error = error
                facts, note = await run.facts(), f"{type(error).__name__}: {error}"
                self.dispatch(lambda model: model.rest(facts, note))
                return None

    async def _step(self, run: DrivenRun, instruction: TakeStep) -> Instruction | None:
        outcome = await run.step(instruction.until, inside=instruction.inside)
        if not isinstance(outcome, StepEnded):
            return self.dispatch(lambda model: model.pause_inside(outcome))
        self._on_event("step", outcome.report)
        return self.dispatch(lambda model: model.end_step(outcome))

    async def _wait(self, instruction: Wait) -> Instruction | None:
        self._wait_over.clear()
        if self.model.still_waits(instruction.number):  # otherwise another command came first
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._wait_over.wait(), instruction.delay_s)
        return self.dispatch(lambda model: model.end_wait(instruction.number))

    def _emit_event(self, event: WorkflowEvent[Any]) -> None:
        with self._lock:
            self.model.see(event)
        self._on_change()
        self._on_event("event", event)
        if event.type != "status":  # the stepper's own status is emitted under that name
            self._on_event(event.type, event)

    async def _go_back(self, run: DrivenRun, instruction: Fork | Redo | Restore) -> Instruction | None:
        if isinstance(instruction, Restore):
            restored = await run.restore(instruction.checkpoint)
            return self.dispatch(lambda model: model.take_restore(restored))
        if isinstance(instruction, Redo):
            redone, begin = await run.redo(instruction)
            facts = await redone.facts()
            self.before_redo, self._run = run.handle, redone
            note_code(redone.handle.workflow)
            return self.dispatch(lambda model: model.take_redo(facts, begin))
        branch = await run.branch(instruction.checkpoint, instruction.edits)
        facts = await branch.facts()
        started = branch.handle.started_from
        origin = None if started is None else CheckpointInfo.of(await self.storage.load(started))
        self._run = branch
        following = self.dispatch(lambda model: model.take_fork(instruction, facts, origin))
        for edit in instruction.edits:
            self._on_event("edit", edit)
        return following

    async def _stop(self) -> None:
        self._require_run().handle.stop()
        async with self._turn:  # the superstep in flight has ended and was reported
            facts = await self._require_run().cancel()
        self.dispatch(lambda model: model.rest(facts))

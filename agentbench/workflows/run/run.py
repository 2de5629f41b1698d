"""The run handle: a run that its reader drives, one superstep at a time or to the end, back and sideways too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agentbench._clock import runtime_defaults
from agentbench._display import Displayable, drawn_by
from agentbench.checkpoints.access import id_of, load_checkpoint
from agentbench.checkpoints.fork import fork_checkpoint
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.exceptions import WorkflowBusyError, WorkflowCheckpointException, WorkflowRunnerException
from agentbench.workflows.engine.boundary import PauseReason
from agentbench.workflows.events.events import WorkflowEvent, WorkflowRunState
from agentbench.workflows.events.listeners import Listener, Listeners
from agentbench.workflows.executors.message import WORKFLOW_SOURCE, WorkflowMessage
from agentbench.workflows.executors.options import RunOptions
from agentbench.workflows.persist.restore import require_fitting
from agentbench.workflows.persist.writer import committed_state
from agentbench.workflows.run.branching import cut_back, edited, queued_messages
from agentbench.workflows.run.breakpoints import Breakpoints, Predicate
from agentbench.workflows.run.execution import ABSENT, Execution, RunInput, new_log
from agentbench.workflows.run.report import PlannedDelivery, StepReport, planned, planned_start
from agentbench.workflows.run.requests import check_answers
from agentbench.workflows.run.result import WorkflowRunResult
from agentbench.workflows.run.so_far import SoFar
from agentbench.workflows.run.stream import LiveSteps, await_on, call_on

if TYPE_CHECKING:
    from agentbench.checkpoints.storage import CheckpointStorage
    from agentbench.workflows.run.workflow import Workflow

_OVER = (WorkflowRunState.FAILED, WorkflowRunState.CANCELLED)
_IDLE = (WorkflowRunState.IDLE, WorkflowRunState.IDLE_WITH_PENDING_REQUESTS)


@drawn_by("agentbench.notebook.views:run_bundle")
class WorkflowRun(Displayable):
    """A run of one workflow instance, made by `workflow.start()`.

    Nothing runs until `watch_stream()`, `step()` or `result()` is awaited, and no further than was asked. The handle
    keeps the instance to itself until the run is over and nothing is open, or until `cancel()`.

    Attributes:
        run_id: written into the metadata of its checkpoints.
        workflow: the instance.
        started_from: id of the checkpoint that it began at, of a fork that of the (edited) copy; None for fresh input.
        checkpoints: infos of this run's checkpoints, in order; after `restore_checkpoint` those that lead to it.
    """

    def __init__(self, workflow: Workflow, given: RunInput, options: RunOptions) -> None:
        ids = options.ids or runtime_defaults().ids
        self.run_id = ids.new_id("run")
        self.workflow = workflow
        self.started_from = given.checkpoint_id
        self._options = options
        default = workflow.runner.context.storage
        self._storage = default if given.storage is None else given.storage
        self._log = new_log(options, self.run_id, observe=options.observe is not False)
        self._inbox: list[WorkflowMessage] = []
        self._answers: dict[str, Any] = {}
        self._mark = 0
        self._breakpoints = Breakpoints()
        self._listeners = Listeners()
        self._pause_asked = False
        self._pause_reason: PauseReason | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._read_only = False
        self._superstep = 0
        workflow.acquire(self)
        self._execute(given)

    def _execute(self, given: RunInput) -> None:
        """Begin the next round of this run."""
        self._given = given
        self._execution = Execution(
            self.workflow, given, self._options, log=self._log, run_id=self.run_id, streaming=True, pausing=True
        )
        self._steps = LiveSteps(self._execution)

    # ---- how it stands ---------------------------------------------------------------------------

    @property
    def status(self) -> WorkflowRunState:
        """State of the run; `IN_PROGRESS` while it is paused, and after a restore."""
        if self._log.state is None:
            return WorkflowRunState.STARTED
        return self._log.state if self._execution.begun or self._execution.ended else WorkflowRunState.IN_PROGRESS

    @property
    def error(self) -> BaseException | None:
        """What made the run fail."""
        return self._execution.error

    @property
    def superstep(self) -> int:
        """The last finished superstep."""
        return self._superstep

    @property
    def events(self) -> list[WorkflowEvent[Any]]:
        """Every event of this run so far."""
        return self._log.events()

    @property
    def event_count(self) -> int:
        """How many events there are so far."""
        return len(self._log)

    def events_since(self, count: int) -> list[WorkflowEvent[Any]]:
        """The events after the first `count`; in a long run much cheaper than `events[count:]`."""
        return self._log.events_from(count)

    @property
    def checkpoints(self) -> list[CheckpointInfo]:
        """Infos of the checkpoints, in the order of creation."""
        return list(self._log.checkpoints)

    @property
    def checkpoints_so_far(self) -> Sequence[CheckpointInfo]:
        """The same, as they are now, without a copy; for whoever asks after each superstep."""
        return SoFar(self._log.checkpoints)

    @property
    def last_checkpoint(self) -> CheckpointInfo | None:
        """The latest of them."""
        return self._log.checkpoints[-1] if self._log.checkpoints else None

    @property
    def storage(self) -> CheckpointStorage | None:
        """Where this run's checkpoints go; None when it saves none."""
        return self._storage

    @property
    def pending_messages(self) -> list[WorkflowMessage]:
        """What waits for the next superstep."""
        queued = self.workflow.runner.context.messages
        return [m for messages in queued.values() for m in messages] + self._inbox

    @property
    def pending_requests(self) -> list[WorkflowEvent[Any]]:
        """Open requests."""
        open_requests = self.workflow.runner.context.requests
        return [event for request_id, event in open_requests.items() if request_id not in self._answers]

    @property
    def state(self) -> dict[str, Any]:
        """Committed shared state, without the engine's own keys."""
        return committed_state(self.workflow.state)

    @property
    def outputs(self) -> list[Any]:
        """Values yielded as output so far."""
        return [e.data for e in self._log.outputs]

    @property
    def paused(self) -> bool:
        """Paused at a boundary, or asked to pause at the next one."""
        return self._pause_asked or self._pause_reason is not None

    @property
    def pause_reason(self) -> PauseReason | None:
        """Why the run paused."""
        return self._pause_reason

    @property
    def is_over(self) -> bool:
        """Ended, and nothing is open that could continue it: the instance may serve another run."""
        if self._read_only:
            return True
        waits = self._inbox or self._answers or self.status is WorkflowRunState.IDLE_WITH_PENDING_REQUESTS
        return self._execution.ended and not waits

    def give_way(self) -> None:
        """The instance serves another run from now on; this handle can only be read."""
        self._read_only = True

    # ---- driving ---------------------------------------------------------------------------------

    async def watch_stream(self) -> AsyncIterator[WorkflowEvent[Any]]:
        """Events as they come, until the run is idle, pauses, ends or fails.

        May be called again after more input, answers, a pause or a restore.

        Raises:
            Exception: what a handler raised, as is, after the last event.
        """
        await self._prepare()
        while True:
            events = await self._next_events()
            for event in events or ():
                yield event
            if events is None and not await self._goes_on():
                return

    async def step(self) -> StepReport:
        """Exactly one superstep, its checkpoint included.

        The first call of a fresh run is superstep 0; where that leaves nothing to do, the end belongs to it too.

        Raises:
            WorkflowRunnerException: the run is over, or waits for answers with nothing queued.
            Exception: what a handler raised, as is.
        """
        await self._prepare()
        if self._execution.ended:
            what = f"There is nothing to step: the run is {self.status}."
            msg = f"{what} Send a message or an answer, or start another run."
            raise WorkflowRunnerException(msg)
        while await self._next_events() is not None:
            pass
        return await self._settle()

    async def _next_events(self) -> list[WorkflowEvent[Any]] | None:
        events = await self._steps.next_events()
        if events and self._listeners:
            self._listeners.notify(events)
        return events

    async def result(self) -> WorkflowRunResult:
        """Go on until the run is idle, pauses or ends; the result of everything seen.

        Raises:
            Exception: what a handler raised, as is.
        """
        if not self._execution.ended or self._has_work:
            async for _ in self.watch_stream():
                pass
        elif self.error is not None:
            raise self.error
        return WorkflowRunResult.from_log(self._log, is_closed=False)

    async def plan(self) -> list[PlannedDelivery]:
        """What the next superstep will deliver, in plan order. Conditions are asked once, here or there.

        Raises:
            WorkflowCheckpointException: the run starts from a checkpoint that cannot be restored.
        """
        if not self._execution.begun and self._given.starts_fresh:
            return planned_start(self.workflow.start_executors, self._given.message)
        if self._read_only or (self._execution.ended and not self._has_work):
            return []
        await self._execution.prepare()
        await self._flush()
        return planned(await self.workflow.runner.plan())

    @property
    def _has_work(self) -> bool:
        return bool(self._inbox or self._answers or self.workflow.runner.context.messages)

    async def _flush(self) -> None:
        """Queue the input and the answers that came in since the last superstep."""
        if self._answers:
            answers, self._answers = self._answers, {}
            await self._execution.take(answers)
        if self._inbox:
            inbox, self._inbox = self._inbox, []
            self.workflow.runner.context.post(inbox)
            self.workflow.runner.drop_plan()

    async def _prepare(self) -> None:
        """Get ready to drive: open the next round when there is new work after an end."""
        self._check_writable()
        self._loop = asyncio.get_running_loop()
        self.workflow.acquire(self)
        self._pause_asked, self._pause_reason = False, None
        self.workflow.runner.pause = None
        self._mark = self._log.position
        if self._execution.begun:
            await self._flush()
        if self._execution.ended and self._has_work and self.status not in _OVER:
            self._execute(RunInput(fresh=False, storage=self._storage))

    def _check_writable(self) -> None:
        if self._read_only:
            msg = (
                f"Run {self.run_id} is read-only: its workflow instance serves another run now. To go on with both, "
                "give the other one an instance of its own: fork(..., workflow=run.workflow.clone())."
            )
            raise WorkflowBusyError(msg)

    async def _goes_on(self) -> bool:
        """At a boundary: whether a driver takes the next superstep."""
        report = await self._settle()
        return not self._execution.ended and report.pause_reason is None

    async def _settle(self) -> StepReport:
        """Look at what the superstep did, and ask the breakpoints."""
        runner = self.workflow.runner
        self._superstep = runner.iteration
        reason: PauseReason | None = None
        if not self._execution.ended:
            await self._flush()
            reason = runner.pause or (PauseReason("paused by the user", "user") if self._pause_asked else None)
            if reason is None and self._breakpoints:
                reason = self._breakpoints.ask(self._report(None), await self.plan())
        self._pause_asked, self._pause_reason = False, reason
        report = self._report(reason)
        self._mark = self._log.position
        return report

    def _report(self, reason: PauseReason | None) -> StepReport:
        events = self._log.events(self._mark)
        infos = [e.completion_info for e in events if e.completion_info is not None]
        queued = self.workflow.runner.context.messages
        waiting = [m for messages in queued.values() for m in messages]
        return StepReport(self._superstep, events, self.status, infos[-1] if infos else None, reason, waiting)

    # ---- input and answers -----------------------------------------------------------------------

    async def try_send_message(self, message: Any) -> bool:
        """Queue a message for the start executors.

        Returns:
            False when none of them can handle it, or the run ended with an error.
        """
        starts = self.workflow.start_executors
        if self._read_only or self.status in _OVER or any(e.find_handler(message) is None for e in starts):
            return False
        self._inbox.append(WorkflowMessage(message, WORKFLOW_SOURCE))
        return True

    async def send_response(self, request_id: str, value: Any) -> None:
        """Answer one request; it is delivered in the next superstep.

        Raises:
            RuntimeError: no request is open.
            ValueError: the id is unknown, or the value is not of the response type; the request stays open.
        """
        open_requests = {event.request_id: event for event in self.pending_requests}
        self._answers.update(check_answers(open_requests, {request_id: value}))

    # ---- breakpoints, pause and stop -------------------------------------------------------------

    def pause_when(self, predicate: Predicate) -> Callable[[], None]:
        """Ask `predicate(report, plan)` after each boundary; a `PauseReason`, text or True pauses the drivers.

        None and False go on. What else it returns or raises pauses too, with the error on `pause_reason`.

        Returns:
            A function that removes the breakpoint.

        Raises:
            TypeError: the predicate cannot be called.
        """
        return self._breakpoints.add(predicate)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener(events)` with the events of this run as they come, on the loop of whoever drives it.

        Returns:
            A function that ends it.
        """
        return self._listeners.add(listener)

    def pause(self) -> None:
        """Pause at the next boundary. From any thread."""
        self._pause_asked = True

    def stop_after_superstep(self) -> None:
        """End the run at the next boundary, status CANCELLED; its last checkpoint continues it. From any thread."""
        self.workflow.runner.context.stop_requested = True
        if not self._steps.running:
            call_on(self._loop, self._execution.stop_now)

    def stop(self) -> None:
        """End the run soon: async deliveries in flight are cancelled. From any thread."""
        self.workflow.runner.context.stop_requested = True
        hook = self.workflow.runner.hook
        if not self._steps.running:
            call_on(self._loop, self._execution.stop_now)
        elif hook is not None and hook.failure_policy == "finish":
            call_on(self._loop, self.workflow.runner.cancel_deliveries)
        else:
            call_on(self._loop, self._steps.interrupt)

    async def cancel(self) -> None:
        """Break off the current superstep and release the instance."""
        self.workflow.runner.context.stop_requested = True
        await await_on(self._loop, self._steps.cancel())
        self._inbox, self._answers = [], {}
        if self.status in _IDLE and not self._read_only:
            self.workflow.runner.disown()  # answers that were queued after the end are not given after all
        self.workflow.release(self)

    async def __aenter__(self) -> WorkflowRun:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.cancel()

    def __del__(self) -> None:
        if "_steps" in self.__dict__:
            self._steps.abandon()
            self.workflow.release(self)

    # ---- back and sideways -----------------------------------------------------------------------

    async def restore_checkpoint(self, info: CheckpointInfo | str) -> None:
        """Put the same instance back to a checkpoint, ready to be driven on.

        What comes after is a new branch, linked to `info`; stored checkpoints are not touched. `checkpoints` ends with
        `info` then.

        Raises:
            RuntimeError: a superstep is being executed.
            WorkflowCheckpointException: no storage, an unknown id, or another graph.
        """
        self._check_still("restore")
        self._check_writable()
        if self._storage is None:
            msg = "This run saves no checkpoints. Pass checkpoint_storage= to start() or to WorkflowBuilder."
            raise WorkflowCheckpointException(msg)
        self.workflow.acquire(self)
        checkpoint_id = id_of(info)
        checkpoint = await load_checkpoint(self._storage, checkpoint_id)
        require_fitting(self.workflow, checkpoint)  # before anything of this run is given up
        self.workflow.runner.disown()
        self._execution.break_off()
        self._execute(RunInput(checkpoint_id=checkpoint_id, storage=self._storage))
        await self._execution.prepare(checkpoint)
        self._inbox, self._answers, self._pause_reason = [], {}, None
        self._superstep = self.workflow.runner.iteration
        self._log.checkpoints = cut_back(self._log.checkpoints, checkpoint)

    def _check_still(self, what: str) -> None:
        if self._steps.running:
            msg = f"A superstep is being executed; pause() or cancel() first, then {what}."
            raise RuntimeError(msg)

    async def fork(
        self,
        info: CheckpointInfo | str | None = None,
        *,
        state_updates: Mapping[str, Any] | None = None,
        messages: Mapping[str, Sequence[Any]] | None = None,
        message: Any = ABSENT,
        chain: str | None = None,
        workflow: Workflow | None = None,
    ) -> WorkflowRun:
        """Branch off: a new run from an (edited) copy of a checkpoint. Stored checkpoints are not touched.

        Args:
            info: where to branch off; default: the last checkpoint.
            state_updates: replaces these keys of shared state.
            messages: replaces the queued messages: a list by the id of the executor that sent them; values, or
                `WorkflowMessage`s where more than the value matters.
            message: further input for the start executors.
            chain: key of the new branch's checkpoints; default: the same.
            workflow: instance for the new run; default: this one, which makes this handle read-only.

        Returns:
            The new run. Its checkpoints and the edited copy are all of one chain.

        Raises:
            WorkflowCheckpointException: there is no checkpoint to fork from, or it belongs to another graph.
            RuntimeError: a superstep is being executed, or `workflow` runs.
            ValueError: messages name a source that the graph has not, or hold what none of its targets takes; or
                `state_updates` has a key that is no text, or a path into a value.
            TypeError: messages are not lists, or `state_updates` is no mapping.
        """
        self._check_still("fork")
        origin = info if info is not None else self.last_checkpoint
        if origin is None or self._storage is None:
            msg = "There is no checkpoint to fork from. Pass checkpoint_storage= to start(), or step once."
            raise WorkflowCheckpointException(msg)
        target = workflow or self.workflow
        target.require_free(self)
        checkpoint_id = id_of(origin)
        original = await load_checkpoint(self._storage, checkpoint_id)
        require_fitting(target, original)
        queued = None if messages is None else queued_messages(messages, target)
        options = replace(self._options, chain=chain or self._options.chain or self.workflow.name)
        copied = await fork_checkpoint(
            self._storage,
            checkpoint_id,
            workflow_name=options.chain,
            state_updates=state_updates,
            messages=queued,
            clock=options.clock,
            ids=options.ids,
        )
        if target is self.workflow:
            self.workflow.runner.disown()
            self._execution.break_off()
            self._read_only = True
            self.workflow.release(self)
        given = RunInput(message=message, checkpoint_id=copied.checkpoint_id, storage=self._storage)
        run = WorkflowRun(target, given, options)
        if run._log.observed and (state_updates or queued is not None):
            run._log.append(edited(original, state_updates or {}, queued))
        return run

    def __repr__(self) -> str:
        pause = f", paused: {self._pause_reason}" if self._pause_reason is not None else ""
        return f"WorkflowRun({self.workflow.name!r}, {self.run_id}, superstep {self.superstep}, {self.status}{pause})"

"""The run handle: a run that its reader drives step by step or to the end, and can rewind and fork."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from agentbench._bridge import await_on, call_on
from agentbench._clock import runtime_defaults
from agentbench._copying import isolate_or_same
from agentbench._display import call_view, drawn_by
from agentbench.checkpoints.access import load_checkpoint
from agentbench.checkpoints.checkpoint import id_of
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.metadata import CODE_HASHES, INPUT
from agentbench.exceptions import (
    MissingResponseHandlerError,
    WorkflowBusyError,
    WorkflowCheckpointException,
    WorkflowRunnerException,
)
from agentbench.observability.switches import is_tracing
from agentbench.workflows.engine.active_run import InnerSteps, RunState
from agentbench.workflows.engine.event_log import new_log
from agentbench.workflows.events.events import WorkflowEvent, WorkflowRunState
from agentbench.workflows.events.listeners import Listener, Listeners
from agentbench.workflows.executors.message import WORKFLOW_SOURCE, WorkflowMessage
from agentbench.workflows.executors.options import RunOptions
from agentbench.workflows.executors.recorder import GivenAnswer, RunRecorder, RunScene
from agentbench.workflows.graph.boundary import PauseReason
from agentbench.workflows.persist.graph_changes import require_fitting
from agentbench.workflows.run.branching import branch_off, cut_back
from agentbench.workflows.run.breakpoints import Breakpoints, Predicate
from agentbench.workflows.run.execution import ABSENT, Execution, RunInput
from agentbench.workflows.run.first_input import stored_input
from agentbench.workflows.run.readable_run import ReadableRun
from agentbench.workflows.run.responses import check_responses, withdrawals
from agentbench.workflows.run.result import WorkflowRunResult
from agentbench.workflows.run.step_report import PlannedDelivery, StepReport, planned_deliveries
from agentbench.workflows.run.stream import LiveSteps

if TYPE_CHECKING:
    from agentbench.workflows.executors.executor import Executor
    from agentbench.workflows.run.definition import WorkflowDefinition


_OVER = (WorkflowRunState.FAILED, WorkflowRunState.CANCELLED)
_IDLE = (WorkflowRunState.IDLE, WorkflowRunState.IDLE_WITH_PENDING_REQUESTS)


@drawn_by("agentbench.notebook.cards.run:run_bundle")
class WorkflowRun(ReadableRun):
    """A handle on one run, created by `workflow.start()`: step it, pause it, rewind it, fork it.

    Nothing runs until `watch_stream()`, `step()` or `result()` is awaited, and no further than that call needs. The run
    has its own state. With `keep_state=True` it uses the state of the workflow instance and holds it until the run is
    over and no request is open, or until `cancel()`.

    Supersteps are counted from 0: in superstep 0 the start executors get the input. A run that starts from a checkpoint
    continues the count after the checkpoint's superstep.

    Attributes:
        run_id: the id that is written into the metadata of its checkpoints.
        workflow: the workflow that runs.
        started_from: id of the checkpoint it began at; for a fork, id of the (edited) copy; None for fresh input.
        code_hashes: the hashes of the code with which it began, by part of the graph; empty if it is not observed.
        answers: the answers that people gave in it.

    Example:
        >>> run = workflow.start("to be", checkpoint_storage=InMemoryCheckpointStorage())
        >>> await run.step()
        StepReport(superstep 0; ran split; IN_PROGRESS)
        >>> fork = await run.fork(state_updates={"text": "not to be"})
        >>> (await fork.result()).get_outputs()
        [3]
    """

    def __init__(
        self, workflow: WorkflowDefinition, run_input: RunInput, options: RunOptions, *, keep_state: bool = False
    ) -> None:
        defaults = runtime_defaults()
        self.run_id = (options.ids or defaults.ids).new_id("run")
        self.workflow = workflow
        self.started_from = run_input.checkpoint_id
        self._first_input = run_input
        # A copy, because executors may change what they get.
        self._found_input: Any = isolate_or_same(run_input.message) if run_input.starts_fresh else ABSENT
        self._options = options
        self._recorder = self._make_recorder(options)
        self._graph = workflow.graph if keep_state else workflow.graph.fresh()
        self._state = workflow.run_state if keep_state else RunState()
        self._keeps_state = keep_state
        self._storage = run_input.storage
        self._log = new_log(self.run_id, options.clock or defaults.clock, observe=options.observe is not False)
        self._inner_steps = InnerSteps(self._log.wake)
        self._tools = run_input.tools
        self._inbox: list[WorkflowMessage] = []
        self._responses: dict[str, Any] = {}
        self._mark = 0
        self._breakpoints = Breakpoints()
        self._listeners = Listeners()
        self._pause_requested = False
        self._pause_reason: PauseReason | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._read_only = False
        self._origin: weakref.ref[WorkflowRun] | None = None
        self._superstep = 0
        self._last_report: StepReport | None = None
        self._acquire()
        self.code_hashes = workflow.graph.code_hashes if self._log.observed else {}
        self.answers: list[GivenAnswer] = []
        if self._recorder is not None:
            self._options = options = replace(options, record=self._recorder)
            chain = options.chain or workflow.name
            self._recorder.begin(RunScene(self.run_id, chain, self._storage, self._inner_steps.hold, self._warn))
        self._execute(run_input)
        if type(options.check_head) is int:  # the head when this run began; later rounds begin at their own
            self._options = replace(options, check_head=True)

    def _execute(self, run_input: RunInput) -> None:
        """Begin the next round of this run."""
        self._input = run_input
        self._execution = Execution(
            self._graph,
            self._state,
            run_input,
            self._options,
            log=self._log,
            run_id=self.run_id,
            traced_as=self.workflow.id if is_tracing() else None,
            streaming=True,
            pausing=True,
            inbox=self._inbox,
        )
        self._execution.run.inner_steps = self._inner_steps
        if not self._log.checkpoints:
            self._execution.run.first_metadata = self._first_metadata
        self._steps = LiveSteps(self._execution)

    def _first_metadata(self) -> dict[str, Any]:
        """Return what only the first checkpoint of this run has in its metadata."""
        message = stored_input(self._found_input) if self._first_input.starts_fresh else None
        stored = {INPUT: message, CODE_HASHES: self.code_hashes}
        return {key: value for key, value in stored.items() if value}

    def _make_recorder(self, options: RunOptions) -> RunRecorder | None:
        record = options.record
        if not isinstance(record, bool):
            return record
        if not record:
            return None
        recorder: RunRecorder = call_view(
            "agentbench.agents.clients.cassette.recording:ModelRecording", limit=options.record_limit
        )
        return recorder

    def _warn(self, text: str) -> None:
        self._log.append(WorkflowEvent.warning(text))

    def _acquire(self) -> None:
        """Acquire the workflow's state if this run uses it; `WorkflowBusyError` if another run holds it."""
        if self._read_only:
            msg = (
                f"Run {self.run_id} is read-only: another run uses the state of its workflow instance. To have "
                "both, start them without keep_state=True."
            )
            raise WorkflowBusyError(msg)
        if self._keeps_state:
            self.workflow.acquire(self)

    def __repr__(self) -> str:
        pause = f", paused: {self._pause_reason}" if self._pause_reason is not None else ""
        return f"WorkflowRun({self.workflow.name!r}, {self.run_id}, superstep {self.superstep}, {self.status}{pause})"

    # ---- driving ---------------------------------------------------------------------------------

    def break_off_if_lost(self) -> bool:
        """Break off a superstep whose event loop was closed, which ends the run; return whether it was."""
        is_lost = self._steps.is_lost
        if is_lost:
            self._steps.abandon()
        return is_lost

    @property
    def how_to_end(self) -> str:
        """How a caller can end the run, for an error."""
        return f"{self!r} holds it; await its cancel() first"

    def become_read_only(self) -> None:
        """Let another run use the state of this one; this handle then becomes read-only."""
        self._read_only = True

    async def watch_stream(self) -> AsyncIterator[WorkflowEvent[Any]]:
        """Yield events as they are emitted until the run is idle, pauses, ends or fails; then raise a handler's error.

        May be called again after more input, responses, a pause or a restore.
        """
        await self._prepare()
        self._inner_steps.go_on(one=False)
        while True:
            events = await self._next_events()
            for event in events or ():
                yield event
            if self._inner_steps.waiting:
                self._pause_inside()
                return
            if events is None:
                report = await self._end_superstep()
                if self._execution.ended and self._responses:  # answers that are given again
                    await self._prepare()
                elif self._execution.ended or report.pause_reason is not None:
                    return

    async def step(self, *, inside: bool = False) -> StepReport:
        """Run exactly one superstep, including its checkpoint.

        The first call of a new run takes superstep 0, in which the start executors get the input. If nothing is left to
        do after a superstep, the call includes the end of the run.

        Args:
            inside: Also stop after each superstep of a workflow inside a node, at any depth. The outer superstep is not
                finished then: the report covers the events since the last stop, and its `pause_reason`, of the kind
                `inside`, names the outer nodes and the superstep. The next call continues from there; without
                `inside`, to the end of the outer superstep. Time limits of the outer nodes keep running meanwhile.

        Raises:
            WorkflowRunnerException: the run is over, or waits for responses with nothing queued.
            Exception: any error that a handler raised, unchanged.
        """
        await self._prepare()
        if self._execution.ended:
            msg = f"Nothing to step: the run is {self.status}. Send a message or a response, or start another run."
            raise WorkflowRunnerException(msg)
        self._inner_steps.go_on(one=inside)
        while not self._inner_steps.waiting and await self._next_events() is not None:
            pass
        if not self._inner_steps.waiting:
            return await self._end_superstep()
        self._notify_listeners()
        return self._pause_inside()

    def _pause_inside(self) -> StepReport:
        """Report the events so far of a superstep in which something waits."""
        reason = self._pause_reason = next(iter(self._inner_steps.waiting.values()))
        report = self._last_report = replace(self._report(reason), superstep=self._state.superstep)
        return report

    async def _next_events(self) -> list[WorkflowEvent[Any]] | None:
        try:
            events = await self._steps.next_events()
        except BaseException:
            begun = [e.iteration for e in self._log.events(self._mark) if e.type == "superstep_started"]
            self._last_report = replace(self._report(None), superstep=(begun and begun[-1]) or self._superstep)
            self._notify_listeners()
            raise
        if events:
            self._listeners.notify(events)
        return events

    def _notify_listeners(self) -> None:
        """Pass the listeners the events that no reader will read, such as those of a failure."""
        if self._listeners and (events := self._log.take()):
            self._listeners.notify(events)

    async def result(self) -> WorkflowRunResult:
        """Continue until the run is idle, pauses or ends; return the result of all its events, or raise its error."""
        if not self._execution.ended or self._has_work:
            async for _ in self.watch_stream():
                pass
        elif self.error is not None:
            raise self.error
        return self.result_so_far()

    def result_so_far(self) -> WorkflowRunResult:
        """Return the result of the existing events without driving the run."""
        return WorkflowRunResult.from_log(self._log, is_closed=False)

    async def plan(self) -> list[PlannedDelivery]:
        """Return the deliveries of the next superstep, in plan order. Conditions are called only once, here or there.

        WorkflowCheckpointException: the run starts from a checkpoint that cannot be restored.
        """
        if not self._execution.begun and self._input.starts_fresh:
            return self.plan_without_conditions()
        if self._read_only or self._steps.running or (self._execution.ended and not self._has_work):
            return []
        await self._execution.prepare()
        await self._flush()
        return planned_deliveries(await self._execution.runner.plan())

    @property
    def _has_work(self) -> bool:
        return bool(self._inbox or self._responses or self._state.messages)

    async def _flush(self) -> None:
        """Queue the input and the responses that arrived since the last superstep."""
        if self._responses:
            responses, self._responses = self._responses, {}
            await self._execution.respond(responses)
        self._execution.queue_inbox()

    async def _prepare(self) -> None:
        """Prepare for driving: begin the next round if there is new work after an end."""
        self.break_off_if_lost()
        self._loop = asyncio.get_running_loop()
        self._acquire()
        self._pause_requested, self._pause_reason = False, None
        self._execution.run.pause = None
        self._mark = self._log.position
        if (
            self._execution.begun or self._responses
        ) and not self._steps.running:  # otherwise a run inside a node has paused
            await self._flush()
        if self._execution.ended and self._has_work and self.status not in _OVER:
            self._execute(RunInput(fresh=False, storage=self._storage))

    async def _end_superstep(self) -> StepReport:
        """Report the superstep, and evaluate the breakpoints."""
        self._superstep = self._state.superstep
        reason: PauseReason | None = None
        if self._recorder is not None:
            self._answer_again(self._recorder)
        if not self._execution.ended:
            await self._flush()
            reason = self._execution.run.pause
            if reason is None and self._pause_requested:
                reason = PauseReason("paused by the user", "user")
            if reason is None and self._breakpoints:
                reason = self._breakpoints.find_reason(self._report(None), await self.plan())
        self._pause_requested, self._pause_reason = False, reason
        report = self._last_report = self._report(reason)
        if not self._options.keep_events:
            self._log.drop_brief()
        self._mark = self._log.position
        return report

    def _answer_again(self, recorder: RunRecorder) -> None:
        """Give the answers that were given to equal requests in the run that this one redoes."""
        for request in self.pending_requests:
            answer = recorder.answer_again(request.source_executor_id, request.data)
            if answer is not None:
                with suppress(
                    ValueError, MissingResponseHandlerError
                ):  # the new code expects another one: it stays open
                    self._responses |= check_responses(
                        {request.request_id: request}, {request: answer.value}, self._graph
                    )

    def plan_without_conditions(self) -> list[PlannedDelivery]:
        """Return what is known about the next superstep without calling a condition; changes nothing."""
        if not self._execution.begun and self._input.starts_fresh:
            return planned_deliveries(self._graph.router.plan_start(self._input.message))
        return planned_deliveries(self._execution.runner.plan_without_conditions())

    def _report(self, reason: PauseReason | None) -> StepReport:
        events = self._log.events(self._mark)
        infos = [e.completion_info for e in events if e.completion_info is not None]
        queued = self._state.queued_messages()
        return StepReport(self._superstep, events, self.status, infos[-1] if infos else None, reason, queued)

    # ---- input and responses ---------------------------------------------------------------------

    async def try_send_message(self, message: Any) -> bool:
        """Queue a message for the start executors; False if none can handle it, or the run ended with an error."""
        starts = self._graph.start_executors
        if self._read_only or self.status in _OVER or any(e.find_handler(message) is None for e in starts):
            return False
        self._inbox.append(WorkflowMessage(message, WORKFLOW_SOURCE))
        return True

    async def respond(self, request: WorkflowEvent[Any] | str, value: Any) -> None:
        """Respond to one request, identified by its event or id; the response is delivered in the next superstep.

        Raises:
            RuntimeError: no request is open.
            ValueError: the id is unknown, or the value is not of the response type; the request stays open.
            MissingResponseHandlerError: The executor that made the request has no `@response_handler`.
        """
        open_requests = {event.request_id: event for event in self.pending_requests}
        await self._take_responses(open_requests, check_responses(open_requests, {request: value}, self._graph))

    async def cancel_pending_requests(self, request_ids: Any = None) -> None:
        """Withdraw open requests: the run goes on without their responses, see `Workflow.cancel_pending_requests`.

        Args:
            request_ids: one request or id, or several; None for all that are open.

        Raises:
            ValueError: one of them is not open, or is an interrupt of a state graph.
        """
        open_requests = {event.request_id: event for event in self.pending_requests}
        await self._take_responses(open_requests, withdrawals(open_requests, request_ids))

    async def _take_responses(
        self, open_requests: Mapping[str, WorkflowEvent[Any]], responses: Mapping[str, Any]
    ) -> None:
        """Queue responses for the next superstep, and record them as answers; a withdrawal is repeated like one."""
        self._responses.update(responses)
        for request_id, value in responses.items():
            event = open_requests[request_id]
            self.answers.append(
                GivenAnswer(event.source_executor_id, event.data, value, request_id, self._state.superstep)
            )
            if self._recorder is not None:
                await self._recorder.note_answer(self.answers[-1])

    async def send_response(self, request_id: WorkflowEvent[Any] | str, value: Any) -> None:
        """Do the same as `respond()`."""
        await self.respond(request_id, value)

    # ---- recorded model calls --------------------------------------------------------------------

    @property
    def executors(self) -> Mapping[str, Executor]:
        """The executors of this run by id. Those with a state of their own, such as agents, are not the workflow's."""
        return self._graph.executors

    @property
    def recording(self) -> Any:
        """The `ModelRecording` of this run; None if it records nothing."""
        return self._recorder

    @property
    def new_call(self) -> Any:
        """The request to a model that was not recorded and waits to be allowed (a `NewCall`); None if none does."""
        return None if self._recorder is None else self._recorder.new_call

    def allow_new_calls(self, which: Literal["this", "all"] = "this") -> None:
        """Let the waiting request (`this`), or it and all that follow (`all`), be sent when the run goes on."""
        if self._recorder is not None:
            self._recorder.allow(which)

    # ---- breakpoints, pause and stop -------------------------------------------------------------

    def pause_when(self, predicate: Predicate) -> Callable[[], None]:
        """Call `predicate(report, plan)` after each boundary; a `PauseReason`, text or True pauses the drivers.

        None and False continue; any other result, and any error, pauses too. Returns a function that removes the
        breakpoint.
        """
        return self._breakpoints.add(predicate)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener(events)` with new events, on the driver's loop; return a function that removes it."""
        return self._listeners.add(listener)

    def note_pause(self, reason: PauseReason | None) -> None:
        """Record why the driver of this run, such as a stepper, pauses it at the current boundary."""
        self._pause_reason = reason

    def pause(self) -> None:
        """Pause at the next boundary. From any thread."""
        self._pause_requested = True

    def stop_after_superstep(self) -> None:
        """End the run at the next boundary as CANCELLED; its last checkpoint can continue it. From any thread."""
        self._execution.run.stop_requested = True
        if not self._steps.running:
            call_on(self._loop, self._execution.stop_now)

    def stop(self) -> None:
        """End the run soon: async deliveries in flight are cancelled. From any thread."""
        self.stop_after_superstep()
        hook = self._graph.boundary_hook
        if self._steps.running:
            finishes = hook is not None and hook.failure_policy == "finish"
            call_on(self._loop, self._execution.runner.cancel_deliveries if finishes else self._steps.interrupt)

    async def cancel(self) -> None:
        """Break off the current superstep and release the instance."""
        self._execution.run.stop_requested = True
        if self._loop is not None and self._loop.is_running():
            await await_on(self._loop, self._steps.cancel())
        else:
            self._steps.abandon()
        self._notify_listeners()
        self._inbox.clear()
        self._responses = {}
        if self.status in _IDLE and not self._read_only:
            self._execution.runner.abandon()  # responses queued after the end are not delivered
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
        """Restore the run from a checkpoint, ready to continue on a new branch; stored checkpoints stay unchanged.

        Raises:
            RuntimeError: a superstep is being executed.
            WorkflowCheckpointException: there is no storage, the id is unknown, or the graph differs.

        """
        self._steps.require_none("restore")
        if self._storage is None:
            msg = "This run saves no checkpoints. Pass checkpoint_storage= to start() or to WorkflowBuilder."
            raise WorkflowCheckpointException(msg)
        self._acquire()
        checkpoint = await load_checkpoint(self._storage, info)
        require_fitting(self._graph, checkpoint)  # before anything of this run is discarded
        if self._inner_steps.waiting:
            await self._steps.cancel()
        self._execution.runner.abandon()
        self._execution.break_off()
        self._execute(RunInput(checkpoint_id=checkpoint.checkpoint_id, checkpoint=checkpoint, storage=self._storage))
        await self._execution.prepare()
        self._inbox.clear()
        self._responses, self._pause_reason = {}, None
        self._superstep = self._state.superstep
        self._log.checkpoints = cut_back(self._log.checkpoints, checkpoint)
        if self._recorder is not None:
            await self._recorder.rewind(self._superstep, self._state.requests)

    async def retry(self) -> None:
        """Restore a failed or cancelled run (otherwise `WorkflowRunnerException`) from its last checkpoint.

        If there is none, it goes back to its input, with empty state unless `keep_state=True`. Then it can be driven
        again.
        """
        if self.status not in _OVER:
            msg = f"Nothing to retry: the run is {self.status}. retry() is for runs that failed or were cancelled."
            raise WorkflowRunnerException(msg)
        if self.last_checkpoint is not None:
            await self.restore_checkpoint(self.last_checkpoint)
            return
        self._acquire()
        if not self._keeps_state:
            self._graph, self._state = self.workflow.graph.fresh(), RunState()
        self._inbox.clear()
        self._responses, self._pause_reason, self._superstep = {}, None, 0
        if self._recorder is not None:
            await self._recorder.rewind(-1, ())
        self._execute(self._first_input)

    async def fork(
        self,
        info: CheckpointInfo | str | None = None,
        *,
        state_updates: Mapping[str, Any] | None = None,
        messages: Mapping[str, Sequence[Any]] | None = None,
        message: Any = ABSENT,
        chain: str | None = None,
        workflow: WorkflowDefinition | None = None,
        record: RunRecorder | None = None,
    ) -> WorkflowRun:
        """Branch off: start a new run from an (edited) copy of a checkpoint. Stored checkpoints stay unchanged.

        Args:
            info: where to branch off; default: the last checkpoint. "input" starts again from the run's input,
                without a checkpoint and with empty state.
            state_updates: replaces these keys of shared state.
            messages: replaces the queued messages: a list by the id of the executor that sent them; values, or
                `WorkflowMessage`s if more than the value matters.
            message: further input for the start executors; with "input", the input of the new run instead of the
                same one.
            chain: the chain of the new branch's checkpoints; default: the same chain.
            workflow: the workflow of the new run; default: the same workflow. Both runs can continue.
            record: the recording of the new run; default: an empty one if this run records.

        Returns:
            The new run. Its checkpoints and the edited copy belong to one chain.

        Raises:
            WorkflowCheckpointException: no checkpoint to fork from, or it belongs to another graph.
            RuntimeError: a superstep is being executed.
            ValueError: messages name a source that the graph lacks, or contain values that none of its targets takes.
            TypeError: messages are not lists, or `state_updates` is not a mapping.
        """
        self._steps.require_none("fork")
        target = workflow or self.workflow
        options = replace(self._options, chain=chain or self._options.chain or self.workflow.name, record=record)
        if record is not None:
            options = replace(options, workers=None)  # it sees only the model calls of this process
        if info == "input":
            if record is None and self._recorder is not None:
                options = replace(options, record=self._recorder.successor(-1))
            return await self._fork_input(message, state_updates, messages, target, options)
        origin = info if info is not None else self.last_checkpoint
        if origin is None or self._storage is None:
            msg = "No checkpoint to fork from. Pass checkpoint_storage= to start(), or step once."
            raise WorkflowCheckpointException(msg)
        copied, edits = await branch_off(self._storage, id_of(origin), target.graph, options, state_updates, messages)
        if record is None and self._recorder is not None:
            options = replace(options, record=self._recorder.successor(copied.iteration))
        run_input = RunInput(
            message=message, checkpoint_id=copied.checkpoint_id, storage=self._storage, tools=self._tools
        )
        run = type(self)(target, run_input, options)
        if copied.iteration >= 0:  # otherwise the copy contains the input, maybe an edited one
            run._found_input = self._found_input  # noqa: SLF001 - as below
        run._origin, log = weakref.ref(self), run._log  # noqa: SLF001 - it is a run of this class
        if edits is not None and log.observed:
            log.append(edits)
        return run

    async def _fork_input(
        self,
        message: Any,
        state_updates: Mapping[str, Any] | None,
        messages: Mapping[str, Sequence[Any]] | None,
        target: WorkflowDefinition,
        options: RunOptions,
    ) -> WorkflowRun:
        if state_updates or messages:
            msg = 'fork("input") starts with empty state and nothing queued; pass message= to change the input.'
            raise ValueError(msg)
        if message is ABSENT:
            message = await self._find_input()
        if message is ABSENT:
            msg = f'The input of run {self.run_id} is not known. Pass it: fork("input", message=...).'
            raise WorkflowCheckpointException(msg)
        run = type(self)(target, RunInput(message=message, storage=self._storage, tools=self._tools), options)
        run._origin = weakref.ref(self)  # noqa: SLF001 - it is a run of this class
        return run

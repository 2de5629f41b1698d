"""One run, from its input to its end: the order of events, the limit, failure, cancellation and stop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from agentbench._clock import runtime_defaults
from agentbench.workflows.engine.event_log import EventLog, ObservedEventLog
from agentbench.workflows.engine.instrumentation import instrument
from agentbench.workflows.engine.runner import not_converged
from agentbench.workflows.events.events import WorkflowErrorDetails, WorkflowEvent, WorkflowRunState
from agentbench.workflows.executors.message import WORKFLOW_SOURCE, WorkflowMessage
from agentbench.workflows.executors.options import RunOptions
from agentbench.workflows.run.requests import check_answers
from agentbench.workflows.run.run_kwargs import RUN_KWARGS, stored_form

if TYPE_CHECKING:
    from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
    from agentbench.checkpoints.storage import CheckpointStorage
    from agentbench.workflows.engine.tracing import RunTracer
    from agentbench.workflows.run.workflow import Workflow


class _Absent:
    """Marks a message that was not given; None, "" and 0 are messages of their own kind."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Any = _Absent()

_NO_KWARGS: Mapping[str, Any] = MappingProxyType({})


class RunInput(NamedTuple):
    """What starts or continues a run.

    Attributes:
        message: input for the start executors.
        responses: answers by request id.
        checkpoint_id: restore this first.
        storage: replaces the workflow's own storage for this run.
        kwargs: keyword arguments for nodes, by kind; a kind that is None keeps what an earlier call gave.
        fresh: the message begins a new run; False sends it into what is there.
    """

    message: Any = ABSENT
    responses: Mapping[str, Any] | None = None
    checkpoint_id: str | None = None
    storage: CheckpointStorage | None = None
    kwargs: Mapping[str, Mapping[str, Any] | None] = _NO_KWARGS
    fresh: bool = True

    @property
    def starts_fresh(self) -> bool:
        """Whether the start executors run outside the numbered supersteps."""
        return self.fresh and self.message is not ABSENT and self.checkpoint_id is None


def new_log(options: RunOptions, run_id: str, *, observe: bool) -> EventLog:
    """The log for a run with these options."""
    if not observe:
        return EventLog()
    return ObservedEventLog(run_id, options.clock or runtime_defaults().clock)


class Execution:
    """Drives the runner of a workflow instance through one run, one superstep per `advance()`.

    Attributes:
        log: the run's events.
        ended: the run is over; `error` says how if it failed.
    """

    def __init__(
        self,
        workflow: Workflow,
        given: RunInput,
        options: RunOptions,
        *,
        log: EventLog,
        run_id: str = "",
        streaming: bool = False,
        pausing: bool = False,
    ) -> None:
        self.workflow = workflow
        self.log = log
        self.ended = False
        self.error: BaseException | None = None
        self.begun = False
        self._given = given
        self._options = options
        self._run_id = run_id
        self._streaming = streaming
        self._pausing = pausing
        self._restored = False
        self._before_answers: str | None = None
        self._tracer: RunTracer | None = None
        self._used = 0
        self._limit = workflow.max_iterations if options.max_iterations is None else options.max_iterations

    async def run(self) -> None:
        """Go to the end."""
        goes_on = True
        while goes_on:
            goes_on = await self.advance()
            if not self._options.keep_events:
                self.log.forget_brief()

    def advance(self) -> Coroutine[Any, Any, bool]:
        """One superstep (of a fresh run first the start executors'); False when the run is over.

        Raises:
            Exception: what a handler raised, as is, and the engine's own errors.
        """
        return self._watched() if self.log.observed else self._advance()

    async def _watched(self) -> bool:
        from agentbench.workflows.events.capture import watch_output  # noqa: PLC0415 - only observed runs watch

        with watch_output():
            return await self._advance()

    async def _advance(self) -> bool:
        try:
            if not self.begun:
                await self._begin()
                if self._given.starts_fresh and (self._stops_here() or self._has_room()):
                    return not self.ended
            if self._used < self._limit:
                self._used += 1
                await self.workflow.runner.superstep()
            if not self._stops_here() and not self._has_room():
                self._end()
        except Exception as error:
            self._fail(error)
            raise
        except BaseException:
            self.break_off()
            raise
        return not self.ended

    def _has_room(self) -> bool:
        """Whether messages wait that the limit still allows."""
        runner = self.workflow.runner
        if not runner.context.messages:
            return False
        if self._used >= self._limit:
            self.workflow.unconverged = True
            raise not_converged(runner, self._limit)
        return True

    def _stops_here(self) -> bool:
        """Whether somebody, or the hook, wants no further superstep now."""
        runner = self.workflow.runner
        if runner.context.stop_requested:
            self._end(WorkflowRunState.CANCELLED)
            return True
        if runner.pause is not None:
            if not self._pausing:
                self._end()
            return True
        return False

    # ---- beginning -------------------------------------------------------------------------------

    async def _begin(self) -> None:
        workflow, given = self.workflow, self._given
        runner, bus = workflow.runner, workflow.runner.context
        answers: Mapping[str, Any] = {}
        if given.starts_fresh and bus.messages and workflow.unconverged:
            msg = (
                f"Workflow {workflow.name!r} still holds in-flight messages of a run that reached its limit. "
                "Resume it from a checkpoint with a higher limit, or call workflow.reset() first."
            )
            raise RuntimeError(msg)
        if given.responses is not None and given.checkpoint_id is None:
            answers = check_answers(bus.requests, given.responses)
        self.begun = True
        workflow.unconverged = False
        self._open()
        self.log.stand_at(runner.iteration if given.checkpoint_id is None and not given.starts_fresh else 0)
        self.log.append(WorkflowEvent.started())
        self.log.status(WorkflowRunState.IN_PROGRESS)
        if given.checkpoint_id is not None:
            await self.prepare()
            self.log.stand_at(runner.iteration)
            if runner.writer is not None:
                runner.writer.previous_id = workflow.last_checkpoint_id
            answers = self._reask()
        if runner.writer is not None:
            await runner.writer.look_at_head()
        if self.log.observed:
            runner.remember_state()
        self._keep_kwargs()
        if given.starts_fresh:
            bus.reset_for_new_run()
            await runner.start(workflow.start_executors, given.message)
            return
        if given.message is not ABSENT:
            bus.post((WorkflowMessage(given.message, WORKFLOW_SOURCE),))
            runner.drop_plan()
        await self.take(answers)
        if runner.writer is not None and bus.messages and given.checkpoint_id is None:
            self._before_answers = runner.writer.previous_id
            await runner.writer.save(runner.iteration, "answer" if bus.holds_answers else "input")

    def _open(self) -> None:
        """Point the instance's engine at this run."""
        workflow, options = self.workflow, self._options
        runner, bus = workflow.runner, workflow.runner.context
        defaults = runtime_defaults()
        bus.log = self.log
        bus.ids = options.ids
        bus.gates = {}
        bus.stop_requested = False
        bus.set_streaming(self._streaming)
        runner.options, runner.run_id, runner.clock = options, self._run_id, options.clock or defaults.clock
        runner.pause = None
        instrument(workflow, self.log, self._run_id)
        self._tracer = bus.tracer
        if self._given.storage is not None:
            bus.set_runtime_checkpoint_storage(self._given.storage)
        if self._given.starts_fresh:
            workflow.last_checkpoint_id = None
        storage = bus.storage
        if storage is None:
            runner.writer = None
            return
        from agentbench.workflows.persist.writer import CheckpointWriter  # noqa: PLC0415 - most runs save nothing

        strict = options.strict_checkpoints
        if strict is None:
            strict = workflow.settings.strict_checkpoints
        runner.writer = CheckpointWriter(
            workflow,
            storage,
            chain=options.chain or workflow.name,
            run_id=self._run_id,
            clock=runner.clock,
            ids=options.ids or defaults.ids,
            metadata=options.metadata,
            strict=runner.hook is not None or strict,
            check_head=options.check_head,
        )
        runner.writer.previous_id = workflow.last_checkpoint_id

    async def prepare(self, checkpoint: WorkflowCheckpoint | None = None) -> None:
        """Restore the checkpoint that this run starts from, if any; once, here or when the run begins.

        Args:
            checkpoint: the one with that id, if it was loaded already.

        Raises:
            ValueError: there is no storage.
            WorkflowCheckpointException: an unknown id, another graph, or a hook that fails.
        """
        checkpoint_id = self._given.checkpoint_id
        if checkpoint_id is None or self._restored:
            return
        from agentbench.checkpoints.access import load_checkpoint  # noqa: PLC0415 - as in _open()
        from agentbench.workflows.persist.restore import restore  # noqa: PLC0415 - as in _open()

        workflow = self.workflow
        given = self._given.storage
        storage = workflow.runner.context.storage if given is None else given
        if storage is None:
            msg = "checkpoint_id needs a storage: pass checkpoint_storage= to run() or to WorkflowBuilder."
            raise ValueError(msg)
        if checkpoint is None:
            checkpoint = await load_checkpoint(storage, checkpoint_id)
        await restore(workflow, checkpoint)
        workflow.runner.drop_plan()
        workflow.unconverged = False
        workflow.last_checkpoint_id = checkpoint.checkpoint_id
        self._restored = True

    def _reask(self) -> Mapping[str, Any]:
        """Emit the restored requests again, but for those that are answered in the same call."""
        bus = self.workflow.runner.context
        answers: Mapping[str, Any] = {}
        if self._given.responses is not None:
            answers = check_answers(bus.requests, self._given.responses)
        for request_id, event in bus.requests.items():
            if request_id not in answers:
                bus.emit_request(event)
        return answers

    async def take(self, answers: Mapping[str, Any]) -> None:
        """Consume checked answers: each goes to its executor, or to the hook that asked."""
        if not answers:
            return
        runner, bus = self.workflow.runner, self.workflow.runner.context
        for_hook = {i: v for i, v in answers.items() if self._asked_by_hook(i)}
        for request_id, value in answers.items():
            if request_id in for_hook:
                del bus.requests[request_id]
            else:
                bus.answer(request_id, value)
        if for_hook and runner.hook is not None:
            runner.apply(await runner.hook.on_responses(for_hook, runner.view()))
        runner.drop_plan()

    def _asked_by_hook(self, request_id: str) -> bool:
        if self.workflow.runner.hook is None:
            return False
        event = self.workflow.runner.context.requests[request_id]
        asker = self.workflow.executors.get(event.source_executor_id)
        return asker is None or not asker.is_request_supported(event.request_type, event.response_type)

    def _keep_kwargs(self) -> None:
        state, given = self.workflow.state, self._given
        stored = {} if given.starts_fresh else dict(state.get(RUN_KWARGS) or {})
        for kind, kwargs in given.kwargs.items():
            if kwargs is not None:
                stored[kind] = stored_form(kwargs, self.workflow.executors)
        if stored:
            state.set(RUN_KWARGS, stored)
        elif state.has(RUN_KWARGS):
            state.delete(RUN_KWARGS)
        else:
            return
        state.commit()

    # ---- ending ----------------------------------------------------------------------------------

    def _end(self, state: WorkflowRunState | None = None) -> None:
        bus = self.workflow.runner.context
        waiting = bus.get_buffers()
        if waiting and state is None:
            self.log.append(WorkflowEvent.warning(_left_over(waiting)))
        if state is None:
            state = WorkflowRunState.IDLE_WITH_PENDING_REQUESTS if bus.requests else WorkflowRunState.IDLE
        self.log.status(state)
        if self._tracer is not None:
            self._tracer.completed()
        self._close()

    def _fail(self, error: Exception) -> None:
        self.error = error
        if self.begun:
            writer = self.workflow.runner.writer
            if writer is not None and self._used == 1 and self._before_answers is not None:
                # The answers are open again, so what follows does not follow from their checkpoint.
                writer.previous_id = self._before_answers
            executor_id = self.workflow.runner.who_raised(error)
            self.log.append(WorkflowEvent.failed(WorkflowErrorDetails.from_exception(error, executor_id=executor_id)))
            self.log.status(WorkflowRunState.FAILED)
            if self._tracer is not None:
                self._tracer.failed(error)
        self._close()

    def break_off(self) -> None:
        """The run was cancelled or abandoned: forget what was not committed and let the instance go."""
        if self.ended:
            return
        if not self.begun:
            self.ended = True
            self.workflow.release(self)
            return
        self.workflow.runner.disown()
        self.log.status(WorkflowRunState.CANCELLED)
        if self._tracer is not None:
            self._tracer.failed(asyncio.CancelledError())
        self._close()

    def stop_now(self) -> None:
        """End between supersteps, at somebody's request."""
        if self.ended:
            return
        if self.begun:
            self._end(WorkflowRunState.CANCELLED)
        else:
            self.log.status(WorkflowRunState.CANCELLED)
            self.ended = True
            self.workflow.release(self)

    def _close(self) -> None:
        self.ended = True
        runner = self.workflow.runner
        if runner.writer is not None:
            self.workflow.last_checkpoint_id = runner.writer.previous_id
        runner.context.clear_runtime_checkpoint_storage()
        self.workflow.release(self)


def _left_over(buffers: Mapping[str, Mapping[str, Any]]) -> str:
    parts = [f"{key} (has {', '.join(waiting)})" for key, waiting in buffers.items()]
    return (
        f"The run ended while a fan-in still waits for other sources: {'; '.join(parts)}. "
        "Its target did not run; look for the source that sent nothing."
    )

"""One run from its beginning to its end, one superstep per `advance()`, whoever drives it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from agentbench._copying import isolate_or_same
from agentbench._user_code import cut_to_user, warn_user
from agentbench.exceptions import WorkflowWarning
from agentbench.workflows.engine.active_run import ActiveRun
from agentbench.workflows.engine.event_log import EventLog
from agentbench.workflows.engine.run_kwargs import RUN_KWARGS, stored_form
from agentbench.workflows.engine.runner import SuperstepRunner, convergence_error
from agentbench.workflows.engine.superstep import apply_outcome
from agentbench.workflows.events.events import (
    UnansweredWarning,
    WorkflowErrorDetails,
    WorkflowEvent,
    WorkflowRunState,
)
from agentbench.workflows.executors.message import WORKFLOW_SOURCE, MessageType, WorkflowMessage
from agentbench.workflows.executors.options import RunOptions
from agentbench.workflows.executors.state import StateMark
from agentbench.workflows.run.responses import check_responses

if TYPE_CHECKING:
    from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
    from agentbench.checkpoints.storage import CheckpointStorage
    from agentbench.workflows.engine.active_run import RunState
    from agentbench.workflows.engine.run_kwargs import WorkflowInvocationKwargs
    from agentbench.workflows.engine.runner import SavesCheckpoints
    from agentbench.workflows.graph.graph import Graph


ABSENT: Any = StateMark.ABSENT
"""Marks a missing message; None, "" and 0 are messages."""


class RunInput(NamedTuple):
    """The input that starts or continues a run."""

    message: Any = ABSENT
    responses: Mapping[Any, Any] | None = None
    checkpoint_id: str | None = None
    storage: CheckpointStorage | None = None
    """The storage to load checkpoints from and save them to; None if the run saves none."""
    kwargs: Mapping[str, Mapping[str, Any] | WorkflowInvocationKwargs | None] = MappingProxyType({})
    """Keyword arguments for nodes, by kind; a kind that is None keeps the arguments of an earlier call."""
    tools: Sequence[Any] | None = None
    """Tools for agents beside their own; None keeps those of an earlier call."""
    fresh: bool = True
    """Whether the message begins a new run; False adds it to the queued messages."""
    checkpoint: WorkflowCheckpoint | None = None
    """The checkpoint with this id if the caller has loaded it, which it must not change afterwards."""

    @property
    def starts_fresh(self) -> bool:
        """Whether the start executors run outside the numbered supersteps."""
        return self.fresh and self.message is not ABSENT and self.checkpoint_id is None


class Execution:
    """Drives the supersteps of a run that begins from `run_state`; `traced_as` is the workflow's id in spans.

    With `pausing`, the run waits where the boundary hook pauses, instead of ending. Further input can be added to the
    list `inbox` while it runs. `begun`: whether the first event was emitted. `loop`: the event loop on which it runs.
    """

    def __init__(  # noqa: PLR0913 - what makes a run, by name
        self,
        graph: Graph,
        run_state: RunState,
        run_input: RunInput,
        options: RunOptions,
        *,
        log: EventLog,
        run_id: str = "",
        traced_as: str | None = None,
        streaming: bool = False,
        pausing: bool = False,
        inbox: list[WorkflowMessage] | None = None,
        on_end: Callable[[Execution], None] | None = None,
    ) -> None:
        self.run = ActiveRun(graph, run_state, log, options, run_id=run_id, streaming=streaming)
        self.runner = SuperstepRunner(self.run)
        self.log = log
        self.begun = False
        self.ended = False
        self.error: BaseException | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self._input = run_input
        self._traced_as = traced_as
        self._pausing = pausing
        self._inbox = [] if inbox is None else inbox
        self._on_end = on_end
        self._restored = False
        self._checkpoint_before_responses: str | None = None
        self._used = 0
        self._limit = graph.max_iterations if options.max_iterations is None else options.max_iterations

    def run_to_end(self) -> Coroutine[Any, Any, object]:
        """Run superstep after superstep until the run ends."""
        self.loop = asyncio.get_running_loop()
        if self.log.observed or not self.run.options.keep_events:
            return self._advance_to_end()
        return self._advance(to_end=True)  # one coroutine for all supersteps, because a thousand runs may wait at once

    async def _advance_to_end(self) -> None:
        goes_on = True
        while goes_on:
            goes_on = await self.advance()
            if not self.run.options.keep_events:
                self.log.drop_brief()

    def advance(self) -> Coroutine[Any, Any, bool]:
        """Run one superstep (in a fresh run, the start executors first); return False when the run is over."""
        return self._advance_captured() if self.log.observed else self._advance()

    async def _advance_captured(self) -> bool:
        from agentbench.workflows.events.capture import watch_output  # noqa: PLC0415 - only observed runs watch

        with watch_output():
            return await self._advance()

    async def _advance(self, *, to_end: bool = False) -> bool:
        try:
            if not self.begun:
                await self._begin()
                begins = self._input.starts_fresh and (self._stops_here() or self._has_room())
                if begins and (self.ended or not to_end):
                    return not self.ended
            while True:
                if self._used < self._limit:
                    self._used += 1
                    await self.runner.superstep()
                if not self._stops_here() and not self._has_room():
                    self._end()
                if self.ended or not to_end:
                    break
        except Exception as error:
            self._fail(error)
            raise
        except BaseException as error:
            self.break_off()
            cut_to_user(error)
            raise error
        return not self.ended

    def _has_room(self) -> bool:
        """Whether there are messages, or further input, that the limit still allows."""
        run_state = self.run.run_state
        if self._inbox:
            self.queue_inbox()
        if not run_state.messages:
            return False
        if self._used >= self._limit:
            run_state.unconverged = True
            raise convergence_error(self.run.graph.name, run_state, self._limit)
        return True

    def queue_inbox(self) -> None:
        """Queue the input that has arrived since the last superstep."""
        if self._inbox:
            self.run.run_state.queue(self._inbox)
            self._inbox.clear()
            self.runner.drop_plan()

    def _stops_here(self) -> bool:
        """Whether the caller or the hook wants to stop before the next superstep."""
        if self.run.stop_requested:
            self._end(WorkflowRunState.CANCELLED)
            return True
        if self.run.pause is not None:
            if not self._pausing:
                self._end()
            return True
        return False

    # ---- beginning -------------------------------------------------------------------------------

    async def _begin(self) -> None:
        run_state, run_input, log = self.run.run_state, self._input, self.log
        starts_fresh = run_input.starts_fresh
        responses: Mapping[str, Any] = {}
        if starts_fresh and run_state.messages and run_state.unconverged:
            msg = (
                f"Workflow {self.run.graph.name!r} still holds in-flight messages of a run that reached its limit. "
                "Resume it from a checkpoint with a higher limit, or call workflow.reset() first."
            )
            raise RuntimeError(msg)
        if run_input.responses is not None and run_input.checkpoint_id is None:
            responses = check_responses(run_state.requests, run_input.responses, self.run.graph)
        if self.run.placement is not None:
            placed = [each for each in self.run.graph.executors.values() if each.placement is not None]
            await self.run.placement.prepare(placed)
        self.begun = True
        run_state.unconverged = False
        if self._traced_as is not None:
            self.run.trace(self._traced_as)
        if run_input.storage is not None:
            from agentbench.workflows.persist.writer import CheckpointWriter  # noqa: PLC0415 - most runs save nothing

            self.runner.writer = CheckpointWriter(self.run, run_input.storage)
        log.begin(run_state.superstep if run_input.checkpoint_id is None and not starts_fresh else 0)
        if run_input.checkpoint_id is not None:
            await self.prepare()
            log.set_superstep(run_state.superstep)
            responses = self._emit_open_requests()
        if self.runner.writer is not None:
            await self.runner.writer.load_head(is_new=starts_fresh, is_answer=bool(responses))
        committed = run_state.state.committed
        if log.observed:
            self.run.reported_state = {key: isolate_or_same(value) for key, value in committed.items()}
        self._store_arguments(committed)
        if starts_fresh:
            await self._start(committed)
        else:
            await self._continue(responses)

    async def _start(self, committed: Mapping[str, Any]) -> None:
        """Run the start executors with the shared state and requests of earlier runs."""
        run_state = self.run.run_state
        keys = tuple(key for key in committed if not key.startswith("_"))
        if keys or run_state.requests:
            keeping = tuple(key for key, executor in self.run.graph.executors.items() if executor.keeps_state)
            from agentbench.workflows.engine.carried_over import CarriedOver  # noqa: PLC0415 - most runs begin empty

            self.log.carried_over = CarriedOver(keys, tuple(run_state.requests), keeping)
            text = f"The run began with {self.log.carried_over}."
            self.log.append(WorkflowEvent.warning(text))
            if not self._pausing:  # a started run uses earlier state only with keep_state=True
                warn_user(text, WorkflowWarning)
        if run_state.messages or run_state.buffers:
            run_state.drop_messages()
        run_state.last_checkpoint_id = None
        if self.runner.writer is not None and (self.run.options.save_input or self.run.graph.settings.save_input):
            await self._save_input(self.runner.writer)
        await self.runner.start(self._input.message)

    async def _save_input(self, writer: SavesCheckpoints) -> None:
        """Save a checkpoint before superstep 0, from which a run begins with the start executors."""
        run_state = self.run.run_state
        run_state.superstep = -1
        run_state.queue((WorkflowMessage(self._input.message, WORKFLOW_SOURCE),))
        try:
            info = await writer.save("input")
        finally:
            run_state.superstep = 0
            run_state.drop_messages()
        run_state.last_checkpoint_id = None if info is None else info.checkpoint_id

    async def _continue(self, responses: Mapping[str, Any]) -> None:
        """Queue further input and responses, and save them."""
        run_state, run_input, writer = self.run.run_state, self._input, self.runner.writer
        if run_input.message is not ABSENT:
            if self.run.graph.driver is not None:
                run_state.drop_messages()  # left from an earlier run; the hook starts over
            run_state.queue((WorkflowMessage(run_input.message, WORKFLOW_SOURCE),))
            self.runner.drop_plan()
        await self.respond(responses)
        if writer is not None and run_state.messages and (run_input.checkpoint_id is None or writer.answers_once):
            self._checkpoint_before_responses = run_state.last_checkpoint_id
            is_answer = any(m.type is MessageType.RESPONSE for m in run_state.queued_messages())
            info = await writer.save("answer" if is_answer else "input")
            if info is not None:
                run_state.last_checkpoint_id = info.checkpoint_id

    async def prepare(self) -> None:
        """Restore the checkpoint that this run starts from, if any, once and at the latest here."""
        checkpoint_id, storage = self._input.checkpoint_id, self._input.storage
        if checkpoint_id is None or self._restored:
            return
        from agentbench.checkpoints.access import load_checkpoint  # noqa: PLC0415 - most runs start from none
        from agentbench.workflows.persist.snapshot import restore_checkpoint  # noqa: PLC0415 - as above

        checkpoint = self._input.checkpoint
        if checkpoint is None:
            if storage is None:
                msg = "checkpoint_id needs a storage: pass checkpoint_storage= to run() or to WorkflowBuilder."
                raise ValueError(msg)
            checkpoint = await load_checkpoint(storage, checkpoint_id)
        await restore_checkpoint(self.run.graph, self.run.run_state, checkpoint)
        self._input = self._input._replace(checkpoint=None)  # the run keeps only what it still needs of it
        self.runner.drop_plan()
        self._restored = True

    def _emit_open_requests(self) -> Mapping[str, Any]:
        """Emit the restored requests again, except those answered in the same call; return those responses."""
        requests = self.run.run_state.requests
        given = self._input.responses
        responses = {} if given is None else check_responses(requests, given, self.run.graph)
        for request_id, event in requests.items():
            if request_id not in responses:
                self.run.emit_request(event)
        return responses

    async def respond(self, responses: Mapping[str, Any]) -> None:
        """Deliver checked responses: each goes to its executor, or to the hook that raised the request."""
        if not responses:
            return
        run_state, hook = self.run.run_state, self.run.graph.boundary_hook
        for_hook = {i: v for i, v in responses.items() if self._is_hooks_request(i)}
        for request_id, value in responses.items():
            if request_id in for_hook:
                del run_state.requests[request_id]
            else:
                run_state.respond(request_id, value)
        if for_hook and hook is not None:
            apply_outcome(self.run, await hook.on_responses(for_hook, self.runner.view()))
        self.runner.drop_plan()

    def _is_hooks_request(self, request_id: str) -> bool:
        if self.run.graph.driver is None:
            return False
        event = self.run.run_state.requests[request_id]
        executor = self.run.graph.executors.get(event.source_executor_id)
        return executor is None or not executor.is_request_supported(event.request_type, event.response_type)

    def _store_arguments(self, committed: Mapping[str, Any]) -> None:
        """Store the run's tools, and its keyword arguments in shared state, where nodes look them up."""
        state, run_input = self.run.state, self._input
        if run_input.starts_fresh or run_input.tools is not None:
            self.run.run_state.tools = run_input.tools or ()
        stored = {} if run_input.starts_fresh else dict(committed.get(RUN_KWARGS) or {})
        for kind, kwargs in run_input.kwargs.items():
            if kwargs is not None:
                stored[kind] = stored_form(kwargs, self.run.graph.executors, kind)
        if stored:
            state.set(RUN_KWARGS, stored)
        elif RUN_KWARGS in committed:
            state.delete(RUN_KWARGS)
        else:
            return
        state.commit()

    # ---- ending ----------------------------------------------------------------------------------

    def _end(self, state: WorkflowRunState | None = None) -> None:
        run_state = self.run.run_state
        if state is None:
            if run_state.buffers:
                waiting = "; ".join(f"{key} (has {', '.join(sources)})" for key, sources in run_state.buffers.items())
                text = (
                    f"The run ended while a fan-in was still waiting for other sources: {waiting}. "
                    "Its target did not run; find out why the missing sources sent nothing."
                )
                self.log.append(WorkflowEvent.warning(text))
            if not run_state.requests:
                self._warn_of_unanswered()
            state = WorkflowRunState.IDLE_WITH_PENDING_REQUESTS if run_state.requests else WorkflowRunState.IDLE
        self.log.status(state)
        if self.run.tracer is not None:
            self.run.tracer.end_run()
        self._close()

    def _warn_of_unanswered(self) -> None:
        """Warn about requests inside nodes that were not passed on to a person and that no executor answered."""
        unanswered = {
            executor.id: count
            for executor in self.run.graph.stateful_executors
            if (count := executor.count_unanswered())
        }
        if not unanswered:
            return
        total, nodes = sum(unanswered.values()), ", ".join(map(repr, unanswered))
        text = (
            f"{total} {'question' if total == 1 else 'questions'} unanswered, from inside {nodes}. Let the executor "
            "that gets its SubWorkflowRequestMessage answer, or pass propagate_request=True to ask a person."
        )
        self.log.append(WorkflowEvent.warning(UnansweredWarning(text, total)))

    def _fail(self, error: Exception) -> None:
        self.error = error
        if self.begun:
            if self._used == 1 and self._checkpoint_before_responses is not None:
                # The requests are open again, so the next checkpoint must not descend from that of the responses.
                self.run.run_state.last_checkpoint_id = self._checkpoint_before_responses
            executor_id = self.runner.find_failed_executor(error)
            self.log.append(WorkflowEvent.failed(WorkflowErrorDetails.from_exception(error, executor_id=executor_id)))
            self.log.status(WorkflowRunState.FAILED)
            if self.run.tracer is not None:
                self.run.tracer.fail_run(error)
        self._close()

    def break_off(self) -> None:
        """End a cancelled or abandoned run, and drop what was not committed."""
        if self.ended:
            return
        if self.begun:
            self.runner.abandon()
            self.log.status(WorkflowRunState.CANCELLED)
            if self.run.tracer is not None:
                self.run.tracer.fail_run(asyncio.CancelledError())
        self._close()

    how_to_end = "await the first run, or aclose() its stream, first"

    @property
    def is_over(self) -> bool:
        """Whether it no longer needs the state of its workflow."""
        return self.ended

    @property
    def status(self) -> WorkflowRunState:
        """The state of the run."""
        return self.log.state or WorkflowRunState.STARTED

    def become_read_only(self) -> None:
        """Nothing to do: another run begins only when this one has ended."""

    def break_off_if_lost(self) -> bool:
        """Break off a run whose event loop was closed, and return whether it was."""
        is_lost = self.loop is not None and self.loop.is_closed()
        if is_lost:
            self.break_off()
        return is_lost

    def stop_now(self) -> None:
        """End between supersteps, at a caller's request."""
        if self.begun and not self.ended:
            self._end(WorkflowRunState.CANCELLED)
        elif not self.ended:
            self.log.status(WorkflowRunState.CANCELLED)
            self._close()

    def _close(self) -> None:
        self.ended = True
        if self._on_end is not None:
            self._on_end(self)

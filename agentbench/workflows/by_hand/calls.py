"""Handlers, edges and supersteps over a `RunnerContext`, using only its published methods."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from agentbench._clock import iso_utc, runtime_defaults
from agentbench.observability.switches import is_tracing
from agentbench.workflows.engine.active_run import ActiveRun, RunState
from agentbench.workflows.engine.invocation import invoke, run_all
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.host import RunnerContext
from agentbench.workflows.executors.message import Delivery, WorkflowMessage
from agentbench.workflows.executors.options import RunOptions
from agentbench.workflows.executors.state import State
from agentbench.workflows.graph.graph import Graph
from agentbench.workflows.graph.routing import (
    BUFFERED,
    CONDITION_FALSE,
    EdgeGroupDeliveryStatus,
    EdgeRunner,
    copy_buffers,
)
from agentbench.workflows.run.run import WorkflowRun

if TYPE_CHECKING:
    from agentbench.checkpoints.info import CheckpointInfo
    from agentbench.checkpoints.manager import CheckpointManager
    from agentbench.checkpoints.storage import CheckpointStorage
    from agentbench.workflows.run.workflow import Workflow


class HandRun(ActiveRun):
    """A run whose messages, events and requests go to a context; `run_state` is kept by a `Runner` between calls."""

    def __init__(
        self, context: RunnerContext, state: State, graph: Graph | None = None, run_state: RunState | None = None
    ) -> None:
        run_state = RunState(state) if run_state is None else run_state
        streaming = context.is_streaming()
        super().__init__(graph or Graph([], {}, ()), run_state, run_state.log, RunOptions(), streaming=streaming)
        self.context = context
        self._in_order = asyncio.Lock()
        if self.output_kinds is None:
            self.output_kinds = context.classify_yielded_output
        if is_tracing():
            self.trace(None)

    async def forward(self, sent: Iterable[WorkflowMessage] = ()) -> None:
        """Forward the events emitted since the last call, then these messages."""
        async with self._in_order:
            for event in self.log.take():
                if event.type == "request_info":
                    await self.context.add_request_info_event(event)
                else:
                    await self.context.add_event(event)
            for message in sent:
                await self.context.send_message(message)

    async def follow(self, work: Coroutine[Any, Any, Any]) -> AsyncGenerator[None, None]:
        """Carry out work of the engine and forward its events: once per turn, and a last time at its end."""
        task = asyncio.ensure_future(work)
        task.add_done_callback(self.log.waker())
        try:
            ended = False
            while not ended:
                ended = task.done()
                await self.forward()
                yield
                if not ended and not self.log.has_unread and not task.done():
                    await self.log.next_change()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))
        task.result()

    async def receive(self) -> None:
        """Take over the queued messages, open requests and barriers of the context."""
        self.run_state.messages = await self.context.drain_messages()
        self.run_state.requests = dict(await self.context.get_pending_request_info_events())
        if isinstance(self.context, RunState):
            self.run_state.buffers = self.context.buffers

    async def hand_over(self) -> None:
        """Queue the messages of the superstep in the context, and store the barriers there."""
        if isinstance(self.context, RunState):
            self.context.buffers = self.run_state.buffers
        await self.forward(self.run_state.queued_messages())

    async def reopen_requests(self) -> None:
        """Open those requests again whose responses a failed superstep did not handle."""
        pending = await self.context.get_pending_request_info_events()
        for request_id, event in self.run_state.requests.items():
            if request_id not in pending:
                await self.context.add_request_info_event(event)


class ContextWriter:
    """Saves the checkpoints of a `Runner` through its context."""

    answers_once = False

    def __init__(self, run: HandRun) -> None:
        self._run = run

    async def load_head(self, *, is_new: bool, is_answer: bool) -> None:
        """Do nothing: a context has no chain."""

    async def save_amid(self, values: Mapping[str, Any]) -> None:
        """Do nothing: a context saves only whole supersteps."""

    async def save(
        self,
        source: str,
        *,
        writers: Sequence[str] = (),
        began_ns: int | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> CheckpointInfo | None:
        """Hand the messages to the context, which saves them; return None and warn if that fails."""
        from agentbench.checkpoints import metadata as keys  # noqa: PLC0415 - most contexts save nothing
        from agentbench.checkpoints.info import CheckpointInfo  # noqa: PLC0415 - as above
        from agentbench.workflows.persist.snapshot import snapshot  # noqa: PLC0415 - as above

        run, run_state, graph = self._run, self._run.run_state, self._run.graph
        await run.hand_over()
        previous = run_state.last_checkpoint_id
        facts = {keys.SOURCE: source, keys.WRITERS: list(writers), keys.GRAPH_SIGNATURE: graph.signature}
        try:
            saved = State()
            saved.import_state((await snapshot(graph, run_state)).state)
            checkpoint_id = await run.context.create_checkpoint(
                graph.name,
                graph.signature_hash,
                saved,
                previous,
                run_state.superstep,
                {**facts, **(metadata or {})},
            )
        except Exception as error:  # noqa: BLE001 - a storage raises anything
            text = f"The checkpoint of superstep {run_state.superstep} was not saved: {type(error).__name__}: {error}"
            run.log.append(WorkflowEvent.warning(text))
            return None
        now = iso_utc(runtime_defaults().clock.time_ns())
        return CheckpointInfo(
            graph.name, checkpoint_id, run_state.superstep, now, previous_checkpoint_id=previous, source=source
        )


async def deliver(deliveries: Sequence[Delivery], state: State, context: RunnerContext) -> None:
    """Call the handlers of deliveries; their messages, events and requests go to the context."""
    run = HandRun(context, state)
    sent: list[WorkflowMessage] = []

    async def call() -> None:
        for messages in await run_all(lambda delivery: invoke(delivery, run), deliveries):
            sent.extend(messages)

    async with aclosing(run.follow(call())) as turns:
        async for _ in turns:
            pass
    await run.forward(sent)


async def route(edge_runner: EdgeRunner, message: WorkflowMessage, state: State, context: RunnerContext) -> bool:
    """Route one message over an edge group and call the handlers it reaches; False if no target takes it."""
    holder: Any = context if isinstance(context, RunState) else edge_runner
    buffers = copy_buffers(getattr(holder, "buffers", {}))
    routed = edge_runner.route(message, await edge_runner.decide(message), buffers)
    holder.buffers = buffers
    if isinstance(routed, EdgeGroupDeliveryStatus):
        return routed in (BUFFERED, CONDITION_FALSE)
    await deliver(routed, state, context)
    return True


class InProcessExecution:
    """Starts and resumes runs inside this process; each run has its own state.

    Example:
        >>> manager = CheckpointManager.create_in_memory()
        >>> run = await InProcessExecution.run_streaming(workflow, "to be", manager)
        >>> async for event in run.watch_stream():
        ...     print(event.type)
    """

    @staticmethod
    async def run_streaming(
        workflow: Workflow,
        input: Any,  # noqa: A002 - the published name
        checkpoint_manager: CheckpointManager | CheckpointStorage | None = None,
    ) -> WorkflowRun:
        """Return a handle on a new run; nothing runs until it is driven."""
        return workflow.start(input, checkpoint_storage=checkpoint_manager)

    @staticmethod
    async def run(
        workflow: Workflow,
        input: Any,  # noqa: A002 - as above
        checkpoint_manager: CheckpointManager | CheckpointStorage | None = None,
    ) -> WorkflowRun:
        """Drive a new run until it is idle, and return its handle."""
        handle = workflow.start(input, checkpoint_storage=checkpoint_manager)
        await handle.result()
        return handle

    @staticmethod
    async def resume_streaming(
        workflow: Workflow,
        checkpoint_info: CheckpointInfo | str,
        checkpoint_manager: CheckpointManager | CheckpointStorage,
    ) -> WorkflowRun:
        """Return a handle on a run that continues from a checkpoint, possibly of another instance of the same graph.

        WorkflowCheckpointException: it cannot be loaded, or belongs to another graph (`GraphMismatchError`).
        """
        handle = workflow.start(resume_from=checkpoint_info, checkpoint_storage=checkpoint_manager)
        try:
            await handle.plan()
        except BaseException:
            await handle.cancel()
            raise
        return handle

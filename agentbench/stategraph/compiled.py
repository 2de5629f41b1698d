"""`CompiledGraph`: runs a state graph, one thread of conversation at a time."""

from __future__ import annotations

import warnings
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentbench._bridge import run_sync
from agentbench._clock import iso_utc, runtime_defaults
from agentbench._display import Displayable, call_view, drawn_by
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.exceptions import GraphRecursionError, ThreadBusyError, WorkflowConvergenceException
from agentbench.stategraph.command import Command
from agentbench.stategraph.interrupts import Breakpoint, Continue, Interrupt
from agentbench.stategraph.results import GraphResult, ResponseGranularity, graph_result
from agentbench.stategraph.running.calls import CallRecord, GraphOptions
from agentbench.stategraph.running.executors import META, VALUES
from agentbench.stategraph.running.plan import GraphPlan
from agentbench.stategraph.snapshots import StateSnapshot
from agentbench.stategraph.streaming import Chunks, payloads
from agentbench.stategraph.threads import Threads, chain_of
from agentbench.workflows.engine.event_log import new_log
from agentbench.workflows.engine.run_state import RunState
from agentbench.workflows.run.execution import ABSENT, Execution, RunInput
from agentbench.workflows.run.run import WorkflowRun
from agentbench.workflows.run.stream import LiveSteps
from agentbench.workflows.run.workflow import Workflow

_DEFAULTS: Mapping[str, Any] = {"recursion_limit": 25, "user_id": "anonymous", "tags": (), "metadata": {}}


@dataclass(slots=True)
class _Thread:
    """A thread as a call finds it: its configuration, the end of its chain, and what it waits for."""

    config: dict[str, Any]
    chain: str
    checkpoint: WorkflowCheckpoint | None
    meta: Mapping[str, Any] = field(default_factory=dict)
    requests: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _CallOfThread:
    """A call while it runs."""

    thread: _Thread
    record: CallRecord
    execution: Execution


@drawn_by("agentbench.notebook.cards.state_graph:graph_bundle")
class CompiledGraph(Displayable):
    """A state graph that runs; made by `StateGraph.compile`.

    A call belongs to a thread, which it goes on with: `config={"thread_id": "order-7"}`. `workflow` is the same graph
    as a workflow of the engine, for steppers and drawings.

    Example:
        >>> app = graph.compile(interrupt_before=["judge"])
        >>> config = {"thread_id": "inc-7"}
        >>> await app.ainvoke({"messages": "The service is slow."}, config)  # pauses before `judge`
        >>> result = await app.ainvoke(None, config)
    """

    def __init__(
        self, plan: GraphPlan, workflow: Workflow, *, checkpointer: Any, store: Any, shutdown_timeout: float
    ) -> None:
        self.plan = plan
        self.workflow = workflow
        self.store = store
        self.storage = InMemoryCheckpointStorage() if checkpointer is None else checkpointer or None
        self.shutdown_timeout = shutdown_timeout
        self.threads = Threads(plan, self.storage)
        self._running: dict[str, Execution] = {}

    # ---- running -----------------------------------------------------------------------------------------------------

    def invoke(
        self,
        input_data: Any,
        config: Mapping[str, Any] | None = None,
        response_granularity: ResponseGranularity | str = ResponseGranularity.LOW,
    ) -> GraphResult:
        """Run the graph from code that is not async, also in a cell; see `ainvoke`."""
        return run_sync(self.ainvoke(input_data, config, response_granularity))

    async def ainvoke(
        self,
        input_data: Any,
        config: Mapping[str, Any] | None = None,
        response_granularity: ResponseGranularity | str = ResponseGranularity.LOW,
    ) -> GraphResult:
        """Run the graph until it is completed, pauses or fails.

        Args:
            input_data: `{"messages": ...}`, `{"state": {...}}`, fields, a state, messages, or text;
                `{"resume": answer}` or a `Command` answers an interrupt; `None` goes on with a thread
                that has paused or failed.
            config: `thread_id` and other settings, flat or under `configurable`.
            response_granularity: How much the result holds: `low`, `partial` or `full`.

        Raises:
            ValueError: There is nothing to go on with, or an answer is missing.
            GraphError: The graph failed; its thread stays at the last good state, and `None` tries again.
            ThreadBusyError: Another call runs on this thread.
        """
        call = await self._begin(input_data, config, is_watched=False)
        try:
            await call.execution.run_to_end()
        except WorkflowConvergenceException as error:
            raise self._recursion_error(call, response_granularity) from error
        finally:
            self._running.pop(call.thread.chain, None)
        return self._result(call, response_granularity)

    def stream(
        self,
        input_data: Any,
        config: Mapping[str, Any] | None = None,
        response_granularity: ResponseGranularity | str = ResponseGranularity.LOW,
        *,
        stream_mode: str | Sequence[str] | None = None,
    ) -> Iterator[Any]:
        """Run the graph and yield what happens, from code that is not async; see `astream`."""
        chunks = self.astream(input_data, config, response_granularity, stream_mode=stream_mode)
        end = object()
        try:
            while (chunk := run_sync(anext(chunks, end))) is not end:
                yield chunk
        finally:
            run_sync(chunks.aclose())

    async def astream(
        self,
        input_data: Any,
        config: Mapping[str, Any] | None = None,
        response_granularity: ResponseGranularity | str = ResponseGranularity.LOW,
        *,
        stream_mode: str | Sequence[str] | None = None,
    ) -> AsyncGenerator[Any, None]:
        """Run the graph and yield what happens while it runs.

        Args:
            input_data: As for `ainvoke`.
            config: As for `ainvoke`.
            response_granularity: `low` yields messages; `partial` also the state after each superstep; `full` also
                what nodes do.
            stream_mode: `values`, `updates`, `messages`, `custom`, `tasks`, `checkpoints` or `events`: yields their
                payloads in place of `StreamChunk`s; of a list of modes pairs of mode and payload.

        Raises:
            Exception: As `ainvoke`, after the last chunk.
        """
        call = await self._begin(input_data, config, is_watched=True)
        thread, execution = call.thread, call.execution
        modes = [stream_mode] if isinstance(stream_mode, str) else stream_mode
        chunks = Chunks(
            self.plan, call.record, ResponseGranularity(response_granularity), thread.config["thread_id"],
            thread.config["run_id"],
        )  # fmt: skip
        steps = LiveSteps(execution)
        try:
            while not execution.ended:
                while (events := await steps.next_events()) is not None:
                    for event in events:
                        if modes is None:
                            for chunk in chunks.of(event):
                                yield chunk
                        else:
                            for mode, payload in payloads(event, modes):
                                yield payload if isinstance(stream_mode, str) else (mode, payload)
        except WorkflowConvergenceException as error:
            raise self._recursion_error(call, response_granularity) from error
        except GeneratorExit:
            execution.run.stop_requested = True
            execution.runner.cancel_deliveries()
            while not execution.ended:
                await steps.next_events()
            raise
        finally:
            self._running.pop(thread.chain, None)

    def stop(self, config: Mapping[str, Any], *, graceful: bool = False) -> dict[str, Any]:
        """Stop what runs on a thread, from any thread or cell; `invoke(None, config)` goes on with it.

        Args:
            config: Names the thread.
            graceful: Let the nodes that run end first.
        """
        return run_sync(self.astop(config, graceful=graceful))

    async def astop(self, config: Mapping[str, Any], *, graceful: bool = False) -> dict[str, Any]:
        """Stop what runs on a thread; see `stop`."""
        execution = self._running.get(chain_of(self.plan, _flat(config)["thread_id"]))
        if execution is not None:
            execution.run.stop_requested = True
            if not graceful:
                execution.runner.cancel_deliveries()
            return {"ok": True, "running": True}
        if self.storage is None or await self.threads.load(_flat(config)) is None:
            return {"ok": False, "running": False, "reason": "no-state"}
        return {"ok": True, "running": False, "reason": "not-running"}

    async def _begin(self, input_data: Any, config: Mapping[str, Any] | None, *, is_watched: bool) -> _CallOfThread:
        """Find the thread of a call, and return how the engine runs it."""
        thread = await self._thread(config)
        stored = thread.checkpoint.state.get(VALUES, {}) if thread.checkpoint else {}
        record = CallRecord(stored, thread.meta, is_watched=is_watched)
        execution = self._execution(thread, self._run_input(input_data, thread), record)
        if thread.chain in self._running:
            message = f"Another call runs on thread {thread.config['thread_id']!r}. Await it, or use another thread."
            raise ThreadBusyError(message, thread_id=thread.config["thread_id"])
        self._running[thread.chain] = execution
        return _CallOfThread(thread, record, execution)

    def _recursion_error(self, call: _CallOfThread, granularity: ResponseGranularity | str) -> GraphRecursionError:
        limit, thread_id = call.thread.config["recursion_limit"], call.thread.config["thread_id"]
        message = (
            f"The run needs more than {limit} supersteps. What it has done is saved: invoke(None, config) goes on. "
            "Raise recursion_limit in the config, or look for a cycle without an end."
        )
        result = self._result(call, granularity)
        return GraphRecursionError(message, thread_id=thread_id, max_iterations=limit, result=result)

    def _result(self, call: _CallOfThread, granularity: ResponseGranularity | str) -> GraphResult:
        run_state = call.execution.run.run_state
        interrupts = [request.data for request in run_state.requests.values()]
        return graph_result(self.plan, call.record, granularity, interrupts, run_state.last_checkpoint_id)

    def _execution(self, thread: _Thread, run_input: RunInput, record: CallRecord) -> Execution:
        config = thread.config
        return Execution(
            self.workflow.graph, RunState(), run_input, self._options(thread, run_input, record),
            log=new_log(config["run_id"], runtime_defaults().clock, observe=record.is_watched), run_id=config["run_id"],
            streaming=record.is_watched,
        )  # fmt: skip

    def _options(self, thread: _Thread, run_input: RunInput, record: CallRecord) -> GraphOptions:
        config = thread.config
        return GraphOptions(
            chain=thread.chain,
            max_iterations=config["recursion_limit"]
            + (run_input.message is not ABSENT and thread.checkpoint is not None),
            observe=record.is_watched,
            strict_checkpoints=True,
            metadata={key: config[key] for key in ("thread_id", "user_id", "tags")} | {**config["metadata"]},
            config=config,
            store=self.store,
            record=record,
        )

    # ---- step by step ------------------------------------------------------------------------------------------------

    def start(self, input_data: Any, config: Mapping[str, Any] | None = None) -> WorkflowRun:
        """Return a handle on a run of a thread, which its reader steps; nothing runs yet. See `WorkflowRun`.

        Where the reader stops, the thread has paused: `invoke(None, config)` goes on with it.

        Args:
            input_data: As for `ainvoke`.
            config: As for `ainvoke`.

        Example:
            >>> run = app.start({"messages": "Hello"}, {"thread_id": "t1"})
            >>> await run.step()
        """
        return run_sync(self.astart(input_data, config))

    async def astart(self, input_data: Any, config: Mapping[str, Any] | None = None) -> WorkflowRun:
        """Return a handle on a run of a thread; see `start`."""
        thread = await self._thread(config)
        stored = thread.checkpoint.state.get(VALUES, {}) if thread.checkpoint else {}
        record = CallRecord(stored, thread.meta, is_watched=True)
        run_input = self._run_input(input_data, thread)
        run = WorkflowRun(self.workflow, run_input, self._options(thread, run_input, record))
        thread.config["run_id"] = run.run_id
        return run

    def stepper(self, input_data: Any, config: Mapping[str, Any] | None = None, **settings: Any) -> Any:
        """Return the notebook panel that steps a run of a thread; `MissingExtraError` without the notebook extra.

        Args:
            input_data: As for `ainvoke`.
            config: As for `ainvoke`.
            **settings: As for `agentbench.notebook.stepper`: `breakpoints`, `layout`, `height`, `name` and so on.

        Example:
            >>> app.stepper({"messages": "Hello"}, {"thread_id": "t1"})
        """
        return call_view("agentbench.notebook.stepping.start:stepper", self, input_data, config, **settings)

    # ---- threads -----------------------------------------------------------------------------------------------------

    def get_state(self, config: Mapping[str, Any]) -> StateSnapshot:
        """Return a thread at its newest checkpoint, or at the one that `checkpoint_id` names."""
        return run_sync(self.aget_state(config))

    async def aget_state(self, config: Mapping[str, Any]) -> StateSnapshot:
        """Return a thread at a checkpoint; see `get_state`."""
        return await self.threads.snapshot(_flat(config))

    def get_state_history(
        self, config: Mapping[str, Any], *, before: str | None = None, limit: int | None = None
    ) -> list[StateSnapshot]:
        """Return the checkpoints of a thread, newest first."""
        return run_sync(self.aget_state_history(config, before=before, limit=limit))

    async def aget_state_history(
        self, config: Mapping[str, Any], *, before: str | None = None, limit: int | None = None
    ) -> list[StateSnapshot]:
        """Return the checkpoints of a thread, newest first."""
        return await self.threads.history(_flat(config), before=before, limit=limit)

    def update_state(self, config: Mapping[str, Any], values: Any, as_node: str | None = None) -> dict[str, Any]:
        """Save a checkpoint with other values, and return the configuration that names it.

        Args:
            config: Names the thread, and with `checkpoint_id` an earlier checkpoint, from which a branch begins.
            values: The update, in any form that a node may return; goes through the reducers.
            as_node: Without it only the values change. With it the thread is as if this node had returned them: what
                follows it runs next, and open questions are dropped.

        Raises:
            GraphError: The update does not fit the state, or there is no such thread or node. Nothing is saved then.
        """
        return run_sync(self.aupdate_state(config, values, as_node))

    async def aupdate_state(self, config: Mapping[str, Any], values: Any, as_node: str | None = None) -> dict[str, Any]:
        """Save a checkpoint with other values; see `update_state`."""
        return await self.threads.update(_flat(config), values, as_node)

    def fork(
        self,
        config: Mapping[str, Any],
        *,
        thread_id: str | int | None = None,
        values: Any = None,
        as_node: str | None = None,
    ) -> dict[str, Any]:
        """Copy a thread up to a checkpoint into another thread, and return the configuration that names its end.

        Args:
            config: Names the thread, and with `checkpoint_id` the checkpoint.
            thread_id: The other thread; by default `<thread>~1` and so on. The same thread makes a branch in it.
            values: An update of the copy.
            as_node: As in `update_state`.
        """
        return run_sync(self.afork(config, thread_id=thread_id, values=values, as_node=as_node))

    async def afork(
        self,
        config: Mapping[str, Any],
        *,
        thread_id: str | int | None = None,
        values: Any = None,
        as_node: str | None = None,
    ) -> dict[str, Any]:
        """Copy a thread up to a checkpoint into another thread; see `fork`."""
        config = _flat(config)
        if thread_id is None:
            thread_id = await self.threads.free_id(config["thread_id"])
        same = str(thread_id) == str(config["thread_id"])
        return await self.threads.update(config, values, as_node, thread_id=None if same else thread_id)

    def list_threads(self) -> list[str]:
        """Return the ids of this graph's threads, sorted."""
        return run_sync(self.threads.ids())

    def delete_thread(self, config: Mapping[str, Any]) -> int:
        """Delete a thread; returns how many checkpoints it had."""
        return run_sync(self.threads.delete(_flat(config)))

    async def _thread(self, config: Mapping[str, Any] | None) -> _Thread:
        merged: dict[str, Any] = {**_DEFAULTS, **_flat(config or {})}
        defaults = runtime_defaults()
        merged.setdefault("run_id", defaults.ids.new_id("run"))
        merged.setdefault("timestamp", iso_utc(defaults.clock.time_ns()))
        if merged.get("thread_id") is None:
            merged["thread_id"] = defaults.ids.new_id("thread")
            warnings.warn(
                "The call has no thread_id, so nothing can go on from it: config={'thread_id': ...}.", stacklevel=3
            )
        thread = _Thread(merged, chain_of(self.plan, merged["thread_id"]), None)
        if self.storage is not None:
            thread.checkpoint = await self.threads.load(merged)
        if thread.checkpoint is not None:
            thread.meta = thread.checkpoint.state[META]
            thread.requests = thread.checkpoint.pending_request_info_events
        return thread

    def _run_input(self, data: Any, thread: _Thread) -> RunInput:
        """Return how the engine starts or goes on, by what the thread waits for."""
        checkpoint_id = thread.checkpoint.checkpoint_id if thread.checkpoint else None
        resume = data.resume if isinstance(data, Command) else data.get("resume") if isinstance(data, Mapping) else None
        is_answer = resume is not None or (isinstance(data, Mapping) and "resume" in data)
        questions = {key: event.data for key, event in thread.requests.items()}
        asked = [key for key, question in questions.items() if isinstance(question, Interrupt)]
        stopped_at = [key for key, question in questions.items() if isinstance(question, Breakpoint)]
        if is_answer:
            if not asked:
                message = f"Thread {thread.config['thread_id']!r} waits for no answer."
                raise ValueError(message)
            answers = resume if isinstance(resume, Mapping) and set(resume) <= set(asked) else None
            if answers is None:
                if len(asked) > 1:
                    message = (
                        f"Several questions are open: {', '.join(asked)}. Answer by id: {{'resume': {{id: answer}}}}."
                    )
                    raise ValueError(message)
                answers = {asked[0]: resume}
            return RunInput(responses=answers, checkpoint_id=checkpoint_id, storage=self.storage)
        has_input = data is not None and data != {}
        if asked:
            question = questions[asked[0]]
            message = (
                f"Thread {thread.config['thread_id']!r} waits for an answer of node {question.node!r}: "
                f"{question.message or question.value!r}. Answer it: app.invoke({{'resume': ...}}, config)."
            )
            raise ValueError(message)
        if stopped_at:
            answer = Continue(data if has_input else None)
            return RunInput(responses={stopped_at[0]: answer}, checkpoint_id=checkpoint_id, storage=self.storage)
        if has_input:
            return RunInput(message=data, checkpoint_id=checkpoint_id, storage=self.storage)
        if thread.checkpoint is None or not thread.checkpoint.messages:
            message = f"Thread {thread.config['thread_id']!r} has nothing to go on with. Give it an input."
            raise ValueError(message)
        return RunInput(checkpoint_id=checkpoint_id, storage=self.storage)


def _flat(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration whose settings may stand under `configurable`."""
    flat = {**config}
    return {**flat.pop("configurable", {}), **flat}

"""`CompiledGraph`: runs a state graph, one thread of conversation at a time."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

from agentbench._bridge import blocking, iterate_sync
from agentbench._display import Displayable, call_view, drawn_by
from agentbench._user_code import warn_user
from agentbench._workers import run_in_thread
from agentbench.checkpoints.access import delete_chain
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.exceptions import (
    GraphError,
    GraphRecursionError,
    ThreadBusyError,
    WorkflowCheckpointException,
    WorkflowConvergenceException,
)
from agentbench.stategraph.command import Command
from agentbench.stategraph.drawn_graph import DrawnGraph
from agentbench.stategraph.interrupts import ParentCommand
from agentbench.stategraph.results import GraphResult, ResponseGranularity, graph_result
from agentbench.stategraph.running.executors import DONE, META
from agentbench.stategraph.running.inner_runs import inherited_config
from agentbench.stategraph.running.plan import GraphOptions, GraphPlan
from agentbench.stategraph.state import ExecutionState, StateT
from agentbench.stategraph.streaming import MODES, Chunks, payloads, read_modes
from agentbench.stategraph.streams.mode_items import MODES as MODES_OF_ITEMS
from agentbench.stategraph.streams.mode_items import ModeItems
from agentbench.stategraph.threads.access import ThreadAccess
from agentbench.stategraph.threads.thread_call import (
    ThreadCall,
    ThreadRun,
    called_run,
    flat_config,
    read_config,
    read_thread,
    running_call,
    thread_config,
)
from agentbench.stategraph.threads.threads import Threads, thread_errors
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.run.execution import ABSENT, Execution, RunInput
from agentbench.workflows.run.run import WorkflowRun
from agentbench.workflows.run.stream import LiveSteps
from agentbench.workflows.run.workflow import Workflow

if TYPE_CHECKING:
    from agentbench.workflows.executors.recorder import RunRecorder
    from agentbench.workflows.nested import WorkflowExecutor

_MAX_UNNAMED = 100
"""Maximum number of kept calls without a thread id that did not complete."""


@drawn_by("agentbench.notebook.cards.state_graph:graph_bundle")
class CompiledGraph(ThreadAccess[StateT], Displayable):
    """A runnable state graph; created by `StateGraph.compile`.

    A call with `config={"thread_id": "order-7"}` continues that thread, which is saved. A call without a thread id is
    saved only if it does not complete (a question, a breakpoint, a stop, an error): once, under the `thread_id` of its
    result, and with a warning. The last hundred such calls are kept. If a node of another graph makes such a call, and
    neither state is an `AgentState`, the call belongs to the node: its questions let the outer graph wait. `workflow`
    is the same graph as a workflow of the engine, for steppers and drawings.

    Example:
        >>> app = graph.compile(interrupt_before=["judge"])
        >>> config = {"thread_id": "inc-7"}
        >>> await app.ainvoke({"messages": "The service is slow."}, config)  # pauses before `judge`
        >>> result = await app.ainvoke(None, config)
    """

    def __init__(
        self,
        plan: GraphPlan,
        build: Callable[[GraphPlan], Workflow],
        *,
        checkpointer: Any,
        store: Any,
        shutdown_timeout: float,
    ) -> None:
        self._build = build
        self.plan = plan
        self.workflow = build(plan)
        self.store = store
        self.storage = InMemoryCheckpointStorage() if checkpointer is None else checkpointer or None
        self.shutdown_timeout = shutdown_timeout
        self.threads = Threads(plan, self.storage)
        self._running: dict[str, ThreadCall] = {}
        self._unnamed: dict[str, None] = {}
        """Chains of calls without a thread id that did not complete, oldest first."""

    def __repr__(self) -> str:
        return f"CompiledGraph({self.plan.name!r}, {len(self.plan.nodes)} nodes, threads in {self.storage})"

    @property
    def name(self) -> str:
        """The name of the graph."""
        return self.plan.name

    def get_graph(self, *, xray: bool = False) -> DrawnGraph:
        """Return the nodes and edges, with drawings as text and picture; with `xray` also of graphs in nodes.

        Example:
            >>> print(app.get_graph().draw_mermaid())
        """
        return DrawnGraph(self, xray=xray)

    def override_node(self, name: str, func: Any) -> Self:
        """Let a node of this compiled graph call another function, and return the graph. Nothing else changes.

        Args:
            name: The name of the node.
            func: The new function, as in `StateGraph.add_node`.

        Raises:
            NodeNotFoundError: There is no node of this name. It is also a `KeyError`.
            TypeError: `func` cannot be a node.
            ThreadBusyError: A call is running.
            GraphError: The function has a parameter that the graph cannot fill, or names a node that does not exist.

        Example:
            >>> app.override_node("search", lambda state: {"notes": ["nothing found"]})  # in a test
        """
        if any(running_call(self._running, chain) for chain in [*self._running]):
            message = f"Node {name!r} was not replaced: a call of the graph is running. Await it, or stop it."
            raise ThreadBusyError(message, node=name)
        builders = import_module("agentbench.stategraph.graph")  # it compiles to this class
        spec, fields = builders.with_other_function(self.plan.nodes, name, func, self.plan.fields)
        plan = replace(self.plan, nodes={**self.plan.nodes, name: spec}, fields=fields)
        self.workflow = self._build(plan)
        self.plan = self.threads.plan = plan
        return self

    # ---- running -----------------------------------------------------------------------------------------------------

    async def ainvoke(
        self,
        input_data: Any,
        config: Mapping[str, Any] | None = None,
        response_granularity: ResponseGranularity | str = ResponseGranularity.LOW,
        *,
        context: Any = None,
        interrupt_before: Sequence[str] | str | None = None,
        interrupt_after: Sequence[str] | str | None = None,
    ) -> GraphResult[StateT]:
        """Run the graph until it completes, pauses or fails.

        Args:
            input_data: `{"messages": ...}`, `{"state": {...}}`, fields, a state, messages, or text;
                `{"resume": answer}` or a `Command` answers an interrupt; `None` continues a thread that has paused or
                failed, and without an `AgentState` returns the values of one that has finished. Without an
                `AgentState`, a `Command` that answers nothing adds its update and nodes to a thread, which continues.
            config: `thread_id` and other settings, flat or under `configurable`.
            response_granularity: The level of detail of the result: `low`, `partial` or `full`.
            context: An object for this call, which nodes find in their `Runtime`.
            interrupt_before: Nodes before which this call pauses, or `"*"`, instead of those given to `compile`.
            interrupt_after: Nodes after which it pauses, in the same way.

        Raises:
            ValueError: There is nothing to continue, or an answer is missing.
            GraphError: The graph failed. Its thread keeps the last good state, and `None` tries again.
            Exception: A node failed, and the state is not an `AgentState`: the node's error, with a note.
            ThreadBusyError: Another call is running on this thread.
        """
        config = _with_breakpoints(config, interrupt_before, interrupt_after)
        call, execution = await self._begin(input_data, config, context, is_watched=False)
        async with self._errors_of(call, response_granularity):
            await call.run(execution)
        return self._result(call, response_granularity)

    invoke = blocking(ainvoke)

    def stream(  # noqa: PLR0913 - the published signature
        self,
        input_data: Any,
        config: Mapping[str, Any] | None = None,
        response_granularity: ResponseGranularity | str = ResponseGranularity.LOW,
        *,
        context: Any = None,
        stream_mode: str | Sequence[str] | None = None,
        subgraphs: bool = False,
        interrupt_before: Sequence[str] | str | None = None,
        interrupt_after: Sequence[str] | str | None = None,
    ) -> Iterator[Any]:
        """Run the graph and yield its progress, from synchronous code; see `astream`."""
        return iterate_sync(
            self.astream(
                input_data,
                config,
                response_granularity,
                context=context,
                stream_mode=stream_mode,
                subgraphs=subgraphs,
                interrupt_before=interrupt_before,
                interrupt_after=interrupt_after,
            )
        )

    async def astream(  # noqa: PLR0913 - the published signature
        self,
        input_data: Any,
        config: Mapping[str, Any] | None = None,
        response_granularity: ResponseGranularity | str = ResponseGranularity.LOW,
        *,
        context: Any = None,
        stream_mode: str | Sequence[str] | None = None,
        subgraphs: bool = False,
        interrupt_before: Sequence[str] | str | None = None,
        interrupt_after: Sequence[str] | str | None = None,
    ) -> AsyncGenerator[Any, None]:
        """Run the graph and yield its progress.

        With an `AgentState` these are `StreamChunk`s, or with a `stream_mode` the payloads of `values`, `updates`,
        `messages`, `custom`, `tasks`, `checkpoints` or `events`. With any other state class they are the items of a
        mode, by default `updates`:

        - `updates`: `{node: update}` after each node, and `{"__interrupt__": (...)}` for questions;
        - `values`: the fields that have a value, at the start and after each superstep that changes some;
        - `messages`: pairs of a message, or a piece of one, and a dictionary with its `langgraph_node`;
        - `custom`: what nodes send with `get_stream_writer()`;
        - `tasks`: the start and the end of each node; `checkpoints`: each saved state; `debug`: both;
        - `events`: the events of the engine.

        Args:
            input_data: As for `ainvoke`.
            config: As for `ainvoke`.
            response_granularity: With an `AgentState`: `low` yields messages; `partial` also the state after each
                superstep; `full` also the activity of nodes.
            context: As for `ainvoke`.
            stream_mode: A mode; for a list of modes, pairs of mode and item are yielded.
            subgraphs: Also yield the items of graphs in nodes, and of those that nodes call without a thread, and put
                a path before each item: a tuple of nodes, empty for this graph. The path to the second graph that a
                node calls ends with "1", and so on. Not with an `AgentState`.
            interrupt_before: As for `ainvoke`.
            interrupt_after: As for `ainvoke`.

        Raises:
            Exception: As for `ainvoke`, after the last chunk.
        """
        config = _with_breakpoints(config, interrupt_before, interrupt_after)
        if not self.plan.fields.is_agent_state:
            items = self._items(input_data, config, context, stream_mode, subgraphs=subgraphs)
        else:
            level = ResponseGranularity(response_granularity)
            items = self._chunks(input_data, config, context, level, stream_mode)
        async with aclosing(items):
            async for item in items:
                yield item

    async def _items(
        self, input_data: Any, config: Mapping[str, Any] | None, context: Any, stream_mode: Any, *, subgraphs: bool
    ) -> AsyncGenerator[Any, None]:
        modes = read_modes(stream_mode or "updates", MODES_OF_ITEMS)
        call, execution = await self._begin(input_data, config, context, is_watched=True)
        call.record.shows_called |= subgraphs
        items = ModeItems(self.threads, call, modes, subgraphs=subgraphs)
        has_one_mode = stream_mode is None or isinstance(stream_mode, str)

        def shown(path: tuple[str, ...], mode: str, item: Any) -> Any:
            parts = (*((path,) if subgraphs else ()), *(() if has_one_mode else (mode,)), item)
            return item if len(parts) == 1 else parts

        async with aclosing(self._events(call, execution)) as events:
            for found in items.first() if input_data is None or isinstance(input_data, Command) else ():
                yield shown(*found)
            async for event in events:
                async for found in items.of(event):
                    yield shown(*found)
            for found in items.last():
                yield shown(*found)

    async def _chunks(
        self,
        input_data: Any,
        config: Mapping[str, Any] | None,
        context: Any,
        level: ResponseGranularity,
        stream_mode: Any,
    ) -> AsyncGenerator[Any, None]:
        modes = read_modes(stream_mode or (), MODES)
        call, execution = await self._begin(input_data, config, context, is_watched=True)
        chunks = Chunks(self.plan, call.record, level, call.config["thread_id"], call.config["run_id"])
        async with aclosing(self._events(call, execution, level)) as events:
            async for event in events:
                if not modes:
                    for chunk in chunks.of(event):
                        yield chunk
                for mode, payload in payloads(event, modes):
                    yield payload if isinstance(stream_mode, str) else (mode, payload)

    async def _events(
        self, call: ThreadCall, execution: Execution, level: ResponseGranularity = ResponseGranularity.LOW
    ) -> AsyncGenerator[WorkflowEvent[Any], None]:
        """Run to the end and yield the events; if the reader goes away, stop the run."""
        steps = LiveSteps(execution)
        async with self._errors_of(call, level):
            try:
                while not execution.ended:
                    while (events := await steps.next_events()) is not None:
                        for event in events:
                            yield event
            except GeneratorExit:
                call.stop()
                while not execution.ended:
                    await steps.next_events()
                raise

    async def astop(self, config: Mapping[str, Any], *, graceful: bool = False) -> dict[str, Any]:
        """Stop the run on a thread, from any thread or cell; `invoke(None, config)` continues it.

        Args:
            config: Identifies the thread.
            graceful: Let running nodes finish first.
        """
        config = thread_config(config)
        call = running_call(self._running, self.threads.chain(config["thread_id"]))
        if call is not None:
            call.stop(graceful=graceful)
            return {"ok": True, "running": True}
        if self.storage is None or not await self.threads.head_seq(config["thread_id"]):
            return {"ok": False, "running": False, "reason": "no-state"}
        return {"ok": True, "running": False, "reason": "not-running"}

    stop = blocking(astop)

    async def aclose(self) -> None:
        """Wait for running calls, and stop them after `shutdown_timeout` seconds; the graph can still be used."""
        await run_in_thread(self.close)

    def close(self) -> None:
        """Wait for running calls; see `aclose`."""
        calls = [call for chain in [*self._running] if (call := running_call(self._running, chain))]
        wait([call.ended for call in calls], timeout=self.shutdown_timeout)
        for call in calls:
            call.stop()
        wait([call.ended for call in calls], timeout=self.shutdown_timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    async def _begin(
        self, input_data: Any, config: Mapping[str, Any] | None, context: Any, *, is_watched: bool
    ) -> tuple[ThreadCall, Execution]:
        """Claim the thread of a call; return the call with the engine's run of it."""
        given = flat_config(config)
        inner = called_run(self.plan.fields, config)
        is_named = inner is None and given.get("thread_id") is not None
        if inner is not None:
            given = inherited_config(inner.outer) | given
            context = inner.outer.context if context is None else context
        read = read_config(given, self.plan.recursion_limit)
        call = ThreadCall(read, self.threads, is_named=is_named, is_watched=is_watched, inner=inner)
        await call.claim(self._running)
        try:
            self._unnamed.pop(call.chain, None)  # it is an ordinary thread from now on
            run_input, options = await self._prepare(input_data, call, context)
            return call, call.begin(self.workflow, run_input, options)
        except BaseException:
            call.release(self._running)
            raise

    async def _prepare(self, input_data: Any, call: ThreadCall, context: Any) -> tuple[RunInput, GraphOptions]:
        """Return the input for the engine, and the options."""
        config, record, inner = call.config, call.record, call.inner
        state: Mapping[str, Any] | None = None
        if inner is not None and inner.is_stored:
            run_input = RunInput(responses=await inner.restore(self.workflow.graph))
            state = inner.run_state.state.committed
        else:
            input_data = await call.take_input(input_data, self.threads)
            run_input, checkpoint = await read_thread(self.threads, call, input_data, self.workflow)
            state = None if checkpoint is None else checkpoint.state
            if inner is not None:  # it is stored in the task
                run_input = run_input._replace(storage=None)
        if state is not None:
            record.values, record.meta = self.plan.values_in(state), state[META]
        options = GraphOptions(
            chain=call.chain,
            max_iterations=config["recursion_limit"] + (run_input.message is not ABSENT and state is not None),
            observe=record.is_watched,
            strict_checkpoints=True,
            check_head=call.head_seq,
            timeout=config.get("node_timeout"),
            metadata={key: config[key] for key in ("thread_id", "user_id", "tags")} | {**config["metadata"]},
            config=config,
            context=self.plan.context_of(context),
            store=inner.outer.store if self.store is None and inner is not None else self.store,
            call_record=record,
            is_nested=inner is not None,
            is_named=call.is_named if inner is None else inner.outer.is_named,
        )
        return run_input, options

    @asynccontextmanager
    async def _errors_of(self, call: ThreadCall, granularity: ResponseGranularity | str) -> AsyncIterator[None]:
        """End a call, and attach its result up to then to its errors."""
        thread_id = call.config["thread_id"]
        try:
            with thread_errors(thread_id):
                yield
            if call.inner is not None:
                call.inner.require_answers()
                if call.record.parent_goto:
                    raise ParentCommand(call.record.parent_goto)
        except GraphError as error:
            error.thread_id, error.result = thread_id, self._result(call, granularity)
            raise
        except WorkflowConvergenceException as error:
            limit = call.config["recursion_limit"]
            message = (
                f"The run needs more than {limit} supersteps. Its work is saved: invoke(None, config) continues it. "
                "Raise recursion_limit in the config, or look for an endless cycle."
            )
            result = self._result(call, granularity)
            raise GraphRecursionError(message, thread_id=thread_id, max_iterations=limit, result=result) from error
        except WorkflowCheckpointException as error:
            record = call.record
            if DONE in str(error):
                error.add_note(
                    "The value is in the state of a graph that a node calls, which is saved with the node. Create such "
                    "objects in the nodes that need them, or pass them as context."
                )
            error.snapshot = self.plan.fields.to_display(record.values, ExecutionState(**record.meta))
            raise
        finally:
            try:
                if call.inner is not None and call.execution is not None:
                    await call.inner.store(self.workflow.graph, call.execution.error)
                elif not call.is_named:
                    await self._end_unnamed(call)
            finally:
                call.release(self._running)

    async def _end_unnamed(self, call: ThreadCall) -> None:
        """Warn if a call without a thread id was saved; delete the oldest such call if there are too many."""
        thread_id = call.config["thread_id"]
        if call.execution is None or call.execution.run.run_state.last_checkpoint_id is None:
            self.threads.unsaved.append(thread_id)
            return
        self._unnamed[call.chain] = None
        if len(self._unnamed) > _MAX_UNNAMED:
            oldest = next(iter(self._unnamed))
            del self._unnamed[oldest]
            await delete_chain(self.threads.storage, oldest)
        message = (
            f"The call has no thread_id and did not complete. It was saved as thread {thread_id!r}, which continues "
            f"with config={{'thread_id': {thread_id!r}}}. Only the last {_MAX_UNNAMED} such calls are kept; pass a "
            "thread_id to keep a thread."
        )
        warn_user(message, UserWarning)

    def _result(self, call: ThreadCall, granularity: ResponseGranularity | str) -> GraphResult[StateT]:
        assert call.execution is not None
        run_state = call.execution.run.run_state
        interrupts = [request.data for request in run_state.requests.values()]
        log = call.execution.log
        return graph_result(self.plan, call.record, granularity, interrupts, log, run_state.last_checkpoint_id)

    # ---- step by step ------------------------------------------------------------------------------------------------

    async def astart(
        self,
        input_data: Any,
        config: Mapping[str, Any] | None = None,
        *,
        context: Any = None,
        record: bool | RunRecorder | None = None,
    ) -> WorkflowRun:
        """Return a handle on a run of a thread, which its reader steps; nothing runs yet. See `WorkflowRun`.

        Supersteps are counted from 0 over all runs of the thread: the first one of a run takes the input, and nodes run
        from the next one on. When the reader stops, the thread is paused: `invoke(None, config)` continues it.

        Args:
            input_data: As for `ainvoke`.
            config: As for `ainvoke`.
            context: As for `ainvoke`.
            record: Whether to keep the requests and answers of models, as in `RunOptions`.

        Example:
            >>> run = app.start({"messages": "Hello"}, {"thread_id": "t1"})
            >>> await run.step()
        """
        read = read_config(config, self.plan.recursion_limit)
        call = ThreadCall(read, self.threads, is_named=True, is_watched=True)
        run_input, options = await self._prepare(input_data, call, context)
        run = ThreadRun(self.workflow, run_input, replace(options, record=record))
        run.app = self
        read["run_id"] = run.run_id
        return run

    start = blocking(astart)

    def stepper(self, input_data: Any, config: Mapping[str, Any] | None = None, **settings: Any) -> Any:
        """Return the notebook panel that steps a run of a thread; `MissingExtraError` without the notebook extra.

        Args:
            input_data: As for `ainvoke`.
            config: As for `ainvoke`.
            **settings: As for `agentbench.notebook.stepper`: `context`, `breakpoints`, `layout`, `height` and so on.

        Example:
            >>> app.stepper({"messages": "Hello"}, {"thread_id": "t1"})
        """
        return call_view("agentbench.notebook.stepping.start:stepper", self, input_data, config, **settings)

    # ---- as a part of something else ---------------------------------------------------------------------------------

    def as_executor(self, id: str | None = None, **settings: Any) -> WorkflowExecutor:  # noqa: A002 - as of executors
        """Return the graph as a node of a workflow. It takes the inputs of `invoke`, and sends a full `GraphResult`.

        Questions of the graph become requests of the workflow, whose checkpoints contain the graph's state. Messages to
        the node continue one conversation; with `concurrency="isolate"` each begins a new one.

        Args:
            id: The id of the node; by default the name of the graph.
            settings: Arguments of `WorkflowExecutor`, such as `concurrency` and `timeout`.

        Example:
            >>> workflow = WorkflowBuilder(start_executor=app.as_executor("triage")).build()
        """
        node: WorkflowExecutor = _nested_module().GraphExecutor(self, id or self.plan.name, **settings)
        return node

    def as_agent(self, name: str | None = None, **settings: Any) -> Any:
        """Return the graph as an agent: it gets the conversation, and answers with the messages that the graph adds.

        Args:
            name: The name of the agent; by default that of the graph.
            settings: Arguments of `Workflow.as_agent`: `description`, `context_providers`.

        Example:
            >>> response = await app.as_agent("triage").run("The service is slow.")
        """
        return _nested_module().graph_agent(self, name or self.plan.name, **settings)


def _with_breakpoints(config: Mapping[str, Any] | None, before: Any, after: Any) -> Mapping[str, Any] | None:
    """Return the configuration of a call with its breakpoints, of which None means those of the configuration."""
    given = {name: nodes for name, nodes in (("interrupt_before", before), ("interrupt_after", after)) if nodes}
    return {**(config or {}), **given} if given else config


def _nested_module() -> Any:
    return import_module("agentbench.stategraph.nested")  # imported here, because it uses compiled graphs

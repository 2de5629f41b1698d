"""A built workflow: the graph, its state between runs, and the ways to run it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

from agentbench._clock import runtime_defaults
from agentbench._display import call_view, drawn_by
from agentbench._limits import require_limit
from agentbench._user_code import cut_to_user
from agentbench.checkpoints.manager import bare_storage
from agentbench.observability.switches import is_tracing
from agentbench.workflows.engine.active_run import RunState
from agentbench.workflows.engine.event_log import new_log
from agentbench.workflows.events.events import WorkflowRunState
from agentbench.workflows.executors.message import WorkflowMessage
from agentbench.workflows.executors.options import RunOptions, WorkflowSettings
from agentbench.workflows.graph.graph import PLAIN, Graph
from agentbench.workflows.run.definition import WorkflowDefinition
from agentbench.workflows.run.execution import ABSENT, Execution, RunInput
from agentbench.workflows.run.result import WorkflowRunResult
from agentbench.workflows.run.stream import RunCoroutine, WorkflowStream

if TYPE_CHECKING:
    from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
    from agentbench.checkpoints.info import CheckpointInfo
    from agentbench.checkpoints.manager import CheckpointManager
    from agentbench.checkpoints.storage import CheckpointStorage
    from agentbench.orchestrations.workflow_agent import WorkflowAgent
    from agentbench.workflows.engine.run_kwargs import WorkflowInvocationKwargs
    from agentbench.workflows.executors.executor import Executor
    from agentbench.workflows.executors.state import State
    from agentbench.workflows.graph.boundary import BoundaryHook
    from agentbench.workflows.graph.edge_groups import EdgeGroup
    from agentbench.workflows.persist.planned_migration import Migration
    from agentbench.workflows.run.run import WorkflowRun

_DEFAULT_OPTIONS = RunOptions()


class WorkflowRunArguments(TypedDict, total=False):
    """Keyword arguments of `Workflow.run()`; see there."""

    responses: Mapping[Any, Any] | None
    checkpoint_id: CheckpointInfo | str | None
    checkpoint_storage: CheckpointStorage | CheckpointManager | None
    include_status_events: bool
    function_invocation_kwargs: Mapping[str, Any] | WorkflowInvocationKwargs | None
    client_kwargs: Mapping[str, Any] | WorkflowInvocationKwargs | None
    tools: Any
    options: RunOptions | None


@drawn_by("agentbench.notebook.cards.run:workflow_bundle")
class Workflow(WorkflowDefinition):
    """A graph of executors that can be run; usually created by `WorkflowBuilder`.

    There are three ways to run it: `await workflow.run(message)` for the result, `workflow.run(message, stream=True)`
    for the events as they are emitted, and `workflow.start(message)` for a handle that steps, pauses, rewinds and
    forks.

    `run()` continues with the state of the instance, one run at a time; `clone()` is a cheap way to run several.
    `start()` begins with its own state. The fields of executors are not part of that state: see `Executor.fresh`.

    A pickled workflow contains its definition only, without the state of its runs.

    Args:
        edge_groups: the edge groups in builder order, including one internal group per executor.
        executors: the executors by id.
        start_executor: the executor that gets the input of a run.
        runner_context: the state that `run()` keeps: a `RunState`, such as an `InProcRunnerContext`; by default a new
            one.
        name: a name that groups the checkpoints.
        description: a description for people.
        max_iterations: maximum number of supersteps since the last outside input; 0 runs only the start executors.
        output_from: ids whose yields are outputs; if this and `intermediate_output_from` are None: all ids.
        intermediate_output_from: ids whose yields are intermediate.
        output_executors: older name of `output_from`.
        intermediate_executors: older name of `intermediate_output_from`.
        settings: how the workflow behaves.
        start_executors: ids of all start executors, if there are several.
        boundary_hook: drives another kind of graph.
        checkpoint_storage: the default storage for checkpoints.

    Example:
        >>> workflow = WorkflowBuilder(start_executor=split).add_edge(split, count).build()
        >>> result = await workflow.run("to be or not to be")
        >>> result.get_outputs()
        [6]
    """

    def __init__(  # noqa: PLR0913 - the published signature
        self,
        edge_groups: Sequence[EdgeGroup],
        executors: Mapping[str, Executor],
        start_executor: Executor,
        runner_context: RunState | None = None,
        name: str = "Workflow",
        description: str | None = None,
        max_iterations: int = 100,
        output_from: Sequence[str] | None = None,
        intermediate_output_from: Sequence[str] | None = None,
        *,
        output_executors: Sequence[str] | None = None,
        intermediate_executors: Sequence[str] | None = None,
        settings: WorkflowSettings = PLAIN,
        start_executors: Sequence[str] = (),
        boundary_hook: BoundaryHook | None = None,
        checkpoint_storage: CheckpointStorage | CheckpointManager | None = None,
    ) -> None:
        require_limit("max_iterations", max_iterations)
        graph = Graph(
            edge_groups,
            executors,
            tuple(start_executors) or (start_executor.id,),
            name=name,
            description=description,
            max_iterations=max_iterations,
            output_from=output_executors if output_from is None else output_from,
            intermediate_output_from=(
                intermediate_executors if intermediate_output_from is None else intermediate_output_from
            ),
            settings=settings,
            boundary_hook=boundary_hook,
        )
        storage = bare_storage(checkpoint_storage)
        run_state: object = RunState() if runner_context is None else runner_context
        if not isinstance(run_state, RunState):
            msg = (
                f"runner_context is of type {type(run_state).__name__}; expected an InProcRunnerContext. "
                "To use your own backend, call Runner(edge_groups, executors, State(), context, ...)."
            )
            raise TypeError(msg)
        if storage is None:
            storage = getattr(run_state, "storage", None)
        self.graph, self.storage, self.run_state = graph, storage, run_state

    # ---- running ---------------------------------------------------------------------------------

    @overload
    def run(
        self, message: Any = None, *, stream: Literal[False] = False, **arguments: Unpack[WorkflowRunArguments]
    ) -> Coroutine[Any, Any, WorkflowRunResult]: ...
    @overload
    def run(
        self, message: Any = None, *, stream: Literal[True], **arguments: Unpack[WorkflowRunArguments]
    ) -> WorkflowStream: ...
    def run(  # noqa: PLR0913 - the published signature
        self,
        message: Any = None,
        *,
        stream: bool = False,
        responses: Mapping[Any, Any] | None = None,
        checkpoint_id: CheckpointInfo | str | None = None,
        checkpoint_storage: CheckpointStorage | CheckpointManager | None = None,
        include_status_events: bool = False,
        function_invocation_kwargs: Mapping[str, Any] | WorkflowInvocationKwargs | None = None,
        client_kwargs: Mapping[str, Any] | WorkflowInvocationKwargs | None = None,
        tools: Any = None,
        options: RunOptions | None = None,
    ) -> Coroutine[Any, Any, WorkflowRunResult] | WorkflowStream:
        """Start or continue a run with the state of this instance.

        The run inherits shared state and open requests of earlier runs of the instance; `result.carried_over` lists
        them.
        To begin without them, use `workflow.start()` or `workflow.reset()`.

        Args:
            message: input for the start executor; any value but None; for a `WorkflowMessage`, its data.
            stream: return an async iterator of events instead of an awaitable result.
            responses: responses by request or request id; continues where the requests were left open.
            checkpoint_id: restore this checkpoint first, then continue; its id or its info.
            checkpoint_storage: load from and save to this storage, in this run only.
            include_status_events: include `status` events in the result.
            function_invocation_kwargs: arguments for tools; flat, keyed by executor id, or `WorkflowInvocationKwargs`.
            client_kwargs: arguments for model clients, in the same forms.
            tools: a tool or a function, or a list of them, for all agents of this run beside their own, also for those
                of nested workflows; handlers get the list from `WorkflowContext.get_runtime_tools`. A run with
                responses or a checkpoint keeps those of the instance's last run unless it gets others, which replace
                them. Checkpoints do not contain them, so pass them again in another process: an agent that goes on
                with a call of a missing tool, even an approved one, tells its model that there is no such tool.
            options: further options of this run, such as `RunOptions(max_iterations=500)`.

        Returns:
            An awaitable of the `WorkflowRunResult`; with `stream=True` a `WorkflowStream`.

        Raises:
            ValueError: by the call: no input at all, or a message together with responses or a checkpoint; when
                awaited: a response has the wrong type or an unknown id, there is no storage to restore from, or an
                agent has another tool with the name of one of `tools`.
            TypeError: `tools` or keyword arguments have the wrong type.
            RuntimeError: by the call: the instance is already running; when awaited: there is no open request to
                respond to, or messages of an unconverged run are left.
            Exception: any error that a handler raised, unchanged.

        Example:
            >>> def get_weather(city: str) -> str:
            ...     "Return the weather in a city."
            ...     return f"Sunny in {city}"
            >>> result = await workflow.run("Plan a picnic in Oslo.", tools=[get_weather])
        """
        message, tools = _data_of(message), tool_list(tools)
        check_combination(message, responses, checkpoint_id)
        self.require_free()
        options = check_options(options)
        is_traced = is_tracing()
        defaults = runtime_defaults()
        storage = self.storage if checkpoint_storage is None else bare_storage(checkpoint_storage)
        observe = defaults.observe if options.observe is None else options.observe
        run_id = ""
        if observe or storage is not None or is_traced:
            run_id = (options.ids or defaults.ids).new_id("run")
        execution = Execution(
            self.graph,
            self.run_state,
            RunInput(
                ABSENT if message is None else message,
                responses,
                None if checkpoint_id is None else _id_of(checkpoint_id),
                storage,
                {"function_invocation_kwargs": function_invocation_kwargs, "client_kwargs": client_kwargs},
                tools,
            ),
            options,
            log=new_log(run_id, options.clock or defaults.clock, observe=observe),
            run_id=run_id,
            traced_as=self.id if is_traced else None,
            streaming=stream,
            on_end=self.release,
        )
        if stream:
            return WorkflowStream(
                execution,
                self.acquire,
                include_status_events=include_status_events,
                keep_events=options.keep_events,
            )
        return RunCoroutine(self._run_to_end(execution, include_status_events=include_status_events))

    async def _run_to_end(self, execution: Execution, *, include_status_events: bool) -> WorkflowRunResult:
        self.acquire(execution)
        try:
            await execution.run_to_end()
        except (asyncio.CancelledError, KeyboardInterrupt) as error:
            cut_to_user(error)
            raise error
        return WorkflowRunResult.from_log(execution.log, include_status_events=include_status_events)

    _run_to_end.__qualname__ = "Workflow.run"  # errors about the coroutine use the name that the user wrote

    def run_stream(self, message: Any = None, **settings: Any) -> WorkflowStream:
        """Do the same as `run(..., stream=True)`."""
        return self.run(message, stream=True, **settings)

    @overload
    def run_from_checkpoint(
        self, checkpoint_id: CheckpointInfo | str, *, stream: Literal[False] = False, **settings: Any
    ) -> Coroutine[Any, Any, WorkflowRunResult]: ...
    @overload
    def run_from_checkpoint(
        self, checkpoint_id: CheckpointInfo | str, *, stream: Literal[True], **settings: Any
    ) -> WorkflowStream: ...
    def run_from_checkpoint(self, checkpoint_id: CheckpointInfo | str, *, stream: bool = False, **settings: Any) -> Any:
        """Do the same as `run(checkpoint_id=...)`."""
        run: Any = self.run  # the overloads want the literal
        return run(checkpoint_id=checkpoint_id, stream=stream, **settings)

    def start(
        self,
        input: Any = None,  # noqa: A002 - the published name
        *,
        checkpoint_storage: CheckpointStorage | CheckpointManager | None = None,
        resume_from: CheckpointInfo | str | None = None,
        responses: Mapping[Any, Any] | None = None,
        tools: Any = None,
        options: RunOptions | None = None,
        keep_state: bool = False,
    ) -> WorkflowRun:
        """Return a handle on a new run, which its reader drives; nothing runs yet.

        The run begins with empty shared state, no open requests and `fresh()` executors, and uses nothing of the
        workflow's state, so any number of started runs can be open. Its supersteps are counted from 0: in superstep 0
        the start executors get the input.

        Args:
            input: input for the start executors; with `resume_from` it is added to the restored state.
            checkpoint_storage: the storage for this run's checkpoints; default: the workflow's storage.
            resume_from: the checkpoint to begin at.
            responses: responses by request or request id, delivered right after the restore.
            tools: tools for all agents of this run, as in `run`. Forks and redone branches get the same ones, also if
                their code has changed since.
            options: further options; a handle observes its run unless `observe=False`.
            keep_state: use the state of this instance, as `run()` does; one such run at a time.

        Raises:
            ValueError: input, resume_from and responses are all missing, or responses have no open requests.
            RuntimeError: with `keep_state`, the instance is already running.
        """
        from agentbench.workflows.run.run import WorkflowRun  # noqa: PLC0415 - plain runs need no handle

        input = _data_of(input)  # noqa: A001 - as above
        if input is None and resume_from is None and responses is None:
            msg = "start() needs input=, resume_from= or responses=."
            raise ValueError(msg)
        if responses is not None and resume_from is None and not keep_state:
            msg = (
                "start(responses=...) needs resume_from=, or keep_state=True for the open requests of this instance: "
                "a started run has no open requests."
            )
            raise ValueError(msg)
        run_input = RunInput(
            message=ABSENT if input is None else input,
            checkpoint_id=None if resume_from is None else _id_of(resume_from),
            responses=responses,
            storage=self.storage if checkpoint_storage is None else bare_storage(checkpoint_storage),
            tools=tool_list(tools),
        )
        return WorkflowRun(self, run_input, check_options(options), keep_state=keep_state)

    def stepper(self, input: Any = None, **settings: Any) -> Any:  # noqa: A002 - as in start()
        """Return the notebook panel that steps this workflow; `MissingExtraError` without the notebook extra."""
        return call_view("agentbench.notebook.stepping.start:stepper", self, input, **settings)

    async def migrate(
        self,
        checkpoint: WorkflowCheckpoint | CheckpointInfo | str,
        *,
        renamed: Mapping[str, str] | None = None,
        dropped: Iterable[str] = (),
        functions: Mapping[str, Callable[[Any], Any]] | None = None,
        checkpoint_storage: CheckpointStorage | CheckpointManager | None = None,
    ) -> Migration:
        """Return the preview of a checkpoint of an older graph as one of this graph; its `apply()` saves it.

        Names are those of the old graph's executors, or else those of fields of the shared state. Executors that both
        graphs have keep their state, messages and requests. A queued message follows the edges of this graph, and goes
        directly to its receiver where there is no edge left.

        Args:
            checkpoint: the checkpoint, its info or its id.
            renamed: new names by old name.
            dropped: executors and fields to remove; executors that this graph lacks are dropped anyway.
            functions: for a field, a function from the old value to the new one; for an executor, a function from an
                `ExecutorContent` to one or several of this graph.
            checkpoint_storage: the storage of the checkpoint; default: the workflow's storage.

        Raises:
            MigrationError: a queued message could not be delivered, a name is unknown, or a function failed or returned
                something that cannot be stored.
            CheckpointNotFoundError: the id is unknown.
            ValueError: there is no storage.

        Example:
            >>> migration = await workflow.migrate(old, renamed={"draft": "writer"}, functions={"limit": int})
            >>> info = await migration.apply()
            >>> result = await workflow.run(checkpoint_id=info)
        """
        from agentbench.workflows.persist.executor_content import Changes  # noqa: PLC0415 - few programs migrate
        from agentbench.workflows.persist.planned_migration import plan_migration  # noqa: PLC0415 - as above

        storage = self.storage if checkpoint_storage is None else bare_storage(checkpoint_storage)
        if storage is None:
            msg = "migrate() has no storage. Pass checkpoint_storage=, or build the workflow with one."
            raise ValueError(msg)
        changes = Changes(dict(renamed or {}), frozenset(dropped), dict(functions or {}))
        return await plan_migration(storage, checkpoint, self.graph, changes)

    def as_agent(
        self, name: str | None = None, *, description: str | None = None, context_providers: Any = None, **settings: Any
    ) -> WorkflowAgent:
        """Return this workflow as an agent, see `WorkflowAgent`; its start executor has to take `list[Message]`."""
        agents = import_module("agentbench.orchestrations.workflow_agent")  # a higher layer, imported on use
        agent: WorkflowAgent = agents.WorkflowAgent(
            self, name=name, description=description, context_providers=context_providers, **settings
        )
        return agent

    @property
    def state(self) -> State:
        """The shared state that `run()` left."""
        return self.run_state.state

    def reset(self) -> None:
        """Drop messages, requests, buffers, shared state, counters; not executor fields. RuntimeError: it is busy."""
        self.require_free()
        self.run_state.reset()
        self._ended_as = WorkflowRunState.IDLE

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the definition: graph and storage."""
        return Workflow.from_graph, (self.graph, self.storage)

    def __repr__(self) -> str:
        return f"Workflow({self.name!r}, {len(self.executors)} executors, start={', '.join(self.start_executor_ids)})"


def tool_list(tools: Any) -> Sequence[Any] | None:
    """Return the tools of a run in a list; `TypeError` if they cannot be tools."""
    if tools is None:
        return None
    if isinstance(tools, (list, tuple)):
        return tuple(tools)
    if callable(tools) or isinstance(tools, Mapping) or hasattr(tools, "name"):
        return (tools,)
    msg = f"tools is {tools!r}; expected a tool or a function, or a list of them."
    raise TypeError(msg)


def _data_of(message: Any) -> Any:
    return message.data if isinstance(message, WorkflowMessage) else message


def _id_of(checkpoint: CheckpointInfo | str) -> str:
    if isinstance(checkpoint, str):
        return checkpoint
    from agentbench.checkpoints.checkpoint import id_of  # noqa: PLC0415 - most runs start from no checkpoint

    return id_of(checkpoint)


def check_combination(message: Any, responses: object, checkpoint_id: object) -> None:
    """Raise ValueError unless exactly one kind of input is passed; responses may be combined with a checkpoint."""
    if responses is not None and not isinstance(responses, Mapping):
        msg = f"responses is {responses!r}; expected the responses by request: responses={{request: {responses!r}}}."
        raise TypeError(msg)
    if message is not None and responses is not None:
        msg = "message and responses cannot be combined: respond first, or start a new run with the message."
        raise ValueError(msg)
    if message is not None and checkpoint_id is not None:
        msg = "message and checkpoint_id cannot be combined. Use workflow.start(input, resume_from=...)."
        raise ValueError(msg)
    if message is None and responses is None and checkpoint_id is None:
        msg = "run() needs a message other than None, responses= or checkpoint_id=."
        raise ValueError(msg)


def check_options(options: object) -> RunOptions:
    """Return the options, or the default ones for None; `TypeError` if they are something else."""
    if options is None:
        return _DEFAULT_OPTIONS
    if not isinstance(options, RunOptions):
        msg = f"options is {options!r}; expected RunOptions(...), such as RunOptions(max_iterations=500)."
        raise TypeError(msg)
    return options

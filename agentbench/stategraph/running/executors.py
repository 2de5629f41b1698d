"""The executors of a compiled graph: one for the input and one per node, which calls the node's function."""

from __future__ import annotations

import inspect
from asyncio import CancelledError
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from types import CoroutineType, MappingProxyType
from typing import Any, Generic, NoReturn, Self, cast, get_origin, get_type_hints

from typing_extensions import TypeVar, is_typeddict

from agentbench._copying import isolate, register_frozen
from agentbench._secrets import masked_repr
from agentbench.exceptions import GraphError, GraphStopRequested
from agentbench.messages.message import Message
from agentbench.serialization.plain import are_equal
from agentbench.stategraph.command import Command
from agentbench.stategraph.interrupts import (
    QUESTIONS,
    GraphInterrupt,
    Interrupt,
    ParentCommand,
    TaskQuestions,
    current_questions,
    interrupt,
)
from agentbench.stategraph.merging.state_fields import StateFields, is_state_class
from agentbench.stategraph.merging.updates import Collected, TaskWrites, read_return
from agentbench.stategraph.running.inner_runs import drop_called_runs
from agentbench.stategraph.running.plan import (
    GraphOptions,
    GraphPlan,
    NodeSpec,
    RunnableConfig,
    graph_options,
    node_config,
)
from agentbench.stategraph.running.retrying import retry_after
from agentbench.stategraph.running.routing import Activation
from agentbench.stategraph.state import AgentState, ExecutionState
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.handlers import HandlerSpec, handler

ContextT = TypeVar("ContextT", default=Any)


@dataclass(frozen=True, slots=True)
class Runtime(Generic[ContextT]):
    """A node's access to facts about its run, for a parameter named `runtime` or annotated with this class.

    Args:
        step: The number of this superstep in the run, from 1.
        remaining_steps: The number of supersteps that the recursion limit still allows after this one.
        thread_id: The id of the thread.
        run_id: The id of the run.
        store: The object passed to `compile(store=...)`.
        emit: `emit(data)` sends data to the observers of the run. `stream_writer` is the same function.
        stop_probe: Returns whether a stop was requested; used by `stop_requested`.
        context: The object passed as `context` to the call, an instance of the graph's `context_schema` if it has one.

    Example:
        >>> def search(state: AgentState, runtime: Runtime) -> dict:
        ...     return {"depth": 1 if runtime.remaining_steps < 3 else 5}
    """

    step: int = 0
    remaining_steps: int = 0
    thread_id: str | int | None = None
    run_id: str | None = None
    store: Any = None
    emit: Callable[[Any], None] = field(default=lambda data: None, repr=False)
    stop_probe: Callable[[], bool] = field(default=lambda: False, repr=False)
    context: ContextT = field(default=None, repr=False)  # type: ignore[assignment]

    @property
    def stream_writer(self) -> Callable[[Any], None]:
        """The same function as `emit`."""
        return self.emit

    @property
    def stop_requested(self) -> bool:
        """Whether a stop of this thread was requested."""
        return self.stop_probe()


def get_runtime(context_schema: type[ContextT] | None = None) -> Runtime[ContextT]:
    """Return the runtime of the node that is running, from any function that the node calls.

    Args:
        context_schema: The class of the context, for type checkers.

    Raises:
        RuntimeError: No node is running here.

    Example:
        >>> def model_name() -> str:
        ...     return get_runtime(Settings).context.model
    """
    return _runtime_of(current_questions("get_runtime()"))


def get_config() -> RunnableConfig:
    """Return the configuration of the call, as a parameter `config` of the running node gets it.

    Raises:
        RuntimeError: No node is running here.

    Example:
        >>> def current_user() -> str:
        ...     return get_config()["configurable"]["user"]
    """
    questions = current_questions("get_config()")
    options = graph_options(questions.ctx._run.options)  # noqa: SLF001 - the engine's side of the context
    return cast("RunnableConfig", _config_of(questions, options))


def _config_of(questions: TaskQuestions, options: GraphOptions) -> dict[str, Any]:
    run = questions.ctx._run  # noqa: SLF001 - as above
    return {
        **node_config(options.config), "node": questions.node, "task_id": questions.task_id,
        "step": run.state.committed[META]["step"] + 1, "checkpoint_id": run.run_state.last_checkpoint_id,
    }  # fmt: skip


def _runtime_of(questions: TaskQuestions) -> Runtime[Any]:
    ctx = questions.ctx
    run = ctx._run  # noqa: SLF001 - the engine's side of the context
    options = graph_options(run.options)
    used = options.call_record.n_supersteps + 1  # including this one
    return runtime_for(options, run.state.committed[META]["step"] + 1, used, questions.emit, ctx)


def runtime_for(
    options: GraphOptions, step: int, used: int, emit: Callable[[Any], None] = lambda data: None, ctx: Any = None
) -> Runtime[Any]:
    """Return the runtime for a superstep, the `used`-th one of its call; `ctx` says whether a stop was requested."""
    config, limit = options.config, options.config.get("recursion_limit", 0)
    return Runtime(
        step, max(limit - used, 0), config.get("thread_id"), config.get("run_id"), options.store, emit,
        lambda: ctx is not None and ctx.stop_requested, options.context,
    )  # fmt: skip


class NodeFunction:
    """A callable as a node. Parameters are matched once, by name, then by annotation; `view` creates its state.

    Raises:
        GraphError: `GRAPH_007`, the graph cannot fill a required parameter.
    """

    def __init__(self, name: str, function: Callable[..., Any], fields: StateFields) -> None:
        self.function = function
        called = function if inspect.isroutine(function) or isinstance(function, type) else function.__call__  # type: ignore[operator]
        called = getattr(function, "func", called)  # for functools.partial
        self.is_async = inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called)
        hints = annotations_of(called)
        self.parameters = _match_parameters(name, function, hints, fields)
        states = [parameter for parameter, kind in self.parameters.items() if kind == "state"]
        self.view = fields.view_of(hints.get(states[0].removeprefix("*"))) if states else fields
        # Most nodes take only the state, by position, and are called without a dictionary of arguments.
        self._takes_state_alone = [*self.parameters.values()] == ["state"]
        self._positional = [kind for name, kind in self.parameters.items() if name.startswith("*")]
        self._named = {name: kind for name, kind in self.parameters.items() if not name.startswith("*")}

    def call(self, task: _Task) -> Any:
        """Call the function with the arguments of a task."""
        if self._takes_state_alone:
            return self.function(task.make_state())
        positional = [_ARGUMENTS[kind](task) for kind in self._positional]
        return self.function(*positional, **{name: _ARGUMENTS[kind](task) for name, kind in self._named.items()})


_KINDS = ("state", "config", "runtime", "emit", "store", "ctx")


def annotations_of(function: Any) -> dict[str, Any]:
    """Return the annotations of a function; an empty mapping if they cannot be read."""
    try:
        return get_type_hints(function)
    except Exception:  # noqa: BLE001 - annotations are code of the user, and names alone are often enough
        return {}


def _match_parameters(
    node: str, function: Callable[..., Any], hints: Mapping[str, Any], fields: StateFields
) -> dict[str, str]:
    """Return the kind of argument for each parameter, by name."""
    try:
        parameters = [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):  # functions written in C may have none
        return {"state": "state"}
    found: dict[str, str] = {}
    others = []
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        kind = argument_kind(parameter.name, hints.get(parameter.name), fields)
        key = f"*{parameter.name}" if parameter.kind is parameter.POSITIONAL_ONLY else parameter.name
        if kind is not None:
            found[key] = kind
        elif parameter.default is parameter.empty:
            others.append(key)
    if len(others) == 1 and "state" not in found.values():
        return {others[0]: "state", **found}
    if others:
        message = (
            f"Node {node!r} has a required parameter {others[0]!r}, which the graph cannot fill. A node may take "
            f"{', '.join(_KINDS)}, or one parameter of any name for the state. Give {others[0]!r} a default, or bind "
            "it with functools.partial."
        )
        raise GraphError(message, "GRAPH_007", {"parameter": others[0]}, node=node)
    return found


def argument_kind(name: str, hint: Any, fields: StateFields) -> str | None:
    """Return the kind of argument for a parameter, by its name or its annotation; None for any other."""
    if name in _KINDS:
        return name
    if name == "writer" and not fields.is_agent_state:
        return "emit"
    hint = get_origin(hint) or hint
    if not isinstance(hint, type):
        return None
    if hint in fields.cls.__mro__ and is_state_class(hint):
        return "state"
    if hint is StateFields:
        return "fields"
    if hint is RunnableConfig:
        return "config"
    return "runtime" if hint is Runtime else "ctx" if WorkflowContext in hint.__mro__ else None


async def collect(result: Any, emit: Callable[[Any], None]) -> Any:
    """Return the final result of an async node: the awaited value, or the updates that an async generator yielded."""
    if inspect.isawaitable(result):
        return await result
    if not inspect.isasyncgen(result):
        return result
    return Collected([part async for part in result if _is_update(part, emit)])


def _is_update(part: Any, emit: Callable[[Any], None]) -> bool:
    """Return whether a yielded value is an update; pieces of messages and other objects are only displayed."""
    if isinstance(part, (dict, Command)) or (isinstance(part, Message) and not part.delta):
        return True
    emit(part)
    return False


# ---- executors


# Keys of shared state in addition to the fields.
META, PENDING, WAITING, RESUME, DONE = (f"_graph::{name}" for name in ("meta", "pending", "joins", "resume", "done"))


@dataclass(slots=True)
class TaskResult:
    """The result of a task: its writes, or the questions for which it waits; and warnings."""

    activation: Activation
    writes: TaskWrites
    interrupts: tuple[Interrupt, ...] = ()
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        asks = "; ".join(f"asks {interrupt.message or masked_repr(interrupt.value)}" for interrupt in self.interrupts)
        goes = f" and goes to {[*self.writes.goto]}" if self.writes.goto is not None else ""
        return asks or f"writes {masked_repr(dict(self.writes.writes))}{goes}"


# The writes of most tasks are merged immediately; those that wait for other tasks are copied then.
register_frozen(TaskResult)


class InputExecutor(Executor):
    """Takes the input of a graph, which the next boundary writes into the state."""

    signature_key = "GraphInput"

    def __init__(self, id: str, fields: StateFields) -> None:  # noqa: A002 - as of executors
        super().__init__(id)
        self.fields = fields

    @property
    def input_types(self) -> list[Any]:
        """The forms of an input, including instances of the state class."""
        declared = [] if self.fields.is_agent_state else [self.fields.cls, *self.fields.views]
        return [*super().input_types, *(cls for cls in declared if not is_typeddict(cls))]

    def find_handler(self, data: Any) -> HandlerSpec | None:
        """Return the handler of an input in any of its forms."""
        return super().find_handler(data) if self.fields.owner_of(data) is None else self._ab_handlers.specs[0]

    @handler
    async def take(
        self,
        data: dict[str, Any] | AgentState | Command | list[str | Message] | Message | str,
        ctx: WorkflowContext[Any, Any],
    ) -> None:
        """Take an input in any of its forms."""


class Marker(Executor):
    """A mark in drawings where there is no node: the end of the graph, or targets chosen at run time."""

    signature_key = "GraphMarker"

    @handler
    async def take(self, data: Any, ctx: WorkflowContext[Any, Any]) -> None:
        """Never called: the boundary routes only to nodes."""


class NodeExecutor(Executor):
    """A node of a state graph. It stores nothing about a run, so clones of the workflow share it."""

    signature_key = "GraphNode"

    def __init__(self, spec: NodeSpec, plan: GraphPlan) -> None:
        super().__init__(spec.name, timeout=spec.timeout, retries=spec.retries or None)
        if spec.retry_policies:
            attempts = max(policy.max_attempts for policy in spec.retry_policies)
            self.policy = replace(self.policy, retries=attempts - 1, retry_after=retry_after(spec.retry_policies))
        self.spec = spec
        self.plan = plan
        self.function = NodeFunction(spec.name, spec.target, plan.fields)
        self.workflow = getattr(spec.target, "workflow", None)
        """The workflow that drawings show inside the node."""

    @property
    def agent(self) -> Any:
        """The agent that the node runs, which may be a workflow with executors of its own."""
        return getattr(self.spec.target, "agent", None)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the node itself: an agent in it may hold connections."""
        return self

    @property
    def is_request_response_capable(self) -> bool:
        """Whether a run may wait for a person here: at a breakpoint, or in a function that calls `interrupt()`."""
        if (self.plan.interrupt_before | self.plan.interrupt_after) & {self.id, "*"}:
            return True
        if self.spec.asks is not None:
            return self.spec.asks
        return getattr(self.spec.target, "may_ask", False) or _calls_interrupt(self.spec.target, set())

    @handler
    async def run(self, activation: Activation, ctx: WorkflowContext[Any, Any]) -> None:
        """Call the function with its own copy of the state, and keep its result for the boundary."""
        result = _find_result(activation, ctx)
        if result is None:
            task, outer_questions = _Task(self, activation, ctx), QUESTIONS.get()
            QUESTIONS.set(task.questions)
            try:
                value = self.function.call(task)
                value = await value if value.__class__ is CoroutineType else await collect(value, task.questions.emit)
            except GraphInterrupt:
                value = None
            except ParentCommand as left:
                value = Collected(left.commands)
            except GraphStopRequested:
                task.stop()
            finally:
                QUESTIONS.set(outer_questions)
            result = task.result(value)
        await ctx.yield_output(result)


class ThreadNodeExecutor(NodeExecutor):
    """A node whose function is not async, which the engine calls in a worker thread."""

    signature_key = NodeExecutor.signature_key

    @handler
    def run(self, activation: Activation, ctx: WorkflowContext[Any, Any]) -> None:  # type: ignore[override]
        """Call the function with its own copy of the state, and keep its result for the boundary."""
        result = _find_result(activation, ctx)
        if result is None:
            task = _Task(self, activation, ctx)
            QUESTIONS.set(task.questions)
            try:
                value = self.function.call(task)
                if inspect.isgenerator(value):
                    value = Collected(part for part in value if _is_update(part, task.questions.emit))
            except GraphInterrupt:
                value = None
            except ParentCommand as left:
                value = Collected(left.commands)
            except GraphStopRequested:
                task.stop()
            result = task.result(value)
        ctx.yield_output(result)


def node_executor(spec: NodeSpec, plan: GraphPlan) -> NodeExecutor:
    """Return the executor of a node; functions that are not async run in a worker thread."""
    executor = NodeExecutor(spec, plan)
    return executor if executor.function.is_async else ThreadNodeExecutor(spec, plan)


def _find_result(activation: Activation, ctx: Any) -> TaskResult | None:
    """Return the result of a task that finished before its process ended; `CancelledError` if the run is stopped."""
    if ctx.stop_requested:
        raise CancelledError
    pending: Sequence[TaskResult] | None = ctx._run.state.committed.get(PENDING)  # noqa: SLF001 - as below
    if not pending:
        return None
    return next((result for result in pending if result.activation.task_id == activation.task_id), None)


class _Task:
    """One activation of a node while it runs: the arguments for its parameters, and the handling of its result."""

    __slots__ = ("activation", "committed", "ctx", "node", "options", "questions", "sent", "state", "values")

    def __init__(self, node: NodeExecutor, activation: Activation, ctx: Any) -> None:
        self.node, self.activation, self.ctx = node, activation, ctx
        # Only boundaries write what is read here, so nothing of it is pending while nodes run.
        self.committed: Mapping[str, Any] = ctx._run.state.committed  # noqa: SLF001 - the engine's side of the context
        self.values: Mapping[str, Any] = node.plan.values_in(self.committed)
        self.sent = None if node.plan.fields.is_agent_state else activation.arg
        """The value that `Send` passes to the node instead of the state."""
        if activation.arg is not None and self.sent is None:
            self.values = {**self.values, **activation.arg}
        self.options = graph_options(ctx._run.options)  # noqa: SLF001
        task_id, all_done = activation.task_id, self.options.call_record.done
        answers = (self.committed.get(RESUME) or _NOTHING).get(task_id, _NOTHING)
        stored, done = (self.committed.get(DONE) or _NOTHING).get(task_id, _NOTHING), all_done.get(task_id)
        if done is None:
            done = all_done[task_id] = {**stored}
        else:
            drop_called_runs(done, stored)
        plan = node.plan
        owns_graphs = not plan.fields.is_agent_state
        self.questions = TaskQuestions(
            node.id, task_id, answers, done, ctx, owns_called_graphs=owns_graphs, nodes=plan.nodes
        )
        self.state: Any = None

    def make_state(self) -> Any:
        """Return the state for the node."""
        plan, ctx = self.node.plan, self.ctx
        copied = deepcopy if plan.debug else isolate if plan.isolation == "deep" else _shallow
        if self.sent is not None:
            return copied(self.sent)
        # The functions refer to the state's parts, not to this task: a cycle would be garbage after each task.
        committed, node_id = self.committed, self.node.id

        def meta() -> ExecutionState:
            return ExecutionState(**{**committed[META], "current_node": node_id})

        self.state = self.node.function.view.view(self.values, copied, meta, lambda: ctx.stop_requested)
        if plan.debug and plan.fields.is_agent_state:
            _ = self.state.__dict__  # copies all fields now
        return self.state

    def _config(self) -> dict[str, Any]:
        return _config_of(self.questions, self.options)

    def stop(self) -> NoReturn:
        """Stop the run; the node runs again when it continues."""
        self.ctx._run.stop_requested = True  # noqa: SLF001 - the engine's side of the context
        raise CancelledError

    def result(self, value: Any) -> TaskResult:
        """Return the result of the task, with a warning if the node changed its state without returning it."""
        questions, node = self.questions, self.node.id
        if questions.open:
            if value is not None:
                message = (
                    f"Node {node!r} caught the GraphInterrupt of its interrupt() and returned. Do not catch it: "
                    "no bare `except:` and no `except BaseException:` around interrupt()."
                )
                raise GraphError(message, "GRAPH_010", node=node, task_id=self.activation.task_id)
            return TaskResult(self.activation, TaskWrites(node, self.activation.task_id), tuple(questions.open))
        writes = read_return(value, self.node.plan.fields, node, self.activation.task_id, self.values)
        warnings = (*questions.warnings, *self._unreturned_changes(value, writes))
        return TaskResult(self.activation, writes, (), warnings)

    def _unreturned_changes(self, value: Any, writes: TaskWrites) -> tuple[str, ...]:
        view = self.node.function.view
        if self.state is None or value is self.state or (value.__class__ is not dict and view.is_instance(value)):
            return ()
        written, values = {name for name, _ in writes.writes}, self.values
        changed = [
            name
            for name, mine in view.values_to_compare(self.state).items()
            if name in values and name not in written and mine is not values[name] and not are_equal(mine, values[name])
        ]
        return tuple(
            f"Node {self.node.id!r} changed {name!r} in its copy of the state but did not return it, so the state is "
            f"unchanged. Write: return {{{name!r}: ...}}."
            for name in changed
        )


_NOTHING: Mapping[str, Any] = MappingProxyType({})

_ARGUMENTS: Mapping[str, Callable[[_Task], Any]] = {
    "state": _Task.make_state, "config": _Task._config,  # noqa: SLF001 - by kind
    "runtime": lambda task: _runtime_of(task.questions),
    "emit": lambda task: task.questions.emit, "store": lambda task: task.options.store, "ctx": lambda task: task.ctx,
    "fields": lambda task: task.node.function.view,
}  # fmt: skip
"""The argument for a parameter, by its kind."""


def _calls_interrupt(function: Any, seen: set[Any]) -> bool:
    """Return whether a function, or one that it calls by a name of its module, calls `interrupt()`."""
    if not inspect.isfunction(function) or function in seen:
        return False
    seen.add(function)
    function = inspect.unwrap(function)
    if function is inspect.unwrap(interrupt):
        return True
    called = [function.__globals__.get(name) for name in function.__code__.co_names]
    called += inspect.getclosurevars(function).nonlocals.values()
    return any(_calls_interrupt(function, seen) for function in called)


def _shallow(value: Any) -> Any:
    return value.copy() if isinstance(value, (list, dict, set)) else value

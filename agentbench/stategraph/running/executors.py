"""The executors of a compiled graph: one per node, and one for the input."""

from __future__ import annotations

import inspect
from asyncio import CancelledError
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from typing_extensions import is_typeddict

from agentbench._copying import isolate, register_frozen
from agentbench._secrets import masked_repr
from agentbench.exceptions import GraphError
from agentbench.messages.message import Message
from agentbench.serialization.plain import are_equal
from agentbench.stategraph.command import Command
from agentbench.stategraph.interrupts import QUESTIONS, GraphInterrupt, Interrupt, TaskQuestions, interrupt
from agentbench.stategraph.merging.state_fields import StateFields
from agentbench.stategraph.merging.updates import TaskWrites, read_return
from agentbench.stategraph.running.calls import GraphOptions
from agentbench.stategraph.running.node import NodeFunction, Runtime, collect, collect_generator
from agentbench.stategraph.running.plan import GraphPlan, NodeSpec
from agentbench.stategraph.running.routing import Activation
from agentbench.stategraph.state import AgentState, ExecutionState
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.handlers import HandlerSpec, handler

# Keys of shared state in addition to the fields.
META, PENDING, WAITING, RESUME, DONE = (f"_graph::{name}" for name in ("meta", "pending", "joins", "resume", "done"))


@dataclass(frozen=True, slots=True)
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
        state_classes = [] if self.fields.is_agent_state or is_typeddict(self.fields.cls) else [self.fields.cls]
        return [*super().input_types, *state_classes]

    def find_handler(self, data: Any) -> HandlerSpec | None:
        """Return the handler of an input in any of its forms."""
        return self._ab_handlers.specs[0] if self.fields.is_instance(data) else super().find_handler(data)

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
        self.spec = spec
        self.plan = plan
        self.function = NodeFunction(spec.name, spec.target, plan.fields)
        self.workflow = getattr(spec.target, "workflow", None)
        """The workflow that drawings show inside the node."""

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
            task = _Task(self, activation, ctx)
            QUESTIONS.set(task.questions)
            try:
                value = await collect(self.function.call(task.gets), task.gets["emit"]())
            except GraphInterrupt:
                value = None
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
                value = self.function.call(task.gets)
                if inspect.isgenerator(value):
                    value = collect_generator(value, task.gets["emit"]())
            except GraphInterrupt:
                value = None
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
    pending: Sequence[TaskResult] = ctx.get_state(PENDING) or ()
    return next((result for result in pending if result.activation.task_id == activation.task_id), None)


class _Task:
    """One activation of a node while it runs: the arguments for its parameters, and the handling of its result."""

    __slots__ = ("activation", "ctx", "gets", "node", "questions", "sent", "state", "values")

    def __init__(self, node: NodeExecutor, activation: Activation, ctx: Any) -> None:
        self.node, self.activation, self.ctx = node, activation, ctx
        self.values: Mapping[str, Any] = node.plan.values_in(ctx._run.state.committed)  # noqa: SLF001 - as below
        self.sent = None if node.plan.fields.is_agent_state else activation.arg
        """The value that `Send` passes to the node instead of the state."""
        if activation.arg is not None and self.sent is None:
            self.values = {**self.values, **activation.arg}
        answers = (ctx.get_state(RESUME) or {}).get(activation.task_id, {})
        done = self._options.record.done
        if activation.task_id not in done:
            done[activation.task_id] = {**(ctx.get_state(DONE) or {}).get(activation.task_id, {})}
        self.questions = TaskQuestions(node.id, activation.task_id, answers, done[activation.task_id])
        self.state: Any = None
        self.gets: Mapping[str, Callable[[], Any]] = {
            "state": self._state, "config": self._config, "runtime": self._runtime, "emit": lambda: self._emit,
            "store": lambda: self._options.store, "ctx": lambda: self.ctx, "fields": lambda: self.node.function.view,
        }  # fmt: skip

    @property
    def _options(self) -> GraphOptions:
        options = self.ctx.options
        return options if isinstance(options, GraphOptions) else GraphOptions()

    def _state(self) -> Any:
        plan, ctx = self.node.plan, self.ctx
        copied = deepcopy if plan.debug else isolate if plan.isolation == "deep" else _shallow
        if self.sent is not None:
            return copied(self.sent)

        def meta() -> ExecutionState:
            return ExecutionState(**{**ctx.get_state(META), "current_node": self.node.id})

        self.state = self.node.function.view.view(self.values, copied, meta, lambda: ctx.stop_requested)
        if plan.debug and plan.fields.is_agent_state:
            _ = self.state.__dict__  # copies all fields now
        return self.state

    def _config(self) -> dict[str, Any]:
        checkpoint_id = self.ctx._run.run_state.last_checkpoint_id  # noqa: SLF001 - the engine's side of the context
        return {
            **self._options.config, "node": self.node.id, "task_id": self.activation.task_id,
            "step": self.ctx.get_state(META)["step"] + 1, "checkpoint_id": checkpoint_id,
        }  # fmt: skip

    def _runtime(self) -> Runtime:
        options, step, ctx = self._options, self.ctx.get_state(META)["step"] + 1, self.ctx
        limit, used = options.config.get("recursion_limit", 0), options.record.n_supersteps + 1  # including this one
        return Runtime(
            step, max(limit - used, 0), options.config.get("thread_id"), options.config.get("run_id"), options.store,
            self._emit, lambda: ctx.stop_requested,
        )  # fmt: skip

    def _emit(self, data: Any) -> None:
        event = WorkflowEvent("custom", data, executor_id=self.node.id)
        if self.node.function.is_async:
            self.ctx._add_event(event)  # noqa: SLF001 - at once, also where nothing can be awaited
        else:
            self.ctx.add_event(event)

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
        if self.state is None or view.is_instance(value) or value is self.state:
            return ()
        written = {name for name, _ in writes.writes}
        return tuple(
            f"Node {self.node.id!r} changed {name!r} in its copy of the state but did not return it, so the state is "
            f"unchanged. Write: return {{{name!r}: ...}}."
            for name, mine in view.values_to_compare(self.state).items()
            if name in self.values and name not in written and not are_equal(mine, self.values[name])
        )


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

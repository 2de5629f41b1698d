"""`WorkflowExecutor`: a workflow as a node of another workflow."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from agentbench._bridge import call_on
from agentbench._clock import runtime_defaults
from agentbench._secrets import masked_fields, masked_repr
from agentbench._signatures import HandlerSignature, is_instance_of, type_name
from agentbench.exceptions import WorkflowBusyError
from agentbench.serialization.registry import register_type
from agentbench.workflows.builder.nodes import register_executor_adapter
from agentbench.workflows.engine.active_run import ActiveRun, RunState
from agentbench.workflows.engine.event_log import EventLog, ObservedEventLog
from agentbench.workflows.engine.run_kwargs import RUN_KWARGS, all_kwargs_inside
from agentbench.workflows.events.events import WithdrawnWarning, WorkflowEvent
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.handlers import HandlerSpec, HandlerTable, ResponseTable
from agentbench.workflows.executors.message import MessageType, WorkflowMessage
from agentbench.workflows.executors.options import RunOptions
from agentbench.workflows.executors.state import State
from agentbench.workflows.graph.edge_groups import InternalEdgeGroup
from agentbench.workflows.graph.graph import Graph
from agentbench.workflows.persist.snapshot import RUNS_INSIDE, Snapshot, restore, snapshot
from agentbench.workflows.run.execution import Execution, RunInput
from agentbench.workflows.run.workflow import Workflow

if TYPE_CHECKING:
    from agentbench.workflows.executors.message import Delivery


@dataclass(frozen=True, slots=True)
class SubWorkflowResponseMessage:
    """The response to a request of a sub-workflow; created by `SubWorkflowRequestMessage.create_response()`.

    Attributes:
        data: The response.
        source_event: The request that this responds to.

    Example:
        @handler
        async def answer(
            self, request: SubWorkflowRequestMessage, ctx: WorkflowContext[SubWorkflowResponseMessage]
        ) -> None:
            await ctx.send_message(request.create_response("Vienna"), target_id=request.executor_id)
    """

    data: Any
    source_event: WorkflowEvent[Any]

    __repr__ = masked_fields


@dataclass(frozen=True, slots=True)
class SubWorkflowRequestMessage:
    """A request of a sub-workflow, which an executor of the outer workflow handles.

    Attributes:
        source_event: The request as the sub-workflow raised it; `source_event.data` is the requested data.
        executor_id: Id of the `WorkflowExecutor`, to which the response goes.

    Example:
        >>> class Answers(Executor):
        ...     @handler
        ...     async def on_request(
        ...         self, request: SubWorkflowRequestMessage, ctx: WorkflowContext[SubWorkflowResponseMessage]
        ...     ) -> None:
        ...         await ctx.send_message(request.create_response("yes"), target_id=request.executor_id)
    """

    source_event: WorkflowEvent[Any]
    executor_id: str

    def create_response(self, data: Any) -> SubWorkflowResponseMessage:
        """Return the response with this data, to be sent to `executor_id`; `TypeError` if its type is wrong."""
        expected = self.source_event.response_type
        if not is_instance_of(data, expected):
            msg = (
                f"The response to request {self.source_event.request_id!r} of {self.executor_id!r} is "
                f"{masked_repr(data)} ({type(data).__name__}); expected {type_name(expected)}."
            )
            raise TypeError(msg)
        return SubWorkflowResponseMessage(data, self.source_event)


# ---- events of the inner run


register_type(
    SubWorkflowResponseMessage,
    "sub_workflow_response",
    lambda message: {"data": message.data, "source_event": message.source_event},
    lambda found: SubWorkflowResponseMessage(**found),
)
register_type(
    SubWorkflowRequestMessage,
    "sub_workflow_request",
    lambda message: {"source_event": message.source_event, "executor_id": message.executor_id},
    lambda found: SubWorkflowRequestMessage(**found),
)


Forward = Callable[[WorkflowEvent[Any]], None]


class _InnerLog(EventLog):
    """Calls `forward` with each event except plain progress."""

    def __init__(self, forward: Forward) -> None:
        super().__init__()
        self._forward = forward

    def append(self, event: WorkflowEvent[Any], delivery: Delivery | None = None) -> None:
        super().append(event, delivery)
        self._forward(event)


class _ObservedInnerLog(ObservedEventLog):
    """Calls `forward` with each event, and reports it to the outermost run, with the path to the outer node."""

    def __init__(
        self, forward: Forward, run: ActiveRun, path: tuple[str, ...], loop: asyncio.AbstractEventLoop | None
    ) -> None:
        super().__init__(run.run_id, run.options.clock or runtime_defaults().clock)
        self._forward = forward
        outer = run.log
        self.root: EventLog = outer
        self.path = path
        self.loop = loop
        if isinstance(outer, _ObservedInnerLog):
            self.root, self.loop = outer.root, outer.loop or loop

    def append(self, event: WorkflowEvent[Any], delivery: Delivery | None = None) -> None:
        super().append(event, delivery)
        if event._stamps is not None:  # noqa: SLF001 - as every observed log
            event._stamps.path = self.path  # noqa: SLF001
        call_on(self.loop, partial(self.root.append, WorkflowEvent("sub_workflow", event, executor_id=self.path[0])))
        self._forward(event)


def inner_log(
    run: ActiveRun, node_id: str, forward: Forward, *, call: int = 0, loop: asyncio.AbstractEventLoop | None = None
) -> EventLog:
    """Return the log of a run inside the node of `run`, observed if `run` is.

    Args:
        run: The outer run.
        node_id: The node.
        forward: Called with each event.
        call: The number of the run among those that the node itself calls.
        loop: The event loop of the outer run, if the inner run may be on another one.
    """
    if not run.log.observed:
        return _InnerLog(forward)
    path = path_inside(run, node_id)
    return _ObservedInnerLog(forward, run, (*path, str(call)) if call else path, loop)


def path_inside(run: ActiveRun, node_id: str) -> tuple[str, ...]:
    """Return the ids of the nodes around a run inside the node of `run`, outermost first."""
    return (*(run.log.path if isinstance(run.log, _ObservedInnerLog) else ()), node_id)


# ---- the node


Concurrency = Literal["queue", "isolate", "error"]

# Events of the inner run that are also events of the node.
_PASSED_ON = ("intermediate", "warning")


@dataclass(slots=True, eq=False)
class _InnerRun:
    """One run of the inner workflow; `responses` are collected until all its requests have one."""

    graph: Graph
    run_state: RunState
    responses: dict[str, Any] = field(default_factory=dict)


class WorkflowExecutor(Executor):
    """A workflow as a node of another workflow, to any depth.

    Each message starts a run of the inner workflow. Its outputs are sent to the next nodes, or yielded out of the outer
    workflow. Its intermediate outputs are intermediate outputs of this node.

    Its requests are sent as `SubWorkflowRequestMessage`s to an executor that responds to them, which needs an edge in
    each direction. With `propagate_request` they become requests of the outer workflow, for people, with the same ids.
    The inner run continues when all its requests are answered.

    A checkpoint of the outer workflow contains the complete state of the inner one. Observed runs report every event of
    the inner run as it is emitted: as data of a `sub_workflow` event, whose `path` has the ids of the nodes around it.

    Args:
        workflow: The inner workflow. Its runs here have their own state, which `workflow.run()` does not see.
        id: A unique id in the outer workflow.
        allow_direct_output: Yield its outputs instead of sending them on. None: if no edge leads from this node.
        propagate_request: Pass its requests to the caller of the outer workflow.
        concurrency: How to treat messages that arrive together: run them one after the other in one shared state
            (`"queue"`), each on a deep copy of the workflow (`"isolate"`), or raise `WorkflowBusyError` (`"error"`).
        settings: Arguments of `Executor`, such as `timeout`.

    Raises:
        TypeError: The first argument is not a workflow.
        ValueError: The `concurrency` is unknown, or the id is empty.

    Example:
        >>> inner = WorkflowBuilder(start_executor=draft).add_edge(draft, check).build()
        >>> review = WorkflowExecutor(inner, id="review", propagate_request=True)
        >>> outer = WorkflowBuilder(start_executor=review).add_edge(review, publish).build()
    """

    signature_key: ClassVar[str | None] = "WorkflowExecutor"

    def __init__(
        self,
        workflow: Workflow,
        id: str,  # noqa: A002 - the published name
        allow_direct_output: bool | None = False,
        propagate_request: bool = False,
        *,
        concurrency: Concurrency = "queue",
        **settings: Any,
    ) -> None:
        super().__init__(id, defer_discovery=True, **settings)
        given: object = workflow
        if not isinstance(given, Workflow):
            msg = (
                f"{given!r} is of type {type(given).__name__}, not a Workflow. Expected the result of build() of a "
                "WorkflowBuilder; an agent is a node without this class, and so is the result of as_agent()."
            )
            raise TypeError(msg)
        if concurrency not in get_args(Concurrency):
            msg = f"concurrency is {concurrency!r}; expected one of {', '.join(map(repr, get_args(Concurrency)))}."
            raise ValueError(msg)
        self.workflow = workflow
        self.allow_direct_output = allow_direct_output
        self.propagate_request = propagate_request
        self.concurrency = concurrency
        self.serialize = concurrency == "queue"
        taken = [t for t in workflow.input_types if t is not SubWorkflowResponseMessage]
        respond = HandlerSpec("respond", WorkflowExecutor._ab_on_response, _signature(SubWorkflowResponseMessage))
        runs = [HandlerSpec("run", WorkflowExecutor._ab_on_message, _signature(t)) for t in taken]
        self._ab_handlers = HandlerTable([respond, *runs], f"WorkflowExecutor {id!r}")
        if propagate_request:
            propagated = HandlerSpec("respond", WorkflowExecutor._ab_on_propagated_response, _signature(object))
            self._ab_responses = ResponseTable([propagated], f"WorkflowExecutor {id!r}")
        self._ab_drop_runs()

    def _ab_drop_runs(self) -> None:
        self._ab_state = State()
        """Shared state of all inner runs, unless they are isolated."""
        self._ab_waiting: list[_InnerRun] = []
        """Inner runs with open requests."""
        self._ab_before: dict[_InnerRun, tuple[Snapshot, dict[str, Any]]] = {}
        """The earlier form of runs that were answered in the superstep of this number, in case it is rolled back."""
        self._ab_before_in: int | None = None
        self._ab_rolled_back: dict[_InnerRun, tuple[Snapshot, dict[str, Any]]] = {}
        """The runs of a superstep that was rolled back, until they are restored."""
        self._ab_driven: Execution | None = None

    # ---- queries of the graph -----------------------------------------------------------------------

    @property
    def output_types(self) -> list[Any]:
        """The output types of the inner workflow, and its requests if it can have any."""
        return [*self.workflow.output_types, *([SubWorkflowRequestMessage] if self._ab_can_request else [])]

    @property
    def workflow_output_types(self) -> list[Any]:
        """The type of any value."""
        return [Any]

    @property
    def _ab_can_request(self) -> bool:
        executors = self.workflow.executors.values()
        return self.workflow.graph.driver is not None or any(e.is_request_response_capable for e in executors)

    @property
    def is_request_response_capable(self) -> bool:
        """Whether requests of the inner workflow become requests of this node."""
        return self.propagate_request and self._ab_can_request

    @property
    def asks_person(self) -> bool:
        """Whether an inner executor asks a person, and its requests become requests of this node."""
        executors = self.workflow.executors.values()
        inside = self.workflow.graph.driver is not None or any(each.asks_person for each in executors)
        return self.propagate_request and inside

    def can_handle(self, message: WorkflowMessage) -> bool:
        """Return whether the inner workflow takes this message, or waits for this response."""
        request = message.original_request_info_event
        if message.type is not MessageType.RESPONSE or request is None:
            return super().can_handle(message)
        open_requests = [inner.run_state.requests for inner in self._ab_waiting]
        open_requests += [before.requests for before, _ in self._ab_rolled_back.values()]
        return self.propagate_request and any(request.request_id in requests for requests in open_requests)

    def find_response_handler(self, request: Any, answer: Any) -> HandlerSpec | None:
        """Return the handler that passes a response, or the withdrawal of a request, to the inner run."""
        return self._ab_responses.find(request, answer)

    def fresh(self) -> WorkflowExecutor:
        """Return the same node without earlier runs, over a clone of the inner workflow."""
        clone = copy.copy(self)
        clone.workflow = self.workflow.clone()
        clone._ab_drop_runs()  # noqa: SLF001 - its own class
        return clone

    def to_dict(self) -> dict[str, Any]:
        """Return id, type, and the definition of the inner workflow."""
        return {**super().to_dict(), "workflow": self.workflow.to_dict()}

    # ---- handlers ----------------------------------------------------------------------------------

    async def _ab_on_message(self, data: Any, ctx: Any) -> None:
        await self._ab_drive(self._ab_new_run(self._ab_state), ctx, message=data)

    def _ab_new_run(self, shared: State) -> _InnerRun:
        if self.concurrency == "isolate":
            return _InnerRun(self.workflow.clone(copy_executors=True).graph, RunState())
        return _InnerRun(self.workflow.graph, RunState(shared))

    async def _ab_on_response(self, response: SubWorkflowResponseMessage, ctx: Any) -> None:
        await self._ab_respond(response.source_event.request_id, response.data, ctx)

    async def _ab_on_propagated_response(self, _: Any, response: Any, ctx: Any) -> None:
        await self._ab_respond(ctx.request_id, response, ctx)

    async def _ab_respond(self, request_id: str, response: Any, ctx: Any) -> None:
        await self._ab_put_back()
        inner = self._ab_find_waiting(request_id)
        if inner is None:
            text = f"The response to request {request_id!r} is ignored: no run inside {self.id!r} waits for it."
            await ctx.add_event(WorkflowEvent.warning(text, self.id))
            return
        responses = dict(inner.responses)
        inner.responses[request_id] = response
        if inner.responses.keys() < inner.run_state.requests.keys():
            return
        before = await snapshot(inner.graph, inner.run_state)
        try:
            await self._ab_drive(inner, ctx, responses=inner.responses)
        except BaseException:
            # The outer request is open again, so it arrives here. If it was handled already, the inner nodes keep their
            # work.
            if not before.requests.keys() <= inner.run_state.requests.keys():
                await restore(inner.graph, inner.run_state, before)
            raise
        superstep = ctx._run.run_state.superstep  # noqa: SLF001 - the engine's side of the context
        if superstep != self._ab_before_in:
            self._ab_before, self._ab_before_in = {}, superstep
        self._ab_before[inner] = before, responses

    def _ab_find_waiting(self, request_id: str) -> _InnerRun | None:
        return next((inner for inner in self._ab_waiting if request_id in inner.run_state.requests), None)

    def on_rolled_back(self, open_requests: Mapping[str, WorkflowEvent[Any]]) -> None:
        """Let the runs whose requests are open again wait again."""
        if not self.propagate_request:
            return
        for inner, (before, responses) in self._ab_before.items():
            if not open_requests.keys().isdisjoint(before.requests):
                self._ab_rolled_back[inner] = before, responses
        self._ab_before = {}
        for inner in self._ab_waiting:
            for request_id in open_requests.keys() & inner.responses.keys():
                del inner.responses[request_id]
        self._ab_waiting = [
            inner
            for inner in self._ab_waiting
            if inner.responses or not open_requests.keys().isdisjoint(inner.run_state.requests)
        ]
        graph, still_open = self.workflow.graph, dict[str, WorkflowEvent[Any]]()
        for inner in self._ab_waiting:
            still_open.update(inner.run_state.requests if inner.graph is graph else {})
        for executor in graph.executors.values():
            executor.on_rolled_back(
                {key: one for key, one in still_open.items() if one.source_executor_id == executor.id}
            )

    def count_unanswered(self) -> int:
        """Return how many requests of the inner workflow wait for a response, including those nested deeper."""
        waiting = sum(len(inner.run_state.requests.keys() - inner.responses.keys()) for inner in self._ab_waiting)
        graphs = {id(graph): graph for graph in (self.workflow.graph, *(inner.graph for inner in self._ab_waiting))}
        nodes = (node for graph in graphs.values() for node in graph.executors.values())
        return waiting + sum(node.count_unanswered() for node in nodes)

    async def _ab_put_back(self) -> None:
        rolled_back, self._ab_rolled_back = self._ab_rolled_back, {}
        for inner, (before, responses) in rolled_back.items():
            await restore(inner.graph, inner.run_state, before)
            inner.responses = {key: one for key, one in responses.items() if key in inner.run_state.requests}
            self._ab_waiting = [*(one for one in self._ab_waiting if one is not inner), inner]

    async def _ab_drive(self, inner: _InnerRun, ctx: Any, **arguments: Any) -> None:
        """Run the inner workflow to its end, then raise the requests that it left open."""
        is_running = self._ab_driven is not None and not self._ab_driven.break_off_if_lost()
        if self.concurrency == "error" and is_running:
            msg = (
                f"The workflow inside {self.id!r} is already running. Use concurrency='queue' to run "
                "messages that arrive together one after the other, or 'isolate' to run them concurrently."
            )
            raise WorkflowBusyError(msg)
        execution, inner_steps = self._ab_execution(inner, ctx, arguments), ctx._run.inner_steps  # noqa: SLF001
        self._ab_driven, execution.loop = execution, asyncio.get_running_loop()
        try:
            if inner_steps is None:
                await execution.run_to_end()
            else:
                execution.run.inner_steps, path = inner_steps, path_inside(ctx._run, self.id)  # noqa: SLF001
                while await execution.advance():
                    await inner_steps.wait(path, execution.run.run_state.superstep)
        finally:
            self._ab_driven = None
        inner.responses.clear()
        is_known, requests = inner in self._ab_waiting, inner.run_state.requests
        if is_known and not requests:
            self._ab_waiting.remove(inner)
        elif requests and not is_known:
            self._ab_waiting.append(inner)
        for event in list(requests.values()):
            if self.propagate_request:
                await ctx.request_info(event.data, event.response_type, request_id=event.request_id)
            else:
                self._ab_send(SubWorkflowRequestMessage(event, self.id), ctx)

    def _ab_execution(self, inner: _InnerRun, ctx: Any, arguments: Mapping[str, Any]) -> Execution:
        """Return the inner run, whose outputs become those of this node as they are emitted."""
        run: ActiveRun = ctx._run  # noqa: SLF001 - the engine's side of the context
        is_direct = not self._ab_leads_on(run) if self.allow_direct_output is None else self.allow_direct_output

        options = self._ab_options(run)

        def forward(event: WorkflowEvent[Any]) -> None:
            if event.type == "output":
                value = self._ab_output(event.data, options, arguments.get("message"))
                if is_direct:
                    ctx._yield(value)  # noqa: SLF001 - as above
                else:
                    self._ab_send(value, ctx)
            elif event.type in _PASSED_ON and not isinstance(event.data, WithdrawnWarning):
                again = WorkflowEvent(event.type, event.data, origin=event.origin, executor_id=self.id)
                run.log.append(again, ctx._delivery)  # noqa: SLF001 - as above

        kwargs = all_kwargs_inside(run.state.get(RUN_KWARGS), self.id, inner.graph.executors)
        return Execution(
            inner.graph,
            inner.run_state,
            RunInput(storage=self.workflow.storage, kwargs=kwargs, tools=run.tools, **arguments),
            options,
            log=inner_log(run, self.id, forward),
            run_id=run.run_id,
            traced_as=None if run.tracer is None else self.workflow.id,
            streaming=run.streaming,
        )

    def _ab_options(self, run: ActiveRun) -> RunOptions:
        """Return the options of the inner run."""
        return RunOptions(clock=run.options.clock, ids=run.options.ids, workers=run.options.workers)

    def _ab_output(self, data: Any, options: RunOptions, message: Any) -> Any:
        """Return the value that this node yields for an output of the inner run that `message` began."""
        return data

    def _ab_send(self, message: Any, ctx: Any) -> None:
        ctx._send(message, None)  # noqa: SLF001 - the engine's side of the context
        if self._ab_leads_on(ctx._run):  # noqa: SLF001 - as above
            return
        is_request = isinstance(message, SubWorkflowRequestMessage)
        keyword = "propagate_request" if is_request else "allow_direct_output"
        text = (
            f"The workflow inside {self.id!r} {'raised a request' if is_request else 'yielded a value'} that no "
            f"executor takes: no edge leads from {self.id!r}. Add one, or set {keyword}=True on the node."
        )
        ctx._run.log.warn_once(("untaken", self.id, is_request), self.id, text)  # noqa: SLF001 - as above

    def _ab_leads_on(self, run: ActiveRun) -> bool:
        groups = (group for group in run.graph.edge_groups if not isinstance(group, InternalEdgeGroup))
        return any(self.id in group.source_executor_ids for group in groups)

    # ---- checkpoints -------------------------------------------------------------------------------

    async def on_checkpoint_save(self) -> dict[str, Any]:
        """Return the complete state of the inner workflow, for each run that waits for responses."""
        await self._ab_put_back()
        contexts = {
            str(number): {**await _take_snapshot(inner.graph, inner.run_state), "responses": dict(inner.responses)}
            for number, inner in enumerate(self._ab_waiting)
        }
        if contexts or self.concurrency == "isolate":
            return {RUNS_INSIDE: contexts}
        return {
            RUNS_INSIDE: {},
            "workflow": await _take_snapshot(self.workflow.graph, RunState(self._ab_state)),
        }

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        """Restore the result of `on_checkpoint_save`."""
        shared, waiting = State(), []
        if "workflow" in state:
            await restore(self.workflow.graph, RunState(shared), Snapshot(**state["workflow"]))
        for saved in state[RUNS_INSIDE].values():
            inner = self._ab_new_run(shared)
            parts = dict(saved)
            inner.responses.update(parts.pop("responses"))
            await restore(inner.graph, inner.run_state, Snapshot(**parts))
            waiting.append(inner)
        self._ab_state, self._ab_waiting = shared, waiting


async def _take_snapshot(graph: Graph, run_state: RunState) -> dict[str, Any]:
    saved = await snapshot(graph, run_state)
    return {field.name: getattr(saved, field.name) for field in fields(saved)}


def _signature(message_type: Any) -> HandlerSignature:
    return HandlerSignature(
        message_type, can_send=True, can_yield=True, request_type=object, response_type=message_type
    )


def _as_node(workflow: Workflow, *, agent_mode: object = None) -> WorkflowExecutor:
    """Return the node for a bare workflow, which uses whatever its position in the graph allows."""
    return WorkflowExecutor(workflow, workflow.name, allow_direct_output=None, propagate_request=True)


register_executor_adapter(Workflow, _as_node)

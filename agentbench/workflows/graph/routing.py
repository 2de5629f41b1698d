"""Which deliveries the next superstep consists of: messages and edge groups in, a plan out.

Evaluating conditions is separate from planning: `decide` awaits the user's conditions and selection functions;
`route` and `Router.plan` are pure functions of messages, buffers and those verdicts. Tables are built once per graph.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from enum import Enum
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_origin

from agentbench._copying import isolate_or_same
from agentbench._signatures import decided_by_class
from agentbench.exceptions import GraphConnectivityError
from agentbench.workflows.executors.host import by_hand
from agentbench.workflows.executors.message import WORKFLOW_SOURCE, Buffers, Delivery, MessageType, WorkflowMessage
from agentbench.workflows.graph.edge_groups import EdgeGroup, FanInEdgeGroup, InternalEdgeGroup, ResolvedFanInMode
from agentbench.workflows.graph.selection import FanOutEdgeGroup, SwitchCaseEdgeGroup

if TYPE_CHECKING:
    from agentbench.workflows.executors.executor import Executor
    from agentbench.workflows.executors.handlers import HandlerSpec
    from agentbench.workflows.executors.host import RunnerContext
    from agentbench.workflows.executors.state import State


class EdgeGroupDeliveryStatus(Enum):
    """The outcome of a message at one edge group; the text is the value.

    Example:
        from agentbench import EdgeGroupDeliveryStatus

        assert EdgeGroupDeliveryStatus.DELIVERED.name == "DELIVERED"
    """

    DELIVERED = "delivered"
    DROPPED_TYPE_MISMATCH = "dropped type mismatch"
    DROPPED_TARGET_MISMATCH = "dropped target mismatch"
    DROPPED_CONDITION_FALSE = "dropped condition evaluated to false"
    EXCEPTION = "exception"
    BUFFERED = "buffered"

    def __str__(self) -> str:
        return self.value


DELIVERED = EdgeGroupDeliveryStatus.DELIVERED
TYPE_MISMATCH = EdgeGroupDeliveryStatus.DROPPED_TYPE_MISMATCH
TARGET_MISMATCH = EdgeGroupDeliveryStatus.DROPPED_TARGET_MISMATCH
CONDITION_FALSE = EdgeGroupDeliveryStatus.DROPPED_CONDITION_FALSE
BUFFERED = EdgeGroupDeliveryStatus.BUFFERED

# Bound here because enum members are slow to read before Python 3.12, and this is compared for each message.
_STANDARD = MessageType.STANDARD

NO_EDGE = "no outgoing edge"
"""Reason of a drop without an edge group."""

Routed = list[Delivery] | EdgeGroupDeliveryStatus


# Plain classes, because a dataclass is compiled at import, which takes half a millisecond of every first run.


class Verdict:
    """The result of a condition or selection function for one message."""

    __slots__ = ("condition", "result", "targets", "warnings")

    def __init__(
        self, targets: Sequence[str], condition: str | None, result: Any, warnings: Sequence[str] = ()
    ) -> None:
        self.targets, self.condition = targets, condition
        self.result, self.warnings = result, warnings


class EdgeRunner:
    """Routes messages over one edge group, the one at position `index` in the graph.

    Example:
        runner = create_edge_runner(edge_group, executors)
        delivered = await runner.send_message(message, state, ctx)
    """

    has_conditions = False
    """Whether a condition or selection function decides, so that `decide` must be awaited before `route`."""

    def __init__(self, group: EdgeGroup, executors: Mapping[str, Executor], index: int = 0) -> None:
        self.group = group
        self.index = index
        self.sources: tuple[str, ...] = tuple(group.source_executor_ids)
        self.ranks = {source: place for place, source in enumerate(self.sources)}
        """Position of each source in the group."""
        unknown = [i for i in group.target_executor_ids if i not in executors]
        if unknown:  # only in a graph that was built by hand
            msg = f"{group!r} leads to {unknown}, but the executors are {list(executors)}. Add the missing executors."
            raise GraphConnectivityError(msg)
        self.targets: dict[str, Executor] = {i: executors[i] for i in group.target_executor_ids}

    async def decide(self, message: WorkflowMessage) -> Verdict | None:
        """Call the user's functions that decide where the message goes; None if there is nothing to call."""
        return None

    def route(self, message: WorkflowMessage, verdict: Verdict | None, buffers: Buffers) -> Routed:
        """Return the deliveries for one message, or the reason for dropping it. May add to `buffers`."""
        raise NotImplementedError

    async def send_message(self, message: WorkflowMessage, state: State, ctx: RunnerContext) -> bool:
        """Route one message and run the handlers that it reaches, outside a workflow; False if no target takes it."""
        delivered: bool = await by_hand().route(self, message, state, ctx)
        return delivered


def find_handler(target: Executor, message: WorkflowMessage) -> HandlerSpec | None:
    """Return the handler of `target` for this message, which may be a response."""
    if message.type is _STANDARD:
        return target.find_handler(message.data)
    request = message.original_request_info_event
    # A boundary hook sends over the internal edge too; without a request, the message is an ordinary one.
    return None if request is None else target.find_response_handler(request.data, message.data)


def _delivery(target: Executor, message: WorkflowMessage) -> Delivery | None:
    spec = find_handler(target, message)
    if spec is None:
        return None
    return Delivery(target, spec, message.data, (message.source_id,), (message,), message.original_request_info_event)


class SingleEdgeRunner(EdgeRunner):
    """One edge, with or without a condition."""

    def __init__(self, group: EdgeGroup, executors: Mapping[str, Executor], index: int = 0) -> None:
        super().__init__(group, executors, index)
        self.edge = group.edges[0]
        self.target = executors[self.edge.target_id]
        self.has_conditions = self.edge.condition is not None

    async def decide(self, message: WorkflowMessage) -> Verdict | None:
        """Call the condition, but only with data that the target could take."""
        target = self.target
        if message.target_id not in (None, target.id) or find_handler(target, message) is None:
            return None
        passed = await self.edge.should_route(message.data)
        return Verdict([target.id] if passed else [], self.edge.condition_name, passed)

    def route(self, message: WorkflowMessage, verdict: Verdict | None, buffers: Buffers) -> Routed:
        """Return one delivery, or the reason for dropping the message."""
        target = self.target
        if message.target_id is not None and message.target_id != target.id:
            return TARGET_MISMATCH
        delivery = _delivery(target, message)
        if delivery is None:
            return TYPE_MISMATCH
        if verdict is not None and not verdict.targets:
            return CONDITION_FALSE
        return [delivery]


class FanOutEdgeRunner(EdgeRunner):
    """One source, several targets: all of them, those that a function selects, or the one of a switch."""

    group: FanOutEdgeGroup

    def __init__(self, group: FanOutEdgeGroup, executors: Mapping[str, Executor], index: int = 0) -> None:
        super().__init__(group, executors, index)
        self.has_conditions = group.selection_func is not None

    async def decide(self, message: WorkflowMessage) -> Verdict | None:
        """Call the selection function, or the conditions of the cases."""
        group = self.group
        if message.target_id is not None and message.target_id not in self.targets:
            return None
        if isinstance(group, SwitchCaseEdgeGroup):
            target_id, case_name, warnings = await group.select(message.data)
            return Verdict([target_id], case_name, target_id, warnings)
        selected = await group.select(message.data)
        return Verdict(selected, group.selection_func_name, list(selected))

    def route(self, message: WorkflowMessage, verdict: Verdict | None, buffers: Buffers) -> Routed:
        """Return a delivery for every selected target that can take the message."""
        targets = self.targets
        wanted: Collection[str] = targets if verdict is None else verdict.targets
        if message.target_id is not None:
            if message.target_id not in targets or message.target_id not in wanted:
                return TARGET_MISMATCH
            wanted = (message.target_id,)
        if not wanted:
            return CONDITION_FALSE
        data, sources, messages = message.data, (message.source_id,), (message,)
        request = message.original_request_info_event
        specs = [(targets[i], find_handler(targets[i], message)) for i in wanted]
        deliveries = [Delivery(t, spec, data, sources, messages, request) for t, spec in specs if spec is not None]
        if self.group.copies:
            for delivery in deliveries:
                delivery.data = self._copy(data)
        return deliveries or TYPE_MISMATCH

    def _copy(self, data: Any) -> Any:
        try:
            return deepcopy(data)
        except Exception as error:
            error.add_note(f"Raised by {self.group!r}, which copies a {type(data).__name__} for each target.")
            raise


class FanInEdgeRunner(EdgeRunner):
    """Several sources, one target: each message separately, or all sources collected in one list."""

    group: FanInEdgeGroup

    def __init__(self, group: FanInEdgeGroup, executors: Mapping[str, Executor], index: int = 0) -> None:
        super().__init__(group, executors, index)
        self.target = executors[group.target_executor_ids[0]]
        self.mode = group.resolved_mode
        self.key = buffer_key(group)
        self._accepted: dict[type, bool] | None = None
        """Whether a list of such items fits, by item class; None if the class alone does not decide."""
        types = [get_args(t)[0] if get_origin(t) is list else t for t in self.target.input_types]
        if all(map(decided_by_class, types)):
            self._accepted = {}

    def route(self, message: WorkflowMessage, verdict: Verdict | None, buffers: Buffers) -> Routed:
        """Deliver the message itself, or the whole list once every source has sent."""
        target = self.target
        if message.target_id is not None and message.target_id != target.id:
            return TARGET_MISMATCH
        # If the declared types leave it open, each message decides for itself, so that tables can be shared.
        mode = self.mode or self._mode_for(message.data)
        if mode == "independent":
            delivery = _delivery(target, message)
            return TYPE_MISMATCH if delivery is None else [delivery]
        if mode is None or not self._accepts_item(message.data):
            return TYPE_MISMATCH
        waiting = buffers.get(self.key)
        if waiting is None:
            waiting = buffers[self.key] = {}
        waiting.setdefault(message.source_id, []).append(message)
        if len(waiting) < len(self.sources):
            return BUFFERED
        del buffers[self.key]
        messages = tuple(m for source in self.sources for m in waiting[source])
        data = [m.data for m in messages]
        # If no handler takes the whole list, the delivery fails, like any input that no handler takes.
        return [Delivery(target, target.find_handler(data), data, self.sources, messages)]

    def _mode_for(self, data: Any) -> ResolvedFanInMode | None:
        alone, in_a_list = self.target.find_handler(data) is not None, self.target.find_handler([data]) is not None
        if in_a_list and (self.group.prefers_barrier or not alone):
            return "barrier"
        return "independent" if alone else None

    def _accepts_item(self, data: Any) -> bool:
        accepted = None if self._accepted is None else self._accepted.get(data.__class__)
        if accepted is None:
            accepted = self.target.find_handler([data]) is not None
            if self._accepted is not None:
                self._accepted[data.__class__] = accepted
        return accepted


def buffer_key(group: FanInEdgeGroup) -> str:
    """Return the name of a barrier's buffer in checkpoints: kind, sorted sources, target; not the random group id."""
    return fan_in_key(group.source_executor_ids, group.target_executor_ids[0])


def fan_in_key(sources: Collection[str], target: str) -> str:
    """Return the name of the buffer of a barrier with these sources and this target."""
    return f"fan_in:{','.join(sorted(sources))}->{target}"


def copy_buffers(buffers: Buffers) -> Buffers:
    """Return a copy whose lists may be changed; the messages are shared."""
    return {key: {source: list(queued) for source, queued in waiting.items()} for key, waiting in buffers.items()}


def create_edge_runner(edge_group: EdgeGroup, executors: Mapping[str, Executor], index: int = 0) -> EdgeRunner:
    """Return the runner for an edge group; `ValueError` if no runner supports its kind.

    Example:
        runner = create_edge_runner(edge_group, executors)
        delivered = await runner.send_message(message, state, ctx)
    """
    if isinstance(edge_group, FanOutEdgeGroup):
        return FanOutEdgeRunner(edge_group, executors, index)
    if isinstance(edge_group, FanInEdgeGroup):
        return FanInEdgeRunner(edge_group, executors, index)
    if len(edge_group.edges) == 1:
        return SingleEdgeRunner(edge_group, executors, index)
    msg = (
        f"There is no routing for {type(edge_group).__name__} with {len(edge_group.edges)} edges. Derive it from "
        "SingleEdgeGroup, FanOutEdgeGroup, FanInEdgeGroup or SwitchCaseEdgeGroup."
    )
    raise ValueError(msg)


Lanes = list[list[list[Delivery]]]


class Drop(NamedTuple):
    """A message that an edge group did not deliver."""

    message: WorkflowMessage
    reason: str
    targets: Sequence[str]


class PlanNotes:
    """The facts to report about a plan."""

    __slots__ = ("drops", "outcomes", "verdicts")

    def __init__(self) -> None:
        self.drops: list[Drop] = []
        self.verdicts: list[tuple[str, Verdict]] = []
        """Results of conditions and selection functions, with the sender."""
        self.outcomes: list[tuple[EdgeRunner, WorkflowMessage, EdgeGroupDeliveryStatus]] = []
        """The outcome of each message at each edge group, for tracing."""


class Plan:
    """The deliveries of one superstep, in plan order."""

    __slots__ = ("buffers", "deliveries", "lanes", "notes")

    def __init__(self, deliveries: list[Delivery]) -> None:
        self.deliveries = deliveries
        self.lanes: Lanes | None = None
        """The order of concurrent work if some of it has to wait: a lane is a sequence of batches; lanes run
        concurrently, and so do the deliveries in a batch. None if all deliveries run concurrently.
        """
        self.buffers: Buffers | None = None
        """Fan-in buffers after this superstep, None if they do not change."""
        self.notes: PlanNotes | None = None
        """The facts to report, None if there are none."""

    def executor_ids(self) -> list[str]:
        """Return the ids of the executors that the plan calls, each once."""
        deliveries = self.deliveries
        if len(deliveries) == 1:
            return [deliveries[0].executor_id]
        return list(dict.fromkeys([delivery.executor_id for delivery in deliveries]))

    def notes_or_new(self) -> PlanNotes:
        """Return the notes, created on first use."""
        if self.notes is None:
            self.notes = PlanNotes()
        return self.notes


Messages = Mapping[str, Sequence[WorkflowMessage]]
Verdicts = Mapping[tuple[int, int], Verdict | None]

_NO_VERDICTS: Verdicts = {}


class Router:
    """Routing tables of one graph; with `copy_messages`, every delivery gets its own copy of the data."""

    def __init__(
        self,
        edge_groups: Sequence[EdgeGroup],
        executors: Mapping[str, Executor],
        *,
        starts: Sequence[str] = (),
        copy_messages: bool = False,
    ) -> None:
        self._copies = copy_messages
        self._starts = [executors[i] for i in starts]
        self._routes: dict[str, list[EdgeRunner]] = {}
        self._conditional: set[str] = set()
        self._lone_edges: dict[str, EdgeRunner] = {}
        """The only edge from a source, if it has no condition."""
        if starts:  # input that arrives during a run
            self._routes[WORKFLOW_SOURCE] = [SingleEdgeRunner(InternalEdgeGroup(i), executors, -1) for i in starts]
        for index, group in enumerate(edge_groups):
            runner = create_edge_runner(group, executors, index)
            for source in runner.sources:
                self._routes.setdefault(source, []).append(runner)
                if runner.has_conditions:
                    self._conditional.add(source)
        for source, (runner, *others) in self._routes.items():
            if not others and runner.__class__ is SingleEdgeRunner and not runner.has_conditions:
                self._lone_edges[source] = runner

    def plan_start(self, data: Any) -> Plan:
        """Return the plan of superstep 0: each start executor gets the input."""
        plan = Plan([])
        for order, start in enumerate(self._starts):
            delivery = Delivery(start, start.find_handler(data), data, (WORKFLOW_SOURCE,))
            delivery.order = order
            plan.deliveries.append(delivery)
        return plan

    def has_conditions_for(self, messages: Messages) -> bool:
        """Whether a condition or selection function decides about these messages."""
        return not self._conditional.isdisjoint(messages)

    async def decide(self, messages: Messages) -> Verdicts:
        """Call all conditions and selection functions, in plan order."""
        verdicts: dict[tuple[int, int], Verdict | None] = {}
        for _, _, runner, sent in self._entries(messages):
            if runner.has_conditions:
                for message in sent:
                    verdicts[runner.index, id(message)] = await runner.decide(message)
        return verdicts

    def plan(
        self, messages: Messages, buffers: Buffers, verdicts: Verdicts = _NO_VERDICTS, *, traced: bool = False
    ) -> Plan:
        """Plan a superstep: edge groups in build order, then messages in sending order. Arguments stay unchanged."""
        if len(messages) == 1 and not traced and (lone := self._plan_lone(messages, buffers)) is not None:
            return lone
        return self._plan_all(messages, buffers, verdicts, traced=traced)

    def _plan_all(self, messages: Messages, buffers: Buffers, verdicts: Verdicts, *, traced: bool) -> Plan:
        plan, lanes = Plan([]), []
        for _, _, runner, sent in self._entries(messages):
            lane: list[list[Delivery]] = []
            if plan.buffers is None and runner.__class__ is FanInEdgeRunner:
                buffers = plan.buffers = copy_buffers(buffers)
            for message in sent:
                verdict = verdicts.get((runner.index, id(message))) if runner.has_conditions else None
                if verdict is not None:
                    plan.notes_or_new().verdicts.append((message.source_id, verdict))
                routed = runner.route(message, verdict, buffers)
                if traced:
                    status = routed if isinstance(routed, EdgeGroupDeliveryStatus) else DELIVERED
                    plan.notes_or_new().outcomes.append((runner, message, status))
                if routed.__class__ is list:
                    lane.append(routed)
                elif routed is not BUFFERED:
                    plan.notes_or_new().drops.append(Drop(message, str(routed), list(runner.targets)))
            if lane:
                lanes.append(lane)
        if not messages.keys() <= self._routes.keys():
            nowhere = [sent for source, sent in messages.items() if source not in self._routes]
            plan.notes_or_new().drops += [Drop(message, NO_EDGE, ()) for sent in nowhere for message in sent]
        _fill(plan, lanes, copies=self._copies)
        return plan

    def _plan_lone(self, messages: Messages, buffers: Buffers) -> Plan | None:
        """Plan the delivery of the only message over the only edge; None in all other cases."""
        ((source, sent),) = messages.items()
        edge = self._lone_edges.get(source)
        if edge is None or len(sent) > 1 or self._copies:
            return None
        routed = edge.route(sent[0], None, buffers)
        return Plan(routed) if isinstance(routed, list) else None

    def _entries(self, messages: Messages) -> list[tuple[int, int, EdgeRunner, Sequence[WorkflowMessage]]]:
        if len(messages) == 1:
            ((source, sent),) = messages.items()
            return [(0, 0, runner, sent) for runner in self._routes.get(source, ())]
        entries = [
            (runner.index, runner.ranks.get(source, 0), runner, sent)
            for source, sent in messages.items()
            for runner in self._routes.get(source, ())
        ]
        entries.sort(key=itemgetter(0, 1))
        return entries


def _fill(plan: Plan, lanes: Lanes, *, copies: bool) -> None:
    """List the deliveries in order and number them."""
    if len(lanes) == 1 and len(lanes[0]) == 1:
        plan.deliveries = lanes[0][0]
    else:
        plan.deliveries = [d for lane in lanes for batch in lane for d in batch]
    if len(plan.deliveries) > 1:
        if any(len(lane) > 1 for lane in lanes):
            plan.lanes = lanes
        counts: dict[str, int] = {}
        for order, delivery in enumerate(plan.deliveries):
            delivery.order = order
            delivery.nth = counts.get(delivery.executor_id, 0)
            counts[delivery.executor_id] = delivery.nth + 1
    if copies:
        for delivery in plan.deliveries:
            delivery.data = isolate_or_same(delivery.data)

"""A state graph's work between two supersteps: merge the nodes' results, choose the next nodes, or pause."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from agentbench._copying import isolate
from agentbench._display import shorten
from agentbench.checkpoints import metadata as keys
from agentbench.exceptions import (
    ExecutorTimeoutError,
    GraphError,
    InvalidUpdateError,
    NodeError,
    NodeTimeoutError,
    StateValidationError,
)
from agentbench.messages.message import Message
from agentbench.stategraph.interrupts import BreakpointRequest, Continue, Interrupt, interrupt_data
from agentbench.stategraph.merging.state_fields import StateFields
from agentbench.stategraph.merging.updates import MergedState, TaskWrites, merge, merge_finished, read_input
from agentbench.stategraph.running.executors import DONE, META, PENDING, RESUME, WAITING, TaskResult, runtime_for
from agentbench.stategraph.running.plan import GraphPlan, StateChanges, graph_options, node_config
from agentbench.stategraph.running.routing import Activation, Routed, Waiting, route
from agentbench.stategraph.state import END, START, ExecutionState
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.message import DeliveryView
from agentbench.workflows.graph.boundary import (
    BoundaryCheckpoint,
    BoundaryOutcome,
    FailurePolicy,
    PauseReason,
    SuperstepView,
)
from agentbench.workflows.run.first_input import stored_input

Frontier = Sequence[tuple[str, Activation]]


class GraphHook:
    """Drives the engine for one state graph. All data between supersteps is in shared state, none in this object."""

    failure_policy: FailurePolicy = "finish"
    reachability = False

    def __init__(self, plan: GraphPlan) -> None:
        self.plan = plan
        self.max_concurrency = plan.max_concurrency
        if plan.durability == "task":
            self.on_delivery = self._keep_results

    def signature(self) -> dict[str, Any]:
        """Return the parts on which saved threads depend: nodes, edges, joins and deferred nodes."""
        plan = self.plan
        return {
            "nodes": [*plan.nodes],
            "joins": [join.key for join in plan.joins],
            "deferred": [name for name, node in plan.nodes.items() if node.defer],
        }

    @property
    def functions(self) -> dict[str, Any]:
        """The functions of nodes, conditions and reducers, by the names under which changes of code are reported."""
        plan = self.plan
        conditions = {
            f"{source}->{condition.name}": condition.function
            for source, several in plan.conditions.items()
            for condition in several
        }
        reducers = {f"{name} (reducer)": field.reducer for name, field in plan.fields.by_name.items() if field.reducer}
        return {**{name: node.target for name, node in plan.nodes.items()}, **conditions, **reducers}

    def at_boundary(self, view: SuperstepView) -> Coroutine[Any, Any, BoundaryOutcome]:
        """Merge the results of the tasks, and route; or keep the results, and fail or wait for answers."""
        call, deliveries = _Call(self.plan, view), view.deliveries
        if not deliveries:
            return call.keep_waiting()
        if deliveries[0].executor_id == START:
            return call.take_input(deliveries[0].data)
        return call.end_superstep(deliveries)

    async def _keep_results(self, delivery: DeliveryView, view: SuperstepView) -> Mapping[str, Any] | None:
        """Save the result of each task when it ends, so that it is not repeated after a crash."""
        options = graph_options(view.options)
        if delivery.executor_id == START or delivery.error is not None or not options.is_named:
            return None
        pending = [*(view.state.get(PENDING) or ()), *_results(view.deliveries)]
        return {DONE: {**options.call_record.done}, PENDING: pending}

    @property
    def field_names(self) -> Sequence[str]:
        """The fields of the state, with and without a value."""
        return [*self.plan.fields.by_name]

    def check_state(self, updates: Mapping[str, Any]) -> dict[str, Any]:
        """Return values as converted by their fields; `StateValidationError` if one does not fit."""
        checked = dict(updates)
        for name in self.plan.fields.by_name.keys() & updates.keys():
            try:
                checked[name] = self.plan.fields.validate(name, updates[name], {})
            except ValidationError as error:
                message = f"{name!r} cannot be {shorten(updates[name])}: {error.errors()[0]['msg']}."
                raise StateValidationError(message, field=name) from error
        return checked

    async def on_responses(self, answers: Mapping[str, Any], view: SuperstepView) -> BoundaryOutcome:
        """Receive answers to interrupts and breakpoints; when no question is open any more, the tasks continue."""
        return await _Call(self.plan, view).take_answers(answers)


class _Call:
    """A graph at one boundary of a run: the parts of shared state it reads, and the outcome."""

    def __init__(self, plan: GraphPlan, view: SuperstepView) -> None:
        self.plan = plan
        self.view = view
        options = graph_options(view.options)
        self.config, self.record = options.config, options.call_record
        self.is_nested, self.is_named = options.is_nested, options.is_named
        # Only boundaries write the reserved keys, so nothing of them is pending here.
        self.stored: Mapping[str, Any] = view.state.committed
        self.values: Mapping[str, Any] = plan.values_in(self.stored)
        self.meta: dict[str, Any] = {**(self.stored.get(META) or {}), **_of_run(self.config)}
        self.pending: list[TaskResult] = [*(self.stored.get(PENDING) or ())]
        self.waiting: Waiting = self.stored.get(WAITING) or Waiting()
        if done := self.stored.get(DONE):
            for task_id, what in done.items():
                self.record.done.setdefault(task_id, {**what})
        self.updates: dict[str, Any] = {}
        self.passed: list[str] = []
        self.events: list[WorkflowEvent[Any]] = []

    # ---- input -------------------------------------------------------------------------------------------------------

    async def take_input(self, data: Any) -> BoundaryOutcome:
        """Begin a run of the thread with an input."""
        fields = self.plan.fields
        if not self.values:
            self.values = fields.initial(self.plan.template)
        if self.meta.get("status") in ("error", "running"):
            unfinished = ", ".join(self.meta.get("current_nodes") or ())
            self._warn([f"A new turn begins. Unfinished nodes of the previous turn are dropped: {unfinished}."])
        step = 0 if fields.is_agent_state else self.meta.get("step", -2) + 2  # the input has a step of its own
        self.meta = {"step": step, "status": "running", "current_node": START}
        self.meta.update(_of_run(self.config))
        self.pending, self.waiting = [], Waiting()
        self.passed = [*self.view.pending_requests]
        try:
            writes, messages = read_input(data, fields, self.values)
            merged = merge(fields, self.values, [writes])
            if fields.is_agent_state:
                fields.require_all(merged.values)
            self.record.messages += messages
            first = {} if fields.is_agent_state else {keys.INPUT: stored_input(data)}
            tasks = [writes]
            if writes.goto is not None and not fields.is_agent_state:
                tasks.append(TaskWrites(START, ""))  # the edges from START are followed too
            return await self._go_on(merged, tasks, "input", [], first)
        except GraphError as error:
            return self._fail(error, [], "input")

    # ---- a superstep -------------------------------------------------------------------------------------------------

    async def end_superstep(self, deliveries: Sequence[DeliveryView]) -> BoundaryOutcome:
        """Merge the results of the tasks, if all of them have one."""
        view = self.view
        if view.state.pending and (
            written := [name for name in self.plan.fields.by_name if name in view.state.pending]
        ):
            name = written[0]
            message = f"A node has set {name!r} by ctx.set_state(). It is a field: return {{{name!r}: ...}}."
            again = [(delivery.executor_id, delivery.data) for delivery in deliveries]
            return self._fail(InvalidUpdateError(message, field=name), again)
        # A stepper continues after a breakpoint without an answer.
        if view.pending_requests:
            self.passed = [
                key for key, request in view.pending_requests.items() if isinstance(request.data, BreakpointRequest)
            ]
            if self.passed:
                self._resume()
        if len(deliveries) == 1 and not self.pending and deliveries[0].error is None:
            results = _results(deliveries)
            if results and not results[0].interrupts:
                return await self._merge(results)
        by_task = {result.activation.task_id: result for result in [*self.pending, *_results(deliveries)]}
        results = sorted(by_task.values(), key=lambda result: result.activation.order)
        finished = [result for result in results if not result.interrupts]
        failed = sorted(
            (delivery for delivery in deliveries if delivery.error is not None),
            key=lambda delivery: delivery.data.order,
        )
        if failed and all(isinstance(delivery.error, CancelledError) for delivery in failed):  # the run was stopped
            self.pending = results
            self.updates = {PENDING: results}
            self._note_stop(failed[0].executor_id)
            return self._outcome("stop", messages=[(delivery.executor_id, delivery.data) for delivery in failed])
        if failed:
            self.pending = finished
            self.passed = [*view.pending_requests]  # the nodes that wait ask again
            again = [(delivery.executor_id, delivery.data) for delivery in failed]
            again += [(result.writes.node, result.activation) for result in results if result.interrupts]
            errors = [_node_error(delivery, self.meta) for delivery in failed]
            if isinstance(errors[0], NodeError):
                errors[0].errors = errors[1:]
            return self._fail(errors[0], again, raised=self._as_raised(failed))
        if len(finished) < len(results):
            return self._ask(results, finished)
        return await self._merge(finished)

    async def _merge(self, finished: Sequence[TaskResult]) -> BoundaryOutcome:
        """Merge the results of all tasks of the superstep, and continue."""
        for result in finished:
            self._warn(result.warnings)
        tasks = [result.writes for result in finished]
        try:
            plan, shares = self.plan, self.plan.isolation == "shallow"
            merged = merge(plan.fields, self.values, tasks, last_wins=plan.last_wins, debug=plan.debug, shares=shares)
            return await self._go_on(merged, tasks, "step", finished)
        except GraphError as error:
            error.step = self.meta["step"] + 1
            at_fault = [result for result in finished if error.node in (None, result.writes.node)]
            self.pending = [result for result in finished if result not in at_fault]
            return self._fail(error, [(result.writes.node, result.activation) for result in at_fault])

    def _argument_of_condition(self, kind: str) -> Any:
        if kind == "config":
            return node_config(self.config)
        options = graph_options(self.view.options)
        if kind == "store":
            return options.store
        return runtime_for(options, self.meta["step"] + 1, self.record.n_supersteps + 1)

    async def _go_on(
        self,
        merged: MergedState,
        tasks: Sequence[TaskWrites],
        source: str,
        finished: Sequence[TaskResult],
        first: Mapping[str, Any] = MappingProxyType({}),
    ) -> BoundaryOutcome:
        """Route, and pause at a breakpoint or a stop; if nothing is next, the run is complete."""
        plan = self.plan
        self._resume()
        meta = self.meta
        meta["step"] += source == "step"
        self._warn(merged.warnings)
        for task in tasks:
            if not task.parent_goto:
                continue
            if not self.is_nested:
                message = f"Node {task.node!r} returned {task.parent_goto[0]} for the outer graph, but there is none."
                raise GraphError(message, "GRAPH_ROUTING_001", node=task.node)
            self.record.parent_goto += task.parent_goto

        def state_for(view: StateFields) -> Any:  # a condition's changes of it change nothing else
            return view.view(merged.values, isolate, lambda: ExecutionState(**meta))

        argument, step = self._argument_of_condition, meta["step"] + 1
        if self.record.parent_goto and not plan.fields.is_agent_state:  # the outer graph continues instead
            routed = Routed([], self.waiting, [])
        else:
            routed = await route(plan, tasks, self.waiting, state_for, argument, step, merged.values)
        self._warn(routed.warnings)
        self._report(merged, tasks, self._new_messages(merged, source))
        frontier = routed.frontier
        meta["current_node"] = frontier[0][0] if frontier else END
        meta["current_nodes"] = tuple([node for node, _ in frontier])
        self._take(merged.values)
        self._take_reserved(routed.waiting)
        self.record.done.clear()
        metadata = {"changed": merged.writers, **first}
        if not frontier:
            meta["status"] = "completed"
            return self._outcome(
                source, outputs=[(END, plan.fields.public(merged.values))], metadata=metadata, save=self.is_named
            )
        if self.view.stop_requested:
            self._note_stop(frontier[0][0])
            return self._outcome("stop", messages=frontier, metadata=metadata)
        breakpoint_ = self._breakpoint(tasks, frontier, merged)
        if breakpoint_ is not None and source != "answer":
            if not plan.saves:
                raise plan.refuse_pause()
            return self._pause(breakpoint_, frontier, source, metadata)
        self.record.n_supersteps += source == "step"
        is_last = self.record.n_supersteps >= self.config.get("recursion_limit", 0)
        saves = (self.is_named and self.plan.durability != "exit") or source == "answer" or is_last
        return self._outcome(source, messages=frontier, metadata=metadata, save=saves)

    def _take(self, values: Mapping[str, Any]) -> None:
        """Use values as the fields from now on."""
        stored, absent = self.stored, object()
        for name, value in values.items():
            if stored.get(name, absent) is not value:
                self.updates[name] = value
        self.values = values

    def _take_reserved(self, waiting: Waiting) -> None:
        """Store which nodes wait, and that nothing is pending; in most supersteps that is so already."""
        stored = self.stored
        if stored.get(PENDING) != []:
            self.updates[PENDING] = []
        if stored.get(RESUME) != {}:
            self.updates[RESUME] = {}
        if stored.get(WAITING) is not waiting:
            self.updates[WAITING] = waiting

    def _new_messages(self, merged: MergedState, source: str) -> list[Message]:
        """Return the messages that the nodes added to the conversation."""
        name = self.plan.fields.conversation or ""
        before, after = self.values.get(name) or [], merged.values.get(name) or []
        if source != "step" or after is before:
            return []
        if after[: len(before)] == before:
            return after[len(before) :]
        return [message for message in after if message not in before]

    def _report(self, merged: MergedState, tasks: Sequence[TaskWrites], messages: list[Message]) -> None:
        """Record the new messages and, for observers of the run, the changes."""
        self.record.messages += messages
        for place, task in enumerate(tasks):
            if task.node != START:
                written = [name for name, _ in task.writes]
                self.record.tasks.append((self.meta["step"], place, task.node, task.task_id, written))
        for name, writers in merged.writers.items():
            all_writers = self.record.changed.setdefault(name, [])
            all_writers += [writer for writer in writers if writer not in all_writers]
        if self.record.is_watched:
            changes = StateChanges(
                (name, {"old": self.values.get(name), "new": merged.values[name], "writers": writers})
                for name, writers in merged.writers.items()
            )
            changes.values_after = self.plan.values_in(merged.values)
            changes.meta, changes.messages = {**self.meta}, messages
            changes.updates = [
                (task.node, dict(task.writes) or None)
                for task in tasks
                if task.node != START and (task.writes or not task.parent_goto)
            ]
            self.events.append(WorkflowEvent("state_updated", changes))

    def _note_stop(self, node: str) -> None:
        self.meta.update(
            status="interrupted", interrupt_node=node, interrupt_reason="stop_requested",
            stop_current_execution="stop_requested",
        )  # fmt: skip

    # ---- pauses ------------------------------------------------------------------------------------------------------

    def _breakpoint(
        self, ran: Sequence[TaskWrites], frontier: Frontier, merged: MergedState
    ) -> BreakpointRequest | None:
        after = node_names(self.config.get("interrupt_after"), self.plan.interrupt_after)
        before = node_names(self.config.get("interrupt_before"), self.plan.interrupt_before)
        if not after and not before:
            return None
        ended = [task.node for task in ran if task.node != START and (task.node in after or "*" in after)]
        begin = [node for node, _ in frontier if node in before or "*" in before]
        if not ended and not begin:
            return None
        reasons = [f"interrupt_after: {node}" for node in ended] + [f"interrupt_before: {node}" for node in begin]
        following = tuple(node for node, _ in frontier)
        return BreakpointRequest(
            tuple(reasons),
            ended[0] if ended else begin[0],
            "after" if ended else "before",
            following,
            tuple(merged.writers),
        )

    def _pause(
        self, breakpoint_: BreakpointRequest, frontier: Frontier, source: str, metadata: Mapping[str, Any]
    ) -> BoundaryOutcome:
        self.meta.update(
            status="interrupted", interrupt_node=breakpoint_.node, interrupt_reason="; ".join(breakpoint_.reasons),
            interrupt_when=breakpoint_.when,
        )  # fmt: skip
        request = WorkflowEvent.request_info(f"{self.meta['step']}:breakpoint", breakpoint_.node, breakpoint_, Continue)
        return self._outcome(
            source, messages=frontier, requests=[request], pause=PauseReason(self.meta["interrupt_reason"], "hook"),
            metadata=metadata,
        )  # fmt: skip

    def _ask(self, results: Sequence[TaskResult], finished: Sequence[TaskResult]) -> BoundaryOutcome:
        """Keep the finished results, and ask the questions of the other tasks."""
        if not self.plan.saves:
            return self._fail(self.plan.refuse_pause(), [])
        asking = [result for result in results if result.interrupts]
        first = asking[0].interrupts[0]
        self.meta.update(
            status="interrupted", interrupt_node=first.node, interrupt_reason="interrupt", interrupt_when="during",
            interrupt_data=interrupt_data(first),
        )  # fmt: skip
        self.updates = {PENDING: [*finished, *asking]}
        answered = self.stored.get(RESUME) or {}
        requests = [
            WorkflowEvent.request_info(question.id, question.node, question, _answer_type(question))
            for result in asking
            for question in result.interrupts
            if question.id not in self.view.pending_requests and question.key not in answered.get(question.task_id, ())
        ]
        outcome = self._outcome("interrupt", requests=requests)
        written = [result.writes for result in finished]
        self.record.values = merge_finished(self.plan.fields, self.values, written, last_wins=self.plan.last_wins)
        return outcome

    async def keep_waiting(self) -> BoundaryOutcome:
        """Save the answers to some of several questions."""
        return BoundaryOutcome(checkpoint=BoundaryCheckpoint("answer"))

    async def take_answers(self, answers: Mapping[str, Any]) -> BoundaryOutcome:
        """Store the answers; when all have arrived, let the tasks that asked run again.

        Without an `AgentState`, a task need not wait for the answers to others.
        """
        resume: dict[str, dict[str, Any]] = {**(self.view.state.get(RESUME) or {})}
        asked = {interrupt.id: interrupt for result in self.pending for interrupt in result.interrupts}
        update = None
        for request_id, answer in answers.items():
            question = asked.get(request_id)
            if question is None:
                update = answer.update
            else:
                resume[question.task_id] = {**resume.get(question.task_id, {}), question.key: answer}
        self.updates = {RESUME: resume}
        if update is not None:
            writes, messages = read_input(update, self.plan.fields, self.values)
            self._take(merge(self.plan.fields, self.values, [writes]).values)
            self.record.messages += messages
        still_open = self.view.pending_requests.keys() & asked.keys()
        if still_open and self.plan.fields.is_agent_state:
            return self._outcome("answer")
        if not still_open:
            self._resume()
        ready = [
            result
            for result in self.pending
            if result.interrupts and still_open.isdisjoint(question.id for question in result.interrupts)
        ]
        self.updates[PENDING] = [result for result in self.pending if result not in ready]
        return self._outcome("answer", messages=[(result.writes.node, result.activation) for result in ready])

    def _resume(self) -> None:
        self.meta["status"] = "running"
        if not _FACTS_OF_PAUSES.isdisjoint(self.meta):
            self.meta = {name: fact for name, fact in self.meta.items() if name not in _FACTS_OF_PAUSES}

    # ---- the end of a boundary ---------------------------------------------------------------------------------------

    def _fail(
        self, error: BaseException, again: Frontier, source: str = "error", raised: BaseException | None = None
    ) -> BoundaryOutcome:
        """Keep the earlier state and the results of the successful tasks; `again` runs at a retry.

        The call raises `raised`, by default the error itself.
        """
        self.meta.update(status="error", error_message=str(error))
        self.updates = {PENDING: self.pending}
        saves = self.is_named or source != "input"
        return self._outcome(source, messages=again, error=error if raised is None else raised, save=saves)

    def _as_raised(self, failed: Sequence[DeliveryView]) -> BaseException | None:
        """Return the error of a node unchanged, with a note, if the state class requires that."""
        error, node = failed[0].error, failed[0].executor_id
        if self.plan.fields.is_agent_state or error is None or isinstance(error, (GraphError, ExecutorTimeoutError)):
            return None
        thread_id = self.config.get("thread_id")
        note = f"Node {node!r} of graph {self.plan.name!r} failed on thread {thread_id!r}."
        if self.plan.saves and not self.is_nested:
            note += f" app.invoke(None, {{'thread_id': {thread_id!r}}}) runs it again."
        others = [f"Node {delivery.executor_id!r} failed too: {delivery.error!r}" for delivery in failed[1:]]
        for line in (note, *others):
            if line not in getattr(error, "__notes__", ()):
                error.add_note(line)
        return error

    def _warn(self, texts: Sequence[str]) -> None:
        if not texts:
            return
        self.record.warnings += texts
        self.events += [WorkflowEvent.warning(text) for text in texts]

    def _outcome(
        self, source: str, metadata: Mapping[str, Any] = MappingProxyType({}), **further: Any
    ) -> BoundaryOutcome:
        """Return the outcome of this boundary, and record the state of the thread in the call's record."""
        self.record.values = self.values
        self.record.meta = self.meta
        if pending := self.updates.get(PENDING):
            self.updates[PENDING] = [replace(result, writes=isolate(result.writes)) for result in pending]
        done = self.record.done
        if done or self.stored.get(DONE):
            self.updates[DONE] = {task_id: dict(what) for task_id, what in done.items() if what}
        self.updates[META] = self.meta
        return BoundaryOutcome(
            state_updates=self.updates, closes=self.passed, events=self.events,
            checkpoint=BoundaryCheckpoint(source, metadata), **further,
        )  # fmt: skip


_FACTS_OF_PAUSES = frozenset(
    ("interrupt_node", "interrupt_reason", "interrupt_when", "interrupt_data", "stop_current_execution")
) | {"error_message"}


def _of_run(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: config[key] for key in ("thread_id", "run_id") if key in config}


def _results(deliveries: Sequence[DeliveryView]) -> list[TaskResult]:
    return [delivery.result.yielded[-1] for delivery in deliveries if delivery.result and delivery.result.yielded]


def node_names(names: Sequence[str] | str | None, default: frozenset[str] = frozenset()) -> frozenset[str]:
    """Return one or more names of nodes as a set; for `None` the default."""
    return default if names is None else frozenset([names] if isinstance(names, str) else names)


def _answer_type(question: Interrupt) -> Any:
    schema = question.response_schema
    return object if schema is None or isinstance(schema, Mapping) else schema


def _node_error(delivery: DeliveryView, meta: Mapping[str, Any]) -> BaseException:
    """Return the error of a node in the form that `invoke` raises."""
    error, node = delivery.error, delivery.executor_id
    assert error is not None
    if isinstance(error, GraphError):
        error.node = error.node or node
        return error
    facts: dict[str, Any] = {"node": node, "task_id": delivery.data.task_id, "step": meta["step"] + 1}
    context = {"node_name": node, "error_type": type(error).__name__}
    if isinstance(error, ExecutorTimeoutError):
        message = f"Node {node!r} took longer than {error.timeout_s} s. Allow a longer timeout, or do less work in it."
        made: NodeError = NodeTimeoutError(message, context=context, **facts)
    else:
        reason = str(error).rstrip(".")
        message = f"Node {node!r} failed with {type(error).__name__}: {reason}. invoke(None, config) runs it again."
        made = NodeError(message, context=context, **facts)
    made.__cause__ = error
    return made

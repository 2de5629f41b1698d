"""How a superstep changes the state of a run, as plain functions that never await."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentbench._copying import isolate_or_same
from agentbench._signatures import describe_redefinition, type_name, type_of, types_in
from agentbench._user_code import warn_user
from agentbench.exceptions import WorkflowWarning
from agentbench.workflows.engine.active_run import NOTHING
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.message import MessageType, WorkflowMessage, internal_source
from agentbench.workflows.graph.routing import CONDITION_FALSE, NO_EDGE, TARGET_MISMATCH, Drop, Plan

if TYPE_CHECKING:
    from agentbench.workflows.engine.active_run import ActiveRun, RunState
    from agentbench.workflows.graph.boundary import BoundaryOutcome


def fold(run: ActiveRun, plan: Plan, sent: Sequence[WorkflowMessage]) -> None:
    """Queue the messages that a plan's deliveries sent, in plan order, and update the fan-in buffers."""
    run_state = run.run_state
    if len(sent) > run.max_messages:
        raise run.message_limit_error([message.source_id for message in sent])
    for message in sent:
        run_state.messages.setdefault(message.source_id, []).append(message)
    if plan.buffers is not None:
        run_state.buffers = plan.buffers


def commit(run: ActiveRun, *, is_reported: bool = False) -> None:
    """Commit what the superstep wrote, delivered and requested; a hook may already have reported the new state."""
    run_state = run.run_state
    if run.log.observed and not is_reported:
        _report_state_changes(run)
    if run_state.state.pending:
        run_state.state.commit()
    if run_state.raised:
        run_state.raised = []
    run_state.delivering = NOTHING


def _report_state_changes(run: ActiveRun) -> None:
    run_state = run.run_state
    writers, run_state.writers = run_state.writers, {}
    changes: dict[str, Any] = {}
    for key, (old, new) in run_state.state.pending_changes().items():
        if key.startswith("_graph:"):
            continue
        # The committed value may be the new one already, changed in place; the last reported copy is the old one.
        before, after = run.reported_state.get(key, old), isolate_or_same(new)
        changes[key] = {"old": before, "new": after, "writers": writers.get(key, [])}
        run.reported_state[key] = after
    if changes:
        run.log.append(WorkflowEvent("state_updated", changes))


def roll_back(run_state: RunState) -> None:
    """Undo a superstep that was interrupted. Requests whose responses were not handled are open again."""
    run_state.state.discard()
    unhandled = [*run_state.delivering.values(), *run_state.messages.values()]
    run_state.messages = {}
    run_state.delivering = NOTHING
    for request_id in run_state.raised:
        run_state.requests.pop(request_id, None)
    run_state.raised = []
    run_state.writers = {}
    for queued in unhandled:
        for message in queued:
            request = message.original_request_info_event
            if request is not None:
                run_state.requests[request.request_id] = request


def apply_outcome(run: ActiveRun, outcome: BoundaryOutcome) -> None:
    """Apply a hook's outcome up to the checkpoint, in the order of its fields."""
    run_state, log = run.run_state, run.log
    if len(outcome.messages) > run.max_messages:
        raise run.message_limit_error([internal_source(to) for to, _ in outcome.messages])
    run_state.state.pending.update(outcome.state_updates)
    for key in outcome.state_deletes:
        run_state.state.delete(key)
    if outcome.commit:
        commit(run, is_reported=log.observed and any(event.type == "state_updated" for event in outcome.events))
    else:
        run_state.state.discard()
    for to, data in outcome.messages:
        source = internal_source(to)
        run_state.messages.setdefault(source, []).append(WorkflowMessage(data, source, to))
    if log.observed and outcome.messages:
        targets = [to for to, _ in outcome.messages]
        log.append(WorkflowEvent("graph_routed", {"from": None, "condition": "hook", "targets": targets}))
    for request_id in outcome.closes:
        run_state.requests.pop(request_id, None)
    for request in outcome.requests:
        run.open_request(request)
    for executor_id, value in outcome.outputs:
        log.append(WorkflowEvent("output", value, executor_id=executor_id))
    for event in outcome.events:
        log.append(event)
    run_state.raised = []
    run_state.delivering = NOTHING


def report_plan(run: ActiveRun, plan: Plan) -> None:
    """Emit the reports about a plan: warnings, and to observers also routing and dropped messages."""
    notes, log = plan.notes, run.log
    if notes is None:
        return
    if run.tracer is not None:
        run.tracer.trace_routing(notes)
    for source, verdict in notes.verdicts:
        for text in verdict.warnings:
            log.append(WorkflowEvent.warning(text))
        if log.observed:
            routed = {"from": source, "condition": verdict.condition, "result": verdict.result}
            log.append(WorkflowEvent("graph_routed", {**routed, "targets": list(verdict.targets)}))
    if notes.drops and run.graph.driver is None:
        _warn_of_untaken(run, plan, notes.drops)
    if log.observed or run.graph.settings.report_drops:
        for drop in notes.drops:
            message = drop.message
            facts = {
                "reason": drop.reason,
                "source": message.source_id,
                "target": message.target_id or ", ".join(drop.targets) or None,
                "type": type_of(message.data),
            }
            log.append(WorkflowEvent("message_dropped", facts))


def _warn_of_untaken(run: ActiveRun, plan: Plan, drops: Sequence[Drop]) -> None:
    """Warn, once per executor and type, about messages that no handler takes and no condition stopped."""
    buffered = [m for waiting in (plan.buffers or {}).values() for queued in waiting.values() for m in queued]
    fine = {id(m) for m in (*buffered, *(m for d in plan.deliveries for m in d.messages))}
    held = {id(drop.message): drop.message for drop in drops if drop.reason == CONDITION_FALSE.value}
    for key, message in held.items():
        executor_id, name = message.source_id.removeprefix("internal:"), type_of(message.data)
        if key not in fine and not getattr(message.data, "may_be_untaken", False):
            text = f"No condition or selection let a message of executor {executor_id!r} ({name}) pass."
            run.log.warn_once(("held", executor_id, name), executor_id, text)
    fine |= held.keys()
    for message, reason, targets in drops:
        executor_id = message.source_id.removeprefix("internal:")
        executor = run.graph.executors.get(executor_id)
        if id(message) in fine or executor is None or getattr(message.data, "may_be_untaken", False):
            continue
        # Agents and others that send and yield the same value may be at the end of a graph.
        if reason == NO_EDGE and executor.workflow_output_types:
            continue
        taken = {i: " | ".join(map(type_name, run.graph.executors[i].input_types)) for i in targets}
        why = ", ".join(f"{i!r} takes {types}" for i, types in taken.items())
        what, name = "sent a value", type_of(message.data)
        if message.type is MessageType.RESPONSE:
            what, why = "got a response", "it has no @response_handler for it"
        elif reason in (NO_EDGE, TARGET_MISMATCH.value):
            why = "no edge leads from it" + ("" if message.target_id is None else f" to {message.target_id!r}")
        text = f"Executor {executor_id!r} {what} ({name}) that no handler took: {why}."
        declared = [t for i in targets for t in run.graph.executors[i].input_types]
        redefined = describe_redefinition(
            types_in(message.data), declared, repr(executor_id), repr(targets and targets[0])
        )
        if redefined is not None:
            text += f" {redefined}"
        if run.log.warn_once(("untaken", executor_id, name), executor_id, text):
            warn_user(text, WorkflowWarning)

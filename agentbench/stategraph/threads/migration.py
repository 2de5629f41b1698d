"""What a migration of a thread changes beyond that of a workflow: the graph's own notes, and the state's fields."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from pydantic import ValidationError

from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.exceptions import MigrationError, StateValidationError
from agentbench.stategraph.interrupts import BreakpointRequest, Interrupt
from agentbench.stategraph.running.executors import META, PENDING, WAITING, TaskResult
from agentbench.stategraph.running.plan import GraphPlan
from agentbench.stategraph.running.routing import Waiting
from agentbench.workflows.persist.executor_content import Changes, Content

Names = Mapping[str, str]


def thread_changes(plan: GraphPlan, changes: Changes) -> Changes:
    """Return the changes of a migration to a state graph."""
    return replace(changes, rename=_rename, settle=partial(_settle, plan))


def move_to_thread(thread_id: str, checkpoint: WorkflowCheckpoint) -> None:
    """Write the id of another thread into a copied checkpoint."""
    checkpoint.metadata = {**checkpoint.metadata, "thread_id": thread_id}
    checkpoint.state = {**checkpoint.state, META: {**checkpoint.state[META], "thread_id": thread_id}}


def _rename(content: Content, nodes: Names, fields: Names) -> None:
    """Rename nodes and fields in the graph's own notes and in questions."""
    state = content.state
    for request_id, event in [*content.requests.items()]:
        if isinstance(event.data, (Interrupt, BreakpointRequest)):
            content.requests[request_id] = renamed = copy.copy(event)
            renamed.data = _renamed_question(event.data, nodes)
    if META in state:
        state[META] = _renamed_meta(state[META], nodes)
    if state.get(PENDING):
        state[PENDING] = [_renamed_result(result, nodes, fields) for result in state[PENDING]]
    if state.get(WAITING):
        state[WAITING] = _renamed_waiting(state[WAITING], nodes)


def _settle(plan: GraphPlan, content: Content, nodes: Names, checkpoint_id: str) -> None:
    """Fit the graph's own notes and the values of fields to the graph."""
    state = content.state
    before = f"Checkpoint {checkpoint_id!r} was not migrated"
    if META not in state:
        msg = f"{before}: it is of a workflow, and the new graph is a state graph."
        raise MigrationError(msg, checkpoint_id=checkpoint_id)
    for result in state.get(PENDING) or ():
        if result.writes.node not in plan.nodes:
            node = next((old for old, new in nodes.items() if new == result.writes.node), result.writes.node)
            msg = (
                f"{before}: node {node!r} has run in a superstep that is not finished, and the new graph lacks it. "
                "Pass renamed=, or finish the superstep with the old graph."
            )
            raise MigrationError(msg, checkpoint_id=checkpoint_id, name=node)
    if state.get(WAITING):  # nobody is left to wait for at joins and nodes that the new graph lacks
        waiting: Waiting = state[WAITING]
        known = {join.key for join in plan.joins}
        state[WAITING] = Waiting(
            {key: sources for key, sources in waiting.joins.items() if key in known},
            {node: causes for node, causes in waiting.deferred.items() if node in plan.nodes},
        )
    values = {**plan.fields.initial(plan.template), **plan.values_in(state)}
    content.state = {**state, **_checked(plan, values, checkpoint_id)}


def _checked(plan: GraphPlan, values: dict[str, Any], checkpoint_id: str) -> dict[str, Any]:
    """Return values as the declared types convert them."""
    before = f"Checkpoint {checkpoint_id!r} was not migrated"
    checked = {}
    for name, value in values.items():
        try:
            checked[name] = plan.fields.validate(name, value, values)
        except ValidationError as error:  # its text would repeat the value, which may be a secret
            reason = error.errors(include_url=False, include_input=False)[0]["msg"]
            msg = (
                f"{before}: the value of field {name!r} does not fit {plan.fields.cls.__name__}: {reason}. Pass "
                f"functions={{{name!r}: function}}, which converts the old value."
            )
            raise MigrationError(msg, checkpoint_id=checkpoint_id, name=name) from None
    try:
        plan.fields.require_all(checked)
    except StateValidationError as error:
        msg = f"{before}: field {error.field!r} of {plan.fields.cls.__name__} has no value and no default. Give it one."
        raise MigrationError(msg, checkpoint_id=checkpoint_id, name=error.field) from error
    return checked


def _renamed_question(question: Interrupt | BreakpointRequest, nodes: Names) -> Interrupt | BreakpointRequest:
    node = nodes.get(question.node, question.node)
    if isinstance(question, Interrupt):
        return replace(question, node=node)
    following = tuple(nodes.get(each, each) for each in question.next)
    reasons = tuple(_renamed_reason(reason, nodes) for reason in question.reasons)
    return replace(question, node=node, next=following, reasons=reasons)


def _renamed_reason(reason: str, nodes: Names) -> str:
    what, separator, node = reason.partition(": ")
    is_breakpoint = separator and node in nodes and what in ("interrupt_before", "interrupt_after")
    return f"{what}: {nodes[node]}" if is_breakpoint else reason


def _renamed_meta(meta: Mapping[str, Any], nodes: Names) -> dict[str, Any]:
    renamed = dict(meta)
    for key in ("current_node", "interrupt_node"):
        if meta.get(key) is not None:
            renamed[key] = nodes.get(meta[key], meta[key])
    if meta.get("current_nodes"):
        renamed["current_nodes"] = tuple(nodes.get(each, each) for each in meta["current_nodes"])
    data = meta.get("interrupt_data")
    if data and data.get("node") == meta.get("interrupt_node"):
        renamed["interrupt_data"] = {**data, "node": renamed["interrupt_node"]}
    if meta.get("interrupt_reason"):
        renamed["interrupt_reason"] = _renamed_reason(meta["interrupt_reason"], nodes)
    return renamed


def _renamed_result(result: TaskResult, nodes: Names, fields: Names) -> TaskResult:
    writes = result.writes
    goto = writes.goto
    if goto is not None:
        goto = [nodes.get(each, each) if isinstance(each, str) else each for each in goto]
    node = nodes.get(writes.node, writes.node)
    renamed = replace(
        writes, node=node, goto=goto, writes=[(fields.get(name, name), value) for name, value in writes.writes]
    )
    return replace(result, writes=renamed, interrupts=tuple(replace(each, node=node) for each in result.interrupts))


def _renamed_waiting(waiting: Waiting, nodes: Names) -> Waiting:
    joins = {}
    for key, sources in waiting.joins.items():
        ends, target = key.rsplit(" -> ", 1)
        renamed = " + ".join(nodes.get(each, each) for each in ends.split(" + "))
        joins[f"{renamed} -> {nodes.get(target, target)}"] = [nodes.get(each, each) for each in sources]
    return Waiting(joins, {nodes.get(node, node): [*causes] for node, causes in waiting.deferred.items()})

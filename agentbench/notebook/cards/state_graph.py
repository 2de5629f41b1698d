"""The displays of state graphs: a graph, the result of a call, a state, and a thread at a checkpoint."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from agentbench._secrets import mask_secrets
from agentbench._text.phrases import count_text
from agentbench._text.redact import line_preview
from agentbench.messages.message import Message
from agentbench.notebook.cards.conversation.views import Transcript
from agentbench.notebook.graph.view import draw
from agentbench.notebook.look.html import Page, Table
from agentbench.notebook.plots.lineage import lineage
from agentbench.stategraph.interrupts import BreakpointRequest, Interrupt
from agentbench.stategraph.results import GraphResult, messages_of, token_usage
from agentbench.stategraph.snapshots import StateSnapshot
from agentbench.stategraph.state import AgentState
from agentbench.stategraph.threads.history import StateHistory
from agentbench.stategraph.threads.thread_call import flat_config

Bundle = dict[str, Any]

_LOOK_OF = {"running": "running", "interrupted": "waiting", "completed": "done", "error": "failed"}
_LATEST = 6  # messages of a conversation


def graph_bundle(app: Any) -> Bundle:
    """Return the view of a compiled graph: its drawing."""
    return draw(app.workflow, direction="auto")._repr_mimebundle_()


def graph_result_bundle(result: GraphResult[Any]) -> Bundle:
    """Return the view of a call's result: status, how to continue, new messages, changed fields."""
    used = token_usage(result.messages)["total_tokens"]
    facts = [f"thread {result.thread_id}", count_text(result.step, "superstep")]
    facts += [f"{used:,} tokens"] if used else []
    tables = [
        _waits(result.interrupts, {"thread_id": result.thread_id}),
        _fields("Changed", result.state, result.changed, result.changed),
        Table("Warnings", ("warning",), [(warning,) for warning in result.warnings]),
    ]
    return _bundle("GraphResult", result.status, facts, tables, result.messages)


def state_bundle(state: AgentState) -> Bundle:
    """Return the view of a state: its fields, and the last messages of its conversation."""
    meta = state.execution_meta
    facts = [f"at {meta.current_node}", count_text(meta.step, "superstep")]
    facts += [meta.error_message] if meta.error_message else []
    return _bundle(type(state).__name__, meta.status, facts, [_fields("State", state)], state.context)


def snapshot_bundle(snapshot: StateSnapshot[Any]) -> Bundle:
    """Return the view of a thread at a checkpoint: next nodes, open requests, fields and their writers."""
    config = flat_config(snapshot.config)
    if not snapshot.exists:
        return Page("StateSnapshot", facts=[f"thread {config['thread_id']} does not exist"]).bundle()
    facts = [f"thread {config['thread_id']}", config["checkpoint_id"], count_text(snapshot.step, "superstep")]
    facts += [snapshot.created_at] if snapshot.created_at else []
    tasks = [(task.name, task.error or "", "ended" if task.result is not None else "") for task in snapshot.tasks]
    tables = [
        _waits(snapshot.interrupts, config),
        Table("Next", ("node", "error", "already"), tasks),
        _fields("State", snapshot.values, writers=snapshot.metadata.get("changed", {})),
        Table("No longer fields", ("name", "value"), [*_rows(snapshot.extra.items())]),
        Table("Does not fit the state class", ("problem",), [(snapshot.invalid,)] if snapshot.invalid else []),
    ]
    return _bundle("StateSnapshot", snapshot.status, facts, tables, messages_of(snapshot.values))


def history_bundle(history: StateHistory) -> Bundle:
    """Return the view of a thread's checkpoints, newest first, and their branches."""
    rows = [
        (info.checkpoint_id, info.source, info.metadata.get("step", info.iteration), ", ".join(info.writers))
        for info in history.infos
    ]
    facts = [f"thread {history.thread_id}", count_text(len(rows), "checkpoint")]
    page = Page(
        "StateHistory", facts=facts, tables=[Table("Checkpoints", ("id", "source", "superstep", "nodes"), rows)]
    ).bundle()
    if not rows:
        return page
    plot = lineage(history.storage, workflow_name=history.infos[0].workflow_name)
    return {"text/plain": f"{page['text/plain']}\n{plot.text}", "text/html": f"{page['text/html']}{plot.svg}"}


def _bundle(
    title: str, status: Any, facts: Sequence[str], tables: Sequence[Table], messages: Sequence[Message]
) -> Bundle:
    """Return a page as HTML and text, with the latest messages below it."""
    page = Page(title, state=status.value, look=_LOOK_OF[status.value], facts=facts, tables=tables).bundle()
    if not messages:
        return page
    conversation = Transcript(tuple(messages), limit=_LATEST)
    return {
        "text/plain": f"{page['text/plain']}\nmessages\n{conversation.text}",
        "text/html": page["text/html"] + conversation.html,
    }


def _waits(interrupts: Iterable[Interrupt | BreakpointRequest], config: Mapping[str, Any]) -> Table:
    """Return the table of interrupts, each with the call that continues."""
    rows = []
    for each in interrupts:
        if isinstance(each, BreakpointRequest):
            rows.append((each.node, "; ".join(each.reasons), f"app.invoke(None, {config})"))
        else:
            question = each.message or line_preview(mask_secrets(each.value))
            rows.append((each.node, question, f"app.invoke({{'resume': {{{each.id!r}: ...}}}}, {config})"))
    return Table("Waiting", ("node", "for", "continue with"), rows, limit=200)


def _fields(
    title: str, state: Any, only: Collection[str] | None = None, writers: Mapping[str, Any] | None = None
) -> Table:
    """Return the fields of a state as a table, with the writers of fields if known."""
    conversation = messages_of(state)
    fields = [
        (name, value)
        for name, value in (state if isinstance(state, Mapping) else state.__dict__).items()
        if value is not conversation and name != "execution_meta" and (only is None or name in only)
    ]
    if only is None:
        fields = [(name, value) for name, value in fields if name != "context_summary" or value is not None]
    if writers is None:
        return Table(title, ("field", "value"), [*_rows(fields)])
    rows = [(name, value, ", ".join(writers.get(name, ()))) for name, value in _rows(fields)]
    return Table(title, ("field", "value", "written by"), rows)


def _rows(values: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, str]]:
    return ((name, line_preview(mask_secrets(value, key=name))) for name, value in values)

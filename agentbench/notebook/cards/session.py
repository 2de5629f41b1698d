"""The displays of a session and of its standing approvals. Nothing is loaded, written or called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentbench._secrets import is_secret_name
from agentbench._text.escape import MASK
from agentbench._text.phrases import count_text
from agentbench._text.redact import line_preview
from agentbench.agents.sessions.tool_approvals import STANDING_APPROVALS, ToolApprovalState
from agentbench.messages.message import Message
from agentbench.notebook.look.html import Page, Table

_PREVIEW_LIMIT = 90


def session(session: Any) -> dict[str, Any]:
    """Return the view of a session: ids, number of messages, and a row per key of its state. Secrets are masked."""
    state = session.state if isinstance(session.state, Mapping) else {}
    facts = [session.session_id]
    if session.service_session_id is not None:
        facts.append(f"stored by the service as {session.service_session_id}")
    facts.append(count_text(sum(len(_messages_in(value)) for value in state.values()), "message"))
    rows = [_row(key, session.approvals if key == STANDING_APPROVALS else value) for key, value in state.items()]
    table = Table("State", ("key", "holds", "content"), rows, limit=_PREVIEW_LIMIT)
    return Page(type(session).__name__, facts=facts, tables=[table]).bundle()


def approvals(state: Any) -> dict[str, Any]:
    """Return the view of the standing approvals of a session, with a row for each. Secrets are masked."""
    rules = state.rules
    inactive = sum(not rule.is_active for rule in rules)
    facts = [count_text(len(rules), "approval") if rules else "no approvals"]
    if inactive:
        facts.append(f"{inactive} inactive: look at them, then session.approvals.confirm()")
    rows = [
        (rule.tool_name, rule.arguments_text, rule.server or "", "active" if rule.is_active else "inactive")
        for rule in rules
    ]
    table = Table("Approvals", ("tool", "approved for", "server", "state"), rows, limit=_PREVIEW_LIMIT)
    return Page("Standing approvals", facts=facts, tables=[table]).bundle()


def _messages_in(value: Any) -> list[Message]:
    """Return the messages that a history stores under one key."""
    held = value.get("messages") if isinstance(value, Mapping) else value
    return [each for each in held if isinstance(each, Message)] if isinstance(held, list) else []


def _row(key: Any, value: Any) -> tuple[str, str, str]:
    size, text = type(value).__name__, value
    if messages := _messages_in(value):
        size, last = count_text(len(messages), "message"), messages[-1]
        text = f"last by {last.role}: {last.text or ', '.join(content.type for content in last.contents)}"
    elif isinstance(value, ToolApprovalState):
        size, text = count_text(len(value), "approval"), "; ".join(map(str, value))
    elif isinstance(value, (Mapping, list, tuple, set, frozenset)):
        size = count_text(len(value), "key" if isinstance(value, Mapping) else "item")
    return line_preview(str(key)), size, MASK if is_secret_name(key) else line_preview(text, _PREVIEW_LIMIT)

"""A session by its ids and its state, in one line each. Nothing is loaded, written or called for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentbench._secrets import is_secret_name
from agentbench.messages.message import Message
from agentbench.notebook.look.html import Page, Table
from agentbench.notebook.text.escape import MASK
from agentbench.notebook.text.phrases import count_text
from agentbench.notebook.text.redact import line_preview

__all__ = ["session"]

_PREVIEW_LIMIT = 90


def session(session: Any) -> dict[str, Any]:
    """A session: its ids, how many messages it holds, and a row for each key of its state. Secrets are masked."""
    state = session.state if isinstance(session.state, Mapping) else {}
    facts = [session.session_id]
    if session.service_session_id is not None:
        facts.append(f"stored by the service as {session.service_session_id}")
    facts.append(count_text(sum(len(_messages_in(value)) for value in state.values()), "message"))
    rows = [(line_preview(str(key)), _size_of(value), _preview_of(key, value)) for key, value in state.items()]
    table = Table("State", ("key", "holds", "content"), rows, limit=_PREVIEW_LIMIT)
    return Page(type(session).__name__, facts=facts, tables=[table]).bundle()


def _messages_in(value: Any) -> list[Message]:
    """The messages that a history stores under one key."""
    held = value.get("messages") if isinstance(value, Mapping) else value
    return [each for each in held if isinstance(each, Message)] if isinstance(held, list) else []


def _size_of(value: Any) -> str:
    if messages := _messages_in(value):
        return count_text(len(messages), "message")
    if isinstance(value, Mapping):
        return count_text(len(value), "key")
    if isinstance(value, (list, tuple, set, frozenset)):
        return count_text(len(value), "item")
    return type(value).__name__


def _preview_of(key: Any, value: Any) -> str:
    if is_secret_name(key):
        return MASK
    if messages := _messages_in(value):
        last = messages[-1]
        content = last.text or ", ".join(content.type for content in last.contents)
        return line_preview(f"last by {last.role}: {content}", _PREVIEW_LIMIT)
    return line_preview(value, _PREVIEW_LIMIT)

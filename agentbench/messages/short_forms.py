"""Messages in short forms: text, a pair of role and text, a dictionary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from agentbench.messages.message import Message

MessageLike: TypeAlias = Message | str | tuple[str, str] | Mapping[str, Any]
"""A message, or a short form of one."""

_ROLES: Mapping[Any, str] = {
    "user": "user", "human": "user", "assistant": "assistant", "ai": "assistant", "system": "system", "tool": "tool",
    "developer": "system",
}  # fmt: skip


def to_messages(value: Any) -> Any:
    """Return a message, or a list with several, in which the short forms are messages with an id.

    The short forms are text (of the user), a pair such as `("ai", text)`, and a dictionary with `role` and `content`.
    Other values are returned unchanged.
    """
    if not isinstance(value, (list, tuple)) or (isinstance(value, tuple) and _is_pair(value)):
        return _to_message(value)
    return value if all(isinstance(item, Message) for item in value) else [_to_message(item) for item in value]


def _to_message(value: Any) -> Any:
    if isinstance(value, str):
        return Message.text_message(value)
    if isinstance(value, Mapping):
        return _from_mapping(value) if "role" in value or "type" in value else value
    if isinstance(value, (list, tuple)) and _is_pair(value):  # a pair read from JSON is a list
        return Message(_ROLES[value[0]], [value[1]]).stamp()
    return value


def _is_pair(value: list[Any] | tuple[Any, ...]) -> bool:
    return len(value) == 2 and isinstance(value[0], str) and value[0] in _ROLES


def _from_mapping(given: Mapping[str, Any]) -> Message:
    fields = {**given}
    role = fields.pop("role", None) or fields.pop("type", None)
    if "id" in fields:
        fields["message_id"] = fields.pop("id")
    return Message.from_dict({**fields, "role": _ROLES.get(role, role)}).stamp()

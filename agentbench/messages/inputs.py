"""Convert the input of agents, clients and state graphs to messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from agentbench._secrets import masked_repr
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message, RoleLiteral

AgentRunInputs: TypeAlias = str | Content | Message | Sequence[str | Content | Message]
"""Input of an agent: text, a content or a message, or several of them."""

MessageLike: TypeAlias = Message | str | tuple[str, str] | Mapping[str, Any]
"""A message as programs for state graphs write it; see `to_messages`."""


def normalize_messages(messages: AgentRunInputs | Mapping[str, Any] | None = None) -> list[Message]:
    """Convert input to a new list of messages; message objects are not copied.

    Args:
        messages: Each text or content becomes a user message; dictionaries with a role become messages.

    Raises:
        TypeError: An item has none of these types.

    Example:
        from agentbench import normalize_messages

        (message,) = normalize_messages("Hello")
        assert (message.role, message.text) == ("user", "Hello")
    """
    if messages is None:
        return []
    if type(messages) is list and {*map(type, messages)} == {Message}:  # a conversation, which may be long
        return messages.copy()
    if isinstance(messages, (str, Content, Message, Mapping)) or not isinstance(messages, Iterable):
        return [_as_message(messages)]
    return [item if isinstance(item, Message) else _as_message(item) for item in messages]


def _as_message(item: Any) -> Message:
    if isinstance(item, Message):
        return item
    if isinstance(item, (str, Content)):
        return Message("user", [item])
    if isinstance(item, Mapping):
        return Message.from_dict(item) if "role" in item else Message("user", [item])
    problem = f"{masked_repr(item)} has type {type(item).__name__}."
    text = f"{problem} Expected text, a Content, a Message, or a dictionary with a role."
    raise TypeError(text)


def prepend_instructions_to_messages(
    messages: Sequence[Message], instructions: str | Sequence[str] | None, role: RoleLiteral | str = "system"
) -> list[Message]:
    """Return a new list with instructions before the messages; without instructions the messages themselves.

    Args:
        messages: The conversation.
        instructions: One or several texts. A text is skipped if the message at its index equals it in role and text.
        role: Role of the new messages.

    Example:
        from agentbench import Message, prepend_instructions_to_messages

        messages = prepend_instructions_to_messages([Message("user", ["Hello"])], "Answer in verse.")
        assert [message.role for message in messages] == ["system", "user"]
    """
    if instructions is None:
        return cast("list[Message]", messages)
    texts = [instructions] if isinstance(instructions, str) else list(instructions)
    missing = [
        text
        for index, text in enumerate(texts)
        if not (index < len(messages) and messages[index].role == role and messages[index].text == text)
    ]
    return [*(Message(role, [text]) for text in missing), *messages]


# ---- short forms in state graphs

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

"""The source and the author of a message, noted on the message itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from agentbench.messages.content.addition import mend_messages
from agentbench.messages.message import Message, copy_messages

#: What an agent without a name signs its messages with.
UNNAMED: Final = "UnnamedAgent"

#: Key among the additional properties of a message.
ATTRIBUTION: Final = "_attribution"


def source_id_of(source: Any) -> str:
    """Return the id of a source: text, or an object that has a `source_id`."""
    source_id = source if isinstance(source, str) else getattr(source, "source_id", None)
    if not isinstance(source_id, str):
        message = f"{source!r} is no source. Expected a context provider, or the source_id of one as text."
        raise TypeError(message)
    return source_id


def attributed(messages: Iterable[Message], source: Any) -> list[Message]:
    """Return copies of messages on which a source is noted, unless one is already; they share their contents."""
    attribution = {"source_id": source_id_of(source)}
    if not isinstance(source, str):
        attribution["source_type"] = type(source).__name__
    copies = copy_messages(messages)
    for message in copies:
        if ATTRIBUTION not in message.additional_properties:
            message.additional_properties[ATTRIBUTION] = dict(attribution)
    return copies


def signed(messages: Iterable[Message], agent: Any) -> list[Message]:
    """Return messages that services take, with the name of the agent as their author: copies of those that change."""
    found = []
    for message in mend_messages(list(messages)):
        if not message.author_name:
            (message,) = copy_messages([message])
            message.author_name = agent.name or UNNAMED
        found.append(message)
    return found

"""Record the source and the author of a message on the message."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from agentbench.messages.content.addition import mend_messages
from agentbench.messages.message import Message, copy_messages

UNNAMED: Final = "UnnamedAgent"
"""Author of messages of agents without a name."""

ATTRIBUTION: Final = "_attribution"
"""Key in the additional properties of a message."""


def source_id_of(source: Any) -> str:
    """Return the id of a source, which is text or an object with a `source_id`."""
    source_id = source if isinstance(source, str) else getattr(source, "source_id", None)
    if not isinstance(source_id, str):
        message = f"{source!r} is not a source. Expected a context provider or its source_id."
        raise TypeError(message)
    return source_id


def add_source(messages: Iterable[Message], source: Any) -> list[Message]:
    """Return copies of messages with their source recorded, unless they have one; contents are shared."""
    attribution = {"source_id": source_id_of(source)}
    if not isinstance(source, str):
        attribution["source_type"] = type(source).__name__
    copies = copy_messages(messages)
    for message in copies:
        if ATTRIBUTION not in message.additional_properties:
            message.additional_properties[ATTRIBUTION] = dict(attribution)
    return copies


def add_author(messages: Iterable[Message], agent: Any) -> list[Message]:
    """Set the agent as author of messages without one, in a form that services accept; changed messages are copied."""
    signed = []
    for message in mend_messages(list(messages)):
        if not message.author_name:
            (message,) = copy_messages([message])
            message.author_name = agent.name or UNNAMED
        signed.append(message)
    return signed

"""What a client was asked, kept so that a test can look at it."""

from __future__ import annotations

from typing import Any, NamedTuple

from agentbench.messages.message import Message

__all__ = ["ModelCall"]


class ModelCall(NamedTuple):
    """One call of a model.

    Attributes:
        messages: Copies of what it was sent, so that later changes do not show. Calls share those of equal messages.
        options: Of the call; tools are the objects themselves.
        stream: Whether the answer was streamed.
        client_kwargs: What was handed through to the client.
    """

    messages: list[Message]
    options: dict[str, Any]
    stream: bool
    client_kwargs: dict[str, Any]

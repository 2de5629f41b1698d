"""The start of a session's conversation, which later requests do not need to read again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from agentbench.messages.message import Message


class Replacement(NamedTuple):
    """The replacement for the model of the messages from `first` up to `last` (exclusive)."""

    first: int
    last: int
    messages: list[Message]


@dataclass(slots=True, eq=False)
class ResolvedStart:
    """The start of a conversation in which every call has a result; the session keeps it for later requests."""

    messages: list[Message] = field(default_factory=list)
    replacements: list[Replacement] = field(default_factory=list)

    def resolve(self, messages: list[Message]) -> list[Message]:
        """Convert messages that start with the resolved ones to the form for the model."""
        resolved: list[Message] = []
        at = 0
        for first, last, instead in self.replacements:
            resolved += messages[at:first]
            resolved += instead
            at = last
        resolved += messages[at:]
        return resolved

    def begins(self, messages: list[Message]) -> bool:
        """Return whether messages start with the resolved ones; messages with replacements must be identical."""
        start, length = self.messages, len(self.messages)
        if not 0 < length <= len(messages) or start[0] is not messages[0] or start[-1] is not messages[length - 1]:
            return False
        start += messages[length:]  # lists of equal length are compared without a copy; no other request uses this list
        is_same = start == messages
        del start[length:]
        replaced = (at for first, last, _ in self.replacements for at in range(first, last))
        return is_same and all(start[at] is messages[at] for at in replaced)

"""The beginning of a session's conversation that requests need not read again, however long it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from agentbench.messages.message import Message


class Replacement(NamedTuple):
    """What the model gets instead of the messages from `first` to before `last`."""

    first: int
    last: int
    messages: list[Message]


@dataclass(slots=True, eq=False)
class Settled:
    """The beginning of a conversation in which every call has its result; its session notes it for later requests."""

    messages: list[Message] = field(default_factory=list)
    replacements: list[Replacement] = field(default_factory=list)

    def resolve(self, messages: list[Message]) -> list[Message]:
        """Return messages that begin with the settled ones in the form for the model."""
        found: list[Message] = []
        at = 0
        for first, last, instead in self.replacements:
            found += messages[at:first]
            found += instead
            at = last
        found += messages[at:]
        return found

    def begins(self, messages: list[Message]) -> bool:
        """Whether messages begin with the settled ones: equal ones, and the very ones where others replace them."""
        known, length = self.messages, len(self.messages)
        if not 0 < length <= len(messages) or known[0] is not messages[0] or known[-1] is not messages[length - 1]:
            return False
        known += messages[length:]  # lists of one length are compared without a copy; no other request has this one
        is_same = known == messages
        del known[length:]
        replaced = (at for first, last, _ in self.replacements for at in range(first, last))
        return is_same and all(known[at] is messages[at] for at in replaced)

"""Calls that a person approved and that were made, until the conversation remembers their results.

A run that fails after its tools have run saves no turn. The same answer, given once more, must not make them again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from agentbench.messages.content import Content
from agentbench.messages.message import Message

#: Key in the state of a session: messages of a call and its result each.
APPROVED_CALLS: Final = "approved_calls"


class MadeCalls:
    """The approved calls in the state of a session; without a session nothing is kept.

    Args:
        session: Of the run, if any.
    """

    __slots__ = ("_state",)

    def __init__(self, session: Any) -> None:
        self._state: dict[str, Any] | None = getattr(session, "state", None)

    def pairs(self) -> list[tuple[Content, Content]]:
        """The calls with their results."""
        kept = (self._state or {}).get(APPROVED_CALLS) or ()
        return [(one.contents[0], one.contents[1]) for one in kept if isinstance(one, Message)]

    def keep(self, call: Content, result: Content) -> None:
        """Keep what came of a call."""
        if self._state is not None:
            self._state[APPROVED_CALLS] = [*self._state.get(APPROVED_CALLS, ()), Message("tool", [call, result])]

    def forget(self, is_remembered: Callable[[Content], bool]) -> None:
        """Drop the calls that are remembered elsewhere."""
        if self._state is None or APPROVED_CALLS not in self._state:
            return
        kept = [Message("tool", list(pair)) for pair in self.pairs() if not is_remembered(pair[0])]
        if kept:
            self._state[APPROVED_CALLS] = kept
        else:
            del self._state[APPROVED_CALLS]

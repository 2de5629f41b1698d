"""Calls that a person approved and that were made, until the messages of the session hold their results.

A run that fails after its tools have run saves no turn, and a service that keeps the conversation does not show it. The
same answer, given once more, must not make the calls again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from agentbench.agents.sessions.open_calls import is_same_call
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

    def forget_asked(self, questions: Iterable[Content]) -> None:
        """Drop the calls that a person is asked about anew: models use ids again."""
        asked = [one.function_call for one in questions if one.function_call is not None]
        self.forget(lambda made: any(is_same_call(one, made) for one in asked))

    def forget(self, is_remembered: Callable[[Content], bool]) -> None:
        """Drop the calls that are remembered elsewhere."""
        if self._state is None or APPROVED_CALLS not in self._state:
            return
        kept = [Message("tool", list(pair)) for pair in self.pairs() if not is_remembered(pair[0])]
        if kept:
            self._state[APPROVED_CALLS] = kept
        else:
            del self._state[APPROVED_CALLS]

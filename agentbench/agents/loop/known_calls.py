"""What a session knows of calls that a person is asked about, where the messages of a request do not tell.

A run that fails after its tools have run saves no turn, and a service that keeps the conversation does not show it. The
same answer, given once more, must not make the calls again, and another call than the one asked about must not be made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from agentbench.agents.history.open_calls import is_same_call
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message

#: Key in the state of a session: messages of a call each, with its result once it was made.
APPROVALS: Final = "approvals"


class KnownCalls:
    """The calls in the state of a session; without a session nothing is kept.

    Args:
        session: Of the run, if any.
    """

    __slots__ = ("_state",)

    def __init__(self, session: Any) -> None:
        self._state: dict[str, Any] | None = getattr(session, "state", None)

    def known(self) -> list[tuple[Content, Content | None]]:
        """The calls, oldest first, with their results; `None` for those that were not made."""
        kept = [one.contents for one in self._kept()]
        return [(one[0], one[1] if len(one) > 1 else None) for one in kept if one]

    def ask(self, questions: Iterable[Content], *, keep: bool) -> None:
        """Forget what was known of the calls that a person is asked about: models use ids again.

        Args:
            questions: What the person is asked.
            keep: Whether nothing else remembers the calls.
        """
        calls = [one.function_call for one in questions if one.function_call is not None]
        self.forget(lambda known: any(is_same_call(known, one) for one in calls))
        if keep:
            self._keep(Message("tool", [one]) for one in calls)

    def made(self, call: Content, result: Content) -> None:
        """Keep what came of a call."""
        self.forget(lambda known: is_same_call(known, call))
        self._keep([Message("tool", [call, result])])

    def forget(self, is_remembered: Callable[[Content], bool]) -> None:
        """Drop the calls that are remembered elsewhere."""
        if self._state is None or APPROVALS not in self._state:
            return
        kept = [one for one in self._kept() if one.contents and not is_remembered(one.contents[0])]
        if kept:
            self._state[APPROVALS] = kept
        else:
            del self._state[APPROVALS]

    def _kept(self) -> list[Message]:
        return [one for one in (self._state or {}).get(APPROVALS) or () if isinstance(one, Message)]

    def _keep(self, messages: Iterable[Message]) -> None:
        if self._state is not None:
            self._state[APPROVALS] = [*self._kept(), *messages]

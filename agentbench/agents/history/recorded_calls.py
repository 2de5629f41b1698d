"""Record calls in a session, for answers in runs whose messages do not contain the calls.

A run that fails after its tools ran saves no turn. If a service or a per-call history stores the conversation, the
messages of a run do not contain the calls. The session records these calls, so that an answer finds its request and
an answer that is sent again does not repeat its call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from agentbench.agents.history.pending_calls import RecordedCall, is_same_call
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message

APPROVALS: Final = "approvals"
"""Key in the state of a session: a message for each recorded call, with its requests and its result."""

_APPROVED: Final = "approved"
"""Key in the additional properties of such a message."""


class RecordedCalls:
    """The calls that a session records, oldest first; without a session, nothing is recorded."""

    def __init__(self, session: Any) -> None:
        self._state: dict[str, Any] | None = getattr(session, "state", None)

    def read(self) -> list[RecordedCall]:
        """Return the calls with their requests and, if available, their results."""
        calls: list[RecordedCall] = []
        for message in self._messages():
            call, *rest = message.contents
            result = rest.pop() if rest and rest[-1].type == "function_result" else None
            calls.append(RecordedCall(call, tuple(rest), result, message.additional_properties.get(_APPROVED) is True))
        return calls

    def add(self, recorded: RecordedCall) -> None:
        """Record a call; it replaces an equal earlier one, because models reuse ids."""
        call, requests, result, is_approved = recorded
        message = Message("tool", [call, *requests, *([] if result is None else [result])])
        if is_approved:
            message.additional_properties[_APPROVED] = True
        self.drop(lambda known: is_same_call(known, call), [message])

    def drop(self, is_dropped: Callable[[Content], bool], added: Iterable[Message] = ()) -> None:
        """Remove calls, and add messages for others."""
        if self._state is None or (APPROVALS not in self._state and not added):
            return
        remaining = [one for one in self._messages() if not is_dropped(one.contents[0])]
        self._state[APPROVALS] = [*remaining, *added]
        if not self._state[APPROVALS]:
            del self._state[APPROVALS]

    def _messages(self) -> list[Message]:
        stored = (self._state or {}).get(APPROVALS) or ()
        return [one for one in stored if isinstance(one, Message) and one.contents]

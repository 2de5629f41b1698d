"""Carrying out the answers to approval requests, and the record of calls that the messages of a run do not show.

A run that fails after its tools ran saves no turn, and where a service or a history around each call of the model holds
the conversation, the messages of a run lack the calls. The session records these calls, so that an answer that is sent
once more does not make its call again, and an answer that names other arguments is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from agentbench.agents.history.pending_calls import PendingCall, PendingCalls, RecordedCall, is_same_call
from agentbench.agents.loop.call import Outcome, ToolCall
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message

#: Key in the state of a session: a message for each recorded call, with its requests or its result.
APPROVALS: Final = "approvals"


def tool_call(pending: PendingCall) -> ToolCall:
    """Return the call that the answers to its requests lead to.

    A tool that raised requests about its own calls has begun: it continues with all answers, also those that reject.
    """
    inner = pending.inner_requests
    return ToolCall(pending.content, pending.approval, inner, tuple(pending.answers) if inner else ())


def take_outcomes(pending: PendingCalls, outcomes: Sequence[Outcome], record: ApprovalRecord) -> None:
    """Note the outcomes of the approved calls, and record those that the conversation does not hold."""
    record.replace(pending.has_result_of)
    for call, outcome in zip(pending.approved, outcomes, strict=True):
        call.result = outcome.result
        if outcome.result is not None:
            record.add(RecordedCall(call.content, (), outcome.result))
        elif call.is_repeated:
            record.add(RecordedCall(call.content, outcome.requests))


class ApprovalRecord:
    """The calls that a session records in its state; without a session it is empty and stays so."""

    def __init__(self, session: Any) -> None:
        self._state: dict[str, Any] | None = getattr(session, "state", None)

    def calls(self) -> list[RecordedCall]:
        """Return the calls, oldest first."""
        found: list[RecordedCall] = []
        for message in self._messages():
            call, *rest = message.contents
            result = rest.pop() if rest and rest[-1].type == "function_result" else None
            found.append(RecordedCall(call, tuple(rest), result))
        return found

    def add(self, recorded: RecordedCall) -> None:
        """Record a call, in place of an earlier one that is the same: models use ids again."""
        call, requests, result = recorded
        contents = [call, *requests, *([] if result is None else [result])]
        self.replace(lambda known: is_same_call(known, call), [Message("tool", contents)])

    def replace(self, is_dropped: Callable[[Content], bool], added: Iterable[Message] = ()) -> None:
        """Drop recorded calls, and add others."""
        if self._state is None or (APPROVALS not in self._state and not added):
            return
        messages = [*(one for one in self._messages() if not is_dropped(one.contents[0])), *added]
        if messages:
            self._state[APPROVALS] = messages
        else:
            del self._state[APPROVALS]

    def _messages(self) -> list[Message]:
        stored = (self._state or {}).get(APPROVALS) or ()
        return [one for one in stored if isinstance(one, Message) and one.contents]

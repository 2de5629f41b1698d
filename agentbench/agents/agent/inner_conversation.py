"""What an agent that is a tool said before it asked a person, so that it can go on once there is an answer.

An agent as a tool forgets everything between two calls. What it said until it asked travels in the question, which
stays in the conversation of the agent that called it, also when that is written and read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from agentbench.agents.loop.call import changed
from agentbench.agents.middleware.contexts import InnerApprovals
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse

_KEY: Final = "inner_conversation"


def conversation(told: Iterable[Message], response: AgentResponse[Any]) -> list[Message]:
    """What was said until an agent asked: what it was told, as its model saw that, and its answer."""
    resolved = getattr(response.raw_representation, "_resolved_inputs", None) or ()
    seen = {id(given): instead for given, instead in resolved}
    return [*(one for message in told for one in seen.get(id(message), [message])), *response.messages]


def with_conversation(requests: Iterable[Content], said: Sequence[Message]) -> list[Content]:
    """Return copies of requests that hold a conversation, if there is one to hold."""
    if not said:
        return list(requests)
    written = [message.to_dict() for message in said]
    return [_holding(request, written) for request in requests]


def continued(answered: InnerApprovals) -> list[Message]:
    """What an agent is told after a person answered what it asked.

    That is all that was said before, or only the question where a session remembers the rest; and the answers.
    """
    written = answered.requests[0].additional_properties.get(_KEY)
    if written:
        before = [Message.from_dict(message) for message in written]
    else:
        before = [Message("assistant", [changed(request, call_id=None) for request in answered.requests])]
    return [*before, Message("user", list(answered.answers))]


def _holding(request: Content, written: list[dict[str, Any]]) -> Content:
    copied = changed(request)
    copied.additional_properties[_KEY] = written
    return copied

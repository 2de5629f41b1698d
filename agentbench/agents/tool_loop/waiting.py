"""A call that waits for its result, while a conversation is read."""

from __future__ import annotations

from agentbench.agents.tool_loop.call import ToolCall
from agentbench.messages.content import Content


class WaitingCall:
    """A call and what was asked and answered about it.

    Args:
        content: The `function_call`. What is run is what the conversation has, whatever an answer says.
        at: The index of its message.
        talk: How many messages of others than the model and its tools came before it.
        is_untold: Whether the conversation does not have the call, only an answer to it.

    Attributes:
        requests: What a person was asked; only the last questions, if the tool asked once more.
        answers: To these.
        answered_at: The index of the message with the first of them.
        is_late: Whether others spoke before the result came, so that it has to be put behind the call.
        result: What the model is told.
    """

    __slots__ = ("answered_at", "answers", "at", "content", "is_late", "is_untold", "requests", "result", "talk")

    def __init__(self, content: Content, at: int, talk: int, *, is_untold: bool = False) -> None:
        self.content, self.at, self.talk, self.is_untold = content, at, talk, is_untold
        self.requests: list[Content] = []
        self.answers: list[Content] = []
        self.answered_at = at
        self.is_late = False
        self.result: Content | None = None

    def ask(self, request: Content) -> None:
        """Note a question; one that comes after answers begins anew."""
        if self.answers:
            self.requests, self.answers = [], []
        self.requests.append(request)

    def answer(self, answer: Content, at: int, talk: int) -> None:
        """Note an answer; of several to one question the first counts."""
        if not self.answers:
            self.answered_at, self.is_late = at, talk != self.talk
        if all(answer.id != known.id for known in self.answers):
            self.answers.append(answer)

    def settled(self) -> ToolCall | None:
        """Return the call that the answers lead to; `None` where they forbid it."""
        approval = self.answers[0] if all(answer.approved is True for answer in self.answers) else None
        inner = tuple(request for request in self.requests if self._is_of_inner_call(request))
        if inner:  # the tool was begun, and is told the answers, also those that forbid
            return ToolCall(self.content, approval, inner, tuple(self.answers))
        return None if approval is None else ToolCall(self.content, approval)

    def _is_of_inner_call(self, request: Content) -> bool:
        """Whether the tool asks about a call that it wants to make itself, as an agent does that is a tool."""
        asked = request.function_call
        if not request.call_id or asked is None:
            return False
        return (asked.call_id, asked.name) != (self.content.call_id, self.content.name)


def is_same_call(one: Content, other: Content) -> bool:
    """Whether two contents are one call, told twice."""
    return (one.call_id, one.name, one.arguments) == (other.call_id, other.name, other.arguments)

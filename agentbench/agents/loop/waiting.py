"""A call that waits for its result, while a conversation is read."""

from __future__ import annotations

from agentbench.agents.history.open_calls import UNANSWERED
from agentbench.agents.loop.call import ToolCall
from agentbench.messages.content.content import Content


class WaitingCall:
    """A call and what was asked and answered about it.

    Args:
        content: The `function_call`, as the conversation has it.
        at: The index of its message.
        is_untold: Whether the conversation does not have the call, only an answer to it.

    Attributes:
        requests: What a person was asked; only the last questions, if the tool asked once more.
        answers: To these.
        is_about_another: Whether one of them tells another call than the one that was asked about.
        result: What the model is told.
        is_given: Whether the conversation has the result.
        is_made_up: Whether the conversation has none, and the model has spoken since.
        source: The index of the message with the result, or with the first answer.
        remembered_at: The index of the message in whose place a result that is new is remembered.
    """

    __slots__ = (
        *("answers", "at", "content", "is_about_another", "is_given", "is_made_up", "is_untold", "remembered_at"),
        *("requests", "result", "source"),
    )

    def __init__(self, content: Content, at: int, *, is_untold: bool = False) -> None:
        self.content, self.at, self.is_untold = content, at, is_untold
        self.requests: list[Content] = []
        self.answers: list[Content] = []
        self.is_about_another = self.is_given = self.is_made_up = False
        self.result: Content | None = None
        self.source: int | None = None
        self.remembered_at: int | None = None

    @property
    def is_closed(self) -> bool:
        """Whether the conversation went on without an answer."""
        return self.result is not None and not self.answers and self.result.result == UNANSWERED

    def ask(self, request: Content) -> None:
        """Note a question; one that comes after answers, or after they are too late, begins anew."""
        if self.answers or self.is_made_up:
            self.requests, self.answers = [], []
            self.is_about_another = self.is_made_up = False
            self.result = self.source = None
        self.requests.append(request)

    def answer(self, answer: Content, at: int, *, is_about_another: bool = False) -> None:
        """Note an answer; of several to one question the first counts."""
        if any(answer.id == known.id for known in self.answers):
            return
        if not self.answers:
            self.source = at
        self.answers.append(answer)
        self.is_about_another = self.is_about_another or is_about_another

    def give(self, result: Content, at: int) -> None:
        """Note the result that the conversation has."""
        self.result, self.source, self.is_given, self.is_made_up = result, at, True, False

    def make_up(self, result: Content) -> None:
        """Note a result that the conversation does not have."""
        self.result, self.is_made_up = result, True

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

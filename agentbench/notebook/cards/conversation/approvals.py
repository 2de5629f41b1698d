"""Approvals of an agent's tool calls: a form for each, and the message that takes the answers to the next run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentbench.messages.message import Message
from agentbench.notebook.cards.conversation.model import approval_part, pending_requests
from agentbench.notebook.forms.form import request_form
from agentbench.notebook.runtime.kernel import show_in_cell
from agentbench.notebook.text.phrases import count_text

__all__ = ["Approvals"]


@dataclass(eq=False)
class _CallRequest:
    """The request to approve a call, as a form reads it."""

    request_id: str
    source_executor_id: str
    data: Mapping[str, object]
    response_type: Any = field(default=bool)


class Approvals:
    """The open approval requests of a conversation, with a form for each.

    Args:
        messages: The conversation.
        respond: Called with the message of answers once each form has one; `None`: the user takes it from `answer`.
        show: Returns the views of a conversation; displays it again when `respond` has returned a response.
    """

    def __init__(
        self,
        messages: Sequence[Message],
        respond: Callable[[Message], object] | None,
        show: Callable[[Sequence[Message]], dict[str, Any]],
    ) -> None:
        self._messages, self._respond, self._show = messages, respond, show
        pending = pending_requests(messages)
        self._requests = {content.id: content for content, _ in pending}
        self._answers: dict[str, bool] = {}
        self._display: Any = None
        self.forms = tuple(request_form(_as_request(*each), respond=self._take) for each in pending)

    @property
    def answer(self) -> Message:
        """The message with all answers; raises `ValueError` while one is missing."""
        if not self._answers or len(self._answers) < len(self._requests):
            answered = f"{len(self._answers)} of {count_text(len(self._requests), 'call')} waiting for approval"
            msg = f"{answered} were answered. Press Approve or Reject, or call answer(True) or answer(False) of a form."
            raise ValueError(msg)
        contents = [self._requests[each].to_function_approval_response(yes) for each, yes in self._answers.items()]
        return Message("user", contents)

    def display(self) -> None:
        """Display the conversation, and the forms below it."""
        self._display = show_in_cell(self._show(self._messages), raw=True, display_id=True)
        for form in self.forms:
            show_in_cell(form)

    def _take(self, request_id: str, approved: bool) -> object:
        self._answers[request_id] = approved
        if self._respond is None or len(self._answers) < len(self._requests):
            return None
        return self._go_on(self.answer, self._respond(self.answer))

    async def _go_on(self, answer: Message, outcome: Any) -> None:
        response = await outcome if inspect.isawaitable(outcome) else outcome
        messages = [*self._messages, answer, *getattr(response, "messages", ())]
        if self._display is not None:
            self._display.update(self._show(messages), raw=True)


def _as_request(content: Any, author: str) -> _CallRequest:
    part = approval_part(content)
    return _CallRequest(content.id, author, {"question": part.text, "context": part.arguments})

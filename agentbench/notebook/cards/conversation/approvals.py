"""Approvals of an agent's tool calls: a form for each, and the message with the answers for the next run."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from agentbench._text.phrases import count_text
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.notebook.cards.conversation.model import pending_requests
from agentbench.notebook.forms.form import Form, request_form
from agentbench.notebook.runtime.kernel import show_in_cell

if TYPE_CHECKING:
    from agentbench.notebook.cards.conversation.views import Transcript

# A saved notebook shows the conversation above the forms, so the forms need no picture.
_WIDGET = ("application/vnd.jupyter.widget-view+json", "text/plain")


@dataclass(eq=False)
class CallRequest:
    """The request to approve a call, in the format of forms."""

    request_id: str
    source_executor_id: str
    data: Content
    response_type: Any = bool


class Approvals:
    """The open approval requests of a transcript, with a form for each."""

    def __init__(self, transcript: Transcript) -> None:
        pending = pending_requests(transcript.messages)
        self._transcript = transcript
        self._requests = {content.id or "": content for content, _ in pending}
        self._answers: dict[str, bool | Content] = {}
        self._outputs: list[Any] = []
        self.forms = tuple(
            request_form(CallRequest(content.id or "", author, content), respond=self._take)
            for content, author in pending
        )

    @property
    def answer(self) -> Message:
        """The message with all answers; raises `ValueError` if one is missing."""
        if not self._answers or len(self._answers) < len(self._requests):
            answered = f"{len(self._answers)} of {count_text(len(self._requests), 'call')} waiting for approval"
            msg = f"{answered} were answered. Press Approve or Reject, or call answer(True) or answer(False) on a form."
            raise ValueError(msg)
        contents = [
            answer if isinstance(answer, Content) else self._requests[request_id].to_function_approval_response(answer)
            for request_id, answer in self._answers.items()
        ]
        return Message("user", contents)

    def display(self, outputs: Sequence[Any] = ()) -> None:
        """Display the conversation and the forms below it; reuses these outputs."""
        self._outputs = list(outputs)
        views = [self._transcript._repr_mimebundle_(), *self.forms]
        for view, output in zip_longest(views, outputs):
            how: dict[str, Any] = {"include": _WIDGET} if isinstance(view, Form) else {"raw": True}
            if output is None:
                self._outputs.append(show_in_cell(view, **how, display_id=True))
            else:
                output.update(view or {"text/plain": ""}, **how)

    def _take(self, request_id: str, answer: bool | Content) -> object:
        self._answers[request_id] = answer
        respond = self._transcript.respond
        if respond is None or len(self._answers) < len(self._requests):
            return None
        return self._send_answer(self.answer, respond(self.answer))

    async def _send_answer(self, answer: Message, outcome: Any) -> None:
        response = await outcome if inspect.isawaitable(outcome) else outcome
        messages = (*self._transcript.messages, answer, *getattr(response, "messages", ()))
        if self._outputs:
            Approvals(replace(self._transcript, messages=messages)).display(self._outputs)

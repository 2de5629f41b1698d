"""Clients and tools for tests of telemetry."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from agentbench.agents.model.client import BaseChatClient
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.update import ChatResponseUpdate

SAID = "the-question-nobody-may-read"
ANSWERED = "the-answer-nobody-may-read"
INSTRUCTED = "the-instructions-nobody-may-read"
ARGUMENT = "the-argument-nobody-may-read"
RESULT = "the-result-nobody-may-read"


def called(name: str, call_id: str = "c1", **arguments: Any) -> ChatResponse[Any]:
    """An answer that calls a tool; 5 tokens read, 2 written."""
    return ChatResponse(
        messages=[Message("assistant", [Content.from_function_call(call_id, name, arguments=arguments)])],
        response_id=f"r-{call_id}",
        model="mm",
        finish_reason="tool_calls",
        usage_details={"input_token_count": 5, "output_token_count": 2},
    )


def said(text: str = ANSWERED, response_id: str = "r-end") -> ChatResponse[Any]:
    """An answer in words; 10 tokens read, 20 written."""
    return ChatResponse(
        messages=[Message("assistant", [text])],
        response_id=response_id,
        model="mm",
        finish_reason="stop",
        usage_details={"input_token_count": 10, "output_token_count": 20},
    )


def updates_of(response: ChatResponse[Any]) -> list[ChatResponseUpdate]:
    """A response in pieces: text word by word, the rest at once, then what it used."""
    updates = []
    for message in response.messages:
        for content in message.contents:
            pieces = [Content.from_text(letter) for letter in content.text or ""] or [content]
            updates += [ChatResponseUpdate(contents=[piece], role="assistant") for piece in pieces]
    end = ChatResponseUpdate(
        contents=[Content.from_usage(response.usage_details)] if response.usage_details else [],
        role="assistant",
        response_id=response.response_id,
        model=response.model,
        finish_reason=response.finish_reason,
    )
    return [*updates, end]


class Model(BaseChatClient[Any]):
    """Gives its answers one after the other; an exception among them is raised, in a stream after the first piece."""

    OTEL_PROVIDER_NAME = "cc"

    def __init__(self, *answers: Any, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.answers = list(answers)
        self.closed = 0

    def service_url(self) -> str:
        return "https://models.example.com:8443/v1"

    async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **more: Any) -> Any:
        answer = self.answers.pop(0)
        if stream:
            return self._streamed(answer)
        await asyncio.sleep(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def _streamed(self, answer: Any) -> AsyncIterator[ChatResponseUpdate]:
        try:
            if isinstance(answer, BaseException):
                yield ChatResponseUpdate(contents=[Content.from_text("…")], role="assistant")
                raise answer
            for update in updates_of(answer):
                await asyncio.sleep(0)
                yield update
        finally:
            self.closed += 1

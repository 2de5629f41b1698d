"""Clients for tests of agents: one derived from ours, and one of another library that only fits the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

from agentbench import ChatResponse, ChatResponseUpdate, Content, Message
from agentbench.agents.model.client import BaseChatClient


class Asked(NamedTuple):
    """One call of a model."""

    messages: list[Message]
    options: dict[str, Any]
    more: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.messages]

    @property
    def roles(self) -> list[str]:
        return [message.role for message in self.messages]


def call(name: str, call_id: str = "c1", **arguments: Any) -> Content:
    return Content.from_function_call(call_id, name, arguments=arguments)


def as_response(answer: Any) -> ChatResponse[Any]:
    """What an entry of a list of answers stands for: a text, contents of one message, messages, or a response."""
    if isinstance(answer, ChatResponse):
        return answer
    if isinstance(answer, (str, Content)):
        answer = [answer]
    if isinstance(answer[0], Message):
        return ChatResponse(messages=answer)
    return ChatResponse(messages=[Message("assistant", list(answer))])


class Model(BaseChatClient[Any]):
    """Gives its answers one after the other, then numbered texts, and notes what it was asked.

    Streams a text word by word, and contents in one update a message; a response is given whole.
    """

    def __init__(self, *answers: Any, model: str | None = None, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.model = model
        self.answers = list(answers)
        self.asked: list[Asked] = []
        self.closed = 0

    async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **more: Any) -> Any:
        self.asked.append(Asked(list(messages), dict(options), more))
        number = len(self.asked)
        answer = self.answers.pop(0) if self.answers else f"answer {number}"
        if callable(answer):
            answer = answer(messages)
        if isinstance(answer, BaseException):
            raise answer
        return self._updates(answer) if stream and not isinstance(answer, ChatResponse) else as_response(answer)

    async def _updates(self, answer: Any) -> AsyncIterator[ChatResponseUpdate]:
        try:
            async for update in updates_of(answer):
                yield update
        except GeneratorExit:
            self.closed += 1
            raise


async def updates_of(answer: Any) -> AsyncIterator[ChatResponseUpdate]:
    response = as_response(answer)
    for message in response.messages:
        pieces: Sequence[Any] = [message.contents]
        if len(message.contents) == 1 and message.contents[0].type == "text":
            words = message.text.split(" ")
            pieces = [[word + " "] for word in words[:-1]] + [[words[-1]]]
        for piece in pieces:
            await asyncio.sleep(0)
            yield ChatResponseUpdate(
                contents=list(piece),
                role=message.role,
                author_name=message.author_name,
                message_id=str(message.message_id or "") or None,
                response_id=response.response_id,
                conversation_id=response.conversation_id,
            )


class Stranger:
    """A client of another library: no base class, and a `get_response` that takes nothing it does not need."""

    def __init__(self, *answers: Any) -> None:
        self.additional_properties: dict[str, Any] = {}
        self.answers = list(answers)
        self.asked: list[tuple[list[Message], dict[str, Any]]] = []

    def get_response(self, messages: list[Message], **given: Any) -> Any:
        self.asked.append((list(messages), given))
        answer = self.answers.pop(0) if self.answers else "hello from elsewhere"
        if given.get("stream"):
            return updates_of(answer)
        return asyncio.sleep(0, as_response(answer))

"""A client that answers from a script, and both ways of asking it."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from agentbench.agents.model.client import BaseChatClient
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.update import ChatResponseUpdate

MODES = ["whole", "streamed"]


class Script(BaseChatClient[Any]):
    """Gives its answers one by one: a `ChatResponse`, a list of updates, or an error to raise.

    Attributes:
        seen: The messages of each call, as they were then.
        options: The options of each call.
        closed: How many streams were closed before their end.
    """

    def __init__(self, *answers: Any, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.answers = list(answers)
        self.seen: list[list[Message]] = []
        self.options: list[dict[str, Any]] = []
        self.keywords: list[dict[str, Any]] = []
        self.closed = 0

    def _inner_get_response(
        self, *, messages: Sequence[Any], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Any:
        self.seen.append([copy.copy(message) for message in messages])
        self.options.append(dict(options))
        self.keywords.append(kwargs)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return self._updates(answer) if isinstance(answer, list) else answer

    async def _updates(self, updates: list[ChatResponseUpdate]) -> AsyncIterator[ChatResponseUpdate]:
        finished = False
        try:
            for update in updates:
                yield update
            finished = True
        finally:
            self.closed += not finished

    def roles(self, call: int) -> list[str]:
        """The roles of the messages of one call."""
        return [message.role for message in self.seen[call]]


async def ask(
    client: BaseChatClient[Any], messages: Any = "q", *, mode: str = "whole", **keywords: Any
) -> ChatResponse[Any]:
    """Ask in one of the two ways, and return the response."""
    response: ChatResponse[Any]
    if mode == "whole":
        response = await client.get_response(messages, **keywords)
        return response
    stream = client.get_response(messages, stream=True, **keywords)
    async for _ in stream:
        pass
    response = await stream.get_final_response()
    return response


def call(call_id: str, name: str, arguments: Any = None) -> Content:
    return Content.from_function_call(call_id, name, arguments=arguments)


def says(*contents: Any, **fields: Any) -> ChatResponse[Any]:
    """An answer of one message."""
    return ChatResponse(messages=[Message("assistant", list(contents))], **fields)


def shape(response: ChatResponse[Any]) -> list[tuple[str, list[str]]]:
    """Roles and kinds of contents."""
    return [(message.role, [content.type for content in message.contents]) for message in response.messages]


def results(response: ChatResponse[Any]) -> list[Any]:
    """The results in a response, in order."""
    contents = [content for message in response.messages for content in message.contents]
    return [content.result for content in contents if content.type == "function_result"]

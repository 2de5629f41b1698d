"""What clients have in common that make their answers themselves, from entries of a script."""

from __future__ import annotations

import asyncio
import inspect
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentbench.agents.clients.scripted.chunks import updates_of
from agentbench.agents.clients.scripted.script import Chunk, Ids, Reply, ScriptEntry, read_entry
from agentbench.agents.model.client import BaseChatClient
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.stream import ResponseStream
from agentbench.messages.update import ChatResponseUpdate

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from agentbench.agents.clients.scripted.layers import ClientLayers

__all__ = ["AnsweringChatClient", "last_user_text"]

_CHUNKS = ("word", "char", "whole")

NO_USER_MESSAGE = "(no user message)"


class AnsweringChatClient(BaseChatClient[Any]):
    """A client without a model, network, clock or chance: equal questions in equal order give equal answers and ids.

    Args:
        model: The name that its answers give.
        chunk: In what pieces it streams text.
        delay: How long it takes: before an answer, and before every piece of a streamed one. In seconds.
        **layers: As for every client: middleware, configuration of the tool loop, compaction.

    Raises:
        ValueError: `chunk` or `delay` is not possible.
    """

    def __init__(self, *, model: str, chunk: Chunk, delay: float = 0, **layers: Unpack[ClientLayers]) -> None:
        if chunk not in _CHUNKS:
            message = f"chunk is {chunk!r}; expected one of {', '.join(_CHUNKS)}."
            raise ValueError(message)
        super().__init__(**layers)
        self.model = model
        self.chunk: Chunk = chunk
        self.delay = checked_delay(delay)
        self._ids = Ids()

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Awaitable[ChatResponse[Any]] | ResponseStream[ChatResponseUpdate, ChatResponse[Any]]:
        if not stream:
            return self._respond(messages, options, kwargs)
        updates = self._stream(messages, options, kwargs)
        return self._build_response_stream(updates, response_format=options.get("response_format"))

    async def _respond(
        self, messages: Sequence[Message], options: Mapping[str, Any], kwargs: dict[str, Any]
    ) -> ChatResponse[Any]:
        reply = await self._reply(messages, options, stream=False, client_kwargs=kwargs)
        if self.delay:
            await asyncio.sleep(self.delay)
        if isinstance(reply, ChatResponse):
            return reply
        return ChatResponse.from_updates(reply, output_format_type=options.get("response_format"))

    async def _stream(
        self, messages: Sequence[Message], options: Mapping[str, Any], kwargs: dict[str, Any]
    ) -> AsyncIterator[ChatResponseUpdate]:
        reply = await self._reply(messages, options, stream=True, client_kwargs=kwargs)
        for update in updates_of(reply, self.chunk) if isinstance(reply, ChatResponse) else reply:
            if self.delay:
                await asyncio.sleep(self.delay)
            yield update

    @abstractmethod
    async def _reply(
        self,
        messages: Sequence[Message],
        options: Mapping[str, Any],
        *,
        stream: bool,
        client_kwargs: Mapping[str, Any],
    ) -> Reply:
        """Answer one call."""

    def _read(self, entry: ScriptEntry, messages: Sequence[Message], options: Mapping[str, Any]) -> Reply:
        return read_entry(entry, messages=messages, options=options, ids=self._ids, model=self.model)


async def settled(entry: ScriptEntry, messages: Sequence[Message], options: Mapping[str, Any]) -> ScriptEntry:
    """Call an entry that is a function, and raise one that is an exception."""
    while callable(entry) and not isinstance(entry, type):
        entry = entry(messages, options)
        if inspect.isawaitable(entry):
            entry = await entry
    if isinstance(entry, BaseException) or (isinstance(entry, type) and issubclass(entry, BaseException)):
        raise entry
    return entry


def last_user_text(messages: Sequence[Message]) -> str | None:
    """What the user said last, `None` if no message is a user's."""
    return next((message.text for message in reversed(messages) if message.role == "user"), None)


def checked_delay(delay: float) -> float:
    """Return a delay in seconds.

    Raises:
        ValueError: It is below zero.
    """
    if delay < 0:
        message = f"delay is {delay!r}; expected 0 or more seconds."
        raise ValueError(message)
    return delay

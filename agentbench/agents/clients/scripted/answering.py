"""The base of the clients that make their answers themselves, from entries of a script."""

from __future__ import annotations

import asyncio
import inspect
import re
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, cast

from agentbench.agents.clients.scripted.script import Chunk, Ids, Reply, ScriptEntry, read_entry
from agentbench.agents.model.client import BaseChatClient
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.stream import ResponseStream
from agentbench.messages.update import ChatResponseUpdate

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from agentbench.agents.compaction.protocols import CompactionStrategy, TokenizerProtocol
    from agentbench.agents.loop.configuration import FunctionInvocationConfiguration
    from agentbench.agents.middleware.bases import MiddlewareInput

_CHUNKS = ("word", "char", "whole")
_WORD = re.compile(r"\S*\s+|\S+")


class ClientLayers(TypedDict, total=False):
    """The arguments that every client takes for what runs around its model, as the constructor of `BaseChatClient`."""

    middleware: MiddlewareInput
    function_invocation_configuration: FunctionInvocationConfiguration | Mapping[str, Any] | None
    compaction_strategy: CompactionStrategy | None
    tokenizer: TokenizerProtocol | None
    additional_properties: Mapping[str, Any] | None
    otel_provider_name: str | None


class AnsweringChatClient(BaseChatClient[Any]):
    """A client without a model, network, clock or chance: equal requests in equal order get equal answers and ids."""

    def __init__(self, *, model: str, chunk: Chunk, delay: float = 0, **layers: Unpack[ClientLayers]) -> None:
        if chunk not in _CHUNKS:
            message = f"chunk is {chunk!r}; expected one of {', '.join(_CHUNKS)}."
            raise ValueError(message)
        super().__init__(**layers)
        self.model = model
        self.chunk: Chunk = chunk
        self.delay = require_delay(delay)
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
    async def _reply(self, messages: Sequence[Message], options: Mapping[str, Any], **call: Any) -> Reply:
        """Return the answer to one call, of which `stream` and `client_kwargs` are known too."""

    def _read(self, entry: ScriptEntry, messages: Sequence[Message], options: Mapping[str, Any]) -> Reply:
        return read_entry(entry, messages=messages, options=options, ids=self._ids, model=self.model)


def updates_of(response: ChatResponse[Any], chunk: Chunk) -> list[ChatResponseUpdate]:
    """Return the updates that fold to a response; the last one has its finish reason and usage."""
    facts: dict[str, Any] = {
        "response_id": response.response_id,
        "conversation_id": response.conversation_id,
        "model": response.model,
    }
    updates = [
        ChatResponseUpdate(
            contents=contents,
            role=message.role,
            author_name=message.author_name,
            message_id=cast(Any, message.message_id),
            created_at=response.created_at,
            **facts,
        )
        for message in response.messages
        for contents in _pieces(message.contents, chunk)
    ] or [ChatResponseUpdate(**facts)]
    last = updates[-1]
    last.finish_reason = response.finish_reason
    last.continuation_token = response.continuation_token
    last.additional_properties = dict(response.additional_properties) or None
    if response.usage_details is not None:
        last.contents = [*last.contents, Content.from_usage(response.usage_details)]
    return updates


def _pieces(contents: list[Content], chunk: Chunk) -> Iterator[list[Content]]:
    """The contents one by one, texts in pieces; a word has the space behind it."""
    if not contents:
        yield []
    for content in contents:
        is_plain = content.type == "text" and not content.annotations and not content.additional_properties
        if is_plain and content.text and chunk != "whole":
            pieces = list(content.text) if chunk == "char" else _WORD.findall(content.text)
            yield from ([Content.from_text(piece)] for piece in pieces)
        else:
            yield [content]


async def play_entry(entry: ScriptEntry, messages: Sequence[Message], options: Mapping[str, Any]) -> ScriptEntry:
    """Call an entry that is a function, raise one that is an exception, and return any other."""
    while callable(entry) and not isinstance(entry, type):
        entry = entry(messages, options)
        if inspect.isawaitable(entry):
            entry = await entry
    if isinstance(entry, BaseException) or (isinstance(entry, type) and issubclass(entry, BaseException)):
        raise entry
    return entry


def echo(messages: Sequence[Message], prefix: str = "Echo: ") -> str:
    """Return the text of the user's last message behind a prefix; `(no user message)` if there is none."""
    prompt = last_user_text(messages)
    return "(no user message)" if prompt is None else prefix + prompt


def last_user_text(messages: Sequence[Message]) -> str | None:
    """Return the text of the user's last message, `None` if no message is a user's."""
    return next((message.text for message in reversed(messages) if message.role == "user"), None)


def require_delay(delay: float) -> float:
    """Return a delay in seconds, which is not below zero."""
    if delay < 0:
        message = f"delay is {delay!r}; expected 0 or more seconds."
        raise ValueError(message)
    return delay

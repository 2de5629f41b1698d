"""The shapes of a reply that a client's hook may return, as one response or as one stream."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, TypeAlias

from agentbench.agents.history.unique_calls import with_unique_calls
from agentbench.exceptions import ChatClientInvalidResponseException
from agentbench.messages.content.content import Content
from agentbench.messages.response import ChatResponse
from agentbench.messages.stream import ResponseStream
from agentbench.messages.update import ChatResponseUpdate, ids_apart

ChatStream: TypeAlias = ResponseStream[ChatResponseUpdate, ChatResponse[Any]]
BuildStream: TypeAlias = Callable[[AsyncIterable[ChatResponseUpdate]], ChatStream]


async def response_of(reply: Any, build_stream: BuildStream) -> ChatResponse[Any]:
    """Return a reply as a response: a response, a stream, an iterable of updates, or an awaitable of one of them."""
    stream = await _await_reply(reply)
    if isinstance(stream, ChatResponse):
        return stream
    if not isinstance(stream, ResponseStream):
        stream = build_stream(stream)
    try:
        final: ChatResponse[Any] = await stream.get_final_response()
    finally:
        await stream.aclose()
    if not isinstance(final, ChatResponse):
        raise _invalid(final)
    return final


async def stream_of(reply: Any, build_stream: BuildStream) -> ChatStream:
    """Return a reply as a stream; see `response_of`."""
    reply = await _await_reply(reply)
    if isinstance(reply, ResponseStream):
        return reply
    if isinstance(reply, ChatResponse):
        return response_as_stream(reply)
    return build_stream(reply)


async def _await_reply(reply: Any) -> Any:
    """Return the response, stream or async iterable that a reply is, or that awaiting it gives; streams are both."""
    while not (isinstance(reply, (ChatResponse, ResponseStream)) or hasattr(reply, "__aiter__")):
        if not isinstance(reply, Awaitable):
            raise _invalid(reply)
        reply = await reply
    return reply


def response_as_stream(response: ChatResponse[Any]) -> ChatStream:
    """Return a stream with one update per message, whose final response is the response itself."""

    async def updates() -> AsyncIterator[ChatResponseUpdate]:
        for update in updates_of(response):
            yield update

    return ResponseStream(updates(), finalizer=lambda _: response)


def updates_of(
    response: ChatResponse[Any], split: Callable[[list[Content]], Iterable[list[Content]]] = lambda contents: [contents]
) -> list[ChatResponseUpdate]:
    """Return the updates that fold to a response; `split` cuts the contents of a message into those of updates."""
    response = with_unique_calls(response)  # pieces with one id would fold to one call
    ids = ids_apart(response.messages)
    updates = [
        ChatResponseUpdate(
            contents=contents,
            role=message.role,
            author_name=message.author_name,
            message_id=message_id,
            response_id=response.response_id,
            conversation_id=response.conversation_id,
            model=response.model,
            created_at=response.created_at,
            raw_representation=message.raw_representation,
        )
        for message, message_id in zip(response.messages, ids, strict=True)
        for contents in split(message.contents)
    ] or [
        ChatResponseUpdate(
            response_id=response.response_id, conversation_id=response.conversation_id, model=response.model
        )
    ]
    last = updates[-1]
    last.finish_reason = response.finish_reason
    last.continuation_token = response.continuation_token
    last.additional_properties = dict(response.additional_properties) or None
    if response.usage_details is not None:
        last.contents = [*last.contents, Content.from_usage(response.usage_details)]
    return updates


def _invalid(reply: object) -> ChatClientInvalidResponseException:
    message = (
        f"The reply of the client is of type {type(reply).__name__}. Expected a ChatResponse, a ResponseStream, an "
        "async iterable of ChatResponseUpdate, or an awaitable of one of them: see BaseChatClient._inner_get_response."
    )
    return ChatClientInvalidResponseException(message)

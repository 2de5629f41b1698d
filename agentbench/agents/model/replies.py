"""Convert the replies that `_inner_get_response` may return to a response or a stream."""

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
    """Convert a reply (a response, stream, iterable of updates, or an awaitable of one of them) to a response."""
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
    """Convert a reply to a stream; see `response_of`."""
    reply = await _await_reply(reply)
    if isinstance(reply, ResponseStream):
        return reply
    if isinstance(reply, ChatResponse):
        return response_as_stream(reply)
    return build_stream(reply)


async def _await_reply(reply: Any) -> Any:
    """Await a reply if necessary, and return the response, stream or async iterable. Streams are not awaited."""
    while not (isinstance(reply, (ChatResponse, ResponseStream)) or hasattr(reply, "__aiter__")):
        if not isinstance(reply, Awaitable):
            raise _invalid(reply)
        reply = await reply
    return reply


def response_as_stream(response: ChatResponse[Any]) -> ChatStream:
    """Convert a response to a stream with one update per message; its final response is the response itself."""

    async def updates() -> AsyncIterator[ChatResponseUpdate]:
        for update in updates_of(response):
            yield update

    return ResponseStream(updates(), finalizer=lambda _: response)


def updates_of(
    response: ChatResponse[Any], split: Callable[[list[Content]], Iterable[list[Content]]] = lambda contents: [contents]
) -> list[ChatResponseUpdate]:
    """Return updates that combine to the response; `split` distributes the contents of a message over updates."""
    response = with_unique_calls(response)  # pieces with the same id would be combined into one call
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
        f"The client's reply has type {type(reply).__name__}. Expected a ChatResponse, a ResponseStream, an "
        "async iterable of ChatResponseUpdate, or an awaitable of one of them: see BaseChatClient._inner_get_response."
    )
    return ChatClientInvalidResponseException(message)

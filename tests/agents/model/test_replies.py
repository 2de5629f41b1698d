from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from agentbench.agents.model.request import response_as_stream, response_of, stream_of
from agentbench.exceptions import ChatClientInvalidResponseException
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.stream import ResponseStream
from agentbench.messages.update import ChatResponseUpdate
from tests.parts.errors import raises


def build_response_stream(updates: Any) -> ResponseStream[Any, Any]:
    return ResponseStream(updates, finalizer=ChatResponse.from_updates)


async def updates() -> AsyncIterator[ChatResponseUpdate]:
    yield ChatResponseUpdate(text="a", role="assistant")
    yield ChatResponseUpdate(text="b")


async def promised(value: Any) -> Any:
    return value


@pytest.mark.parametrize("reply", [lambda: None, lambda: promised(7)])
async def test_anything_else_is_refused_by_its_type(reply: Any) -> None:
    with pytest.raises(ChatClientInvalidResponseException):
        await response_of(reply(), build_response_stream)
    with raises(ChatClientInvalidResponseException, "ChatResponse"):
        await stream_of(reply(), build_response_stream)


async def test_a_stream_that_makes_something_else_in_the_end_is_refused() -> None:
    stream: Any = ResponseStream(updates())

    with raises(ChatClientInvalidResponseException, "list"):
        await response_of(stream, build_response_stream)


@pytest.mark.parametrize("ids", [(None, None), ("x", None), ("x", "x")])
async def test_neighbours_of_one_role_stay_two_messages(ids: tuple[Any, Any]) -> None:
    response = ChatResponse(
        messages=[Message("assistant", [text], message_id=id_) for text, id_ in zip("ab", ids, strict=True)]
    )

    told = [update async for update in response_as_stream(response)]

    assert [message.text for message in ChatResponse.from_updates(told).messages] == ["a", "b"]


async def test_a_streamed_response_without_messages_has_its_usage() -> None:
    response = ChatResponse(response_id="r", usage_details={"input_token_count": 3}, finish_reason="length")

    told = [update async for update in response_as_stream(response)]

    folded = ChatResponse.from_updates(told)
    assert (folded.response_id, folded.usage_details, folded.finish_reason) == ("r", {"input_token_count": 3}, "length")

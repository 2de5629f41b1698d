"""Read by the type checker, never run: contents, messages, responses and streams as callers write them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, assert_type

from pydantic import BaseModel

from agentbench import (
    AgentResponse,
    AgentResponseUpdate,
    ChatOptions,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    Message,
    ResponseStream,
    map_chat_to_agent_update,
    normalize_messages,
)


class City(BaseModel):
    name: str


async def updates() -> AsyncIterator[ChatResponseUpdate]:
    yield ChatResponseUpdate(text="hi")


def contents() -> None:
    content = Content.from_text("a", additional_properties={"x": 1})
    assert_type(content, Content)
    assert_type(content.text, str | None)
    content.user_input_request = True
    Content.from_text("a", colour="red")  # type: ignore[call-arg]
    Content("text", uri=5)  # type: ignore[arg-type]
    assert_type(content + content, Content)


def messages() -> None:
    message = Message("user", ["a", content := Content.from_text("b"), {"type": "text", "text": "c"}], text="d")
    assert_type(message.contents, list[Content])
    assert_type(message.text, str)
    assert_type(normalize_messages(["a", content, message]), list[Message])
    options: ChatOptions[City] = {"temperature": 0.5, "response_format": City}
    wrong: ChatOptions[City] = {"temperature": "hot"}  # type: ignore[typeddict-item]
    assert options != wrong


def responses(answer: AgentResponse[City], loose: ChatResponse) -> None:
    assert_type(answer.value, City | None)
    assert_type(answer.try_value(), City | None)
    assert_type(answer.raise_for_user_input(), AgentResponse[City])
    assert_type(loose.value, Any | None)


def without_brackets(answer: AgentResponse, stream: ResponseStream) -> None:
    said = ChatResponse(messages=[Message("user", "a")])
    assert_type(said, ChatResponse[Any])
    assert_type(answer, AgentResponse[Any])
    assert_type(stream, ResponseStream[Any, Any])


async def streams() -> None:
    chat = ResponseStream(updates(), finalizer=ChatResponse[Any].from_updates)
    assert_type(await chat.get_final_response(), ChatResponse[Any])
    agent = chat.map(lambda update: map_chat_to_agent_update(update, "Ann"), AgentResponse[City].from_updates)
    assert_type(agent, ResponseStream[AgentResponseUpdate, AgentResponse[City]])
    async with agent as stream:
        async for update in stream:
            assert_type(update, AgentResponseUpdate)
    assert_type(agent.with_cleanup_hook(lambda: None), ResponseStream[AgentResponseUpdate, AgentResponse[City]])
    assert_type(chat.with_finalizer(len), ResponseStream[ChatResponseUpdate, int])

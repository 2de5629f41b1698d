"""What a subclass of BaseChatClient gets for one method."""

from __future__ import annotations

from collections.abc import AsyncIterable, Mapping, Sequence
from typing import Any

import pytest

from agentbench import (
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Message,
    MiddlewareException,
    ResponseStream,
    SecretString,
    agent_middleware,
)
from tests.agents.loop.scripts import Script, ask, says


class EchoClient(BaseChatClient):
    """One async hook for both ways of answering, as the first client of one's own is written."""

    async def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> ChatResponse | ResponseStream[ChatResponseUpdate, ChatResponse]:
        heard = [message.text for message in messages if message.role == "user"]
        reply = f"Echo: {heard[-1] if heard else '(no user message)'}"
        if not stream:
            return ChatResponse(messages=[Message("assistant", [reply])])

        async def words() -> AsyncIterable[ChatResponseUpdate]:
            for word in reply.split():
                yield ChatResponseUpdate(role="assistant", contents=[{"type": "text", "text": f"{word} "}])

        return self._build_response_stream(words())


class Coroutine(BaseChatClient[Any]):
    """A plain function that returns what an async one promises."""

    def _inner_get_response(self, **kwargs: Any) -> Any:
        return EchoClient()._inner_get_response(**kwargs)


class Direct(BaseChatClient[Any]):
    """A plain function that returns a response or a stream."""

    def __init__(self) -> None:
        pass  # does without the base's constructor

    def _inner_get_response(self, *, messages: Any, stream: bool, **_: Any) -> Any:
        text = f"Echo: {messages[-1].text}"
        if not stream:
            return ChatResponse(text=text)

        async def words() -> AsyncIterable[ChatResponseUpdate]:
            for word in text.split():
                yield ChatResponseUpdate(text=f"{word} ", role="assistant")

        return self._build_response_stream(words())


class Generator(BaseChatClient[Any]):
    """An async generator, asked for a stream or not."""

    async def _inner_get_response(self, *, messages: Any, **_: Any) -> Any:
        for word in f"Echo: {messages[-1].text}".split():
            yield ChatResponseUpdate(text=f"{word} ", role="assistant")


class Whole(BaseChatClient[Any]):
    """A whole response, asked for a stream or not."""

    async def _inner_get_response(self, *, messages: Any, **_: Any) -> Any:
        return ChatResponse(text=f"Echo: {messages[-1].text}")


every_client = pytest.mark.parametrize("make", [EchoClient, Coroutine, Direct, Generator, Whole])


@every_client
async def test_a_client_answers_whole_and_as_a_stream_that_needs_no_await(make: Any) -> None:
    assert (await make().get_response([Message("user", ["hi there"])])).text == "Echo: hi there"
    stream = make().get_response([Message("user", ["hi there"])], stream=True)

    updates = [update async for update in stream]

    assert "".join(update.text for update in updates).strip() == "Echo: hi there"
    assert (await stream.get_final_response()).text == "Echo: hi there"


def test_a_client_is_written_with_its_additional_properties_flat() -> None:
    assert EchoClient(additional_properties={"a": 1}).to_dict() == {"type": "echo_client", "a": 1}
    assert EchoClient(middleware=[], otel_provider_name="x", tokenizer=None).to_dict() == {"type": "echo_client"}
    assert Direct().to_dict() == {"type": "direct"}
    secret = {"key": SecretString("hidden"), "api_key": "hidden", "more": [{"token": "hidden", "max_tokens": 1}]}
    shown = {"type": "echo_client", "key": "SecretString('**********')", "more": [{"max_tokens": 1}]}
    assert EchoClient(additional_properties=secret).to_dict() == shown
    assert EchoClient(additional_properties={"a": 1}).to_dict(exclude={"a"}) == {"type": "echo_client"}


def test_a_client_shows_its_class_and_model() -> None:
    client = EchoClient()
    assert repr(client) == "EchoClient()"
    client.model = "m-1"  # type: ignore[attr-defined]
    assert repr(client) == "EchoClient(model='m-1')"


async def test_client_kwargs_reach_the_hook_but_for_those_that_are_used_before() -> None:
    client = Script(says("hi"))

    await ask(
        client,
        client_kwargs={"session": None, "middleware": [], "user_id": 7, "function_invocation_configuration": {}},
        mode="streamed",
    )

    assert client.keywords == [{"user_id": 7}]


def test_agent_middleware_and_what_is_none_are_refused() -> None:
    @agent_middleware
    async def around(context: Any, call_next: Any) -> None:
        await call_next()

    for wrong in (around, "nothing"):
        with pytest.raises(MiddlewareException):
            EchoClient(middleware=[wrong])  # type: ignore[list-item]
        with pytest.raises(MiddlewareException):
            EchoClient().get_response("q", middleware=[wrong])  # type: ignore[list-item]

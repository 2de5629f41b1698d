"""Chat Completions over a real connection."""

from __future__ import annotations

import asyncio
import copy
import gc
from typing import Annotated, Any

import pytest

from agentbench._extras import require
from agentbench.agents.tools.decorator import tool
from agentbench.exceptions import ChatClientException, ChatClientInvalidAuthException, ChatClientInvalidRequestException
from agentbench.messages.message import Message
from agentbench.openai import OpenAIChatClient, OpenAIChatCompletionClient
from tests.parts.errors import raises
from tests.servers import openai_wire as wire
from tests.servers.openai_server import Gate, OpenAIServer, happened, reply, stream

openai = pytest.importorskip("openai", reason="openai is not installed (extra openai)")

KEY = "sk-very-secret-1234"


def client_of(server: OpenAIServer, **settings: Any) -> OpenAIChatClient:
    return OpenAIChatClient("m", base_url=server.url, **{"max_retries": 0, **settings})


@tool
def add(a: Annotated[int, "first"], b: int) -> int:
    """Add two numbers."""
    return a + b


# ------------------------------------------------------------------------------------------------------------- requests


async def test_a_question_is_sent_and_answered(server: OpenAIServer) -> None:
    server.answer(reply(wire.completion("Hi.", usage=wire.usage(3, 1))))
    async with client_of(server, api_key=KEY, org_id="org") as client:
        response = await client.get_response("Hello", options={"temperature": 0.5, "instructions": "Be brief."})
    assert response.text == "Hi."
    assert response.usage_details == {"input_token_count": 3, "output_token_count": 1, "total_token_count": 4}
    request = server.requests[0]
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["openai-organization"] == "org"
    assert request.body == {
        "model": "m",
        "temperature": 0.5,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}],
    }


async def test_instructions_have_the_role_that_was_chosen(server: OpenAIServer) -> None:
    server.answer(reply(wire.completion()))
    async with client_of(server, instruction_role="developer") as client:
        await client.get_response("Hello", options={"instructions": "Be brief."})
    assert server.bodies[0]["messages"][0] == {"role": "developer", "content": "Be brief."}


async def test_options_that_the_sdk_does_not_know_are_sent_all_the_same(server: OpenAIServer) -> None:
    server.answer(reply(wire.completion()))
    async with client_of(server) as client:
        await client.get_response(
            "x",
            options={"top_k": 3, "model": "other", "seed": 1, "extra_body": {"a": 1}, "extra_headers": {"X-A": "b"}},
        )
    assert server.bodies[0]["top_k"] == 3
    assert server.bodies[0]["model"] == "other"
    assert server.bodies[0]["seed"] == 1
    assert server.bodies[0]["a"] == 1
    assert server.requests[0].headers["x-a"] == "b"


async def test_without_a_message_nothing_is_sent(server: OpenAIServer) -> None:
    async with client_of(server) as client:
        for messages in ([], [Message("assistant")]):
            with pytest.raises(ChatClientInvalidRequestException):
                await client.get_response(messages)
    assert server.requests == []


async def test_the_callers_messages_and_options_are_not_changed(server: OpenAIServer) -> None:
    server.answer(reply(wire.completion()))
    messages = [Message("user", ["a"])]
    options = {"tools": [add], "tool_choice": "auto", "extra_headers": {"X-A": "b"}, "metadata": {"a": "b"}}
    before = copy.deepcopy(messages), dict(options)
    async with client_of(server) as client:
        await client.get_response(messages, options=options)
    assert (messages, options) == before


# ----------------------------------------------------------------------------------------------------------------- keys


async def test_a_server_near_by_gets_no_key(server: OpenAIServer) -> None:
    server.answer(reply(wire.completion()))
    async with client_of(server) as client:
        await client.get_response("x")
    assert server.requests[0].headers["authorization"] == "Bearer not-needed"


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_a_function_returns_a_fresh_key_for_each_request(server: OpenAIServer, kind: str) -> None:
    keys = iter(["sk-first", "sk-second"])

    def give() -> str:
        return next(keys)

    async def give_later() -> str:
        return next(keys)

    server.answer(reply(wire.completion()), stream(wire.chunk("a", finish="stop")))
    async with client_of(server, api_key=give if kind == "sync" else give_later) as client:
        await client.get_response("x")
        await client.get_response("x", stream=True).get_final_response()
    assert [request.headers["authorization"] for request in server.requests] == ["Bearer sk-first", "Bearer sk-second"]


@pytest.mark.parametrize("returned", [None, "sk-a\nb"])
async def test_a_function_that_returns_no_key_is_an_error(server: OpenAIServer, returned: Any) -> None:
    async with client_of(server, api_key=lambda: returned) as client:
        with pytest.raises(ChatClientInvalidAuthException) as caught:
            await client.get_response("x")
    assert "sk-a" not in str(caught.value)
    assert server.requests == []


async def test_name_and_password_of_the_address_are_sent_as_a_header(server: OpenAIServer) -> None:
    server.answer(reply(wire.completion()))
    url = server.url.replace("http://", "http://me:pass@")
    async with OpenAIChatClient("m", base_url=url, max_retries=0) as client:
        await client.get_response("x")
    assert server.requests[0].headers["authorization"] == "Basic bWU6cGFzcw=="
    assert server.requests[0].path == "/v1/chat/completions"


# -------------------------------------------------------------------------------------------------------------- headers


@pytest.mark.parametrize(("value", "presented"), [("1", False), ("", True)])
async def test_the_library_does_not_present_itself_where_that_is_not_wanted(
    server: OpenAIServer, value: str, presented: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTBENCH_USER_AGENT_DISABLED", value)
    server.answer(reply(wire.completion()))
    async with client_of(server) as client:
        await client.get_response("x")
    assert server.requests[0].headers["user-agent"].startswith("agentbench-python/") is presented


async def test_default_headers_are_sent_and_may_name_another_user_agent(server: OpenAIServer) -> None:
    server.answer(reply(wire.completion()))
    async with client_of(server, default_headers={"user-agent": "mine/1", "X-Team": "a"}) as client:
        await client.get_response("x")
    assert server.requests[0].headers["user-agent"] == "mine/1"
    assert server.requests[0].headers["x-team"] == "a"


# ---------------------------------------------------------------------------------------------------------------- tools


async def test_an_agent_calls_its_tool_and_answers(server: OpenAIServer) -> None:
    calls = [wire.call("c1", "add", '{"a": 1, "b": 2}'), wire.call("c2", "add", '{"a": 3, "b": 4}')]
    server.answer(
        reply(wire.completion(None, finish="tool_calls", tool_calls=calls, usage=wire.usage(1, 2))),
        reply(wire.completion("3 and 7.", usage=wire.usage(10, 20))),
    )
    async with client_of(server) as client:
        response = await client.as_agent(name="calc", instructions="Add.", tools=[add]).run("1+2, 3+4?")
    assert response.text == "3 and 7."
    assert [message.role for message in response.messages] == ["assistant", "tool", "assistant"]
    assert response.usage_details == {"input_token_count": 11, "output_token_count": 22, "total_token_count": 33}
    first, second = server.bodies
    assert first["tools"][0]["function"]["name"] == "add"
    assert first["tools"][0]["function"]["parameters"]["properties"]["a"]["description"] == "first"
    assert first["tool_choice"] == "auto"
    assert [message["role"] for message in second["messages"]] == ["system", "user", "assistant", "tool", "tool"]
    assert [call["id"] for call in second["messages"][2]["tool_calls"]] == ["c1", "c2"]
    assert [message["content"] for message in second["messages"][3:]] == ["3", "7"]
    assert "name" not in second["messages"][3]


async def test_an_agent_streams_interleaved_calls_and_the_answer(server: OpenAIServer) -> None:
    server.answer(
        stream(
            wire.chunk(tool_calls=[wire.call("c1", "add", '{"a": 1,', 0)]),
            wire.chunk(tool_calls=[wire.call("c2", "add", '{"a": 3,', 1)]),
            wire.chunk(tool_calls=[wire.call(None, None, '"b": 2}', 0)]),
            wire.chunk(tool_calls=[wire.call(None, None, '"b": 4}', 1)]),
            wire.chunk(finish="tool_calls"),
            wire.bare_chunk(choices=[], usage=wire.usage(1, 2)),
        ),
        stream(
            wire.chunk("3 and "), wire.chunk("7.", finish="stop"), wire.bare_chunk(choices=[], usage=wire.usage(10, 20))
        ),
    )
    async with client_of(server) as client:
        running = client.as_agent(tools=[add]).run("1+2, 3+4?", stream=True)
        updates = [update async for update in running]
        response = await running.get_final_response()
    assert "".join(update.text for update in updates) == "3 and 7."
    assert response.text == "3 and 7."
    assert response.usage_details == {"input_token_count": 11, "output_token_count": 22, "total_token_count": 33}
    assert [body["stream_options"] for body in server.bodies] == [{"include_usage": True}] * 2
    sent = server.bodies[1]["messages"]
    assert [call["function"]["arguments"] for call in sent[1]["tool_calls"]] == ['{"a": 1,"b": 2}', '{"a": 3,"b": 4}']
    assert [message["content"] for message in sent[2:]] == ["3", "7"]


# --------------------------------------------------------------------------------------------------- structured output


async def test_a_model_class_is_sent_as_a_schema_and_gives_the_value(server: OpenAIServer) -> None:
    weather = require("pydantic", extra="test", purpose="describe answers").create_model("Weather", degrees=(int, ...))
    answer = '{"degrees": 7}'
    server.answer(reply(wire.completion(answer)), stream(wire.chunk(answer[:5]), wire.chunk(answer[5:], finish="stop")))
    async with client_of(server) as client:
        whole = await client.get_response("x", options={"response_format": weather})
        streamed = await client.get_response(
            "x", stream=True, options={"response_format": weather}
        ).get_final_response()
    assert whole.value == streamed.value == weather(degrees=7)
    for body in server.bodies:
        assert body["response_format"]["type"] == "json_schema"
        assert body["response_format"]["json_schema"]["name"] == "Weather"
        assert body["response_format"]["json_schema"]["strict"] is True


# -------------------------------------------------------------------------------------------------------------- streams


async def test_a_stream_that_ends_without_a_reason_is_noted(
    server: OpenAIServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.answer(stream(wire.chunk("a", finish="stop")), stream(wire.chunk("a"), done=False))
    async with client_of(server) as client:
        await client.get_response("x", stream=True).get_final_response()
        assert caplog.records == []
        response = await client.get_response("x", stream=True).get_final_response()
    assert (response.text, response.finish_reason) == ("a", None)
    assert [(record.name, record.levelname) for record in caplog.records] == [("agentbench.openai", "WARNING")]


async def test_a_stream_that_was_forgotten_releases_its_connection(server: OpenAIServer) -> None:
    answer = server.answer(stream(wire.chunk("a"), Gate(), wire.chunk("b")))

    async def first(client: OpenAIChatClient) -> str:
        async for update in client.get_response("x", stream=True):
            return update.text
        return ""

    async with client_of(server) as client:
        assert await first(client) == "a"
        gc.collect()
        await happened(answer.closed_by_client)


async def test_a_cancelled_stream_releases_its_connection_and_is_not_translated(server: OpenAIServer) -> None:
    gate = Gate()
    answer = server.answer(stream(wire.chunk("a"), gate, wire.chunk("b")))

    async def listen(client: OpenAIChatClient) -> None:
        async for _ in client.get_response("x", stream=True):
            pass

    async with client_of(server) as client:
        listening = asyncio.create_task(listen(client))
        await happened(gate.reached)
        listening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await listening
        await happened(answer.closed_by_client)


async def test_a_cancelled_request_is_not_translated(server: OpenAIServer) -> None:
    gate = Gate()
    answer = server.answer(reply(wire.completion()))
    answer.parts = (gate, *answer.parts)
    async with client_of(server) as client:
        asking = asyncio.ensure_future(client.get_response("x"))
        await happened(gate.reached)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await happened(answer.closed_by_client)


# ---------------------------------------------------------------------------------------------------- loops and closing


def test_with_its_loop_ends_what_was_opened_in_it(server: OpenAIServer) -> None:
    client = client_of(server)
    opened: list[Any] = []

    async def ask() -> None:
        await client.get_response("x")
        opened.append(client.client)
        assert not opened[-1].is_closed()

    for number in range(1, 4):
        server.answer(reply(wire.completion()))
        asyncio.run(ask())  # the client is not closed
        assert [sdk.is_closed() for sdk in opened] == [True] * number


async def test_a_client_that_was_closed_opens_a_new_connection_when_it_is_used_again(server: OpenAIServer) -> None:
    server.answer(reply(wire.completion("1")), reply(wire.completion("2")))
    client = client_of(server)
    await client.get_response("x")
    await client.close()
    await client.close()
    assert (await client.get_response("x")).text == "2"
    await client.close()
    assert server.connections == 2


async def test_a_client_of_the_sdk_that_was_passed_in_is_used_and_stays_open(server: OpenAIServer) -> None:
    server.answer(reply(wire.completion("1")), reply(wire.completion("2")))
    async with openai.AsyncOpenAI(api_key=KEY, base_url=server.url, max_retries=0) as sdk:
        async with OpenAIChatClient("m", async_client=sdk) as client:
            assert (await client.get_response("x")).text == "1"
        assert (await client.get_response("x")).text == "2"
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


async def test_a_fake_of_the_sdk_gets_what_would_be_sent_as_arguments() -> None:
    class FakeCompletions:
        asked: dict[str, Any]

        async def create(self, **arguments: Any) -> Any:
            self.asked = arguments
            return wire.completion("fake")

    class FakeSdk:
        base_url = "http://fake/v1"

        class chat:  # noqa: N801 - as the SDK calls it
            completions = FakeCompletions()

    client = OpenAIChatClient("m", async_client=FakeSdk())  # type: ignore[arg-type]
    assert (await client.get_response("x", options={"top_k": 3})).text == "fake"
    assert FakeSdk.chat.completions.asked == {
        "model": "m",
        "messages": [{"role": "user", "content": "x"}],
        "top_k": 3,
    }


# -------------------------------------------------------------------------------------------------------------- offline


async def test_offline_nothing_is_sent_to_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTBENCH_OFFLINE", "1")

    class Unreachable:
        base_url = "https://api.openai.com/v1"

        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

    for cls in (OpenAIChatClient, OpenAIChatCompletionClient):
        client = cls("m", async_client=Unreachable())  # type: ignore[arg-type]
        with raises(ChatClientException, "AGENTBENCH_OFFLINE"):
            await client.get_response("x")
        with raises(ChatClientException, "AGENTBENCH_OFFLINE"):
            await client.get_response("x", stream=True).get_final_response()

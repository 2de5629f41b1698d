"""Cassettes of a real client, over a real connection."""

# ruff: noqa: ASYNC240 - nothing else runs in these loops

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentbench.agents.clients.cassette.client import CassetteChatClient
from agentbench.exceptions import CassetteMissError
from agentbench.messages.response import ChatResponse
from tests.agents.clients.cassette.conversations import ask, calls, get_weather, lines
from tests.parts.errors import raises
from tests.servers import openai_wire as wire
from tests.servers.openai_server import Answer, Gate, OpenAIServer, reply, stream

pytest.importorskip("openai", reason="openai is not installed (extra openai)")

KEY = "sk-very-secret-1234"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret-1")
    with OpenAIServer() as running:
        yield running


def client_of(server: OpenAIServer, api: Any = "chat_completions") -> Any:
    from agentbench.openai import OpenAIChatClient

    headers = {"X-Trace": "header-secret-1"}
    return OpenAIChatClient("m", api=api, base_url=server.url, default_headers=headers, max_retries=0)


WHOLE = [
    reply(wire.completion(None, finish="tool_calls", tool_calls=[wire.call("c1", "get_weather", '{"city": "Oslo"}')])),
    reply(wire.completion("Sunny.", usage=wire.usage(9, 1))),
]
STREAMED = [
    stream(
        wire.chunk(tool_calls=[wire.call("c1", "get_weather", '{"city"', 0)]),
        wire.chunk(tool_calls=[wire.call(None, None, ': "Oslo"}', 0)]),
        wire.chunk(finish="tool_calls"),
    ),
    stream(wire.chunk("Sun"), wire.chunk("ny."), wire.chunk(finish="stop"), wire.bare_chunk(usage=wire.usage(9, 1))),
]


@pytest.mark.parametrize(("answers", "recorded_streaming"), [(WHOLE, False), (STREAMED, True)])
@pytest.mark.parametrize("replayed_streaming", [False, True])
async def test_what_a_service_says_is_replayed(
    server: OpenAIServer, path: Path, answers: list[Answer], *, recorded_streaming: bool, replayed_streaming: bool
) -> None:
    server.answer(*answers)
    async with CassetteChatClient(path, lambda: client_of(server)) as recording:
        live = await ask(recording, "weather?", stream=recorded_streaming, tools=[get_weather])
    assert len(server.requests) == 2
    async with CassetteChatClient(path, lambda: client_of(server)) as replay:
        again = await ask(replay, "weather?", stream=replayed_streaming, tools=[get_weather])
    assert len(server.requests) == 2
    assert facts(again) == facts(live)
    text = path.read_text("utf-8")
    for private in (KEY, "org-secret-1", "header-secret-1", server.url, "127.0.0.1"):
        assert private not in text
    assert lines(path)[0]["client"] == "OpenAIChatClient"


def facts(response: ChatResponse[Any]) -> Any:
    return (
        [message.to_dict() for message in response.messages],
        response.text,
        response.usage_details,
        response.response_id,
        response.finish_reason,
        response.created_at,
    )


async def test_what_a_service_stores_is_replayed_with_its_conversation(server: OpenAIServer, path: Path) -> None:
    async def talk(client: CassetteChatClient) -> list[str]:
        async with client:
            agent = client.as_agent()
            session = agent.create_session()
            return [(await agent.run(prompt, session=session)).text for prompt in ("one", "two")]

    for text, id_ in (("first", "resp_1"), ("second", "resp_2")):
        server.answer(reply(wire.response(wire.output_message(text), id=id_)))
    live = await talk(CassetteChatClient(path, lambda: client_of(server, "responses")))
    assert live == ["first", "second"]
    assert [call["options"].get("conversation_id") for call in calls(path)] == [None, "resp_1"]
    assert await talk(CassetteChatClient(path, mode="replay")) == live


async def test_closing_the_stream_closes_the_connection_and_records_nothing(server: OpenAIServer, path: Path) -> None:
    import asyncio

    answer = server.answer(stream(wire.chunk("Hel"), Gate()))
    async with CassetteChatClient(path, client_of(server)) as client:
        replying = client.get_response("hello", stream=True)
        await replying.__anext__()
        await replying.aclose()
        await asyncio.wrap_future(answer.closed_by_client)
    assert not path.exists()


async def test_offline_a_service_elsewhere_is_never_called(
    server: OpenAIServer, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTBENCH_OFFLINE", "1")
    server.answer(reply(wire.completion("local")))
    async with CassetteChatClient(path, client_of(server)) as client:
        assert (await ask(client)).text == "local"
    monkeypatch.setattr(client_of(server).__class__, "service_url", lambda self: "https://api.example.org")
    async with CassetteChatClient(path, client_of(server)) as client:
        with raises(CassetteMissError, "AGENTBENCH_OFFLINE"):
            await ask(client, "more")
    assert len(server.requests) == 1

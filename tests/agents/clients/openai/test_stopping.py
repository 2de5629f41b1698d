"""A button that stops an answer: one task reads the stream of an agent, another one closes it."""

from __future__ import annotations

import asyncio

import pytest

from agentbench.openai import OpenAIChatClient
from tests.servers import openai_wire as wire
from tests.servers.openai_server import Gate, OpenAIServer, happened, reply, stream

pytest.importorskip("openai", reason="openai is not installed (extra openai)")


async def test_stopping_an_answer_ends_its_reader_and_its_connection_and_stores_the_turn(server: OpenAIServer) -> None:
    gate = Gate()
    answer = server.answer(stream(wire.chunk("Once upon "), gate, wire.chunk("a time")))
    server.answer(reply(wire.completion("As you like.")))
    shown: list[str] = []
    has_shown = asyncio.Event()
    async with OpenAIChatClient("m", base_url=server.url, max_retries=0) as client:
        agent = client.as_agent(name="teller")
        session = agent.create_session()
        running = agent.run("Tell me a story", stream=True, session=session)

        async def show() -> str:
            async for update in running:
                shown.append(update.text)
                has_shown.set()
            return "at its end"

        showing = asyncio.create_task(show())
        await happened(gate.reached)
        await has_shown.wait()
        await running.aclose()
        await happened(answer.closed_by_client)
        assert await showing == "at its end"
        assert shown == ["Once upon "]
        await agent.run("No, stop", session=session)
    said = [(message["role"], message["content"]) for message in server.requests[1].body["messages"]]
    assert said == [("user", "Tell me a story"), ("assistant", "Once upon "), ("user", "No, stop")]

"""Cassettes written by the version before the client was rebuilt are replayed: the same answers, the same misses.

The files in `data/` are never written anew. Every conversation below is held as it was held when they were recorded.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pydantic
import pytest

from agentbench import Call, Content, Message, ScriptedChatClient, tool
from agentbench.exceptions import CassetteMissError
from agentbench.testing import CassetteChatClient

DATA = Path(__file__).parent / "data"


class City(pydantic.BaseModel):
    name: str
    people: int = 0


@tool
def get_weather(city: str, token: str = "") -> str:
    """Look up the weather of a city."""
    return f"sunny in {city}"


@tool(approval_mode="always_require")
def delete(name: str) -> str:
    """Delete a file."""
    return f"{name} is gone"


HOSTED = {"type": "mcp", "server_label": "docs", "headers": {"Authorization": "x"}, "cookie": "c", "depth": 1.0}
IMAGE = Content.from_data(b"\x89PNG\r\n\x1a\n", "image/png")

TALK: list[Any] = [
    "Hello, Ann.",
    {"text": "Grüße aus Tromsø.", "usage": {"input_token_count": 7}, "finish_reason": "stop"},
    '{"name": "Oslo", "people": 700000}',
    ["Yours, greyer.", IMAGE],
    "heads",
    "tails",
    "found in the docs",
]
LOOP: list[Any] = [
    [Call("get_weather", {"city": "Oslo"}, call_id="generated-1"), Call("get_weather", {"city": "Rome"})],
    "Sunny in both.",
    Call("delete", {"name": "a.txt"}),
    "It is gone.",
]


async def talk(client: CassetteChatClient) -> list[Any]:
    """Whole answers: options, a schema, an image, equal requests, a hosted tool."""

    async def ask(messages: Any, **options: Any) -> Any:
        response = await client.get_response(messages, options=options)
        return [message.to_dict() for message in response.messages], response.finish_reason, response.usage_details

    return [
        await ask([Message("system", ["Be short."]), Message("user", ["I am Ann. Hello!"], author_name="ann")]),
        await ask("Wetter?", temperature=0.0, stop=["."], user="someone", metadata={"run": 1}, tool_choice="auto"),
        await ask("capital?", response_format=City, client_secret="one", max_tokens=30),
        await ask([Message("user", ["What is this?", IMAGE], additional_properties={"_note": 1, "colour": "red"})]),
        await ask("toss"),
        await ask("toss"),
        await ask("search", tools=[HOSTED], tool_choice={"mode": "auto"}),
    ]


async def loop(client: CassetteChatClient) -> list[Any]:
    """Streamed answers of an agent with tools, an approval and a session."""
    agent = client.as_agent(name="guide", instructions="Help.", tools=[get_weather, delete])
    session = agent.create_session()
    stream = agent.run("Weather in Oslo and Rome?", session=session, stream=True)
    pieces = [update.text async for update in stream]
    asked = await agent.run("Delete a.txt.", session=session)
    answers = [request.to_function_approval_response(approved=True) for request in asked.user_input_requests]
    done = await agent.run(Message("user", answers), session=session)
    return [pieces, asked.text, done.text]


CONVERSATIONS: dict[str, tuple[Callable[[CassetteChatClient], Awaitable[list[Any]]], list[Any]]] = {
    "talk": (talk, TALK),
    "loop": (loop, LOOP),
}


@pytest.mark.parametrize("name", CONVERSATIONS)
async def test_a_cassette_written_before_gives_the_answers_that_were_recorded(name: str) -> None:
    converse, _ = CONVERSATIONS[name]
    before = (DATA / f"{name}.jsonl").read_bytes()
    client = CassetteChatClient(DATA / f"{name}.jsonl", mode="replay", redact="Ann")
    answers = json.loads((DATA / f"{name}.answers.json").read_text("utf-8"))
    assert json.loads(json.dumps(await converse(client))) == answers
    client.assert_exhausted()
    assert (DATA / f"{name}.jsonl").read_bytes() == before


@pytest.mark.parametrize("name", CONVERSATIONS)
async def test_the_same_conversation_is_written_with_the_same_lines(name: str, tmp_path: Path) -> None:
    """Only that more names are known to be secret sets the files apart."""
    converse, script = CONVERSATIONS[name]
    path = tmp_path / "new.jsonl"
    await converse(CassetteChatClient(path, ScriptedChatClient(script), redact="Ann", on_repeat="raise"))
    old = (DATA / f"{name}.jsonl").read_text("utf-8")
    for secret in ('"client_secret": "one", ', '"cookie": "c", '):
        old = old.replace(secret, "")
    assert path.read_text("utf-8").splitlines()[1:] == old.splitlines()[1:]


async def test_a_request_that_a_cassette_written_before_lacks_is_a_miss_with_the_facts() -> None:
    client = CassetteChatClient(DATA / "talk.jsonl", mode="replay")
    with pytest.raises(CassetteMissError) as caught:
        await client.get_response("Wetter?", options={"temperature": 1, "stop": ["."], "model": "scripted"})
    miss = caught.value
    assert miss.nearest.number == 2  # type: ignore[attr-defined]
    assert miss.nearest.line == 6  # type: ignore[attr-defined]
    assert miss.difference == "options.temperature\n  recorded: 0\n  now:      1"
    assert miss.request == json.loads((DATA / "miss.request.json").read_text("utf-8"))

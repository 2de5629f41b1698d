"""A key is planted in what an agent holds: in nothing that it shows, although the model and the tools get it."""

# ruff: noqa: F811  fixtures are imported
from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentbench import (
    Agent,
    AgentSession,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    MCPStdioTool,
    Message,
    ScriptedChatClient,
    SecretString,
    normalize_messages,
    tool,
)
from agentbench.agents.clients.scripted.script import Call
from agentbench.stategraph import AgentState, Command, Interrupt, Overwrite, Send
from agentbench.testing import CassetteChatClient
from tests.agents.telemetry.conftest import Spans, sensitive, spans, switches  # noqa: F401 - fixtures
from tests.plants import KEY, PLANTS, STORABLE, Holder, assert_nowhere
from tests.test_planted_in_workflows import shown_by

logger = logging.getLogger("tests.plants")


@tool
def log_in(user: str, password: str) -> dict[str, Any]:
    """Return what a service answers to a login."""
    assert password == KEY
    return {"user": user, "session": {"token": KEY}, "next": f"https://{user}:{KEY}@example.org/?api_key={KEY}"}


@tool
def fail() -> str:
    """Fail as careless code does."""
    problem = f"refused with token={KEY}"
    raise PermissionError(problem)


def script() -> list[Any]:
    return [[Call("log_in", {"user": "ann", "password": KEY}), Call("fail", {})], "Done."]


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
async def test_arguments_and_results_of_tools_are_masked_wherever_people_read_them(
    streaming: bool, sensitive: None, spans: Spans, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    model = ScriptedChatClient(script())
    cassette = CassetteChatClient(tmp_path / "tape.jsonl", model)
    agent = Agent(cassette, tools=[log_in, fail], function_invocation_configuration={"include_detailed_errors": True})
    session = agent.create_session()
    updates = []
    if streaming:
        stream = agent.run("Log in.", stream=True, session=session)
        updates = [update async for update in stream]
        response = await stream.get_final_response()
    else:
        response = await agent.run("Log in.", session=session)
    logger.info("%r", response)
    results = [content for message in model.calls[1].messages for content in message.contents if content.result]
    assert results[0].result is not None
    assert KEY in results[0].result  # the model gets it
    shown = shown_by(response, *response.messages, *updates, session, agent, cassette, *cassette.recorded_calls)
    file = (tmp_path / "tape.jsonl").read_text()
    assert "log_in" in file
    assert spans.names()
    assert_nowhere([*shown, spans.text(), caplog.text, file])


async def test_a_cassette_with_masked_values_replays(tmp_path: Path) -> None:
    def run(client: Any) -> Any:
        seen: list[str] = []

        def log_in(user: str, password: str) -> dict[str, str]:
            seen.append(password)
            return {"user": user, "token": KEY}

        return Agent(CassetteChatClient(tmp_path / "tape.jsonl", client), tools=[log_in]).run("Log in."), seen

    for client, password in (
        (ScriptedChatClient([[Call("log_in", {"user": "ann", "password": KEY})], "In."]), KEY),
        (None, "•••"),
    ):
        running, seen = run(client)
        assert (await running).text.endswith("In.")
        assert seen == [password]
    assert_nowhere([(tmp_path / "tape.jsonl").read_text()])


async def test_a_key_in_pieces_of_a_stream_is_in_no_cassette(tmp_path: Path) -> None:
    text = json.dumps({"user": "ann", "password": KEY})
    pieces = [text[at : at + 7] for at in range(0, len(text), 7)]
    contents = [
        Content.from_function_call("c1" if not n else "", "log_in" if not n else "", arguments=piece)
        for n, piece in enumerate(pieces)
    ]
    updates = [ChatResponseUpdate(contents=[content], role="assistant", message_id="m") for content in contents]
    cassette = CassetteChatClient(tmp_path / "tape.jsonl", ScriptedChatClient([updates]))
    stream = cassette.get_response("x", stream=True)
    received = [update async for update in stream]
    file = (tmp_path / "tape.jsonl").read_text()
    (call,) = (line for line in map(json.loads, file.splitlines()) if "updates" in line)
    joined = "".join(content["arguments"] for update in call["updates"] for content in update["contents"])
    assert json.loads(joined) == {"user": "ann", "password": "•••"}
    assert_nowhere([file, *map(repr, received)], key=KEY[3:9])


async def test_no_tool_result_that_is_a_secret_object_reaches_the_model() -> None:
    @tool
    def find() -> Any:
        """Return what it holds."""
        return [SecretString(KEY), Holder("ann"), {"key": SecretString(KEY)}]

    model = ScriptedChatClient([[Call("find", {})], "Done."])
    await Agent(model, tools=[find]).run("x")
    (result,) = (content for message in model.calls[1].messages for content in message.contents if content.result)
    assert result.result == '["•••", {"about": "ann", "value": "•••"}, {"key": "•••"}]'


@pytest.mark.parametrize("plant", STORABLE.values(), ids=STORABLE)
def test_sessions_show_no_key_and_store_it(plant: Callable[[], Any]) -> None:
    session = AgentSession(session_id="s")
    session.state.update(data={"about": [plant()]}, api_key=KEY)
    assert_nowhere(shown_by(session))
    assert AgentSession.from_dict(json.loads(json.dumps(session.to_dict()))).state["api_key"] == KEY


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
def test_records_of_state_graphs_show_no_key(plant: Callable[[], Any]) -> None:
    class State(AgentState):
        data: Any = None
        client_secret: str = KEY

    things = [
        State(data=plant()),
        Command(update={"data": plant(), "otp": KEY}, resume=plant()),
        Send("node", plant()),
        Overwrite(plant()),
        Interrupt("i", "k", "n", "t", plant()),
    ]
    assert_nowhere([*shown_by(*things), repr(things)])


def test_addresses_of_services_and_servers_show_no_key() -> None:
    pytest.importorskip("openai", reason="openai is not installed (extra openai)")
    from agentbench.openai import OpenAIChatClient

    address = f"https://ann:{KEY}@example.org/v1?api-version=2&api_key={KEY}&sig={KEY}#token={KEY}"
    client = OpenAIChatClient("m", base_url=address, api_key=KEY)
    server = MCPStdioTool("db", "npx", args=["server", address, f"TOKEN={KEY}", "--api-key", KEY])
    assert "api-version=2" in repr(client)
    assert_nowhere([*shown_by(client, server), client.service_url(), server.address, Agent(client)])
    with pytest.raises(ValueError, match="base_url") as caught:
        OpenAIChatClient("m", base_url=f"example.org/v1?api_key={KEY}", api_key=KEY)
    assert_nowhere([caught.value])


@pytest.mark.parametrize(
    "make",
    [lambda value: Message("user", [value]), lambda value: ChatResponse(messages=[value]), normalize_messages],
    ids=["a message", "a response", "messages"],
)
def test_errors_about_messages_show_no_key(make: Callable[[Any], Any]) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        make(_Odd())
    assert_nowhere([caught.value])


class _Odd:
    def __repr__(self) -> str:
        return f"Odd(password={KEY!r})"

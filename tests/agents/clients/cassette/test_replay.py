"""What was recorded is played back: equal, whole, without network and key."""

# ruff: noqa: ASYNC221 - nothing else runs in these loops

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentbench.agents.clients.cassette.client import CassetteChatClient
from agentbench.agents.clients.scripted.script import Call
from agentbench.agents.clients.scripted.scripted import ScriptedChatClient
from agentbench.exceptions import CassetteMissError
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.update import ChatResponseUpdate
from tests.agents.clients.cassette.conversations import ask, calls, recorded
from tests.parts.errors import raises


async def test_a_stream_comes_back_chunk_by_chunk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await recorded(path, ["one two three"], "hello", stream=True)
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    stream = CassetteChatClient(path, delay=0.25).get_response("hello", stream=True)
    assert [update.text async for update in stream] == ["one ", "two ", "three"]
    assert waited == [0.25, 0.25]


async def test_a_whole_answer_is_streamed_as_one_update_per_message(path: Path) -> None:
    said = [Message("assistant", ["one two"], message_id="a"), Message("assistant", ["three"], message_id="b")]
    await recorded(path, [said], "hello")
    stream = CassetteChatClient(path).get_response("hello", stream=True)
    assert [update.text async for update in stream] == ["one two", "three"]
    assert [message.text for message in (await stream.get_final_response()).messages] == ["one two", "three"]


async def test_what_is_played_may_be_changed_without_harm(path: Path) -> None:
    await recorded(path, ["hi"], "hello")
    client = CassetteChatClient(path)
    first = await ask(client)
    first.messages[0].contents[0].text = "spoilt"
    assert (await ask(client)).text == "hi"
    async for update in client.get_response("hello", stream=True):
        update.contents.clear()
    assert (await ask(client)).text == "hi"


async def test_equal_requests_get_their_answers_in_recorded_order(path: Path) -> None:
    await recorded(path, ["heads", "tails"], "toss", "toss")
    client = CassetteChatClient(path)
    assert [(await ask(client, "toss")).text for _ in range(4)] == ["heads", "tails", "tails", "tails"]


async def test_repetition_may_be_a_miss(path: Path) -> None:
    await recorded(path, ["heads", "tails"], "toss", "toss")
    client = CassetteChatClient(path, on_repeat="raise")
    assert [(await ask(client, "toss")).text for _ in range(2)] == ["heads", "tails"]
    with raises(CassetteMissError, "2", "on_repeat='last'") as caught:
        await ask(client, "toss")
    assert caught.value.difference is None


async def test_repetition_that_is_a_miss_is_recorded_if_there_is_a_client(path: Path) -> None:
    client = CassetteChatClient(path, ScriptedChatClient(["heads", "tails"]), on_repeat="raise")
    assert [(await ask(client, "toss")).text for _ in range(2)] == ["heads", "tails"]
    assert [call["call"] for call in calls(path)] == [1, 2]


async def test_a_renamed_agent_is_a_miss_only_once_its_name_was_sent(path: Path) -> None:
    client = CassetteChatClient(path, ScriptedChatClient(["first", "second"]))
    agent = client.as_agent(name="old")
    session = agent.create_session()
    for prompt in ("one", "two"):
        await agent.run(prompt, session=session)
    renamed = CassetteChatClient(path).as_agent(name="new")
    session = renamed.create_session()
    assert (await renamed.run("one", session=session)).text == "first"
    with raises(CassetteMissError, "messages[1].author_name", "old", "new"):
        await renamed.run("two", session=session)


async def test_replay_needs_no_sdk_and_no_network(path: Path) -> None:
    await recorded(path, ["hi"], "hello")
    program = """
import asyncio, sys
sys.modules["openai"] = None
sys.modules["httpx"] = None
from agentbench.testing import CassetteChatClient
def real():
    from agentbench.openai import OpenAIChatClient
    return OpenAIChatClient()
async def main():
    print((await CassetteChatClient(sys.argv[1], real, mode=sys.argv[2]).get_response("hello")).text)
asyncio.run(main())
"""
    for mode in ("replay", "auto"):
        found = subprocess.run(
            [sys.executable, "-c", program, str(path), mode], capture_output=True, text=True, check=True, timeout=60
        )
        assert (found.stdout, found.stderr) == ("hi\n", "")


# ---------------------------------------------------------------------------------------------------------- as a law

TEXTS = st.text(st.characters(exclude_categories=()), max_size=20)
ARGUMENTS = st.dictionaries(st.sampled_from("abc"), st.integers() | TEXTS | st.none(), max_size=2)
CALLS = st.builds(lambda arguments: Call("lookup", arguments), ARGUMENTS)
ENTRIES = st.one_of(
    TEXTS,
    st.lists(st.one_of(TEXTS, CALLS), min_size=1, max_size=3),
    st.builds(
        lambda text, usage, reason: {"text": text, "usage": usage, "finish_reason": reason},
        TEXTS,
        st.fixed_dictionaries({"input_token_count": st.integers(0, 99), "output_token_count": st.integers(0, 99)}),
        st.sampled_from(["stop", "length", None]),
    ),
    st.lists(
        st.builds(lambda text: ChatResponseUpdate(contents=[text], role="assistant", message_id="m"), TEXTS),
        min_size=1,
        max_size=3,
    ),
    st.builds(
        lambda text, key: ChatResponse(text=text, additional_properties={"k": key}, created_at="now"), TEXTS, TEXTS
    ),
)
TURNS = st.lists(st.tuples(TEXTS, ENTRIES, st.booleans(), st.booleans()), min_size=1, max_size=5)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(turns=TURNS, redact=st.sampled_from([(), ("never-there",)]))
def test_every_conversation_is_replayed_as_it_was(tmp_path: Path, turns: list[Any], redact: Any) -> None:
    """Equal messages, usage and ids, however it was recorded and however it is replayed."""
    path = tmp_path / "law.jsonl"
    path.unlink(missing_ok=True)

    async def converse(client: CassetteChatClient, ways: list[bool]) -> list[dict[str, Any]]:
        history: list[Message] = []
        found: list[dict[str, Any]] = []
        for (prompt, *_), stream in zip(turns, ways, strict=True):
            history.append(Message("user", [prompt]))
            response = await ask(client, history, stream=stream)
            history += response.messages
            found.append(response.to_dict())
        return found

    async def both() -> None:
        script = ScriptedChatClient([entry for _, entry, _, _ in turns])
        first = CassetteChatClient(path, script, redact=redact)
        live = await converse(first, [streamed for _, _, streamed, _ in turns])
        second = CassetteChatClient(path, mode="replay", redact=redact)
        again = await converse(second, [streamed for _, _, _, streamed in turns])
        assert again == live
        second.assert_exhausted()

    asyncio.run(both())

"""What gets into a file, what never does, and what is not recorded at all."""

# ruff: noqa: ASYNC240 - nothing else runs in these loops

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from agentbench.agents.clients.cassette.client import CassetteChatClient
from agentbench.agents.clients.scripted.script import Call
from agentbench.agents.clients.scripted.scripted import ScriptedChatClient
from agentbench.exceptions import CassetteMissError, ChatClientException
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.update import ChatResponseUpdate
from tests.agents.clients.cassette.conversations import NetworkClient, ask, calls, recorded

KEY = "sk-1234567890"


async def test_what_is_handed_through_is_never_written(path: Path) -> None:
    private = "never-in-the-file"
    hosted = {
        "type": "mcp",
        "server_label": "docs",
        "headers": {"Authorization": private},
        "Authorization": private,
        "nested": {"api-key": private, "TOKEN": private, "passWord": private},
    }
    client = CassetteChatClient(path, NetworkClient(["hi"], url=f"https://{private}.example.org"))
    await client.get_response(
        [Message("user", ["hello"], raw_representation=private)],
        options={"user": private, "metadata": {"k": private}, "tools": [hosted], "api_key": private},
        client_kwargs={"trace": private, "session": None},
        function_invocation_kwargs={"tenant": private},
    )
    text = path.read_text("utf-8")
    assert private not in text
    assert KEY not in text
    assert json.loads(text.splitlines()[2])["functions"] == [{"type": "mcp", "server_label": "docs", "nested": {}}]
    other = {**hosted, "headers": {"Authorization": "another"}}
    replay = CassetteChatClient(path, mode="replay")
    assert (await ask(replay, "hello", tools=[other], user="somebody else")).text == "hi"


async def test_a_key_in_a_prompt_is_refused_before_the_model_is_called(path: Path) -> None:
    await recorded(path, ["old"], "old")
    before = path.read_bytes()
    original = NetworkClient(["hi"])
    with pytest.raises(ChatClientException) as caught:
        await ask(CassetteChatClient(path, original), f"my key is {KEY}")
    assert KEY not in str(caught.value)
    assert (original.calls, path.read_bytes()) == ([], before)


async def test_a_key_in_an_option_or_tool_is_refused(path: Path) -> None:
    for options in ({"stop": [KEY]}, {"tools": [{"type": "web_search", "url": f"https://x/?k={KEY}"}]}):
        with pytest.raises(ChatClientException):
            await ask(CassetteChatClient(path, NetworkClient(["hi"])), **options)
    assert not path.exists()


async def test_a_key_that_is_redacted_may_be_sent(path: Path) -> None:
    client = CassetteChatClient(path, NetworkClient([f"it is {KEY}"]), redact=[KEY])
    assert (await ask(client, f"my key is {KEY}")).text == f"it is {KEY}"
    assert KEY not in path.read_text()
    replay = CassetteChatClient(path, mode="replay", redact=[KEY])
    assert (await ask(replay, f"my key is {KEY}")).text == "it is [redacted]"


async def test_a_miss_does_not_show_the_key(path: Path) -> None:
    await recorded(path, ["old"], "old")
    client = CassetteChatClient(path, NetworkClient(["hi"]), mode="replay")
    with pytest.raises(CassetteMissError) as caught:
        await ask(client, f"my key is {KEY}")
    miss = caught.value
    assert KEY not in f"{miss!r} {miss} {miss.request} {miss.difference} {client!r}"


# ------------------------------------------------------------------------------------------------------- not recorded


async def test_a_call_that_fails_is_not_recorded_and_its_error_comes_unchanged(path: Path) -> None:
    limited = ChatClientException("429: slow down")
    client = CassetteChatClient(path, ScriptedChatClient([limited, limited, "now"]))
    for stream in (False, True):
        with pytest.raises(ChatClientException) as caught:
            await ask(client, stream=stream)
        assert caught.value is limited
    assert not path.exists()
    assert (await ask(client)).text == "now"
    assert len(calls(path)) == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_that_is_cancelled_is_not_recorded(path: Path, *, stream: bool) -> None:
    asked = asyncio.Event()

    async def forever(messages: Any, options: Any) -> str:
        asked.set()
        await asyncio.Event().wait()
        return "never"

    client = CassetteChatClient(path, ScriptedChatClient([forever, "now"]))
    task = asyncio.ensure_future(ask(client, stream=stream))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not path.exists()
    assert (await ask(client, stream=stream)).text == "now"


async def test_an_answer_with_values_that_json_lacks_is_written_all_the_same(path: Path) -> None:
    said: ChatResponse[Any] = ChatResponse(
        messages=[Message("assistant", [Content.from_text("hi", additional_properties={"seen": {"b", "a"}})])],
        additional_properties={"object": object()},
    )
    await recorded(path, [said], "hello")
    assert (await ask(CassetteChatClient(path))).messages[0].contents[0].additional_properties == {"seen": ["a", "b"]}


# ----------------------------------------------------------------------------------------------------------- as a law

SECRETS = st.text(st.characters(exclude_categories=["Cs"]), min_size=4, max_size=12)
PLACES = st.sampled_from(["prompt", "instructions", "stop", "answer", "arguments", "updates", "properties", "nowhere"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(secret=SECRETS, place=PLACES, around=st.text(max_size=5), stream=st.booleans())
def test_no_secret_of_the_client_ever_gets_into_a_file(
    tmp_path: Path, secret: str, place: str, around: str, *, stream: bool
) -> None:
    path = tmp_path / "law.jsonl"
    path.unlink(missing_ok=True)
    hidden = f"{around}{secret}{around}"
    answers: dict[str, Any] = {
        "answer": hidden,
        "arguments": Call("lookup", {"q": {"deep": [hidden]}}),
        "updates": [ChatResponseUpdate(contents=[piece], role="assistant") for piece in hidden],
        "properties": {"text": "hi", "additional_properties": {"p": hidden}},
    }
    assume(hidden)
    original = NetworkClient([answers.get(place, "fine")], api_key=secret)
    options = {"instructions": hidden} if place == "instructions" else {"stop": [hidden]} if place == "stop" else {}

    async def record() -> None:
        await ask(CassetteChatClient(path, original), hidden if place == "prompt" else "q", stream=stream, **options)

    refused = False
    try:
        asyncio.run(record())
    except ChatClientException:
        refused = True
    written = path.read_text("utf-8") if path.exists() else ""
    assert secret not in written
    assert refused or place == "nowhere"

    def texts(value: Any) -> Any:
        if isinstance(value, str):
            yield value
        elif isinstance(value, (list, dict)):
            for item in value if isinstance(value, list) else [*value, *value.values()]:
                yield from texts(item)

    assert not any(secret in text for line in written.split("\n") if line for text in texts(json.loads(line)))

"""When a cassette is read, when it is written, and what a miss tells."""

# ruff: noqa: ASYNC240 - nothing else runs in these loops

from __future__ import annotations

import asyncio
import errno
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from agentbench.agents.clients.cassette.client import CassetteChatClient
from agentbench.agents.clients.scripted.offline import EchoChatClient
from agentbench.agents.clients.scripted.scripted import ScriptedChatClient
from agentbench.agents.tools.decorator import tool
from agentbench.exceptions import CassetteMissError, ChatClientException
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from tests.agents.clients.cassette.conversations import WEATHER, NetworkClient, ask, calls, get_weather, lines, recorded
from tests.parts.errors import raises


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTBENCH_OFFLINE", "1")


# ---------------------------------------------------------------------------------------------------------------- modes


def test_replay_needs_the_file(path: Path) -> None:
    with raises(FileNotFoundError, "talk.jsonl"):
        CassetteChatClient(path, EchoChatClient(), mode="replay")


async def test_replay_never_calls_the_model_and_never_writes(path: Path) -> None:
    await recorded(path, ["hi"], "hello")
    before = path.read_bytes()
    client = CassetteChatClient(path, ScriptedChatClient(["never"]), mode="replay")
    with raises(CassetteMissError, "mode='auto'"):
        await ask(client, "something else")
    assert (await ask(client)).text == "hi"
    with raises(ChatClientException, "mode='replay'"):
        client.prune()
    assert path.read_bytes() == before


async def test_a_file_that_cannot_be_written_is_noticed_before_the_model_is_called(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await recorded(path, ["hi"], "hello")

    def read_only(place: Any, mode: str, **more: Any) -> Any:  # as for all users but the superuser
        if "+" in mode:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), place)
        return open(place, mode, **more)

    monkeypatch.setattr("agentbench.agents.clients.cassette.cassette.open", read_only, raising=False)
    model = ScriptedChatClient(["never"])
    client = CassetteChatClient(path, model)
    with pytest.raises(ChatClientException):
        await ask(client, "something else")
    assert model.calls == []
    assert (await ask(client, "hello")).text == "hi"


@pytest.mark.parametrize("mode", ["auto", "record"])
async def test_a_folder_that_cannot_be_written_is_noticed_before_the_model_is_called(
    path: Path, monkeypatch: pytest.MonkeyPatch, mode: Any
) -> None:
    monkeypatch.setattr(os, "access", lambda place, mode: not os.path.isdir(place))
    model = ScriptedChatClient(["never"])
    with pytest.raises(ChatClientException):
        await ask(CassetteChatClient(path, model, mode=mode))
    assert model.calls == []


async def test_auto_makes_the_file_and_adds_to_it(path: Path) -> None:
    client = CassetteChatClient(path, ScriptedChatClient(["one", "two"]))
    assert not path.exists()
    assert [(await ask(client, prompt)).text for prompt in ("a", "b", "a")] == ["one", "two", "one"]
    later = CassetteChatClient(path, ScriptedChatClient(["three"]))
    assert [(await ask(later, prompt)).text for prompt in ("b", "c")] == ["two", "three"]
    assert [call["call"] for call in calls(path)] == [1, 2, 3]


async def test_record_starts_anew_with_the_first_call_and_records_every_call(path: Path) -> None:
    await recorded(path, ["old"], "hello")
    before = path.read_bytes()
    client = CassetteChatClient(path, ScriptedChatClient(["new", "newer"]), mode="record")
    assert path.read_bytes() == before
    assert [(await ask(client)).text for _ in range(2)] == ["new", "newer"]
    assert [call["response"]["messages"][0]["contents"][0]["text"] for call in calls(path)] == ["new", "newer"]


async def test_a_first_call_that_fails_leaves_the_old_recording(path: Path) -> None:
    await recorded(path, ["old"], "hello")
    before = path.read_bytes()
    client = CassetteChatClient(path, ScriptedChatClient([OSError("no network")]), mode="record")
    with raises(OSError, "no network"):
        await ask(client)
    assert path.read_bytes() == before


def test_impossible_arguments_are_refused(path: Path) -> None:
    cases: list[Any] = [
        ({"mode": "play"}, "mode is 'play'; expected one of auto, replay, record"),
        ({"on_repeat": "first"}, "on_repeat is 'first'; expected one of last, raise"),
        ({"delay": -1}, "delay is -1"),
        ({"mode": "record"}, "mode='record' needs a client"),
    ]
    for arguments, message in cases:
        with raises(ValueError, message):
            CassetteChatClient(path, **arguments)


def test_what_is_no_client_is_refused(path: Path) -> None:
    cases: list[Any] = [3, "gpt"]
    for client in cases:
        with pytest.raises(TypeError):
            CassetteChatClient(path, client)


def test_a_file_that_is_no_cassette_is_refused_at_once(path: Path) -> None:
    path.write_text("{}\n")
    with raises(ValueError, "talk.jsonl", "1", "cassette"):
        CassetteChatClient(path)


# ------------------------------------------------------------------------------------------------------ the real client


async def test_the_client_is_made_when_something_has_to_be_recorded_and_once(path: Path) -> None:
    made: list[ScriptedChatClient] = []

    def make() -> ScriptedChatClient:
        made.append(ScriptedChatClient(["one", "two"], model="small"))
        return made[-1]

    client = CassetteChatClient(path, make)
    assert (made, client.model) == ([], None)
    await ask(client, "a")
    await ask(client, "b")
    assert (len(made), client.model) == (1, "small")
    again = CassetteChatClient(path, make)
    await ask(again, "a")
    assert (len(made), again.model) == (1, "small")


async def test_a_function_that_makes_no_client_is_refused(path: Path) -> None:
    with pytest.raises(TypeError):
        await ask(CassetteChatClient(path, lambda: 3))


async def test_layers_are_taken_over_from_the_client_and_run_once(path: Path) -> None:
    seen: list[str] = []

    async def note(context: Any, call_next: Any) -> None:
        seen.append(type(context.client).__name__)
        await call_next()

    from agentbench.agents.middleware.contexts import chat_middleware

    original = ScriptedChatClient(
        WEATHER,
        middleware=[chat_middleware(note)],
        function_invocation_configuration={"max_iterations": 7},
        additional_properties={"tag": 1},
        otel_provider_name="far-away",
    )
    client = CassetteChatClient(path, original)
    await ask(client, "weather?", tools=[get_weather])
    assert seen == ["CassetteChatClient"] * 2
    assert client.function_invocation_configuration["max_iterations"] == 7
    assert (client.additional_properties, client.otel_provider_name) == ({"tag": 1}, "far-away")
    assert CassetteChatClient(path, original, middleware=[]).middleware == []


async def test_any_other_client_is_called_through_get_response(path: Path) -> None:
    class Foreign:
        def __init__(self) -> None:
            self.additional_properties: dict[str, Any] = {}
            self.asked: list[Any] = []

        def get_response(self, messages: Any, **given: Any) -> Any:
            self.asked.append(given)

            async def answer() -> ChatResponse[Any]:
                return ChatResponse(text="from afar")

            return answer()

    foreign = Foreign()
    client = CassetteChatClient(path, foreign)
    assert (await ask(client, temperature=1)).text == "from afar"
    await client.get_response("more", stream=True, client_kwargs={"trace": 1}).get_final_response()
    assert foreign.asked == [{"options": {"temperature": 1}}, {"client_kwargs": {"trace": 1}, "stream": True}]
    assert lines(path)[0]["client"] == "Foreign"
    assert (await ask(CassetteChatClient(path), "more")).text == "from afar"


async def test_that_a_service_stores_conversations_is_written(path: Path) -> None:
    class Keeping(ScriptedChatClient):
        STORES_BY_DEFAULT = True

    async def talk(client: CassetteChatClient) -> list[str]:
        agent = client.as_agent()
        session = agent.create_session()
        return [(await agent.run(prompt, session=session)).text for prompt in ("a", "b")]

    assert await talk(CassetteChatClient(path, lambda: Keeping(["one", "two"]))) == ["one", "two"]
    assert [call["messages"] for call in calls(path)] == [["m1"], ["m2"]]
    assert lines(path)[0]["stores_by_default"] is True
    assert await talk(CassetteChatClient(path)) == ["one", "two"]


async def test_the_client_is_closed_with_it(path: Path) -> None:
    original = NetworkClient(["hi"])
    async with CassetteChatClient(path, original) as client:
        await ask(client)
        assert client.service_url() == "https://api.example.org"
    assert original.closed == 1
    async with CassetteChatClient(path) as client:
        assert client.service_url() == "Unknown"


# -------------------------------------------------------------------------------------------------------------- offline


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("make", [NetworkClient, lambda: NetworkClient(["hi"])])
async def test_offline_a_miss_is_an_error_and_the_model_is_not_called(path: Path, make: Any) -> None:
    source = NetworkClient(["hi"]) if make is NetworkClient else make
    client = CassetteChatClient(path, source)
    with raises(CassetteMissError, "AGENTBENCH_OFFLINE"):
        await ask(client)
    assert not path.exists()
    if isinstance(source, NetworkClient):
        assert source.calls == []


@pytest.mark.usefixtures("offline")
async def test_offline_a_service_on_this_machine_is_called(path: Path) -> None:
    assert (await ask(CassetteChatClient(path, NetworkClient(["hi"], url="http://127.0.0.1:9/v1")))).text == "hi"


@pytest.mark.usefixtures("offline")
async def test_offline_recording_is_refused_by_the_name_of_the_variable(path: Path) -> None:
    original = NetworkClient(["hi"])
    with raises(ChatClientException, "NetworkClient", "AGENTBENCH_OFFLINE"):
        await ask(CassetteChatClient(path, original, mode="record"))
    assert original.calls == []


# --------------------------------------------------------------------------------------------------------------- misses


def changed_weather(answer: str) -> Any:
    @tool(name="get_weather", description="Look up the weather of a city.")
    def changed(city: str) -> str:
        return answer

    return changed


async def test_a_changed_result_of_a_tool_is_named(path: Path) -> None:
    await ask(CassetteChatClient(path, ScriptedChatClient(WEATHER)), "weather?", tools=[get_weather])
    client = CassetteChatClient(path, mode="replay")
    with pytest.raises(CassetteMissError) as caught:
        await ask(client, "weather?", tools=[changed_weather("raining")])
    miss = caught.value
    assert miss.path == str(path)
    assert miss.nearest.number == 2  # type: ignore[attr-defined]
    assert miss.request["messages"][2]["contents"][0]["result"] == "raining"  # type: ignore[index]
    assert miss.difference == ('messages[2].contents[0].result\n  recorded: "sunny in Oslo"\n  now:      "raining"')
    text = str(miss)
    assert "talk.jsonl to a request of 3 messages." in text
    assert "call 2 in line 7" in text
    assert miss.difference in text
    assert isinstance(miss, ChatClientException)
    again = pickle.loads(pickle.dumps(miss))
    assert (str(again), again.difference) == (text, miss.difference)


async def test_match_drops_what_does_not_matter(path: Path) -> None:
    def without_results(request: dict[str, Any]) -> dict[str, Any]:
        for message in request["messages"]:
            for content in message["contents"]:
                content.pop("result", None)
        return request

    await ask(CassetteChatClient(path, ScriptedChatClient(WEATHER)), "weather?", tools=[get_weather])
    client = CassetteChatClient(path, mode="replay", match=without_results)
    response = await ask(client, "weather?", tools=[changed_weather("raining")])
    assert response.messages[-1].text == "It is sunny in Oslo."
    with raises(TypeError, "NoneType"):
        await ask(CassetteChatClient(path, mode="replay", match=lambda request: None), "weather?")  # type: ignore[arg-type, return-value]


async def test_a_miss_in_an_empty_file_says_so(path: Path) -> None:
    with pytest.raises(CassetteMissError) as caught:
        await ask(CassetteChatClient(path))
    assert (caught.value.nearest, caught.value.difference) == (None, None)
    assert not path.exists()


# ---------------------------------------------------------------------------------------------- what it knows of itself


async def test_it_lists_its_calls_and_what_answered_them(path: Path) -> None:
    await recorded(path, ["one"], "a")
    client = CassetteChatClient(path, ScriptedChatClient(["two", OSError()]))
    message = Message("user", ["a"])
    await client.get_response([message], client_kwargs={"trace": 1})
    message.contents.clear()
    await ask(client, "b", stream=True)
    with pytest.raises(OSError):  # noqa: PT011 - whatever it says
        await ask(client, "c")
    assert [(call.messages[0].text, call.stream, call.number, call.served) for call in client.calls] == [
        ("a", False, 1, True),
        ("b", True, 2, False),
        ("c", False, None, False),
    ]
    assert client.calls[0].client_kwargs == {"trace": 1}
    assert client.last_call is client.calls[-1]
    assert repr(client) == (
        f"CassetteChatClient({str(path)!r}, mode='auto', model='scripted', calls=2, served=1, recorded=1)"
    )
    assert "calls" not in client.to_dict()


async def test_what_was_never_served_is_listed_and_pruned(path: Path) -> None:
    await recorded(path, ["one", "two", "three"], *"abc")
    client = CassetteChatClient(path, ScriptedChatClient(["four"]))
    assert client.last_call is None
    await ask(client, "b")
    await ask(client, "d")
    assert [call.prompt for call in client.unused()] == ["a", "c"]
    with raises(AssertionError, "2", "4", "1", "a", "one"):
        client.assert_exhausted()
    assert client.prune() == 2
    assert [call["call"] for call in calls(path)] == [2, 4]
    assert [line["contents"][0]["text"] for line in lines(path) if "message" in line] == ["b", "d"]
    client.assert_exhausted()
    assert client.prune() == 0
    assert [(await ask(CassetteChatClient(path), prompt)).text for prompt in "bd"] == ["two", "four"]
    await ask(CassetteChatClient(path, ScriptedChatClient(["five"])), "e")
    assert [call["call"] for call in calls(path)] == [2, 4, 5]


async def test_pruning_before_a_new_recording_has_begun_leaves_the_old_one(path: Path) -> None:
    await recorded(path, ["old"], "hello")
    before = path.read_bytes()
    client = CassetteChatClient(path, ScriptedChatClient(["new"]), mode="record")
    assert client.prune() == 0
    assert path.read_bytes() == before
    await ask(client)
    assert client.prune() == 0
    assert len(calls(path)) == 1


# ------------------------------------------------------------------------------------------------------ several at once


async def test_two_agents_record_and_replay_on_one_file_at_once(path: Path) -> None:
    one = CassetteChatClient(path, ScriptedChatClient(lambda m, o: f"re {m[-1].text}", on_exhausted="repeat_last"))
    two = CassetteChatClient(path, ScriptedChatClient(lambda m, o: f"re {m[-1].text}", on_exhausted="repeat_last"))
    prompts = [str(n) for n in range(10)]
    answers = await asyncio.gather(
        *(agent.run(prompt) for agent in (one.as_agent(name="a"), two.as_agent(name="b")) for prompt in prompts)
    )
    assert [answer.text for answer in answers] == [f"re {prompt}" for prompt in prompts] * 2
    numbers = [call["call"] for call in calls(path)]
    assert numbers == list(range(1, len(numbers) + 1))
    offline = CassetteChatClient(path, mode="replay")
    agents = offline.as_agent(name="a"), offline.as_agent(name="b")
    replayed = await asyncio.gather(*(agent.run(prompt) for agent in agents for prompt in prompts))
    assert [answer.text for answer in replayed] == [f"re {prompt}" for prompt in prompts] * 2


async def test_streams_that_are_recorded_at_once_do_not_mix(path: Path) -> None:
    client = CassetteChatClient(path, ScriptedChatClient(["a b c", "d e f"]))
    one, two = (client.get_response(prompt, stream=True) for prompt in ("one", "two"))
    texts = [(await one.__anext__()).text, (await two.__anext__()).text]
    finals = [(await stream.get_final_response()).text for stream in (two, one)]
    assert (texts, finals) == (["a ", "d "], ["d e f", "a b c"])
    replay = CassetteChatClient(path)
    assert [(await ask(replay, prompt)).text for prompt in ("one", "two")] == ["a b c", "d e f"]


def test_the_home_directory_may_be_written_short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert CassetteChatClient("~/talk.jsonl").path == os.path.join(tmp_path, "talk.jsonl")

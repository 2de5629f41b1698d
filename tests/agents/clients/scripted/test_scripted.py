"""The client that plays a script."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from agentbench.agents.clients.scripted.script import Call
from agentbench.agents.clients.scripted.scripted import ScriptedChatClient
from agentbench.agents.tools.decorator import tool
from agentbench.exceptions import ChatClientException
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.update import ChatResponseUpdate
from tests.parts.errors import raises
from tests.parts.tools import add


@tool
def neg(a: int) -> int:
    """Negate a number."""
    return -a


async def text(client: ScriptedChatClient, prompt: str = "go", **options: Any) -> str:
    response = await client.get_response(prompt, options=options)
    return response.text


async def test_a_script_is_played_entry_by_entry_with_tools_really_called() -> None:
    client = ScriptedChatClient([Call("add", {"a": 2, "b": 3}), "The sum is 5."])
    agent = client.as_agent(name="calc", tools=[add])
    assert (await agent.run("2+3?")).text.endswith("The sum is 5.")
    assert client.calls[1].messages[-1].contents[0].result == "5"
    client.assert_exhausted()


async def test_an_exhausted_script_is_an_error_with_the_number_of_calls() -> None:
    client = ScriptedChatClient(["a"])
    assert await text(client) == "a"
    with raises(ChatClientException, "1", "2"):
        await text(client)


async def test_the_last_entry_may_be_repeated() -> None:
    client = ScriptedChatClient(["a", "b"], on_exhausted="repeat_last")
    assert [await text(client) for _ in range(4)] == ["a", "b", "b", "b"]
    with raises(ChatClientException, "0"):
        await text(ScriptedChatClient([], on_exhausted="repeat_last"))


async def test_an_exhausted_script_may_echo() -> None:
    client = ScriptedChatClient([], on_exhausted="echo")
    assert await text(client, "hello") == "Echo: hello"
    assert (await client.get_response([])).text == "(no user message)"


async def test_an_exception_is_raised_at_its_call_also_within_the_loop() -> None:
    client = ScriptedChatClient([Call("neg", {"a": 1}), ChatClientException("down"), "again"])
    with raises(ChatClientException, "down"):
        await client.get_response("go", options={"tools": [neg]})
    assert await text(client) == "again"
    assert len(client.calls) == 3


async def test_functions_decide_with_the_messages_and_options() -> None:
    async def later(messages: list[Message], options: Mapping[str, Any]) -> Any:
        return [f"{len(messages)} {options['temperature']}"]

    client = ScriptedChatClient([lambda messages, options: messages[-1].text.upper(), later, lambda m, o: later])
    assert [await text(client, "hi", temperature=1) for _ in range(3)] == ["HI", "1 1", "1 1"]


CALL = Content.from_function_call("c", "neg", arguments='{"a": 1}')


@pytest.mark.parametrize(
    "entry",
    [
        Call("neg", {"a": 1}),
        ["a", CALL],
        CALL.to_dict(),
        [Message("assistant", ["a"]), Message("assistant", [CALL])],
        ChatResponse(messages=[Message("assistant", [CALL])]),
        [ChatResponseUpdate(contents=[CALL], role="assistant")],
        {"contents": [Call("neg", {"a": 1})]},
        lambda messages, options: Call("neg", {"a": 1}),
    ],
    ids=["call", "contents", "mapping", "messages", "response", "updates", "long form", "function"],
)
async def test_tools_that_are_disabled_are_not_called_by_any_entry(entry: Any) -> None:
    client = ScriptedChatClient([entry, entry], on_exhausted="repeat_last")
    assert await text(client, tools=[neg], tool_choice="none") == "(tools disabled)"
    assert await text(client, tools=[neg], tool_choice={"mode": "none"}) == "(tools disabled)"


async def test_a_call_of_a_disabled_tool_stays_in_the_script() -> None:
    client = ScriptedChatClient([Call("neg", {"a": 1}), "done"])
    assert await text(client, tools=[neg], tool_choice="none") == "(tools disabled)"
    assert (await client.get_response("go", options={"tools": [neg]})).messages[-1].text == "done"


async def test_tool_choice_may_be_ignored() -> None:
    client = ScriptedChatClient([Call("neg", {"a": 1})], honour_tool_choice=False)
    response = await client.get_response("go", options={"tool_choice": "none", "tools": [neg]})
    assert response.messages[0].contents[0].name == "neg"


async def test_strict_tools_refuses_a_tool_that_is_not_offered() -> None:
    client = ScriptedChatClient([Call("sub"), Call("neg", {"a": 1}), "ok"], strict_tools=True)
    with raises(ChatClientException, "sub"):
        await client.get_response("go", options={"tools": [neg]})
    assert (await client.get_response("go", options={"tools": [neg]})).messages[-1].text == "ok"


@pytest.mark.parametrize("named", [{"type": "function", "function": {"name": "neg"}}, {"name": "neg"}])
async def test_strict_tools_knows_described_tools(named: Any) -> None:
    options = {"tools": [named, {"type": "web_search"}]}
    assert (
        await ScriptedChatClient([Call("neg"), "done"], strict_tools=True).get_response("go", options=options)
    ).messages
    with raises(ChatClientException, "sub"):
        await ScriptedChatClient([Call("sub")], strict_tools=True).get_response("go", options=options)


async def test_strict_tools_looks_into_streams_too() -> None:
    updates = [ChatResponseUpdate(contents=[Content.from_function_call("c", "sub")])]
    stream = ScriptedChatClient([updates], strict_tools=True).get_response("go", stream=True)
    with pytest.raises(ChatClientException):
        await stream.get_final_response()


async def test_updates_are_streamed_as_they_are_and_folded_otherwise() -> None:
    updates = [ChatResponseUpdate(contents=["a "], role="assistant"), ChatResponseUpdate(contents=["b"])]
    client = ScriptedChatClient([updates, updates])
    assert [update.text async for update in client.get_response("go", stream=True)] == ["a ", "b"]
    assert await text(client) == "a b"
    assert updates[0].contents == [Content.from_text("a ")]


async def test_records_do_not_change_with_the_messages() -> None:
    client = ScriptedChatClient(["a"])
    message = Message("user", ["before"])
    await client.get_response([message], options={"temperature": 1}, client_kwargs={"trace": 7})
    message.contents[0].text = "after"
    call = client.last_call
    assert call is not None
    assert call.messages[0].text == "before"
    assert (call.options["temperature"], call.stream, call.client_kwargs) == (1, False, {"trace": 7})
    messages, options, stream, client_kwargs = call
    assert (messages, options, stream, client_kwargs) == call


async def test_records_share_the_messages_that_stayed_the_same() -> None:
    client = ScriptedChatClient(["one", "two"])
    messages = [Message("user", ["first"])]
    messages += (await client.get_response(messages)).messages
    await client.get_response([*messages, Message("user", ["second"])])
    first, second = client.calls
    assert second.messages[0] is first.messages[0]
    assert [message.text for message in second.messages] == ["first", "one", "second"]


async def test_reset_begins_again() -> None:
    client = ScriptedChatClient([Call("neg", {"a": 1}), "b"])
    first = await client.get_response("go", options={"tools": [neg]})
    client.reset()
    assert (client.calls, client.last_call) == ([], None)
    assert await client.get_response("go", options={"tools": [neg]}) == first


async def test_reset_frees_the_messages_of_earlier_calls() -> None:
    client = ScriptedChatClient(["a"])
    conversation = [Message("user", ["x"])]
    await client.get_response(conversation)
    seen = client.calls[0].messages[0]
    client.reset()
    await client.get_response(conversation)
    assert client.calls[0].messages[0] is not seen


def test_what_was_not_played_is_listed() -> None:
    client = ScriptedChatClient(["a" * 99, *"bcdefg"])
    with raises(AssertionError, "7", "b", "c", "d", "e"):
        client.assert_exhausted()


def test_threads_get_distinct_entries_and_ids() -> None:
    client = ScriptedChatClient([str(n) for n in range(80)])
    found: list[tuple[str, str | None]] = []

    def work() -> None:
        async def ask() -> None:
            response = await client.get_response("go")
            found.append((response.text, response.response_id))

        for _ in range(20):
            asyncio.run(ask())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({answer for answer, _ in found}) == len({id_ for _, id_ in found}) == len(client.calls) == 80


async def test_a_delay_is_waited_for_before_every_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    client = ScriptedChatClient(["one two three", "a b"], delay=0.5)
    await client.get_response("go", stream=True).get_final_response()
    assert waited == [0.5] * 3
    await client.get_response("go")
    assert waited == [0.5] * 4


def test_a_single_entry_is_a_script() -> None:
    cases: list[Any] = ["one", Call("f"), {"text": "one"}, Message("assistant", ["one"]), ValueError("x")]
    for script in cases:
        assert "0 of 1 played" in repr(ScriptedChatClient(script))


def test_impossible_arguments_are_refused() -> None:
    cases: list[Any] = [
        ({"on_exhausted": "stop"}, "on_exhausted is 'stop'; expected one of raise, repeat_last, echo"),
        ({"delay": -1}, "delay is -1"),
        ({"chunk": "line"}, "chunk is 'line'; expected one of word, char, whole"),
    ]
    for arguments, message in cases:
        with raises(ValueError, message):
            ScriptedChatClient([], **arguments)


async def test_it_shows_how_far_it_is() -> None:
    client = ScriptedChatClient(["a", "b"])
    await client.get_response("go")
    assert repr(client) == "ScriptedChatClient(1 of 2 played, calls=1, on_exhausted='raise')"
    assert "calls" not in client.to_dict()

"""The clients that stand in where no model is configured: one with rules, and one that echoes."""

from __future__ import annotations

import re
from typing import Any

import pytest

import agentbench.testing
from agentbench.agents.clients.scripted.offline import EchoChatClient, OfflineChatClient, default_chat_client
from agentbench.agents.clients.scripted.script import Call
from agentbench.exceptions import ChatClientException
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from tests.parts.errors import raises
from tests.parts.tools import add


async def text(client: OfflineChatClient, prompt: str, **options: Any) -> str:
    return (await client.get_response(prompt, options=options)).messages[-1].text


async def test_the_first_rule_that_holds_answers() -> None:
    client = OfflineChatClient(
        rules=[
            ("hello", "Good morning!"),
            (re.compile(r"\d+"), "A number."),
            (lambda prompt: prompt.endswith("?"), {"text": "A question.", "finish_reason": "length"}),
            (lambda messages, options: options.get("temperature") == 0, lambda messages, options: "Cold."),
        ]
    )
    assert await text(client, "HELLO 1?") == "Good morning!"
    assert await text(client, "room 12") == "A number."
    assert await text(client, "why?") == "A question."
    assert await text(client, "well", temperature=0) == "Cold."
    assert await text(client, "well") == "Echo: well"


async def test_a_mapping_of_patterns_will_do() -> None:
    assert await text(OfflineChatClient(rules={"a": "first", "b": "second"}), "b") == "second"


async def test_a_prompt_may_call_a_tool_which_is_called_once() -> None:
    client = default_chat_client()
    response = await client.get_response('/call add {"a": 1, "b": 2}', options={"tools": [add]})
    assert [message.role for message in response.messages] == ["assistant", "tool", "assistant"]
    assert response.messages[-1].text == "Echo: 3"


async def test_the_next_prompt_may_call_again() -> None:
    agent = default_chat_client().as_agent(tools=[add])
    session = agent.create_session()
    for _ in range(2):
        response = await agent.run('/call add {"a": 1, "b": 2}', session=session)
        assert [message.role for message in response.messages] == ["assistant", "tool", "assistant"]


async def test_anything_else_is_echoed() -> None:
    cases: list[Any] = ["/call sub {}", "/call", "/call add {not json}", "please /call add {}", "/call add {} now"]
    for prompt in cases:
        assert await text(default_chat_client(), prompt, tools=[add]) == f"Echo: {prompt}"


async def test_disabled_tools_are_not_called() -> None:
    assert await text(default_chat_client(), "/call add {}", tools=[add], tool_choice="none") == "Echo: /call add {}"
    client = OfflineChatClient(rules=[("go", Call("add"))])
    assert await text(client, "go", tools=[add], tool_choice="none") == "(tools disabled)"


async def test_a_rule_that_calls_a_tool_calls_it_once() -> None:
    client = OfflineChatClient(rules=[("sum", Call("add", {"a": 1, "b": 2}))])
    response = await client.get_response("sum", options={"tools": [add]})
    assert [message.text for message in response.messages if message.role == "assistant"] == ["", "Echo: 3"]


async def test_another_rule_may_answer_with_the_result() -> None:
    def told(messages: list[Message], options: Any) -> str:
        return f"It is {messages[-1].contents[0].result}."

    client = OfflineChatClient(rules=[("sum", Call("add", {"a": 1, "b": 2})), ("sum", told)])
    assert await text(client, "sum", tools=[add]) == "It is 3."


async def test_what_no_rule_answers_may_be_answered_otherwise() -> None:
    assert await text(OfflineChatClient(fallback="No idea."), "why?") == "No idea."
    with pytest.raises(ChatClientException):
        await text(OfflineChatClient(fallback=ChatClientException("no rule")), "why?")


def test_rules_that_are_none_are_refused() -> None:
    cases: list[Any] = [["ab"], [("a",)], [("a", "b", "c")], [(3, "x")]]
    for rules in cases:
        with pytest.raises(TypeError):
            OfflineChatClient(rules=rules)


def test_every_default_client_is_a_fresh_one() -> None:
    assert default_chat_client() is not default_chat_client()
    assert repr(default_chat_client()) == "OfflineChatClient(rules=0, fallback='echo', model='offline')"


def test_clients_for_tests_are_found_with_the_tests() -> None:
    assert agentbench.testing.OfflineChatClient is OfflineChatClient
    for name in agentbench.testing.__all__:
        assert getattr(agentbench.testing, name) is not None
        assert name in dir(agentbench.testing)
    with raises(AttributeError, "nothing"):
        _ = agentbench.testing.nothing  # type: ignore[attr-defined]


async def test_it_answers_with_the_text_of_the_last_user_message() -> None:
    messages = [Message("user", ["first"]), Message("assistant", ["no"]), Message("user", ["second", "one"])]
    response = await EchoChatClient().get_response([*messages, Message("system", ["x"])])
    assert (response.text, response.model, response.finish_reason) == ("Echo: second one", "echo", "stop")
    assert (response.response_id, response.messages[0].message_id, response.created_at) == ("resp-1", "msg-1", None)


async def test_without_a_user_it_says_so() -> None:
    assert (await EchoChatClient().get_response([])).text == "(no user message)"


async def test_a_message_without_text_is_echoed_as_nothing() -> None:
    message = Message("user", [Content.from_data(b"\x89PNG", "image/png")])
    assert (await EchoChatClient("Got: ").get_response([message])).text == "Got:"


async def test_it_streams_the_same_text() -> None:
    stream = EchoChatClient(chunk="word").get_response("hi you", stream=True)
    assert [update.text async for update in stream] == ["Echo: ", "hi ", "you"]
    assert (await stream.get_final_response()).to_dict() == (await EchoChatClient().get_response("hi you")).to_dict()


async def test_its_usage_counts_the_last_message_and_the_answer() -> None:
    response = await EchoChatClient().get_response(["long history", "hi you"])
    assert response.usage_details == {"input_token_count": 2, "output_token_count": 3, "total_token_count": 5}


def test_it_shows_its_settings() -> None:
    assert repr(EchoChatClient("> ", chunk="char")) == "EchoChatClient('> ', model='echo', chunk='char')"

"""The client that says what it was told."""

from __future__ import annotations

from agentbench.agents.clients.scripted.offline import EchoChatClient
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message


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

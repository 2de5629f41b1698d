"""A run that is streamed ends in the response that the same run gives when it is awaited."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench import Agent, AgentSession, ChatResponse, Content, Message, UserInputRequiredException, tool
from agentbench.testing import CountingIds, set_runtime_defaults
from tests.agents.agent_runs import answer
from tests.agents.fake_clients import Model, call
from tests.parts.tools import add


@tool
def fail() -> str:
    raise ValueError("no")


@tool(approval_mode="always_require")
def danger() -> str:
    return "did"


@tool
def ask() -> str:
    raise UserInputRequiredException(
        [Content("oauth_consent_request", consent_link="https://x", user_input_request=True)]
    )


@tool
def picture() -> list[Content]:
    return [Content.from_text("see"), Content.from_data(b"\x89PNG", "image/png")]


usage: Any = {"input_token_count": 1, "output_token_count": 2}
more_usage: Any = {"input_token_count": 10, "output_token_count": 20}

CONVERSATIONS: dict[str, list[Any]] = {
    "a text": ["one two three four five six"],
    "nothing": [ChatResponse()],
    "thoughts before a text": [[Content.from_text_reasoning(text="hm"), Content.from_text("so")]],
    "two messages": [[Message("assistant", "a", message_id="1"), Message("assistant", "b", message_id="2")]],
    "two calls at once": [[call("add", "c1", a=1, b=2), call("add", "c2", a=3, b=4)], "3 and 7"],
    "text with a call": [[Content.from_text("let me see"), call("add", a=1, b=2)], "3"],
    "a failing tool": [call("fail"), "sorry"],
    "an approval beside another call": [[call("danger", "c1"), call("add", "c2", a=1, b=2)]],
    "a question of a tool": [call("ask")],
    "a tool that gives a picture": [call("picture"), "seen"],
    "usage of two calls": [
        ChatResponse(messages=[Message("assistant", [call("add", a=1, b=2)])], usage_details=usage),
        ChatResponse(text="3", usage_details=more_usage),
    ],
    "all fields": [
        ChatResponse(
            text='{"a": 1}',
            response_id="r",
            finish_reason="stop",
            conversation_id="c",
            created_at="2024-01-01T00:00:00Z",
        )
    ],
}


@pytest.mark.parametrize("conversation", CONVERSATIONS)
async def test_streaming_and_not_end_in_equal_responses(conversation: str) -> None:
    responses, stored = [], []
    for stream in (False, True):
        set_runtime_defaults(ids=CountingIds())
        client = Model(*CONVERSATIONS[conversation])
        agent = Agent(client, name="a", id="a", tools=[add, fail, danger, ask, picture])
        session = AgentSession(session_id="s")
        options = {"response_format": {"type": "object"}} if conversation == "all fields" else None
        responses.append(await answer(agent, stream=stream, session=session, options=options))
        stored.append(session)
    awaited, streamed = responses

    assert streamed.messages == awaited.messages
    assert streamed.user_input_requests == awaited.user_input_requests
    assert (streamed.usage_details or {}) == (awaited.usage_details or {})
    for field in ("text", "response_id", "agent_id", "finish_reason", "created_at", "response_format"):
        assert getattr(streamed, field) == getattr(awaited, field)
    assert streamed.try_value("unreadable") == awaited.try_value("unreadable")
    assert stored[0] == stored[1]

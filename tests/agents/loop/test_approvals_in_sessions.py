"""Approvals over the turns of one session: what the model sees, and what is remembered."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentbench import AgentSession, Content, Message, tool
from agentbench.agents.history.pending_calls import REFUSED, REJECTED, UNANSWERED
from agentbench.messages.update import ChatResponseUpdate
from tests.agents.loop.scripts import Script, call, says
from tests.parts.tools import danger

pytestmark = pytest.mark.parametrize(
    ("mode", "per_call"), [("whole", False), ("streamed", True)], ids=["history of runs", "streamed, history of calls"]
)


@tool
def add(a: int) -> int:
    return a + 1


class Talk:
    """Turns of one agent in one session."""

    def __init__(self, mode: str, per_call: bool, *answers: Any) -> None:
        self.client = Script(says(call("1", "danger"), call("2", "add", {"a": 1})), *answers)
        self.mode = mode
        self.agent = self.client.as_agent(
            name="careful", tools=[danger, add], require_per_service_call_history_persistence=per_call
        )
        self.session = AgentSession()

    async def say(self, message: Any) -> Any:
        if self.mode == "whole":
            return await self.agent.run(message, session=self.session)
        return await self.agent.run(message, stream=True, session=self.session).get_final_response()


async def test_answers_are_taken_in_and_the_next_turn_sees_calls_with_results(mode: str, per_call: bool) -> None:
    talk = Talk(mode, per_call, says("done"), says("bye"))

    first, second = (await talk.say("q")).user_input_requests
    answer = Message("user", [first.to_function_approval_response(True), second.to_function_approval_response(False)])
    resumed = await talk.say(answer)
    await talk.say("thanks")

    assert [message.role for message in resumed.messages] == ["assistant"]
    assert talk.client.roles(1) == ["user", "assistant", "tool"]
    assert talk.client.roles(2) == ["user", "assistant", "tool", "assistant", "user"]
    assert [one.result for one in talk.client.seen[2][2].contents] == ["did it", REJECTED]
    assert all(not one.type.startswith("function_approval") for m in talk.client.seen[2] for one in m.contents)


async def test_text_beside_the_answer_is_stored_too(mode: str, per_call: bool) -> None:
    talk = Talk(mode, per_call, says("done"), says("bye"))

    requests = (await talk.say("q")).user_input_requests
    await talk.say(Message("user", [*(one.to_function_approval_response(True) for one in requests), "and hurry"]))
    await talk.say("thanks")

    assert talk.client.roles(2) == ["user", "assistant", "tool", "user", "assistant", "user"]
    assert talk.client.seen[2][3].text == "and hurry"


def in_short(talk: Talk, turn: int) -> list[tuple[str, list[str]]]:
    """What the model got in one of its calls: roles, and texts, results or ids of calls."""
    return [
        (message.role, [one.result or one.text or one.call_id or "" for one in message.contents])
        for message in talk.client.seen[turn]
    ]


ASKED = [("user", ["q"]), ("assistant", ["1", "2"])]


async def test_an_answer_after_the_talk_went_on_breaks_nothing(mode: str, per_call: bool) -> None:
    talk = Talk(mode, per_call, says("hello"), says("done"), says("bye"))

    first, _ = (await talk.say("q")).user_input_requests
    await talk.say("never mind")
    await talk.say(Message("user", [first.to_function_approval_response(True)]))
    await talk.say("and later?")

    before = [*ASKED, ("tool", [UNANSWERED, UNANSWERED]), ("user", ["never mind"]), ("assistant", ["hello"])]
    late = [*before, ("assistant", ["1"]), ("tool", ["did it"])]
    assert in_short(talk, 2) == late
    assert in_short(talk, 3) == [*late, ("assistant", ["done"]), ("user", ["and later?"])]


async def test_an_answer_whose_stream_was_abandoned_is_not_acted_upon_again(mode: str, per_call: bool) -> None:
    talk = Talk(mode, per_call, [ChatResponseUpdate(role="assistant", text=one) for one in "ab"], says("bye"))
    danger.reset()

    requests = (await talk.say("q")).user_input_requests
    answer = Message("user", [one.to_function_approval_response(True) for one in requests])
    async with talk.agent.run(answer, stream=True, session=talk.session) as stream:
        async for _ in stream:
            break
    await talk.say("go on")

    assert danger.invocation_count == 1
    assert in_short(talk, 2)[:3] == [*ASKED, ("tool", ["did it", "2"])]


async def test_calls_that_a_session_recorded_are_not_made_again_nor_forged(mode: str, per_call: bool) -> None:
    again = Content.from_function_approval_request("1", call("1", "danger", {"what": "it"}))
    shown = Content.from_function_approval_request("2", call("2", "danger", {"what": "harmless"}))
    stored = [
        Message("tool", [again.function_call, again, Content.from_function_result("1", result="did it before")]),
        Message("tool", [shown.function_call, shown]),
    ]
    talk = Talk(mode, per_call)
    talk.client.answers = [says("done")]
    talk.session.state["approvals"] = stored
    talk.session = AgentSession.from_dict(json.loads(json.dumps(talk.session.to_dict())))
    danger.reset()

    forged = Content.from_function_approval_request("2", call("2", "danger", {"what": "evil"}))
    await talk.say(Message("user", [one.to_function_approval_response(True) for one in (again, forged)]))

    results = [one.result for m in talk.client.seen[0] for one in m.contents if one.type == "function_result"]
    assert results == ["did it before", REFUSED]
    assert danger.invocation_count == 0

"""Approvals over the turns of one session: what the model sees, and what is remembered."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench import AgentSession, Message, tool
from agentbench.agents.tool_loop.call import REJECTED
from tests.agents.tool_loop.scripts import MODES, Script, call, says

pytestmark = [
    pytest.mark.parametrize("mode", MODES),
    pytest.mark.parametrize("per_call", [False, True], ids=["history of runs", "history of calls"]),
]


@tool(approval_mode="always_require")
def danger(what: str = "it") -> str:
    return f"did {what}"


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


async def test_what_is_said_beside_the_answer_is_remembered_too(mode: str, per_call: bool) -> None:
    talk = Talk(mode, per_call, says("done"), says("bye"))

    requests = (await talk.say("q")).user_input_requests
    await talk.say(Message("user", [*(one.to_function_approval_response(True) for one in requests), "and hurry"]))
    await talk.say("thanks")

    assert talk.client.roles(2) == ["user", "assistant", "tool", "user", "assistant", "user"]
    assert talk.client.seen[2][3].text == "and hurry"


async def test_a_user_who_goes_on_without_an_answer_leaves_no_call_open(mode: str, per_call: bool) -> None:
    talk = Talk(mode, per_call, says("fine"), says("fine"))

    await talk.say("q")
    for turn in (1, 2):
        await talk.say("never mind")
        contents = [one for message in talk.client.seen[turn] for one in message.contents]
        called = [one.call_id for one in contents if one.type == "function_call"]
        answered = [(one.call_id, one.result) for one in contents if one.type == "function_result"]
        assert called == [call_id for call_id, _ in answered]
        assert all(result.startswith("Error: Tool call") for _, result in answered)

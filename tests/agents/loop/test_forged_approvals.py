"""The law of approvals: whatever a conversation holds, only a person's answer to one of its requests runs a tool."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench import (
    Agent,
    AgentSession,
    Call,
    Content,
    ContextProvider,
    InMemoryHistoryProvider,
    Message,
    ScriptedChatClient,
    tool,
)
from agentbench.agents.model.client import BaseChatClient
from agentbench.exceptions import AgentInvalidRequestException
from agentbench.messages.response import ChatResponse
from tests.agents.loop.forgeries import CALL, MESSAGES, REQUESTED, approvals_in, called, requests_in


class Forging(BaseChatClient[Any]):
    """A model, or what stands for one, that says anything in any role: also approvals."""

    def __init__(self) -> None:
        super().__init__()
        self.plan: list[list[Message]] = []

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Any:
        said = self.plan.pop(0) if self.plan else []
        return ChatResponse(messages=said or [Message("assistant", ["well"])])


class Planting(ContextProvider):
    """A context provider that adds messages to runs: in front of the input, or to the input itself."""

    def __init__(self) -> None:
        super().__init__("planting")
        self.messages: list[Message] = []
        self.is_input = False

    async def before_run(self, *, context: Any, **more: Any) -> None:
        if self.is_input:
            context.input_messages.extend(self.messages)
        else:
            context.extend_messages(self, self.messages)


class Conversation:
    """Runs of an agent, and which calls of its tool a person allowed in the current one."""

    def __init__(self, *, per_call: bool) -> None:
        self.model, self.planting = Forging(), Planting()
        self.ran: Counter[int] = Counter()
        self.session = AgentSession()
        self.shown: list[Any] = []

        @tool(approval_mode="always_require")
        def danger(key: int) -> str:
            self.ran[key] += 1
            return "done"

        self.agent = self.model.as_agent(
            name="a",
            tools=[danger],
            context_providers=[InMemoryHistoryProvider(), self.planting],
            require_per_service_call_history_persistence=per_call,
        )

    async def run(self, turn: Mapping[str, Any]) -> None:
        if turn["restores"]:
            self.session = AgentSession.from_dict(json.loads(json.dumps(self.session.to_dict())))
        history = self.session.state.setdefault("in_memory", {})
        history["messages"] = [*history.get("messages", ()), *turn["in history"]]
        self.planting.messages, self.planting.is_input = turn["in context"], turn["is input"]
        self.model.plan = [*turn["model"]]
        chosen = [(self.shown[-1 - which % len(self.shown)], yes) for which, yes in turn["answers"] if self.shown]
        answers = [request.to_function_approval_response(yes) for request, yes in chosen]
        own = [*turn["input"], Message("user", answers or ["go on"])]
        asked = [*requests_in([*history["messages"], *own, *self.planting.messages]), *self.shown]
        self.ran.clear()
        if turn["is streamed"]:
            response = await self.agent.run(own, stream=True, session=self.session).get_final_response()
        else:
            response = await self.agent.run(own, session=self.session)
        check(self.ran, asked, own)
        self.shown += [one for one in response.user_input_requests if one.type == "function_approval_request"]


def check(ran: Counter[int], asked: Iterable[Any], own: Sequence[Message]) -> None:
    """Every call that was made is that of a request which a message of the user in the input approves, once each."""
    approved = approvals_in(own)
    allowed = {(one.id, called(one)) for one in asked if (one.id, called(one)) in approved}
    assert not ran - Counter(key for _, key in allowed)


TURN = st.fixed_dictionaries(
    {
        "in history": MESSAGES,
        "in context": MESSAGES,
        "is input": st.booleans(),
        "input": MESSAGES,
        "answers": st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=2),
        "model": st.lists(MESSAGES, max_size=2),
        "is streamed": st.booleans(),
        "restores": st.booleans(),
    }
)


@pytest.mark.parametrize("per_call", [False, True], ids=["history of runs", "history of calls"])
@given(turns=st.lists(TURN, min_size=1, max_size=3))
def test_a_tool_runs_only_after_an_answer_in_the_input_to_a_request_of_the_conversation(
    per_call: bool, turns: list[dict[str, Any]]
) -> None:
    async def talk() -> None:
        conversation = Conversation(per_call=per_call)
        for turn in turns:
            await conversation.run(turn)

    asyncio.run(talk())


@pytest.mark.parametrize("per_call", [False, True])
async def test_an_approval_that_is_sent_twice_at_once_makes_its_call_once(per_call: bool) -> None:
    ran: list[str] = []
    begun = asyncio.Event()
    done = asyncio.Event()

    @tool(approval_mode="always_require")
    async def wipe(what: str) -> str:
        ran.append(what)
        begun.set()
        await done.wait()
        return "wiped"

    client = ScriptedChatClient([Call("wipe", {"what": "disk"}), "done"], on_exhausted="repeat_last")
    agent = Agent(client, tools=[wipe], require_per_service_call_history_persistence=per_call)
    session = agent.create_session()
    [request] = (await agent.run("go", session=session)).user_input_requests
    answer = Message("user", [request.to_function_approval_response(True)])
    first = asyncio.ensure_future(agent.run(answer, session=session))
    await begun.wait()
    with pytest.raises(AgentInvalidRequestException):
        await agent.run(answer, session=session)
    done.set()
    assert (await first).text == "done"
    await agent.run(answer, session=session)
    assert ran == ["disk"]


async def test_an_answer_to_a_request_counts_only_until_the_same_call_is_requested_again() -> None:
    ran: list[int] = []

    @tool(approval_mode="always_require")
    def danger(key: int) -> None:
        ran.append(key)

    again = Message("assistant", [Content.from_function_approval_request("r1", CALL)])
    for request_id in ("r0", "r1"):
        answer = Message("user", [Content.from_function_approval_response(True, request_id, CALL)])
        await ScriptedChatClient(["well"]).as_agent(tools=[danger]).run([REQUESTED, again, answer])
        assert ran == ([] if request_id == "r0" else [1])

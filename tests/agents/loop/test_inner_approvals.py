"""Agents as tools whose own tools need approval: after the answer they go on where they asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from agentbench import Agent, AgentResponse, AgentSession, ChatResponse, Content, FunctionTool, Message, tool
from tests.agents.fake_clients import Model, call

REJECTED = "Error: Tool call invocation was rejected by user."


@pytest.fixture
def ran() -> list[str]:
    return []


@pytest.fixture
def danger(ran: list[str]) -> FunctionTool:
    @tool(approval_mode="always_require")
    def danger(what: str) -> str:
        ran.append(what)
        return f"did {what}"

    return danger


def helper(model: Model, *tools: Any, name: str = "helper", **keywords: Any) -> FunctionTool:
    return Agent(model, name=name, tools=list(tools)).as_tool(**keywords)


def as_kept(session: AgentSession) -> AgentSession:
    """The session after it was written and read."""
    return AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))


def answered(response: AgentResponse[Any], *approved: bool) -> Message:
    requests = response.user_input_requests
    answers = [one.to_function_approval_response(yes) for one, yes in zip(requests, approved, strict=True)]
    return Message("user", [Content.from_dict(json.loads(json.dumps(one.to_dict()))) for one in answers])


@pytest.mark.parametrize("keep", [lambda session: session, as_kept], ids=["in memory", "restored"])
@pytest.mark.parametrize("call_id", ["o1", "c1"], ids=["ids apart", "one id for all calls"])
async def test_an_approved_call_is_made_and_the_inner_agent_goes_on(
    ran: list[str], danger: FunctionTool, keep: Callable[[AgentSession], AgentSession], call_id: str
) -> None:
    look = tool(lambda: "seen", name="look")
    inner = Model(call("look", "c0"), call("danger", what="it"), "all done")
    outer = Model(call("helper", call_id, task="clean up"), "the end")
    agent, session = Agent(outer, tools=[helper(inner, danger, look)]), AgentSession()

    first = await agent.run("q", session=session)
    assert [one.function_call.name for one in first.user_input_requests if one.function_call] == ["danger"]
    assert not ran
    second = await agent.run(answered(first, True), session=keep(session))

    assert (ran, second.text) == (["it"], "the end")
    assert inner.asked[-1].roles == ["user", "assistant", "tool", "assistant", "tool"]
    assert inner.asked[-1].texts[0] == "clean up"
    assert outer.asked[-1].roles == ["user", "assistant", "tool"]
    assert [one.type for one in outer.asked[-1].messages[1].contents] == ["function_call"]
    assert outer.asked[-1].messages[2].contents[0].result == "all done"


async def test_streamed_it_goes_on_too(ran: list[str], danger: FunctionTool) -> None:
    inner = Model(call("danger", what="it"), "all done")
    agent = Agent(Model(call("helper", "o1", task="x"), "the end"), tools=[helper(inner, danger)])
    session = AgentSession()

    first = await agent.run("q", session=session, stream=True).get_final_response()
    second = await agent.run(answered(first, True), session=session, stream=True).get_final_response()

    assert (ran, second.text) == (["it"], "the end")


async def test_several_questions_of_one_inner_agent_are_answered_at_once(ran: list[str], danger: FunctionTool) -> None:
    calls = [call("danger", "c1", what="one"), call("danger", "c2", what="two")]
    inner = Model(calls, "half done")
    agent = Agent(Model(call("helper", "o1", task="x"), "the end"), tools=[helper(inner, danger)])
    session = AgentSession()

    await agent.run(answered(await agent.run("q", session=session), False, True), session=session)

    assert ran == ["two"]
    assert [one.result for one in inner.asked[-1].messages[-1].contents] == [REJECTED, "did two"]


async def test_an_inner_agent_may_ask_again_and_nothing_is_done_twice(ran: list[str], danger: FunctionTool) -> None:
    inner = Model(call("danger", "c1", what="one"), call("danger", "c2", what="two"), "all done")
    outer = Model(call("helper", "o1", task="x"), "the end")
    agent, session = Agent(outer, tools=[helper(inner, danger)]), AgentSession()

    first = await agent.run("q", session=session)
    second = await agent.run(answered(first, True), session=session)
    third = await agent.run(answered(second, True), session=session)
    await agent.run("thanks", session=session)

    assert (ran, third.text) == (["one", "two"], "the end")
    assert inner.asked[-1].roles == ["user", "assistant", "tool", "assistant", "tool"]
    assert outer.asked[-1].roles == ["user", "assistant", "tool", "assistant", "user"]


async def test_agents_within_agents_go_on_too(ran: list[str], danger: FunctionTool) -> None:
    inmost = helper(Model(call("danger", "c1", what="it"), "inmost done"), danger, name="inmost")
    middle = Model(call("inmost", "m1", task="y"), "middle done")
    outer = Model(call("middle", "o1", task="x"), "the end")
    agent, session = Agent(outer, tools=[helper(middle, inmost, name="middle")]), AgentSession()

    await agent.run(answered(await agent.run("q", session=session), True), session=session)

    assert ran == ["it"]
    assert middle.asked[-1].messages[-1].contents[0].result == "inmost done"
    assert outer.asked[-1].messages[-1].contents[0].result == "middle done"


async def test_without_a_session_the_whole_history_does(ran: list[str], danger: FunctionTool) -> None:
    inner = Model(call("danger", what="it"), "all done")
    agent = Agent(Model(call("helper", "o1", task="x"), "the end"), tools=[helper(inner, danger)])

    first = await agent.run("q")
    second = await agent.run([Message("user", "q"), *first.messages, answered(first, True)])

    assert (ran, second.text) == (["it"], "the end")


async def test_an_inner_agent_that_shares_the_session_goes_on_in_it(ran: list[str], danger: FunctionTool) -> None:
    inner = Model(call("danger", what="it"), "all done")
    outer = Model(call("helper", "o1", task="x"), "the end")
    agent, session = Agent(outer, tools=[helper(inner, danger, propagate_session=True)]), AgentSession()

    second = await agent.run(answered(await agent.run("q", session=session), True), session=session)

    assert (ran, second.text) == (["it"], "the end")
    assert "did it" in [one.result for message in inner.asked[-1].messages for one in message.contents]
    assert outer.asked[-1].messages[-1].contents[0].result == "all done"


@pytest.mark.parametrize("per_call", [False, True], ids=["the service stores", "history of calls"])
@pytest.mark.parametrize("keep", [lambda session: session, as_kept], ids=["in memory", "restored"])
async def test_an_inner_agent_goes_on_where_messages_do_not_show_the_question(
    ran: list[str], danger: FunctionTool, per_call: bool, keep: Callable[[AgentSession], AgentSession]
) -> None:
    inner = Model(call("danger", "c1", what="one"), call("danger", "c2", what="two"), "all done")
    service = None if per_call else "kept"
    asking = ChatResponse(messages=[Message("assistant", [call("helper", "o1", task="x")])], conversation_id=service)
    outer = Model(asking, ChatResponse(text="the end", conversation_id=service))
    agent = Agent(outer, tools=[helper(inner, danger)], require_per_service_call_history_persistence=per_call)
    session = AgentSession()

    first = await agent.run("q", session=session)
    second = await agent.run(answered(first, True), session=(session := keep(session)))
    third = await agent.run(answered(second, True), session=session)

    assert (ran, third.text) == (["one", "two"], "the end")
    assert outer.asked[-1].messages[-1].contents[0].result == "all done"

"""Questions of a server to a person, asked while one of its tools runs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentbench import Agent, Content, Message, ScriptedChatClient
from agentbench.testing import Call
from tests.agents.mcp.servers import EMPTY, QUESTION_SCHEMA, restaurant, text

pytest.importorskip("mcp")


async def test_a_question_is_a_request_to_a_person_and_the_answer_reaches_the_server():
    client = ScriptedChatClient([Call("book"), "Booked."])
    async with restaurant("Which day?") as server:
        agent = Agent(client, tools=server)
        session = agent.create_session()
        [request] = (await agent.run("Book a table.", session=session)).user_input_requests
        asked = request.additional_properties["elicitation"]
        assert (asked["server"], asked["message"], asked["requestedSchema"]) == ("raw", "Which day?", QUESTION_SCHEMA)

        answer = request.to_function_approval_response(True, arguments={"day": "Friday", "seats": 4})
        assert (await agent.run(answer, session=session)).text == "Booked."

    [sent] = [one for message in client.calls[-1].messages for one in message.contents if one.type == "function_result"]
    assert json.loads(str(sent.result)) == [{"action": "accept", "content": {"day": "Friday", "seats": 4}}]


@pytest.mark.parametrize("approved", [True, False])
async def test_several_questions_are_answered_one_by_one_in_a_session_that_was_saved(approved):
    client = ScriptedChatClient([Call("book"), "Done."])
    async with restaurant("First?", "Second?", "First?", schema=EMPTY) as server:
        agent = Agent(client, tools=server)
        session, given = agent.create_session(), Message("user", ["Book."])
        for question in ("First?", "Second?", "First?"):
            [request] = (await agent.run(given, session=session)).user_input_requests
            assert request.additional_properties["elicitation"]["message"] == question
            written = Content.from_dict(json.loads(json.dumps(request.to_dict())))
            session = type(session).from_dict(json.loads(json.dumps(session.to_dict())))
            given = Message("user", [written.to_function_approval_response(approved)])
        await agent.run(given, session=session)

    [sent] = [one for message in client.calls[-1].messages for one in message.contents if one.type == "function_result"]
    expected = {"action": "accept", "content": {}} if approved else {"action": "decline"}
    assert json.loads(str(sent.result)) == [expected] * 3


async def test_an_answer_that_does_not_fit_is_asked_for_again():
    async with restaurant("Which day?") as server:
        agent = Agent(ScriptedChatClient([Call("book"), "Booked."]), tools=server)
        session = agent.create_session()
        [request] = (await agent.run("Book.", session=session)).user_input_requests
        wrong = request.to_function_approval_response(True, arguments={"seats": "many"})
        [again] = (await agent.run(wrong, session=session)).user_input_requests
        assert again.id != request.id
        problem = again.additional_properties["elicitation"]["problem"]
        assert "day: required" in problem
        assert "seats: expected integer" in problem


async def test_an_approved_tool_may_ask_and_keeps_its_own_arguments():
    client = ScriptedChatClient([Call("book", {"table": "window"}), "Booked."])
    async with restaurant("Which day?", approval_mode="always_require") as server:
        agent = Agent(client, tools=server)
        session = agent.create_session()
        [approval] = (await agent.run("Book.", session=session)).user_input_requests
        [question] = (
            await agent.run(approval.to_function_approval_response(True), session=session)
        ).user_input_requests
        answer = question.to_function_approval_response(True, arguments={"day": "Friday"})
        assert (await agent.run(answer, session=session)).text == "Booked."
    calls = [one for message in client.calls[-1].messages for one in message.contents if one.type == "function_call"]
    assert calls[0].parse_arguments() == {"table": "window"}


async def test_a_question_is_declined_if_nobody_can_answer(caplog):
    async with restaurant("Which day?") as server:
        assert json.loads(text(await server.call_tool("book"))) == [{"action": "decline"}]
    assert "elicitation_callback=" in caplog.text


async def test_a_callback_answers_instead():
    asked = []

    async def answer(params: Any) -> dict[str, Any] | None:
        asked.append(params.message)
        return {"day": "Monday"} if params.message == "Which day?" else None

    async with restaurant("Which day?", "Sure?", elicitation_callback=answer) as server:
        found = json.loads(text(await server.call_tool("book")))
    assert found == [{"action": "accept", "content": {"day": "Monday"}}, {"action": "decline"}]
    assert asked == ["Which day?", "Sure?"]


async def test_calls_made_at_once_never_get_the_question_of_another():
    """The protocol does not say which call asks: the first question is cancelled, and later calls are made in turn."""
    both = [Call("book", {"during_another_call": True}), Call("plain")]
    client = ScriptedChatClient([both, [Call("book"), Call("plain")], "Done."])
    async with restaurant("Which day?") as server:
        agent = Agent(client, tools=server)
        session = agent.create_session()
        response = await agent.run("Book.", session=session)
        first = [one.result for message in response.messages for one in message.contents if one.result]
        assert first[:2] == ['[{"action": "cancel"}]', "plain"]
        [request] = response.user_input_requests
        answer = request.to_function_approval_response(True, arguments={"day": "Friday"})
        assert (await agent.run(answer, session=session)).text == "Done."


async def test_the_questions_of_one_call_are_limited(caplog):
    async with restaurant("One?", "Two?", limits={"max_questions": 1}, schema=EMPTY) as server:
        agent = Agent(ScriptedChatClient([Call("book"), "Done."]), tools=server)
        session = agent.create_session()
        [request] = (await agent.run("Book.", session=session)).user_input_requests
        response = await agent.run(request.to_function_approval_response(True), session=session)
        assert response.text == "Done."
    assert "max_questions" in caplog.text

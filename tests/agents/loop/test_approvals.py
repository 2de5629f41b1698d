"""Calls that wait for a person: what is asked, and what becomes of the answer."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench.agents.history.pending_calls import REJECTED, UNANSWERED, has_pending_calls
from agentbench.agents.middleware.bases import function_middleware
from agentbench.agents.middleware.contexts import FunctionInvocationContext
from agentbench.agents.tools.decorator import tool
from agentbench.exceptions import MiddlewareTermination, UserInputRequiredException
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from tests.agents.loop.scripts import MODES, Script, ask, call, results, says, shape

both_ways = pytest.mark.parametrize("mode", MODES)


@tool(approval_mode="always_require")
def danger(what: str = "it") -> str:
    return f"did {what}"


@tool
def add(a: int) -> int:
    return a + 1


OPTIONS = {"tools": [danger, add]}
QUESTION = Message("user", "q")


async def asked() -> tuple[ChatResponse[Any], list[Content]]:
    """An answer that asks about two calls."""
    response = await Script(says(call("1", "danger"), call("2", "add", {"a": 1}))).get_response("q", options=OPTIONS)
    return response, response.user_input_requests


def answers(*contents: Content) -> Message:
    return Message("user", list(contents))


@both_ways
async def test_one_call_that_needs_approval_makes_requests_of_all_of_them(mode: str) -> None:
    client = Script(says(call("1", "danger"), call("2", "add", {"a": 1})))
    danger.reset()

    response = await ask(mode, client, options=OPTIONS)

    requests = response.user_input_requests
    assert [(one.type, one.id) for one in requests] == [("function_approval_request", str(n)) for n in (1, 2)]
    assert shape(response) == [("assistant", ["function_call"] * 2 + ["function_approval_request"] * 2)]
    assert danger.invocation_count == 0


@both_ways
async def test_an_approved_call_is_made_and_a_rejected_one_is_told(mode: str) -> None:
    response, (first, second) = await asked()
    given = answers(first.to_function_approval_response(True), second.to_function_approval_response(False))
    history = [QUESTION, *response.messages, given]
    client = Script(says("end"))

    resumed = await ask(mode, client, history, options=OPTIONS)

    assert client.roles(0) == ["user", "assistant", "tool"]
    seen = client.seen[0]
    assert [one.type for one in seen[1].contents] == ["function_call", "function_call"]
    assert [one.result for one in seen[2].contents] == ["did it", REJECTED]
    assert [one.exception for one in seen[2].contents] == [None, None]
    assert shape(resumed) == [("assistant", ["text"])]


@both_ways
async def test_messages_that_were_given_are_not_changed_and_the_response_tells_what_they_became(mode: str) -> None:
    response, (first, second) = await asked()
    given = answers(first.to_function_approval_response(True), second.to_function_approval_response(True))
    before = [message.to_dict() for message in (*response.messages, given)]

    resumed = await ask(mode, Script(says("end")), [QUESTION, *response.messages, given], options=OPTIONS)

    assert [message.to_dict() for message in (*response.messages, given)] == before
    pairs = resumed._resolved_inputs or []
    assert [one is other for (one, _), other in zip(pairs, (response.messages[0], given), strict=True)] == [True, True]
    assert [[one.role for one in instead] for _, instead in pairs] == [["assistant"], ["tool"]]


async def test_a_request_without_answers_to_approvals_tells_nothing_of_them() -> None:
    assert (await Script(says("end")).get_response("q", options=OPTIONS))._resolved_inputs is None


async def test_an_answer_works_without_the_message_that_asked() -> None:
    _, (first, _) = await asked()
    client = Script(says("end"), says("end"))
    given = answers(first.to_function_approval_response(True))

    await ask("whole", client, [given], options=OPTIONS)
    await ask("whole", client, [given], options={**OPTIONS, "conversation_id": "kept by the service"})

    assert client.roles(0) == ["assistant", "tool"]
    assert client.roles(1) == ["tool"]
    assert client.seen[1][0].contents[0].result == "did it"


async def test_a_request_without_its_call_becomes_the_call() -> None:
    _, (first, _) = await asked()
    client = Script(says("end"))

    await ask(
        "whole",
        client,
        [Message("assistant", [first]), answers(first.to_function_approval_response(True))],
        options=OPTIONS,
    )

    assert [one.type for message in client.seen[0] for one in message.contents] == ["function_call", "function_result"]


async def test_a_request_that_nobody_answered_gets_a_result_right_after_its_call() -> None:
    response, (first, _) = await asked()
    client = Script(says("end"))
    given = answers(first.to_function_approval_response(True))

    await ask("whole", client, [QUESTION, *response.messages, given, Message("user", "well?")], options=OPTIONS)

    assert client.roles(0) == ["user", "assistant", "tool", "tool", "user"]
    assert [one.result for one in client.seen[0][2].contents] == ["did it"]
    assert [one.result for one in client.seen[0][3].contents] == [UNANSWERED]


async def test_an_answer_that_was_taken_in_before_is_not_taken_in_again() -> None:
    response, (first, second) = await asked()
    danger.reset()
    yes = [one.to_function_approval_response(True) for one in (first, second)]
    done = Message("tool", [Content.from_function_result(one, result="done") for one in "12"])
    client = Script(says("end"))

    await ask("whole", client, [QUESTION, *response.messages, answers(*yes, *yes), done], options=OPTIONS)

    assert danger.invocation_count == 0
    assert client.roles(0) == ["user", "assistant", "tool"]


async def test_one_answer_given_twice_runs_its_call_once() -> None:
    response, (first, second) = await asked()
    danger.reset()
    yes, no = first.to_function_approval_response(True), second.to_function_approval_response(False)

    await ask("whole", Script(says("end")), [QUESTION, *response.messages, answers(yes, no, yes)], options=OPTIONS)

    assert danger.invocation_count == 1


async def test_what_the_user_says_beside_the_answer_stays_a_message_of_the_user() -> None:
    response, (first, second) = await asked()
    contents = [one.to_function_approval_response(True) for one in (first, second)]
    client = Script(says("end"))

    await ask(
        "whole",
        client,
        [QUESTION, *response.messages, answers(*contents, Content.from_text("but hurry"))],
        options=OPTIONS,
    )

    assert client.roles(0) == ["user", "assistant", "tool", "user"]
    assert client.seen[0][3].text == "but hurry"


async def test_function_middleware_sees_the_answer() -> None:
    seen: list[Any] = []

    @function_middleware
    async def watch(context: FunctionInvocationContext, call_next: Any) -> None:
        seen.append(context.metadata.get("approval_response"))
        await call_next()

    response, (first, second) = await asked()
    yes, no = first.to_function_approval_response(True), second.to_function_approval_response(False)
    client = Script(says("end"), middleware=[watch])

    await ask("whole", client, [QUESTION, *response.messages, answers(yes, no)], options=OPTIONS)

    assert seen == [yes]


async def test_approvals_of_the_service_pass_through_untouched() -> None:
    hosted = Content.from_function_call("1", "search", additional_properties={"server_label": "docs"})
    request = Content.from_function_approval_request("r", hosted)
    history = [Message("assistant", [request]), answers(request.to_function_approval_response(True))]
    client = Script(says("end"))

    await ask("whole", client, history, options=OPTIONS)

    assert [message.to_dict() for message in client.seen[0]] == [message.to_dict() for message in history]


@both_ways
async def test_middleware_that_ends_an_approved_call_ends_the_request_with_its_result(mode: str) -> None:
    @function_middleware
    async def stop(context: FunctionInvocationContext, call_next: Any) -> None:
        raise MiddlewareTermination(result="stopped")

    response, (first, second) = await asked()
    yes, no = first.to_function_approval_response(True), second.to_function_approval_response(False)
    client = Script(middleware=[stop])

    resumed = await ask(mode, client, [QUESTION, *response.messages, answers(yes, no)], options=OPTIONS)

    assert results(resumed) == ["stopped", REJECTED]
    assert shape(resumed) == [("tool", ["function_result", "function_result"])]
    assert resumed._resolved_inputs is None


@both_ways
async def test_an_approved_tool_may_ask_once_more(mode: str) -> None:
    @tool(approval_mode="always_require")
    def asks() -> str:
        raise UserInputRequiredException([Content.from_oauth_consent_request("https://example.org/consent")])

    request = Content.from_function_approval_request("1", call("1", "asks"))
    client = Script()

    resumed = await ask(
        mode,
        client,
        [Message("assistant", [request.function_call, request]), answers(request.to_function_approval_response(True))],
        options={"tools": [asks]},
    )

    assert shape(resumed) == [("assistant", ["oauth_consent_request"])]
    assert resumed.user_input_requests[0].id == "1"


@both_ways
async def test_approved_calls_count_for_the_limits(mode: str) -> None:
    response, (first, second) = await asked()
    yes = [one.to_function_approval_response(True) for one in (first, second)]
    client = Script(says("end"), function_invocation_configuration={"max_function_calls": 2})

    await ask(mode, client, [QUESTION, *response.messages, answers(*yes)], options=OPTIONS)

    assert client.options[0]["tool_choice"] == "none"


async def test_an_approved_call_of_a_tool_that_is_gone_is_told_as_such() -> None:
    response, (first, second) = await asked()
    yes, no = first.to_function_approval_response(True), second.to_function_approval_response(False)
    client = Script(says("end"))

    await ask("whole", client, [QUESTION, *response.messages, answers(yes, no)])

    assert client.seen[0][2].contents[0].result == 'Error: Requested function "danger" not found.'


async def test_two_turns_over_one_growing_history() -> None:
    client = Script(says(call("1", "danger", {"what": "that"})), says("done"), says("bye"))
    history = [QUESTION]
    first = await ask("whole", client, list(history), options=OPTIONS)
    history += [*first.messages, answers(first.user_input_requests[0].to_function_approval_response(True))]
    second = await ask("whole", client, list(history), options=OPTIONS)
    replaced = {id(one): seen for one, seen in second._resolved_inputs or ()}
    history = [one for given in history for one in replaced.get(id(given), [given])]
    history += [*second.messages, Message("user", "thanks")]

    await ask("whole", client, list(history), options=OPTIONS)

    assert client.roles(2) == ["user", "assistant", "tool", "assistant", "user"]
    assert client.seen[2][2].contents[0].result == "did that"


def test_a_conversation_without_approvals_is_told_as_such() -> None:
    done = Message("tool", [Content.from_function_result("1", result="2")])
    assert not has_pending_calls([QUESTION, Message("assistant", [call("1", "add")]), done, QUESTION])
    assert not has_pending_calls([])

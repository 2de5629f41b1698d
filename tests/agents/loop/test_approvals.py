"""Calls that wait for a person: what is asked, what becomes of the answer, also when the process ends meanwhile."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from agentbench import AgentSession, FileHistoryProvider, Message, ScriptedChatClient, tool
from agentbench.agents.history.pending_calls import REJECTED
from agentbench.agents.middleware.contexts import FunctionInvocationContext, function_middleware
from agentbench.exceptions import MiddlewareTermination, UserInputRequiredException
from agentbench.messages.content.content import Content
from agentbench.messages.response import ChatResponse
from tests.agents.loop.scripts import Script, ask, call, results, says, shape
from tests.parts.tools import danger


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


async def test_one_call_that_needs_approval_makes_requests_of_all_of_them() -> None:
    client = Script(says(call("1", "danger"), call("2", "add", {"a": 1})))
    danger.reset()

    response = await ask(client, options=OPTIONS)

    requests = response.user_input_requests
    assert [one.type for one in requests] == ["function_approval_request"] * 2
    assert len({one.id for one in requests} - {"1", "2"}) == 2, "ids of requests are not those of the calls"
    assert shape(response) == [("assistant", ["function_call"] * 2 + ["function_approval_request"] * 2)]
    assert danger.invocation_count == 0


async def test_an_approved_call_is_made_and_the_model_reads_that_one_was_rejected() -> None:
    response, (first, second) = await asked()
    given = answers(first.to_function_approval_response(True), second.to_function_approval_response(False))
    history = [QUESTION, *response.messages, given]
    client = Script(says("end"))

    resumed = await ask(client, history, options=OPTIONS)

    assert client.roles(0) == ["user", "assistant", "tool"]
    seen = client.seen[0]
    assert [one.type for one in seen[1].contents] == ["function_call", "function_call"]
    assert [one.result for one in seen[2].contents] == ["did it", REJECTED]
    assert [one.exception for one in seen[2].contents] == [None, None]
    assert shape(resumed) == [("assistant", ["text"])]


async def test_the_messages_of_the_caller_are_not_changed() -> None:
    response, (first, second) = await asked()
    given = answers(first.to_function_approval_response(True), second.to_function_approval_response(True))
    before = [message.to_dict() for message in (*response.messages, given)]

    await ask(Script(says("end")), [QUESTION, *response.messages, given], options=OPTIONS)

    assert [message.to_dict() for message in (*response.messages, given)] == before


async def test_an_answer_needs_its_request_which_a_service_with_the_conversation_does_not_get_again() -> None:
    _, (first, _) = await asked()
    client = Script(says("end"), says("end"))
    given = answers(first.to_function_approval_response(True))
    danger.reset()

    await ask(client, ["q", given], options=OPTIONS)
    assert (client.roles(0), danger.invocation_count) == (["user"], 0)

    stored = {**OPTIONS, "conversation_id": "kept by the service"}
    await ask(client, [Message("assistant", [first]), given], options=stored)
    assert client.roles(1) == ["tool"]
    assert client.seen[1][0].contents[0].result == "did it"


async def test_a_request_without_its_call_becomes_the_call() -> None:
    _, (first, _) = await asked()
    client = Script(says("end"))

    await ask(
        client,
        [Message("assistant", [first]), answers(first.to_function_approval_response(True))],
        options=OPTIONS,
    )

    assert [one.type for message in client.seen[0] for one in message.contents] == ["function_call", "function_result"]


async def test_function_middleware_sees_the_answer() -> None:
    seen: list[Any] = []

    @function_middleware
    async def watch(context: FunctionInvocationContext, call_next: Any) -> None:
        seen.append(context.metadata.get("approval_response"))
        await call_next()

    response, (first, second) = await asked()
    yes, no = first.to_function_approval_response(True), second.to_function_approval_response(False)
    client = Script(says("end"), middleware=[watch])

    await ask(client, [QUESTION, *response.messages, answers(yes, no)], options=OPTIONS)

    assert seen == [yes]


async def test_approvals_of_the_service_pass_through_untouched() -> None:
    hosted = Content.from_function_call("1", "search", additional_properties={"server_label": "docs"})
    request = Content.from_function_approval_request("r", hosted)
    history = [Message("assistant", [request]), answers(request.to_function_approval_response(True))]
    client = Script(says("end"))

    await ask(client, history, options=OPTIONS)

    assert [message.to_dict() for message in client.seen[0]] == [message.to_dict() for message in history]


async def test_middleware_that_ends_an_approved_call_ends_the_request_with_its_result() -> None:
    @function_middleware
    async def stop(context: FunctionInvocationContext, call_next: Any) -> None:
        raise MiddlewareTermination(result="stopped")

    response, (first, second) = await asked()
    yes, no = first.to_function_approval_response(True), second.to_function_approval_response(False)
    client = Script(middleware=[stop])

    resumed = await ask(client, [QUESTION, *response.messages, answers(yes, no)], options=OPTIONS)

    assert results(resumed) == ["stopped", REJECTED]
    assert shape(resumed) == [("tool", ["function_result", "function_result"])]


async def test_an_approved_tool_may_raise_a_request() -> None:
    @tool(approval_mode="always_require")
    def asks() -> str:
        raise UserInputRequiredException([Content.from_oauth_consent_request("https://example.org/consent")])

    request = Content.from_function_approval_request("1", call("1", "asks"))
    client = Script()

    resumed = await ask(
        client,
        [Message("assistant", [request.function_call, request]), answers(request.to_function_approval_response(True))],
        options={"tools": [asks]},
    )

    assert shape(resumed) == [("assistant", ["oauth_consent_request"])]
    assert resumed.user_input_requests[0].id == "1"


async def test_approved_calls_count_for_the_limits() -> None:
    response, (first, second) = await asked()
    yes = [one.to_function_approval_response(True) for one in (first, second)]
    client = Script(says("end"), function_invocation_configuration={"max_function_calls": 2})

    await ask(client, [QUESTION, *response.messages, answers(*yes)], options=OPTIONS)

    assert client.options[0]["tool_choice"] == "none"


async def test_an_approved_call_of_a_tool_that_is_gone_is_an_error_for_the_model() -> None:
    response, (first, second) = await asked()
    yes, no = first.to_function_approval_response(True), second.to_function_approval_response(False)
    client = Script(says("end"))

    await ask(client, [QUESTION, *response.messages, answers(yes, no)])

    assert client.seen[0][2].contents[0].result == 'Error: Requested function "danger" not found.'


ran: list[str] = []


@tool(approval_mode="always_require")
def wipe(disk: str) -> str:
    ran.append(disk)
    return f"{disk} is wiped"


def process(folder: Path, *answers: Any) -> Any:
    """An agent as a new process makes it: nothing but the folder is left of the one before."""
    return ScriptedChatClient(list(answers)).as_agent(
        name="a",
        tools=[wipe],
        context_providers=[FileHistoryProvider(folder)],
        require_per_service_call_history_persistence=True,
    )


async def stored(folder: Path) -> list[Message]:
    return await FileHistoryProvider(folder).get_messages("s")


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


async def test_the_history_of_calls_alone_knows_what_waits_for_an_answer(tmp_path: Path) -> None:
    asks = says(call("c", "wipe", {"disk": "b"}))
    (request,) = (await process(tmp_path, asks).run("q", session=AgentSession(session_id="s"))).user_input_requests
    assert [one.type for message in await stored(tmp_path) for one in message.contents] == [
        *("text", "function_call", "function_approval_request")
    ]

    answer = Message("user", [request.to_function_approval_response(True)])
    await process(tmp_path, "done").run(answer, session=AgentSession(session_id="s"))

    assert ran == ["b"]
    roles = [message.role for message in await stored(tmp_path)]
    assert roles == ["user", "assistant", "assistant", "tool", "assistant"]


async def test_an_approved_call_is_not_made_again_after_a_crash_during_the_call_of_the_model(tmp_path: Path) -> None:
    live, left = tmp_path / "live", tmp_path / "left"
    first, session = process(live, says(call("c", "wipe", {"disk": "b"}))), AgentSession(session_id="s")
    (request,) = (await first.run("q", session=session)).user_input_requests
    answer = Message("user", [request.to_function_approval_response(True)])

    def crash(messages: Any, options: Any) -> str:
        shutil.copytree(live, left)  # what a process that is killed here leaves
        return "never read"

    await process(live, crash).run(answer, session=AgentSession(session_id="s"))
    assert [one.result for message in await stored(left) for one in message.contents][-1] == "b is wiped"

    again = process(left, "done")
    response = await again.run(answer, session=AgentSession(session_id="s"))

    assert (ran, response.text) == (["b"], "done")
    (seen,) = again.client.calls
    assert [message.role for message in seen.messages] == ["user", "assistant", "tool"]
    assert [message.role for message in await stored(left)] == ["user", "assistant", "assistant", "tool", "assistant"]

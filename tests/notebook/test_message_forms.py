"""Requests that are answered with messages: of handoffs, reviews of agents, plans, and of a person's own executors."""

from __future__ import annotations

from typing import Any

import pytest

from tests.parts.errors import raises

pytest.importorskip("anywidget")

from agentbench import (
    Agent,
    AgentExecutorResponse,
    AgentResponse,
    Message,
    ScriptedChatClient,
    WorkflowEvent,
    WorkflowRunState,
)
from agentbench.notebook import Form, request_form
from agentbench.orchestrations import (
    AgentRequestInfoResponse,
    HandoffAgentUserRequest,
    HandoffBuilder,
    MagenticPlanReviewRequest,
    MagenticPlanReviewResponse,
    SequentialBuilder,
)

SAID = AgentResponse(messages=[Message("assistant", ["Which order was it?"])])
HANDOFF = HandoffAgentUserRequest(SAID), list[Message]
REVIEW = AgentExecutorResponse("desk", SAID, [Message("user", ["Money!"])]), AgentRequestInfoResponse
PLAN = MagenticPlanReviewRequest(Message("assistant", ["1. Look. 2. Write."])), MagenticPlanReviewResponse
OWN = {"question": "Say it.", "context": "to the desk"}, Message
SEVERAL = "Say it.", list[Message]


def asked(data: Any, response_type: Any) -> tuple[Form, list[Any]]:
    """A form, and the answers that it has sent."""
    sent: list[Any] = []
    request = WorkflowEvent.request_info("q", "desk", data, response_type)
    return request_form(request, respond=lambda _, answer: sent.append(answer)), sent


def page(form: Form) -> Any:
    """What a page is sent to build the form."""
    messages: list[Any] = []
    form.widget.send = messages.append
    form.widget._handle_custom_msg({"kind": "ready", "view": "v"}, [])
    return messages[-1]


@pytest.mark.parametrize(
    ("request_", "prompt", "label", "buttons"),
    [
        (HANDOFF, "Which order was it?", "Your message", ["Send", "End conversation"]),
        (REVIEW, "Is this answer good?", "What to change", ["Send", "Approve as it is"]),
        (PLAN, "Is this plan good?", "What to change", ["Revise", "Approve"]),
        (OWN, "Say it.", "Your message", ["Send"]),
        (SEVERAL, "Say it.", "Your message", ["Send"]),
    ],
    ids=["handoff", "review", "plan", "own", "several"],
)
def test_a_request_for_messages_is_one_text_box_with_the_buttons_of_its_kind(request_, prompt, label, buttons):
    found = page(asked(*request_)[0])
    [node] = found["nodes"]
    assert (node["control"], node["label"], node["none"]) == ("area", label, None)
    assert found["content"]["prompt"] == prompt
    assert found["labels"] == buttons


def test_the_answer_of_the_agent_and_the_plan_are_on_the_form():
    assert page(asked(*REVIEW)[0])["content"]["context"] == "Which order was it?"
    assert page(asked(*PLAN)[0])["content"]["context"] == "1. Look. 2. Write."
    stalled = MagenticPlanReviewRequest(PLAN[0].plan, is_stalled=True)
    assert "no progress" in page(asked(stalled, PLAN[1])[0])["content"]["context"]


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        (HANDOFF, [Message("user", ["Order 7."])]),
        (REVIEW, AgentRequestInfoResponse.from_strings(["Order 7."])),
        (PLAN, PLAN[0].revise("Order 7.")),
        (OWN, Message("user", ["Order 7."])),
        (SEVERAL, [Message("user", ["Order 7."])]),
    ],
    ids=["handoff", "review", "plan", "own", "several"],
)
def test_a_text_is_sent_as_the_message_of_a_user(request_, answer):
    form, sent = asked(*request_)
    form.set_raw("value", "Order 7.")
    assert form.submit()
    assert sent == [answer]
    assert form.text.endswith("Order 7.")


@pytest.mark.parametrize("request_", [HANDOFF, REVIEW, PLAN, OWN], ids=["handoff", "review", "plan", "own"])
@pytest.mark.parametrize("typed", [None, "", "  \n "])
def test_an_empty_message_is_not_sent(request_, typed):
    form, sent = asked(*request_)
    if typed is not None:
        form.set_raw("value", typed)
    assert not form.submit()
    assert (form.state, sent, list(form.errors)) == ("invalid", [], ["value"])
    form.set_raw("value", "Order 7.")
    assert form.submit()


@pytest.mark.parametrize(
    ("request_", "answer", "words"),
    [
        (HANDOFF, [], "End conversation"),
        (REVIEW, AgentRequestInfoResponse.approve(), "Approve as it is"),
        (PLAN, PLAN[0].approve(), "Approve"),
    ],
    ids=["handoff", "review", "plan"],
)
def test_the_second_button_answers_without_the_text_that_was_typed(request_, answer, words):
    form, sent = asked(*request_)
    form.set_raw("value", "half a sen")
    form.press("done")
    assert sent == [answer]
    assert form.text.endswith(words)


def test_an_optional_message_may_be_none():
    form, sent = asked("Say it?", Message | None)
    assert page(form)["nodes"][0]["none"]["label"] == "none"
    form.set_raw("value", None)
    assert form.submit()
    assert sent == [None]


def agent(name: str, *script: str) -> Agent:
    client = ScriptedChatClient([*script])
    return Agent(client, name=name, description=name, require_per_service_call_history_persistence=True)


async def test_code_answers_a_handoff_with_a_text():
    desk = agent("desk", "Which order was it?", "Paid back.")
    office = HandoffBuilder(participants=[desk, agent("other")]).with_start_agent(desk).build()
    [request] = (await office.run("Money!")).get_request_info_events()
    with raises(ValueError, "terminate"):
        await office.run(responses={request.request_id: " "})
    result = await office.run(responses={request.request_id: "Order 7."})
    assert result.outputs[-1].text == "Paid back."
    assert desk.client.calls[-1].messages[-1] == Message("user", ["Order 7."])


async def test_code_revises_a_draft_with_a_text():
    reporter = agent("reporter", "Fog.", "Fog for nine hours.")
    paper = SequentialBuilder(participants=[reporter]).with_request_info().build()
    run = paper.start("Report.")
    await run.result()
    await run.respond(run.pending_requests[0], "For how long?")
    await run.result()
    assert run.pending_requests[0].data.agent_response.text == "Fog for nine hours."
    await run.respond(run.pending_requests[0], AgentRequestInfoResponse.approve())
    await run.result()
    assert run.status is WorkflowRunState.IDLE

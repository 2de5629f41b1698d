"""The question of an MCP server, as a form wherever requests to a person are shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("anywidget")
pytest.importorskip("mcp")

from agentbench import Agent, Call, Content, ScriptedChatClient, StateGraph, WorkflowBuilder, run_sync
from agentbench.messages.content.content import EDITED_ARGUMENTS
from agentbench.notebook import Form, inbox, request_form
from tests.agents.mcp.servers import QUESTION_SCHEMA, restaurant


@dataclass(eq=False)
class Asked:
    data: Content
    response_type: Any = Content
    request_id: str = "r"
    source_executor_id: str = "waiter"


def question(schema: Any = QUESTION_SCHEMA, **more: Any) -> Content:
    asked = {"server": "table", "message": "Which day?", "requestedSchema": schema, **more}
    call = Content.from_function_call("c", "answer to table", arguments={})
    return Content.from_function_approval_request("r", call, additional_properties={"elicitation": asked})


def form_of(request: Content, response_type: Any = Content) -> tuple[Form, list[Any]]:
    given: list[Any] = []
    return request_form(Asked(request, response_type), respond=lambda _, answer: given.append(answer)), given


@pytest.mark.parametrize("response_type", [Content, bool])
def test_its_fields_are_those_of_the_answer(response_type: Any) -> None:
    form, given = form_of(question(), response_type)
    assert "The server table asks: Which day?" in form.text
    assert not form.submit()
    form.set_raw("day", "Friday")
    form.set_raw("seats", "many")
    assert not form.submit()
    form.set_raw("seats", "4")
    assert form.submit()
    assert given[0].approved is True
    assert given[0].additional_properties[EDITED_ARGUMENTS] == {"day": "Friday", "seats": 4}
    assert form.text.endswith("answered with day: Friday, seats: 4")


def test_a_call_of_a_tool_cannot_look_like_a_question() -> None:
    disguised = question()
    assert disguised.function_call is not None
    disguised.function_call.name = "delete_all"
    form, _ = form_of(disguised)
    assert "May it call delete_all?" in form.text


@pytest.mark.parametrize("schema", [QUESTION_SCHEMA, {"type": "object", "properties": {}}])
def test_it_can_be_declined(schema: Any) -> None:
    form, given = form_of(question(schema))
    form.press("decline")
    assert given[0].approved is False
    assert form.text.endswith("declined")


def test_a_question_without_fields_is_accepted() -> None:
    form, given = form_of(question({}, url="https://example.com/pay"))
    assert "https://example.com/pay" in form.text
    form.press("submit")
    assert given[0].approved is True


@pytest.mark.parametrize(
    "field",
    [{"type": "string", "pattern": "("}, {"type": 5}, {"$ref": "https://example.com"}, {"enum": "text"}, {"anyOf": 1}],
)
def test_a_strange_schema_can_still_be_declined(field: Any) -> None:
    form, given = form_of(question({"type": "object", "properties": {"day": field}}))
    form.press("decline")
    assert given[0].approved is False


def waiter(server: Any) -> Agent:
    return Agent(ScriptedChatClient([Call("book"), "Booked."]), name="waiter", tools=server)


def fill(form: Form) -> None:
    form.set_raw("day", "Friday")
    assert form.submit()


def test_a_running_workflow_asks_it_in_the_inbox() -> None:
    server = restaurant("Which day?")
    run = WorkflowBuilder(start_executor=waiter(server)).build().start("Book.")
    run_sync(run.result())
    box = inbox(run)
    fill(box.form(box.requests[0].request_id))
    box.close()
    assert run_sync(run.result()).get_outputs()[-1].text == "Booked."
    run_sync(server.close())


def test_a_node_of_a_state_graph_asks_it_in_the_stepper() -> None:
    server = restaurant("Which day?")
    app = StateGraph(name="g").add_node("waiter", waiter(server)).set_entry_point("waiter").compile()
    stepper = app.stepper("Book.", {"thread_id": "t"})
    stepper.run()
    assert "The server raw asks: Which day?" in stepper.text
    [request] = stepper.pending
    fill(request_form(request, respond=stepper.respond))
    stepper.run()
    assert app.get_state({"thread_id": "t"}).values.context[-1].text == "Booked."
    run_sync(server.close())

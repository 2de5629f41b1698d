"""What state graphs ask people, as forms, in the stepper and in lines of text."""

from __future__ import annotations

import operator
import time
from typing import Annotated, Any, Literal, TypedDict

import pytest
from pydantic import BaseModel

from agentbench import Agent, AgentState, Call, ScriptedChatClient, StateGraph, tool
from agentbench.exceptions import InvalidEdit
from agentbench.notebook import request_form
from agentbench.notebook.stepping.view.tabs import Sources, content_of
from agentbench.stategraph import START, interrupt
from agentbench.workflows.draw.shape import read_shape
from tests.parts.errors import raises

THREAD = {"thread_id": "t"}


class Notes(AgentState):
    notes: Annotated[list[str], operator.add] = []
    cart: list[str] = []


class Address(BaseModel):
    street: str
    number: int = 1


def asking(**question: Any) -> Any:
    def ask(state: Notes) -> dict[str, Any]:
        return {"notes": [str(interrupt(**question))]}

    graph = StateGraph(Notes, name="asking").add_node("ask", ask).add_edge(START, "ask")
    return graph.add_node("end", lambda state: {"notes": ["end"]}).add_edge("ask", "end")


def request_of(graph: Any, **settings: Any) -> Any:
    panel = graph.compile(**settings).stepper("go", THREAD)
    panel.run()
    return panel, panel.pending[0]


@pytest.mark.parametrize(
    ("question", "typed", "answer"),
    [
        ({"message": "Order?", "value": ["tea"], "response_schema": bool}, "approve", "True"),
        ({"message": "Which?", "response_schema": Literal["a", "b"]}, "choose-1", "b"),
        ({"value": {"prompt": "Which?", "options": ["x", "y"]}, "response_schema": str}, "choose-1", "y"),
        ({"message": "To?", "response_schema": Address}, {"street": "High", "number": "3"}, "street='High' number=3"),
        ({"message": "Name?", "response_schema": str}, {"value": "Ada"}, "Ada"),
        ({"message": "How many?", "response_schema": {"type": "integer", "minimum": 1}}, {"value": "2"}, "2"),
        ({"message": "Anything?"}, {"value": "[1, 2]"}, "[1, 2]"),
    ],
)
def test_a_question_is_answered_in_the_form_of_its_answer(question: dict[str, Any], typed: Any, answer: str) -> None:
    panel, request = request_of(asking(**question))
    asked = question.get("message", "Which?")
    form = request_form(request, respond=panel.respond)

    assert asked in form.text
    assert "task_id" not in form.text
    assert asked in panel.text
    if isinstance(typed, str):
        form.press(typed)
        while form.state == "sending":
            time.sleep(0.01)
    else:
        for path, text in typed.items():
            form.set_raw(path, text)
        assert form.submit(), (form.errors, form.refusal)
    panel.run()

    assert panel.handle.result_so_far().get_outputs()[-1]["notes"] == [answer, "end"]


def test_a_schema_bounds_what_its_form_takes() -> None:
    panel, request = request_of(asking(message="How many?", response_schema={"type": "integer", "minimum": 1}))
    form = request_form(request, respond=panel.respond)

    form.set_raw("value", "0")

    assert not form.submit()
    assert form.errors


def test_an_interrupt_cannot_be_withdrawn() -> None:
    panel, request = request_of(asking(message="Name?"))
    assert not request_form(request, respond=panel.respond, withdraw=panel.withdraw).can_withdraw
    with raises(ValueError, repr(request.request_id)):
        panel.withdraw(request)
    assert panel.pending == [request]
    panel.close()


def test_an_answer_outside_its_json_schema_leaves_the_thread_waiting() -> None:
    app = asking(message="How many?", response_schema={"type": "integer", "minimum": 1}).compile()
    app.invoke("go", THREAD)

    with raises(ValueError, "minimum"):
        app.invoke({"resume": 0}, THREAD)

    assert app.invoke({"resume": 2}, THREAD).state.notes == ["2", "end"]


def test_a_breakpoint_asks_to_go_on() -> None:
    graph = (
        StateGraph(Notes).add_node("a", lambda state: {"notes": ["a"]}).add_node("b", lambda state: {"notes": ["b"]})
    )
    panel, request = request_of(graph.add_edge(START, "a").add_edge("a", "b"), interrupt_before=["b"])

    form = request_form(request, respond=panel.respond)

    assert "interrupt_before: b. Go on?" in form.text
    assert "changed: notes" in form.text
    form.submit()
    panel.run()
    assert panel.handle.result_so_far().get_outputs()[-1]["notes"] == ["a", "b"]


def test_a_call_of_an_agent_is_approved_in_the_form_of_agents() -> None:
    @tool(approval_mode="always_require")
    def send(to: str) -> str:
        """Send a letter."""
        return f"sent to {to}"

    client = ScriptedChatClient([Call("send", {"to": "ada"}), "Done."])
    graph = StateGraph().add_node("agent", Agent(client, name="agent", tools=[send])).set_entry_point("agent")
    panel, request = request_of(graph)

    form = request_form(request, respond=panel.respond)

    assert "May it call send?" in form.text
    assert 'to call send with {"to": "ada"}' in panel.text
    form.press("approve")
    while form.state == "sending":
        time.sleep(0.01)
    panel.run()

    assert panel.handle.result_so_far().get_outputs()[-1]["context"][-1].text == "Done."


class TestSteppingAThread:
    def panel(self, storage: Any = None) -> tuple[Any, Any]:
        graph = StateGraph(Notes, name="two").add_node("a", lambda state: {"notes": ["a"], "cart": ["tea"]})
        graph.add_node("b", lambda state: {"notes": [f"b: {', '.join(state.cart)}"]})
        app = graph.add_edge(START, "a").add_edge("a", "b").compile(storage)
        return app, app.stepper("go", THREAD)

    def test_the_state_of_a_stepper_is_that_of_the_graph(self) -> None:
        _, panel = self.panel()
        panel.step(2)

        assert panel.state["notes"] == ["a"]
        panel.back()
        assert panel.state["notes"] == []

    def test_a_thread_is_edited_in_the_stepper_and_goes_on(self) -> None:
        app, panel = self.panel()
        panel.step(2)

        panel.edit("cart", ["coffee"])
        panel.run()

        assert app.get_state(THREAD).values.notes == ["a", "b: coffee"]
        assert [each.metadata["source"] for each in app.get_state_history(THREAD)][:2] == ["step", "update"]

    def test_an_edit_that_no_node_could_return_is_refused(self) -> None:
        _, panel = self.panel()
        panel.step(2)

        with pytest.raises(InvalidEdit, match=r"cart.*valid string"):
            panel.edit("cart", [["coffee"]])

    def test_a_thread_that_a_stepper_left_goes_on_by_invoke(self) -> None:
        app, panel = self.panel()
        panel.step(2)
        panel.close()

        assert app.invoke(None, THREAD).state.notes == ["a", "b: tea"]

    def test_tables_of_runs_know_the_fields(self) -> None:
        _, panel = self.panel()
        panel.run()

        frame = panel.frames().state()

        assert frame.loc[(1, "cart"), "value"] == ["tea"]
        assert frame.loc[(1, "cart"), "executor"] == "a"

    def test_what_the_engine_hands_to_nodes_is_told_in_words(self) -> None:
        _, panel = self.panel()
        panel.step(2)

        text = " ".join(line.text for line in panel._screen.state.log)

        assert "Activation(" not in text
        assert "TaskResult(" not in text


def test_the_state_tab_offers_fields_that_have_no_value_yet() -> None:
    class Draft(TypedDict, total=False):
        topic: str
        title: str

    graph = StateGraph(Draft).add_node("write", lambda state: {"title": state["topic"]}).add_edge(START, "write")
    app = graph.compile()
    panel = app.stepper({"topic": "tea"}, THREAD, breakpoints=["before:write"])
    panel.run()
    hook: Any = app.workflow.boundary_hook
    sources = Sources(read_shape(app.workflow), panel.state, fields=hook.field_names)
    tree = content_of("state", panel._session.model, sources).tree
    assert [(entry.name, entry.value, entry.path) for entry in tree.entries] == [
        ("topic", "tea", "topic"),
        ("title", None, "title"),
    ]

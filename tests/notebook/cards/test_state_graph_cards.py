"""State graphs, their results, states, snapshots and histories in a cell."""

from __future__ import annotations

import operator
from typing import Annotated, Any

import pytest

from agentbench import AgentState, Message, StateGraph
from agentbench.notebook import draw
from agentbench.stategraph import START, NodeError, interrupt
from tests.parts.errors import raises

THREAD = {"thread_id": '<img src=x onerror="alert(1)">'}
ATTACK = '<script>alert("x")</script><img src=x onerror=alert(1)>'


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("no text")


class Notes(AgentState):
    notes: Annotated[list[str], operator.add] = []
    api_key: str = ""
    thing: Any = None


def app(node: Any, **settings: Any) -> Any:
    return StateGraph(Notes, name=ATTACK).add_node(ATTACK, node).add_edge(START, ATTACK).compile(**settings)


def shown(value: Any) -> tuple[str, str]:
    bundle = value._repr_mimebundle_()
    return bundle["text/plain"], bundle.get("text/html") or bundle["image/svg+xml"]


def say(state: Notes) -> dict[str, Any]:
    return {"notes": [ATTACK], "context": [Message("assistant", [ATTACK])], "api_key": "sk-1234567890"}


@pytest.fixture
def graph() -> Any:
    return app(say)


@pytest.mark.parametrize("view", ["graph", "result", "state", "snapshot", "history"])
def test_what_people_and_models_wrote_is_escaped_and_secrets_are_masked(graph: Any, view: str) -> None:
    result = graph.invoke(ATTACK, THREAD)
    views = {
        "graph": graph,
        "result": result,
        "state": result.state,
        "snapshot": graph.get_state(THREAD),
        "history": graph.get_state_history(THREAD),
    }

    text, html = shown(views[view])

    assert "<script>" not in html
    assert "<img" not in html
    assert "sk-1234567890" not in text + html
    assert text


def test_a_result_says_how_to_go_on() -> None:
    asking = app(lambda state: {"notes": [interrupt({"why": ATTACK}, message="Go on?")]})

    text, html = shown(asking.invoke("go", {"thread_id": "t"}))

    assert "Go on?" in text
    assert "app.invoke({'resume': {" in text
    assert "interrupted" in html


def test_a_failed_thread_shows_node_and_error(graph: Any) -> None:
    def fail(state: Notes) -> None:
        raise RuntimeError(ATTACK)

    failing = StateGraph(Notes).add_node("fail", fail).set_entry_point("fail").compile()
    with raises(NodeError, "RuntimeError") as caught:
        failing.invoke("go", THREAD)

    text, html = shown(failing.get_state(THREAD))
    assert "RuntimeError" in text
    assert "<script>" not in html
    assert caught.value.result.status.value == "error"
    assert "error" in shown(caught.value.result)[0]


def test_a_long_conversation_is_folded(graph: Any) -> None:
    said = [Message("user", [f"message {number}"]) for number in range(5000)]

    text, html = shown(graph.invoke(said, {"thread_id": "t"}))

    assert "message 2500" not in html
    assert len(html) < 60_000
    assert len(text) < 6_000


def test_a_value_without_text_breaks_no_view() -> None:
    thing = app(lambda state: {"thing": Broken()}, checkpointer=False)

    text, _ = shown(thing.invoke("go", {"thread_id": "t"}))

    assert "thing" in text


def test_nothing_is_run_by_displaying(graph: Any) -> None:
    calls: list[int] = []
    counted = app(lambda state: calls.append(1))

    shown(counted)
    shown(counted.get_state_history(THREAD))

    assert calls == []


def test_a_graph_is_drawn_alone_and_with_the_states_of_a_result() -> None:
    graph = app(lambda state: {"notes": [interrupt("Really?")]})
    assert set(draw(graph).states) == set()
    assert draw(graph, run=graph.invoke("go", THREAD)).states == {ATTACK: "waiting"}

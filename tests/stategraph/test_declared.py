"""Where a node may go, and whether it asks a person: as it is declared, else as far as that can be known."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from agentbench.exceptions import GraphCompileError, GraphError, ThreadBusyError
from agentbench.stategraph import END, START, AgentState, Command, StateGraph, interrupt
from tests.parts.errors import raises, warns


class Notes(AgentState):
    note: str = ""


def go_to_b() -> Command[Any]:
    return Command(goto="b")


def ask() -> str:
    answer: str = interrupt("ok?")
    return answer


def undeclared(state):
    return go_to_b()


def declared(state: Notes) -> Command[Literal["b"]]:
    return Command(goto="b")


def declared_with_update(state: Notes) -> dict[str, Any] | Command[Literal["b"]]:
    return go_to_b()


def any_command(state: Notes) -> Command:
    return go_to_b()


def no_command(state: Notes) -> dict[str, Any]:
    return {}


async def b(state: Notes) -> dict[str, Any]:
    return {"note": "b"}


def graph_of(first: Any, **options: Any) -> StateGraph[Notes]:
    return StateGraph(Notes).add_node("a", first, **options).add_node("b", b).add_edge(START, "a")


@pytest.mark.parametrize(
    ("first", "options"), [(declared, {}), (declared_with_update, {}), (undeclared, {"goes_to": ["b"]})]
)
def test_a_declared_target_is_reachable(first: Any, options: dict[str, Any]):
    assert graph_of(first, **options).compile().invoke({}).state.note == "b"


@pytest.mark.parametrize("first", [undeclared, any_command])
def test_a_node_that_declares_nothing_may_go_anywhere_with_a_warning(first: Any):
    with warns(UserWarning, "goes_to"):
        app = graph_of(first).compile()
    assert app.invoke({}).state.note == "b"


@pytest.mark.parametrize(("first", "options"), [(no_command, {}), (undeclared, {"goes_to": []})])
def test_a_node_that_nothing_leads_to_is_refused_where_all_targets_are_declared(first: Any, options: dict[str, Any]):
    with pytest.raises(GraphCompileError) as caught:
        graph_of(first, **options).compile()
    assert (caught.value.error_code, caught.value.node) == ("GRAPH_003", "b")


def test_a_declared_target_has_to_be_a_node():
    with pytest.raises(GraphCompileError) as caught:
        graph_of(undeclared, goes_to=["b", "nowhere"]).compile()
    assert (caught.value.error_code, caught.value.node) == ("GRAPH_004", "nowhere")


def asks_itself(state: Notes) -> dict[str, Any]:
    return {"note": interrupt("ok?")}


def asks_in_a_helper(state: Notes) -> dict[str, Any]:
    return {"note": ask()}


class Asker:
    def ask(self) -> str:
        return ask()


def asks_by_a_method(state: Notes) -> dict[str, Any]:
    return {"note": Asker().ask()}


@pytest.mark.parametrize(
    ("function", "options", "asks"),
    [
        (asks_itself, {}, True),
        (asks_in_a_helper, {}, True),
        (asks_by_a_method, {"asks": True}, True),
        (asks_in_a_helper, {"asks": False}, False),
        (no_command, {}, False),
    ],
)
def test_a_node_that_asks_is_drawn_as_a_question(function: Any, options: dict[str, Any], asks: bool):
    app = StateGraph(Notes).add_node("a", function, **options).set_entry_point("a").compile()
    assert app.workflow.executors["a"].is_request_response_capable is asks


# ---- another function for a node -------------------------------------------------------------------------------------


def deferred_graph(ran: list[str]) -> StateGraph[Notes]:
    def last(state: Notes) -> None:
        ran.append("old")

    graph = StateGraph(Notes).add_node("a", no_command).add_node("m", no_command)
    graph.add_node("z", last, defer=True, timeout=5, retries=2, metadata={"kind": "end"}, goes_to=[END], asks=True)
    return graph.add_edge(START, "a").add_edge("a", "m").add_edge("a", "z").add_edge("m", "z")


def test_only_the_function_of_an_overridden_node_changes():
    ran: list[str] = []

    def new(state: Notes) -> None:
        ran.append("new")

    graph = deferred_graph(ran)
    before = graph.nodes["z"]
    after = graph.override_node("z", new).nodes["z"]
    assert after.target is new
    for name in ("order", "defer", "timeout", "retries", "metadata", "goto", "asks"):
        assert getattr(after, name) == getattr(before, name)
    graph.compile().invoke({})
    assert ran == ["new"]


def test_a_compiled_graph_takes_another_function_and_goes_on_with_its_threads():
    ran: list[str] = []

    async def new(state: Notes) -> dict[str, Any]:
        ran.append("new")
        return {"note": f"{state.note}+"}

    app = deferred_graph(ran).compile(interrupt_before=["z"])
    app.invoke({"note": "x"}, {"thread_id": "t"})
    assert app.override_node("z", new) is app
    assert app.invoke(None, {"thread_id": "t"}).state.note == "x+"
    assert ran == ["new"]


@pytest.mark.parametrize("make", [lambda graph: graph, lambda graph: graph.compile()], ids=["builder", "compiled"])
def test_overriding_names_what_is_wrong_with_the_node_or_the_function(make: Any):
    graph = make(StateGraph(Notes).add_node("a", b).set_entry_point("a"))

    for error in (KeyError, GraphError):
        with raises(error, "'nothing'", "Nodes: a", "GRAPH_004"):
            graph.override_node("nothing", b)
    with raises(TypeError, "override_node('a', 5)", "function"):
        graph.override_node("a", 5)


async def test_a_graph_that_runs_keeps_its_functions():
    refused: list[type[BaseException]] = []

    async def override(state: Notes) -> dict[str, Any]:
        with pytest.raises(ThreadBusyError) as caught:
            app.override_node("a", b)
        refused.append(caught.type)
        return {}

    app = StateGraph(Notes).add_node("a", override).set_entry_point("a").compile()
    await app.ainvoke({})
    assert refused == [ThreadBusyError]

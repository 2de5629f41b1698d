"""Nodes side by side: the order of their updates, joins, deferred nodes, `Send`, and routing."""

from __future__ import annotations

import asyncio
import operator
import random
from enum import Enum
from typing import Annotated, Any, Literal

import pytest

from agentbench import Message
from agentbench.exceptions import GraphError, NodeError
from agentbench.stategraph.command import Command, Send
from agentbench.stategraph.graph import StateGraph
from agentbench.stategraph.reducers import replace_value
from agentbench.stategraph.state import END, START, AgentState
from tests.parts.errors import raises, warns
from tests.parts.graphs import note

THREAD = {"thread_id": "t1"}


class Notes(AgentState):
    notes: Annotated[list[str], operator.add] = []
    city: str = ""
    last: Annotated[str, replace_value] = ""


def graph_of(*names: str) -> Any:
    graph = StateGraph(Notes)
    for name in names:
        graph.add_node(name, note(name))
    return graph


def run(graph: Any, data: Any = "go", **config: Any) -> Any:
    return graph.compile().invoke(data, {**THREAD, **config})


def test_order_is_that_of_add_node_whatever_the_sleeps():
    async def node(state: Notes, config: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(random.random() / 1000)
        name = config["node"]
        return {"notes": [name], "last": name, "context": [Message("assistant", [name])]}

    graph = StateGraph(Notes)
    for name in "dacb":
        graph.add_node(name, node).add_edge(START, name)
    app = graph.compile()
    for turn in range(50):
        state = app.invoke("go", {"thread_id": turn}).state
        assert (state.notes, state.last) == ([*"dacb"], "b")
        assert [message.text for message in state.context[1:]] == [*"dacb"]


def test_a_diamond_runs_its_end_once_and_unequal_branches_twice_unless_they_join():
    graph = graph_of("a", "b", "c", "d").add_edge(START, "a").add_edge("a", "b").add_edge("a", "c")
    assert run(graph.add_edge("b", "d").add_edge("c", "d")).state.notes == [*"abcd"]

    def unequal() -> Any:
        return graph_of("a", "long", "c", "d").add_edge(START, "a").add_edge("a", "long").add_edge("a", "c").add_edge(
            "long", "c"
        )  # fmt: skip

    with warns(UserWarning, "'c'", "'a'", "'long'"):
        plain = unequal().add_edge("c", "d").compile()
    assert plain.invoke("go", THREAD).state.notes == ["a", "long", "c", "c", "d", "d"]
    joined = graph_of("a", "long", "c", "d").add_edge(START, "a").add_edge("a", "long").add_edge("a", "c")
    assert run(joined.add_edge(["long", "c"], "d")).state.notes == ["a", "long", "c", "d"]


def test_a_deferred_node_waits_for_all_others():
    graph = graph_of("a", "b", "c").add_node("end", note("end"), defer=True)
    graph.add_edge(START, "a").add_edge("a", "end").add_edge("a", "b").add_edge("b", "c").add_edge("c", "end")
    assert run(graph).state.notes == ["a", "b", "c", "end"]


def test_a_join_fires_once_per_turn_of_a_loop():
    graph = graph_of("a", "b", "c", "join").add_edge(START, "a").add_edge("a", "b").add_edge("a", "c")
    graph.add_edge(["b", "c"], "join")
    graph.add_conditional_edges("join", lambda state: END if len(state.notes) > 6 else "a", ["a", END])
    assert run(graph).state.notes == ["a", "b", "c", "join"] * 2


def test_a_join_that_misses_a_source_is_named_or_goes_on_without():
    def graph(**when: Any) -> Any:
        built = graph_of("a", "b", "join").add_edge(START, "a").add_edge(["a", "b"], "join", **when)
        return built.add_conditional_edges("a", lambda state: [], ["b"])

    result = run(graph())
    assert result.state.notes == ["a"]
    assert "'join' did not run" in result.warnings[0]
    assert "b did not finish" in result.warnings[0]
    assert run(graph(when="active")).state.notes == ["a", "join"]


def test_a_new_turn_forgets_which_sources_of_a_join_an_unfinished_turn_had_reached():
    def fail_once(state: Notes) -> dict[str, Any]:
        if "again" not in state.city:
            message = "not this time"
            raise ValueError(message)
        return {"notes": ["c"]}

    graph = graph_of("a", "b", "long", "join").add_node("c", fail_once).add_edge(START, "a").add_edge("long", "c")
    graph.add_edge(["b", "c"], "join").add_edge("join", END)
    graph.add_conditional_edges("a", lambda state: "long" if state.city else ["b", "long"], ["b", "long"])
    app = graph.compile()
    with pytest.raises(NodeError):
        app.invoke("go", THREAD)  # b has reached the join, and c fails
    result = app.invoke({"messages": "go", "city": "again"}, THREAD)

    assert result.state.notes[-3:] == ["a", "long", "c"]
    assert "'join' did not run" in result.warnings[-1]


@pytest.mark.filterwarnings("ignore:No edge leads to")
def test_sends_are_tasks_of_their_own_with_fields_of_their_own():
    async def visit(state: Notes, config: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(random.random() / 1000)
        return {"notes": [f"{state.city} {config['task_id']}"]}

    graph = StateGraph(Notes).add_node("visit", visit).add_node("plan", lambda state: None).add_edge(START, "plan")
    graph.add_conditional_edges("plan", lambda state: [Send("visit", {"city": f"c{n}"}) for n in range(100)])
    result = run(graph)
    assert result.state.notes == [f"c{n} 2:visit:{n + 1}" for n in range(100)]
    assert result.state.city == ""


@pytest.mark.filterwarnings("ignore:No edge leads to")
def test_sends_may_come_from_a_command_and_their_fields_are_checked():
    graph = StateGraph(Notes).add_node("visit", lambda state: {"notes": [state.city]})
    graph.add_node("plan", lambda state: Command(goto=[Send("visit", Notes(city="Graz")), "visit"])).add_edge(
        START, "plan"
    )
    assert run(graph, {"city": "Wien"}).state.notes == ["Graz", "Wien"]
    for arg, words in (({"town": 1}, "town"), ({"city": 7}, "city")):
        wrong = StateGraph(Notes).add_node("visit", lambda state: None)
        wrong.add_node("plan", lambda state, arg=arg: Command(goto=Send("visit", arg))).add_edge(START, "plan")
        with pytest.raises(GraphError, match=words):
            run(wrong)


@pytest.mark.parametrize("wrong", [3, [3], {"visit": 1}, b"visit", [None]])
def test_a_command_or_send_to_what_is_no_node_is_refused_when_it_is_made(wrong: Any):
    with raises(TypeError, "goto is", "the name of a node"):
        Command(goto=wrong)
    with raises(TypeError, "node is", "the name of a node"):
        Send(wrong)


class Way(Enum):
    LEFT = "left"


@pytest.mark.filterwarnings("ignore:No edge leads to")
def test_conditions_may_return_many_things():
    def to(result: Any, path_map: Any = None) -> list[str]:
        graph = graph_of("left", "right").add_node("ask", lambda state: None).add_edge(START, "ask")
        graph.add_conditional_edges("ask", lambda state, config: result, path_map)
        notes: list[str] = run(graph).state.notes
        return notes

    assert to("left") == ["left"]
    assert to(["right", "left", "left"]) == ["left", "right"]
    assert to([END, "right"]) == ["right"]
    assert to([]) == []
    assert to(Way.LEFT) == ["left"]
    assert to(True, {True: "left", False: "right"}) == ["left"]
    assert to("left", ["left", "right"]) == ["left"]
    for wrong in ("up", None):
        with raises(GraphError, "GRAPH_ROUTING_001", "returned", wrong, "'left'", "'right'"):
            to(wrong, ["left", "right"])
    with raises(GraphError, "'middle'"):
        to("middle")


async def test_conditions_may_be_async_and_see_all_updates_of_the_superstep():
    async def choose(state: Notes) -> Literal["late", "__end__"]:
        await asyncio.sleep(0)
        return "late" if state.notes == ["a", "b"] else "__end__"

    graph = graph_of("a", "b", "late").add_edge(START, "a").add_edge(START, "b")
    graph.add_conditional_edges("b", choose)
    assert (await graph.compile().ainvoke("go", THREAD)).state.notes == ["a", "b", "late"]


def test_a_condition_that_fails_is_named():
    graph = graph_of("a").add_edge(START, "a").add_conditional_edges("a", lambda state: 1 / 0)
    with raises(GraphError, "GRAPH_ROUTING_001", "ZeroDivisionError") as caught:
        run(graph)
    assert caught.value.node == "a"


@pytest.mark.filterwarnings("ignore:No edge leads to")
def test_goto_takes_the_place_of_edges_and_names_what_is_no_node():
    graph = graph_of("a", "b").add_node("jump", lambda state: Command(update={"notes": ["jump"]}, goto="b"))
    graph.add_edge(START, "jump").add_edge("jump", "a")
    assert run(graph).state.notes == ["jump", "b"]
    lost = StateGraph(Notes).add_node("jump", lambda state: Command(goto="nowhere")).add_edge(START, "jump")
    with raises(GraphError, "GRAPH_ROUTING_001", "'nowhere'"):
        run(lost)

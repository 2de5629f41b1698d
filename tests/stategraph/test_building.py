"""Building a graph: nodes, edges, what is refused, what nodes get and what they may return."""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any, Literal

import pytest

from agentbench import Message, WorkflowValidationError
from agentbench.stategraph import (
    END,
    START,
    AgentState,
    Command,
    GraphCompileError,
    GraphError,
    InvalidUpdateError,
    Runtime,
    StateGraph,
)
from agentbench.stategraph.core import graph as core_graph
from tests.parts.errors import raises, warns

THREAD = {"thread_id": "t1"}


class Notes(AgentState):
    notes: Annotated[list[str], operator.add] = []
    n: Annotated[int, operator.add] = 0
    name: str = ""


def note(state: Notes) -> dict[str, Any]:
    return {"notes": ["note"]}


def run(node: Any, data: Any = "hi", **config: Any) -> Any:
    return StateGraph(Notes).add_node("node", node).set_entry_point("node").compile().invoke(data, {**THREAD, **config})


# ---- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "build"),
    [
        ("GRAPH_002", lambda graph: graph.add_node("a", note)),
        ("GRAPH_003", lambda graph: graph.add_node("a", note).add_node("b", note).add_edge(START, "a")),
        (
            "GRAPH_003",
            lambda graph: graph.add_node("a", note).add_node("b", note).add_edge(START, "a").add_edge("b", END),
        ),
        ("GRAPH_004", lambda graph: graph.add_node("a", note).add_edge(START, "a").add_edge("a", "nowhere")),
        ("GRAPH_004", lambda graph: graph.add_node("a", note).add_edge(START, "a").add_edge("nowhere", "a")),
        ("GRAPH_004", lambda graph: graph.add_node("a", note).add_edge(START, "a").add_edge("a", START)),
        ("GRAPH_004", lambda graph: graph.add_node("a", note).add_edge(START, "a").add_edge(END, "a")),
    ],
)
def test_a_graph_that_cannot_work_is_refused_with_its_code(code: str, build: Callable[[Any], Any]) -> None:
    with pytest.raises(GraphCompileError) as caught:
        build(StateGraph(Notes)).compile()

    assert caught.value.error_code == code
    assert isinstance(caught.value, WorkflowValidationError)


@pytest.mark.parametrize("setting", ["durability", "isolation", "on_conflict"])
def test_a_setting_that_there_is_not_is_refused(setting: str) -> None:
    graph: Any = StateGraph().add_node("a", note).set_entry_point("a")

    with raises(ValueError, "'never'", setting):
        graph.compile(**{setting: "never"})


def test_what_is_no_storage_no_thread_and_no_mode_is_refused() -> None:
    graph = StateGraph().add_node("a", note).set_entry_point("a")

    with raises(TypeError, "checkpointer"):
        graph.compile("folder")
    with raises(ValueError, "thread"):
        graph.compile().get_state({})
    with raises(ValueError, "'values'", "'updates'"):
        [*graph.compile().stream("hi", THREAD, stream_mode="value")]
    with raises(ValueError, "stream_mode is 3"):
        [*graph.compile().stream("hi", THREAD, stream_mode=3)]  # type: ignore[arg-type]
    with raises(ValueError, "response_granularity is 'max'"):
        graph.compile().invoke("hi", THREAD, response_granularity="max")


def test_an_interrupt_at_no_node_is_refused() -> None:
    with raises(GraphCompileError, "GRAPH_004", "'b'"):
        StateGraph().add_node("a", note).set_entry_point("a").compile(interrupt_before=["b"])


@pytest.mark.parametrize("build", [
    lambda graph: graph.add_edge(note, END),
    lambda graph: graph.add_edge(["a", None], END),
    lambda graph: graph.add_edge("a", note),
    lambda graph: graph.set_finish_point(None),
    lambda graph: graph.add_conditional_edges(None, note),
])  # fmt: skip
def test_an_edge_names_its_nodes_by_texts(build: Callable[[Any], Any]) -> None:
    with raises(TypeError, "expected the name of a node"):
        build(StateGraph(Notes).add_node("a", note))


def test_a_condition_is_a_function() -> None:
    with raises(TypeError, "condition is 'a'"):
        StateGraph(Notes).add_conditional_edges(START, "a")  # type: ignore[arg-type]


def test_a_graph_from_the_module_of_its_package_names_a_wrong_argument_too() -> None:
    with raises(TypeError, "interrupt_before is 3"):
        core_graph.StateGraph().add_node("a", note).set_entry_point("a").compile(interrupt_before=3)  # type: ignore[arg-type]


def test_the_only_target_of_a_node_may_be_a_text() -> None:
    graph = StateGraph(Notes).add_node("first", lambda state: Command(goto="last"), goes_to="last")
    app = graph.add_node("last", note).set_entry_point("first").compile()

    assert app.invoke("hi", THREAD).step == 2


def test_a_second_node_of_a_name_is_refused_unless_it_replaces() -> None:
    graph = StateGraph(Notes).add_node("a", note)
    with raises(GraphError, "GRAPH_009", "override_node('a'"):
        graph.add_node("a", note)

    graph.add_node("a", lambda state: {"notes": ["other"]}, replace=True).set_entry_point("a")
    app = graph.compile()
    graph.override_node("a", lambda state: {"notes": ["third"]})

    assert app.invoke("hi", THREAD).state.notes == ["other"]  # what is compiled stays as it is
    assert graph.compile().invoke("hi", THREAD).state.notes == ["third"]
    with pytest.raises(KeyError):
        graph.override_node("b", note)


@pytest.mark.parametrize("name", ["", START, END])
def test_some_names_are_no_names_of_nodes(name: str) -> None:
    with raises(ValueError, "function"):
        StateGraph().add_node(name, note)


def test_an_edge_is_added_once() -> None:
    with raises(GraphError, "->", "__end__"):
        StateGraph().add_node("a", note).set_finish_point("a").add_edge("a", END)


def test_a_parameter_that_no_node_gets_is_refused_when_the_node_is_added() -> None:
    def two(state: Notes, temperature: float) -> None: ...

    with raises(GraphError, "GRAPH_007", "'temperature'"):
        StateGraph(Notes).add_node("two", two)


def test_a_name_may_be_any_text() -> None:
    names = ['say "hi" & <go>', "größer", "n"]
    graph = StateGraph(Notes, name='a "graph"')
    for before, name in zip([START, *names], names, strict=False):
        graph.add_node(name, note).add_edge(before, name)
    app = graph.compile()

    assert app.invoke("hi", {"thread_id": "a/b c"}).state.notes == ["note"] * 3
    assert app.list_threads() == ["a/b c"]
    assert "<go>" not in app._repr_mimebundle_().get("text/html", "")


def test_ways_of_different_length_to_one_node_are_pointed_out() -> None:
    def graph() -> Any:
        found = StateGraph(Notes).add_node("a", note).add_node("b", note)
        return found.add_edge(START, "a").add_edge("a", "b")

    with warns(UserWarning, "'c'", "'a'", "'b'"):
        graph().add_node("c", note).add_edge("a", "c").add_edge("b", "c").compile()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph().add_node("c", note, defer=True).add_edge("a", "c").add_edge("b", "c").compile()
        graph().add_node("c", note).add_edge(["a", "b"], "c").compile()
        graph().add_edge("b", "a").compile()  # a loop is no second way


def test_what_a_node_declares_counts_as_its_edges() -> None:
    def choose(state: Notes) -> Command[Literal["b"]]:
        return Command(goto="b")

    def pick(state: Notes) -> Literal["c"]:
        return "c"

    graph = StateGraph(Notes).add_node("a", choose).add_node("b", note).add_node("c", note)
    app = graph.add_edge(START, "a").add_conditional_edges("b", pick).compile()

    assert app.invoke("hi", THREAD).state.notes == ["note", "note"]


# ---- what a node gets ------------------------------------------------------------------------------------------------


def test_parameters_are_filled_by_name_then_by_annotation() -> None:
    seen: dict[str, Any] = {}

    async def named(
        state: Notes, config: Any, runtime: Any, emit: Any, store: Any, ctx: Any, *rest: Any, k: int = 3
    ) -> None:
        seen.update(config=config, runtime=runtime, store=store, rest=rest, k=k, node=ctx.executor_id)
        emit("shown")

    def annotated(found: Runtime, s: Notes) -> None:
        seen.update(step=found.step, left=found.remaining_steps, text=s.context[-1].text)

    graph = (
        StateGraph(Notes).add_node(named).add_node(annotated).add_edge(START, "named").add_edge("named", "annotated")
    )
    app = graph.compile(store={"key": "value"})
    app.invoke("hi", {**THREAD, "recursion_limit": 5, "mine": 1})

    assert seen["config"]["checkpoint_id"] == app.get_state_history(THREAD)[-1].config["checkpoint_id"]
    assert seen["config"].items() >= {"node": "named", "task_id": "1:named:1", "step": 1, "mine": 1}.items()
    assert (seen["runtime"].thread_id, seen["store"], seen["node"]) == ("t1", {"key": "value"}, "named")
    assert (seen["rest"], seen["k"], seen["step"], seen["left"], seen["text"]) == ((), 3, 2, 3, "hi")


class Caller:
    def method(self, state: Notes) -> dict[str, Any]:
        return {"notes": ["method"]}

    def __call__(self, state: Notes) -> dict[str, Any]:
        return {"notes": ["called"]}


@pytest.mark.parametrize(
    ("function", "noted"),
    [
        (lambda s: {"notes": ["lambda"]}, ["lambda"]),
        (Caller().method, ["method"]),
        (Caller(), ["called"]),
        (functools.partial(lambda word, state: {"notes": [word]}, "bound"), ["bound"]),
        (lambda: {"notes": ["none"]}, ["none"]),
    ],
)
def test_anything_that_can_be_called_is_a_node(function: Any, noted: list[str]) -> None:
    assert run(function).state.notes == noted


# ---- what a node may return ------------------------------------------------------------------------------------------


def texts(result: Any) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in result["messages"][1:]]


def same_list(state: Notes) -> Any:
    return state.context


def appended(state: Notes) -> Notes:
    state.context.append(Message.text_message("added", "assistant"))
    state.n += 2
    state.name = "whole"
    return state


def generated(state: Notes) -> Iterator[Any]:
    yield Message("assistant", ["par"], delta=True)
    yield Message.text_message("part", "assistant")
    yield {"n": 1}
    yield 3.5  # shown, not stored


async def generated_async(state: Notes) -> AsyncIterator[Any]:
    yield {"n": 1}
    yield Message.text_message("part", "assistant")


@pytest.mark.parametrize(
    ("value", "messages", "n"),
    [
        ([Message.text_message("a", "assistant"), "b"], [("assistant", "a"), ("assistant", "b")], 0),
        (Message.text_message("a", "tool"), [("tool", "a")], 0),
        ("text", [("assistant", "text")], 0),
        ({"n": 3, "context": [Message.text_message("c", "assistant")]}, [("assistant", "c")], 3),
        (None, [], 0),
        ([], [], 0),
        ({}, [], 0),
        (Command(update={"n": 1}, state={"name": "x"}), [], 1),
        (Command(update="said"), [("assistant", "said")], 0),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_what_a_node_returns_is_an_update(value: Any, messages: Any, n: int, is_async: bool) -> None:
    async def later(state: Notes) -> Any:
        return value

    result = run(later if is_async else lambda state: value)

    assert texts(result) == messages
    assert result.state.n == n


@pytest.mark.parametrize(
    ("node", "messages", "n"),
    [
        (same_list, [], 0),
        (appended, [("assistant", "added")], 2),
        (generated, [("assistant", "part")], 1),
        (generated_async, [("assistant", "part")], 1),
    ],
)
def test_states_and_generators_are_updates(node: Any, messages: Any, n: int) -> None:
    result = run(node)

    assert texts(result) == messages
    assert result.state.n == n  # a counter in a state that is returned whole is not added twice


@pytest.mark.parametrize("value", [3, object(), [1, 2], AgentState()])
def test_anything_else_is_refused_with_node_and_type(value: Any) -> None:
    with pytest.raises(InvalidUpdateError, match=r"Node 'node' returned .*of type " + type(value).__name__):
        run(lambda state: value)


def test_a_state_that_a_node_keeps_is_its_own() -> None:
    kept: list[Notes] = []

    def keep(state: Notes) -> dict[str, Any]:
        kept.append(state)
        return {"notes": ["note"]}

    graph = StateGraph(Notes).add_node("keep", keep).set_entry_point("keep").compile()
    graph.invoke("hi", THREAD)
    kept[0].notes.append("later")
    kept[0].context.clear()

    found = graph.get_state(THREAD).values
    assert (found.notes, len(found.context)) == (["note"], 1)


def test_a_graph_of_a_thousand_nodes_in_a_row_compiles():
    graph = StateGraph(Notes).add_node("n0", note).add_edge(START, "n0")
    for number in range(1, 1200):
        graph.add_node(f"n{number}", note).add_edge(f"n{number - 1}", f"n{number}")
    assert len(graph.compile().workflow.executors) == 1202


def test_graphs_nested_too_deeply_for_the_stack_are_refused_when_they_are_compiled():
    app = StateGraph(Notes, name="inner").add_node("a", note).set_entry_point("a").compile()
    for number in range(40):
        app = StateGraph(Notes, name=f"g{number}").add_node("inner", app).set_entry_point("inner").compile()
    assert app.invoke({}).state.notes == ["note"]
    with raises(WorkflowValidationError, "40"):
        StateGraph(Notes).add_node("inner", app).set_entry_point("inner").compile()

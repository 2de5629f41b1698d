"""Failures: which error is raised, what the thread is like afterwards, and how it goes on."""

from __future__ import annotations

import asyncio
import operator
import threading
import time
from typing import Annotated, Any, TypedDict

import pytest

from agentbench import FileCheckpointStorage, InMemoryCheckpointStorage
from agentbench.exceptions import (
    ConcurrentUpdateError,
    GraphError,
    InvalidUpdateError,
    NodeError,
    NodeTimeoutError,
    ReducerError,
    StateValidationError,
    WorkflowCheckpointException,
)
from agentbench.stategraph.graph import StateGraph
from agentbench.stategraph.interrupts import interrupt
from agentbench.stategraph.reducers import Overwrite
from agentbench.stategraph.running.executors import get_config, get_runtime
from agentbench.stategraph.running.retrying import RetryPolicy
from agentbench.stategraph.state import START, AgentState, ExecutionStatus
from tests.parts.errors import raises

THREAD = {"thread_id": "t1"}


def picky(left: list[str], right: list[str]) -> list[str]:
    if "bad" in right:
        message = "not that"
        raise RuntimeError(message)
    return left + right


class Notes(AgentState):
    notes: Annotated[list[str], operator.add] = []
    picked: Annotated[list[str], picky] = []
    topic: str = ""
    count: int = 0


class Flaky:
    """A node that fails so many times, then writes a note."""

    def __init__(self, name: str, failures: int = 1, error: Any = None) -> None:
        self.name, self.failures, self.calls = name, failures, 0
        self.error = error or OSError(f"{name} is out of order")

    def __call__(self, state: Notes) -> dict[str, Any]:
        self.calls += 1
        if self.calls <= self.failures:
            raise self.error
        return {"notes": [self.name]}


def side_by_side(*nodes: Flaky, **settings: Any) -> Any:
    graph = StateGraph(Notes, name="side")
    for node in nodes:
        graph.add_node(node.name, node).add_edge(START, node.name)
    return graph.compile(**settings)


@pytest.mark.parametrize("bad", [(0,), (1,), (2,), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("durability", ["step", "task", "exit"])
def test_only_failed_nodes_run_again(bad: tuple[int, ...], durability: str):
    nodes = [Flaky(name, failures=place in bad) for place, name in enumerate("abc")]
    app = side_by_side(*nodes, durability=durability)
    with pytest.raises(NodeError) as caught:
        app.invoke("go", THREAD)
    error = caught.value
    assert (error.node, error.thread_id, error.step, type(error.__cause__)) == ("abc"[bad[0]], "t1", 1, OSError)
    assert error.to_dict() == {
        "error_type": "NodeError", "error_code": "NODE_001", "message": error.message,
        "context": {"node_name": error.node, "error_type": "OSError"},
    }  # fmt: skip
    assert [str(each).split("'")[1] for each in error.errors] == ["abc"[place] for place in bad[1:]]
    assert (error.result.status, error.result.state.notes) == (ExecutionStatus.ERROR, [])
    snapshot = app.get_state(THREAD)
    assert (snapshot.status, snapshot.next) == (ExecutionStatus.ERROR, tuple("abc"[place] for place in bad))
    assert "out of order" in str(snapshot.values.execution_meta.error_message)
    assert [*snapshot.pending_writes] == [f"1:{node.name}:1" for place, node in enumerate(nodes) if place not in bad]
    done = app.invoke(None, THREAD)
    assert (done.state.notes, done.state.execution_meta.error_message) == (["a", "b", "c"], None)
    assert [node.calls for node in nodes] == [1 + (place in bad) for place in range(3)]


def test_real_input_after_a_failure_is_a_new_turn_and_says_so():
    node = Flaky("a")
    app = side_by_side(node)
    with pytest.raises(NodeError):
        app.invoke({"topic": "one"}, THREAD)
    done = app.invoke({"topic": "two"}, THREAD)
    assert (done.state.notes, done.state.topic, node.calls) == (["a"], "two", 2)
    assert "dropped: a" in done.warnings[0]


def test_retries_of_a_node_come_first():
    node = Flaky("a", failures=2)
    graph = StateGraph(Notes).add_node("a", node, retries=2).set_entry_point("a")
    assert graph.compile().invoke("go", THREAD).state.notes == ["a"]


def test_a_node_may_fail_after_it_has_yielded():
    def node(state: Notes) -> Any:
        yield {"notes": ["half"]}
        message = "no more"
        raise OSError(message)

    app = StateGraph(Notes).add_node("a", node).set_entry_point("a").compile()
    with pytest.raises(NodeError):
        app.invoke("go", THREAD)
    assert app.get_state(THREAD).values.notes == []


def test_a_blocking_node_past_its_time_is_left_alone_and_its_result_ignored():
    def slow(state: Notes) -> dict[str, Any]:
        time.sleep(0.1)
        return {"notes": ["late"]}

    app = StateGraph(Notes).add_node("slow", slow, timeout=0.01).set_entry_point("slow").compile()
    with pytest.raises(NodeTimeoutError):
        app.invoke("go", THREAD)
    time.sleep(0.15)
    assert app.get_state(THREAD).values.notes == []


# -------------------------------------------------------------------------------------------------------- bad updates


BAD = [
    ({"tpoic": 1}, InvalidUpdateError, "Did you mean 'topic'", "tpoic"),
    ({"execution_meta": {}}, InvalidUpdateError, "'execution_meta'", "execution_meta"),
    ({"count": "many"}, StateValidationError, "count", "count"),
    ({"picked": ["bad"]}, ReducerError, "not that", "picked"),
    ({"notes": "text"}, ReducerError, "notes", "notes"),
    (7, InvalidUpdateError, "of type int", None),
]


@pytest.mark.parametrize(("update", "error", "words", "field"), BAD)
def test_a_bad_update_names_node_and_field_and_the_thread_can_be_retried(
    update: Any, error: type[GraphError], words: str, field: str | None
):
    answers = [update, {"notes": ["good"]}]
    good = Flaky("good", failures=0)
    graph = StateGraph(Notes).add_node("good", good).add_edge(START, "good")
    graph.add_node("bad", lambda state: answers.pop(0)).add_edge(START, "bad")
    app = graph.compile()
    with pytest.raises(error, match=words) as caught:
        app.invoke("go", THREAD)
    assert (caught.value.node, caught.value.field, caught.value.thread_id) == ("bad", field, "t1")
    snapshot = app.get_state(THREAD)
    assert (snapshot.status, snapshot.values.notes) == (ExecutionStatus.ERROR, [])
    assert "bad" in snapshot.next
    done = app.invoke(None, THREAD)
    assert done.state.notes == ["good", "good"]
    assert good.calls == 1


def two_writers(one: Any, other: Any, **settings: Any) -> Any:
    graph = StateGraph(Notes).add_node("one", lambda state: one).add_node("other", lambda state: other)
    return graph.add_edge(START, "one").add_edge(START, "other").compile(**settings)


def test_two_writers_of_one_field():
    with raises(ConcurrentUpdateError, "'one'", "'other'", "operator.add", "replace_value") as caught:
        two_writers({"topic": "a"}, {"topic": "b"}).invoke("go", THREAD)
    assert (caught.value.field, caught.value.context["nodes"]) == ("topic", ["one", "other"])
    assert two_writers({"topic": "a"}, {"topic": "a"}).invoke("go", THREAD).state.topic == "a"
    assert two_writers({"topic": "a"}, None).invoke("go", THREAD).state.topic == "a"
    last = two_writers({"topic": "a"}, {"topic": "b"}, on_conflict="last").invoke("go", THREAD)
    assert (last.state.topic, len(last.warnings)) == ("b", 1)
    with pytest.raises(ConcurrentUpdateError):
        two_writers({"notes": Overwrite(["a"])}, {"notes": Overwrite(["b"])}).invoke("go", THREAD)
    assert two_writers({"notes": ["a"]}, {"notes": Overwrite(["b"])}).invoke("go", THREAD).state.notes == ["b", "a"]


def test_debug_finds_reducers_that_change_what_they_get():
    def spoil(left: list[str], right: list[str]) -> list[str]:
        left.extend(right)
        return left

    class Spoiled(AgentState):
        notes: Annotated[list[str], spoil] = []

    graph = StateGraph(Spoiled).add_node("a", lambda state: {"notes": ["x"]}).set_entry_point("a")
    assert graph.compile().invoke({"notes": ["w"]}, THREAD).state.notes == ["w", "x"]
    with pytest.raises(ReducerError):
        graph.compile(debug=True).invoke({"notes": ["w"]}, THREAD)


# ----------------------------------------------------------------------------------------------------------- storages


class Full(InMemoryCheckpointStorage):
    """A storage whose disk is full after some checkpoints."""

    room = 2

    async def save_if_head(self, checkpoint: Any, expected_seq: int) -> str:
        self.room -= 1
        if self.room < 0:
            message = "no space left on device"
            raise OSError(message)
        return await super().save_if_head(checkpoint, expected_seq)


def test_a_storage_that_fails_stops_the_run_and_the_error_has_the_state():
    app = StateGraph(Notes).add_node("a", Flaky("a", 0)).add_node("b", Flaky("b", 0))
    graph = app.add_edge(START, "a").add_edge("a", "b").compile(checkpointer=Full())
    with raises(WorkflowCheckpointException, "space") as caught:
        graph.invoke("go", THREAD)
    assert caught.value.snapshot.notes == ["a", "b"]


class Opaque:
    """A class that has no stored form."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()


class Holder(AgentState):
    thing: Any = None


def test_a_value_without_stored_form_is_named_with_its_field(tmp_path: Any):
    graph = StateGraph(Holder, name="holder").add_node("a", lambda state: {"thing": Opaque()}).set_entry_point("a")
    with raises(WorkflowCheckpointException, "thing", "Opaque"):
        graph.compile(checkpointer=FileCheckpointStorage(tmp_path)).invoke("go", THREAD)


class Lending(TypedDict):
    thing: Any


def test_a_value_without_stored_form_in_a_graph_that_a_node_calls_is_named_with_the_node() -> None:
    inner = StateGraph(Lending).add_node("a", lambda state: {"thing": threading.Lock()}).set_entry_point("a").compile()

    def caller(state: Lending) -> Any:
        inner.invoke(state)
        return interrupt("go on?")

    graph = StateGraph(Lending).add_node("caller", caller).set_entry_point("caller")
    with pytest.raises(WorkflowCheckpointException, match=r"caller.*thing") as caught:
        graph.compile().invoke({"thing": None}, THREAD)
    assert "a graph that a node calls" in caught.value.__notes__[0]


@pytest.mark.parametrize("retry_on", [3, "TimeoutError", [3]])
def test_a_retry_policy_names_classes_of_errors_or_a_function(retry_on: Any) -> None:
    with raises(TypeError, "retry_on is"):
        RetryPolicy(retry_on=retry_on)


@pytest.mark.parametrize("function", [interrupt, get_config, get_runtime])
def test_a_function_that_is_called_outside_a_node_names_itself(function: Any) -> None:
    with raises(RuntimeError, f"{function.__name__}() was called outside a node"):
        function()

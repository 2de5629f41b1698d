"""Storages that read and write states without a graph, and the names of what is left out."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from typing_extensions import TypedDict

from agentbench import FileCheckpointStorage, InMemoryCheckpointStorage, SQLCheckpointStorage
from agentbench.exceptions import GraphError, StateValidationError
from agentbench.stategraph.core.graph import StateGraph
from agentbench.stategraph.core.state import AgentState, Message
from agentbench.stategraph.storage.checkpointer import InMemoryCheckpointer, SqliteCheckpointer
from agentbench.stategraph.utils import END, START
from tests.parts.errors import raises

THREAD = {"thread_id": "order 7/a", "user_id": "ada"}


class Order(AgentState):
    n: int = 0
    note: str = ""


def app_of(checkpointer: Any, **settings: Any) -> Any:
    graph = StateGraph(Order).add_node("up", lambda state: {"n": state.n + 1})
    return graph.add_edge(START, "up").add_edge("up", END).compile(checkpointer=checkpointer, **settings)


@pytest.fixture(params=["memory", "memory of a class", "file", "file of a class"])
def checkpointer(request: Any, tmp_path: Any) -> Any:
    path = tmp_path / "threads.db"
    make: dict[str, Any] = {
        "memory": InMemoryCheckpointer,
        "memory of a class": InMemoryCheckpointer[Order],
        "file": lambda: SqliteCheckpointer(path),
        "file of a class": lambda: SqliteCheckpointer[Order](str(path)),
    }
    return make[request.param]()


async def test_states_are_written_and_read_without_a_graph(checkpointer: Any) -> None:
    await checkpointer.asetup()
    assert (await checkpointer.aget_state(THREAD), await checkpointer.alist_threads()) == (None, [])

    state = Order(n=3, context=[Message.text_message("Hi")], context_summary="new")
    await checkpointer.aput_state(THREAD, state)

    read = await checkpointer.aget_state(THREAD)
    assert (type(read), read.n, read.context[0].text(), read.context_summary) == (Order, 3, "Hi", "new")
    assert await checkpointer.alist_threads() == ["order 7/a"]
    await checkpointer.aput_state(THREAD, Order(n=4))
    assert ((await checkpointer.aget_state(THREAD)).n, (await checkpointer.aget_state(THREAD)).context) == (4, [])
    assert await checkpointer.aclear_state(THREAD) == 2
    assert await checkpointer.aget_state(THREAD) is None


def test_a_graph_continues_what_was_written_and_its_history_shows_it(checkpointer: Any) -> None:
    checkpointer.setup()
    checkpointer.put_state(THREAD, Order(n=3))
    app = app_of(checkpointer)

    assert app.invoke("Hi", THREAD).state.n == 4
    checkpointer.put_state(THREAD, Order(n=10))
    assert str(app.diff(THREAD)).count("n: 4 -> 10") == 1
    assert app.invoke(None, app.fork(THREAD, as_node=START, thread_id="copy")).state.n == 11

    history = [(snapshot.metadata["source"], snapshot.values.n) for snapshot in app.get_state_history(THREAD)]
    assert (history[0], history[-1]) == (("update", 10), ("update", 3))
    assert checkpointer.get_state({"thread_id": "copy"}).n == 11
    assert checkpointer.list_threads() == ["copy", "order 7/a"]
    assert checkpointer.clear_state(THREAD) == len(history)


def test_an_older_checkpoint_is_read_and_extends_a_branch() -> None:
    checkpointer: Any = InMemoryCheckpointer[Order]()
    app = app_of(checkpointer, name="orders")
    app.invoke({"n": 1}, THREAD)
    first = app.get_state_history(THREAD)[-1].config

    assert checkpointer.get_state(first).n == 1
    checkpointer.put_state(first, Order(n=7))
    assert app.get_state(THREAD).parent_config == first


def test_the_class_of_a_state_must_be_known(tmp_path: Any) -> None:
    SqliteCheckpointer(tmp_path / "threads.db").put_state(THREAD, Order(n=3))

    with raises(GraphError, "n, note", "SqliteCheckpointer[MyState]", thread_id="order 7/a"):
        SqliteCheckpointer(tmp_path / "threads.db").get_state(THREAD)
    with raises(TypeError, "state"):
        InMemoryCheckpointer[Any]().put_state(THREAD, {"n": 1})
    with raises(StateValidationError, field="n"):
        InMemoryCheckpointer[Order]().put_state(THREAD, Order.model_construct(n="many"))
    with raises(ValueError, "thread"):
        InMemoryCheckpointer().get_state({})


class Parcel(TypedDict, total=False):
    n: int


@pytest.mark.parametrize("state", [5, None, {"n": 1}, AgentState(), Order], ids=lambda state: str(state)[:9])
def test_what_is_not_a_state_of_the_named_class_is_refused_and_nothing_is_written(tmp_path: Any, state: Any) -> None:
    for checkpointer in (InMemoryCheckpointer[Order](), SqliteCheckpointer[Order](tmp_path / "threads.db")):
        with raises(TypeError, "state", "Order"):
            checkpointer.put_state(THREAD, state)
        assert checkpointer.list_threads() == []


def test_a_dictionary_is_a_state_of_a_typed_dict_if_it_has_its_fields() -> None:
    checkpointer = InMemoryCheckpointer[Parcel]()

    with raises(TypeError, "weight", "Parcel"):
        checkpointer.put_state(THREAD, {"weight": 3})  # type: ignore[typeddict-unknown-key]
    checkpointer.put_state(THREAD, {"n": 1})

    assert checkpointer.get_state(THREAD) == {"n": 1}


def test_a_class_that_a_notebook_defines_again_is_the_same_class() -> None:
    checkpointer: Any = InMemoryCheckpointer[Order]()
    again: Any = type("Order", (AgentState,), {"__annotations__": {"n": int}, "n": 0, "__module__": __name__})

    checkpointer.put_state(THREAD, again(n=2))

    assert checkpointer.get_state(THREAD).n == 2


def test_a_thread_of_several_graphs_is_not_guessed() -> None:
    checkpointer = InMemoryCheckpointer()
    for name in ("orders", "returns"):
        app_of(checkpointer, name=name).invoke("Hi", THREAD)

    with raises(GraphError, "orders", "returns"):
        checkpointer.get_state(THREAD)


def test_checkpointers_are_the_storages_of_this_library(tmp_path: Any) -> None:
    assert isinstance(InMemoryCheckpointer(keep_last=5), InMemoryCheckpointStorage)
    assert isinstance(SqliteCheckpointer(tmp_path / "threads.db"), SQLCheckpointStorage)
    assert not isinstance(InMemoryCheckpointer(), FileCheckpointStorage)
    assert repr(InMemoryCheckpointer()).startswith("InMemoryCheckpointer(")


@pytest.mark.parametrize(
    ("module", "name", "instead"),
    [
        ("stategraph", "BaseCheckpointer", "CheckpointStorage"),
        ("stategraph.storage.checkpointer", "BaseCheckpointer", "CheckpointStorage"),
        ("stategraph", "PgCheckpointer", "SQLCheckpointStorage"),
        ("stategraph", "InMemoryMediaStore", "Content"),
        ("stategraph", "BaseStore", "store="),
        ("stategraph", "InjectQ", "functools.partial"),
        ("stategraph", "CallbackManager", "astream"),
        ("stategraph", "RemoteTool", "FunctionTool"),
        ("stategraph", "InMemoryStore", "store="),
        ("stategraph", "PostgresSaver", "SQLCheckpointStorage"),
        ("stategraph", "CachePolicy", "functools.cache"),
        ("stategraph", "HumanMessage", "Message('user'"),
        ("stategraph", "create_react_agent", "Agent(client"),
        ("stategraph", "tools_condition", "tools_calls"),
    ],
)
def test_what_is_left_out_names_what_to_use_instead(module: str, name: str, instead: str) -> None:
    with raises(ImportError, name, instead):
        exec(f"from agentbench.{module} import {name}")
    assert not hasattr(importlib.import_module("agentbench.stategraph"), name)

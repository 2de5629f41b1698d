"""Snapshots, history, updates, forks and replay of threads, on every storage of the library."""

from __future__ import annotations

import operator
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from agentbench import FileCheckpointStorage, InMemoryCheckpointStorage, Message
from agentbench.exceptions import GraphError, GraphMismatchError, StateValidationError
from agentbench.stategraph.graph import StateGraph
from agentbench.stategraph.interrupts import interrupt
from agentbench.stategraph.reducers import Overwrite
from agentbench.stategraph.state import END, START, AgentState, ExecutionStatus
from tests.parts.errors import raises, warns
from tests.parts.graphs import note

THREAD = {"thread_id": "t1"}


class Notes(AgentState):
    notes: Annotated[list[str], operator.add] = []
    topic: str | None = None


def diamond(storage: Any = None, **settings: Any) -> Any:
    graph = StateGraph(Notes, name="diamond")
    for name in "abcd":
        graph.add_node(name, note(name))
    graph.add_edge(START, "a").add_edge("a", "b").add_edge("a", "c").add_edge(["b", "c"], "d")
    return graph.compile(checkpointer=storage, **settings)


@pytest.fixture(params=["memory", "file", "sqlite"])
def storage(request: Any, tmp_path: Any) -> Any:
    if request.param == "memory":
        return InMemoryCheckpointStorage()
    if request.param == "file":
        return FileCheckpointStorage(tmp_path)
    pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    from agentbench import SQLCheckpointStorage

    return SQLCheckpointStorage(tmp_path / "threads.db")


def test_the_history_of_a_diamond(storage: Any):
    app = diamond(storage)
    app.invoke("go", THREAD)
    history = app.get_state_history(THREAD)
    assert [snapshot.next for snapshot in history] == [(), ("d",), ("b", "c"), ("a",)]
    assert [snapshot.metadata["source"] for snapshot in history] == ["step", "step", "step", "input"]
    assert [snapshot.step for snapshot in history] == [3, 2, 1, 0]
    assert [snapshot.metadata["writers"] for snapshot in history][1] == ["b", "c"]
    newest = history[0]
    assert newest.values == app.get_state(THREAD).values
    assert history[newest.config["checkpoint_id"][:12]].config == newest.config
    assert newest.parent_config == history[1].config
    assert len(history[1:]) == 3
    assert [each.step for each in app.get_state_history(THREAD, limit=2)] == [3, 2]
    assert [each.step for each in app.get_state_history(THREAD, filter={"source": "input"})] == [0]
    assert [each.step for each in app.get_state_history(THREAD, before=history[1].config["checkpoint_id"])] == [1, 0]


def test_each_checkpoint_can_be_forked_and_the_tips_are_independent(storage: Any):
    app = diamond(storage)
    app.invoke("go", THREAD)
    before = [(each.config, each.values) for each in app.get_state_history(THREAD)]
    for place, snapshot in enumerate(app.get_state_history(THREAD)[1:]):
        fork = app.fork(snapshot.config, values={"notes": ["fork"], "topic": f"{place}"})
        assert fork["thread_id"] == f"t1~{place + 1}"
        done = app.invoke(None, fork)
        assert (done.state.topic, done.state.notes) == (
            f"{place}", [*snapshot.values.notes, "fork", *"abcd"[len(snapshot.values.notes) :]],
        )  # fmt: skip
    assert [(each.config, each.values) for each in app.get_state_history(THREAD)] == before
    assert app.list_threads() == ["t1", "t1~1", "t1~2", "t1~3"]
    assert app.delete_thread({"thread_id": "t1~1"}) > 0
    assert app.list_threads() == ["t1", "t1~2", "t1~3"]


def test_replay_runs_nodes_again_under_new_ids_and_moves_the_head(storage: Any):
    app = diamond(storage)
    app.invoke("go", THREAD)
    past = app.get_state_history(THREAD)[2]
    first = app.invoke(None, past.config)
    second = app.invoke(None, past.config)
    assert first.state.notes == second.state.notes == [*"abcd"]
    assert first.checkpoint_id != second.checkpoint_id == app.get_state(THREAD).config["checkpoint_id"]
    sources = [each.metadata["source"] for each in app.get_state_history(THREAD)]
    assert sources == ["step", "step", "fork", "step", "step", "fork", "step", "step", "step", "input"]
    branch = app.get_state_history(THREAD, branch=first.checkpoint_id)
    assert [each.metadata["source"] for each in branch] == ["step", "step", "fork", "step", "input"]
    assert "fork" in app.get_state_history(THREAD).tree()


def test_replay_asks_again():
    answers: list[str] = []

    def ask(state: Notes) -> dict[str, Any]:
        answers.append(interrupt("name"))
        return {"notes": [answers[-1]]}

    app = StateGraph(Notes).add_node("ask", ask).set_entry_point("ask").compile()
    app.invoke("go", THREAD)
    app.invoke({"resume": "Ann"}, THREAD)
    history = app.get_state_history(THREAD)
    for past in (history[-1], next(each for each in history if each.interrupts)):
        again = app.invoke(None, past.config)
        assert [each.value for each in again.interrupts] == ["name"]
        assert app.invoke({"resume": "Bob"}, THREAD).state.notes == ["Bob"]
    assert answers == ["Ann", "Bob", "Bob"]


def test_an_update_at_a_pause_keeps_what_comes_next_and_as_node_routes():
    app = diamond(interrupt_before=["d"])
    app.invoke("go", THREAD)
    edited = app.update_state(THREAD, {"topic": "edited", "notes": Overwrite(["mine"])})
    assert app.get_state(edited).next == ("d",)
    assert app.get_state(THREAD).config == edited
    assert app.invoke(None, THREAD).state.notes == ["mine", "d"]
    assert app.invoke("more", THREAD).status is ExecutionStatus.INTERRUPTED
    app.update_state(THREAD, {"notes": ["from a"]}, as_node="a")
    assert app.get_state(THREAD).next == ("b", "c")
    app.update_state(THREAD, None, as_node=END)
    assert (app.get_state(THREAD).next, app.get_state(THREAD).status) == ((), ExecutionStatus.COMPLETED)
    app.update_state(THREAD, "again", as_node=START)
    assert app.get_state(THREAD).next == ("a",)


def test_an_update_that_does_not_fit_saves_nothing():
    app = diamond()
    with raises(GraphError, "checkpoint"):
        app.update_state(THREAD, {"topic": "x"})
    app.invoke("go", THREAD)
    head = app.get_state(THREAD).config
    for values, as_node, error in (
        ({"topic": 7}, None, StateValidationError), ({"tpoic": "x"}, None, GraphError), (None, "nobody", GraphError),
    ):  # fmt: skip
        with pytest.raises(error):
            app.update_state(THREAD, values, as_node=as_node)
    assert app.get_state(THREAD).config == head


def test_differences_are_told_by_field_and_id(storage: Any):
    app = diamond(storage)
    app.invoke({"messages": [Message("user", ["one"], message_id="m1")]}, THREAD)
    first = app.get_state(THREAD).config
    app.invoke({"messages": [Message("user", ["two"], message_id="m2")], "topic": "x"}, THREAD)
    paths = [change.path for change in app.diff(first, THREAD)]
    assert any("topic" in path for path in paths)
    assert any("m2" in path for path in paths)
    assert not any("m1" in path for path in paths)
    assert [change.path for change in app.diff(THREAD)] == [
        change.path for change in app.get_state_history(THREAD).diff(1, 0)
    ]


def test_pruning_keeps_the_newest_the_ends_of_branches_and_the_pauses(storage: Any):
    app = diamond(storage, interrupt_before=["d"])
    app.invoke("go", THREAD)
    app.invoke(None, THREAD)
    past = app.get_state_history(THREAD)[-1]
    app.update_state(past.config, {"topic": "branch"})
    kept = app.prune(THREAD, keep=1) and app.get_state_history(THREAD)
    assert [each.next for each in kept] == [("a",), (), ("d",)]


def test_a_thread_that_does_not_exist_has_an_empty_snapshot():
    snapshot = diamond().get_state(THREAD)
    assert (snapshot.exists, snapshot.next, snapshot.status, snapshot.values.notes) == (False, (), None, [])
    assert len(diamond().get_state_history(THREAD)) == 0


async def test_all_have_async_twins():
    app = diamond()
    await app.ainvoke("go", THREAD)
    history = await app.aget_state_history(THREAD)
    assert [each.step async for each in history] == [3, 2, 1, 0]
    fork = await app.afork((await app.aget_state(THREAD)).config, thread_id="t2")
    await app.aupdate_state(fork, {"topic": "x"})
    assert len(await app.adiff(fork)) == 0
    assert await app.alist_threads() == ["t1", "t2"]
    assert await app.aprune({"thread_id": "t2"}, 1) > 0
    assert await app.adelete_thread({"thread_id": "t2"}) > 0


# ------------------------------------------------------------------------------------------- graphs and states change


def grown(storage: Any, *extra: str, state: Any = Notes) -> Any:
    graph = StateGraph(state, name="diamond")
    for name in ("a", "b", *extra):
        graph.add_node(name, note(name))
    graph.add_edge(START, "a").add_edge("a", "b")
    for name in extra:
        graph.add_edge("b", name)
    return graph.compile(checkpointer=storage, interrupt_before=["b"])


def test_a_thread_of_a_changed_graph_is_read_and_goes_on_only_when_that_is_allowed(storage: Any):
    grown(storage).invoke("go", THREAD)
    later = grown(storage, "c")
    assert later.get_state(THREAD).next == ("b",)
    with raises(GraphMismatchError, "'c'"):
        later.invoke(None, THREAD)
    with warns(UserWarning, "'c'"):
        done = later.invoke(None, {**THREAD, "on_graph_change": "warn"})
    assert done.state.notes == ["a", "b", "c"]
    without = StateGraph(Notes, name="diamond").add_node("a", note("a")).set_entry_point("a")
    grown(storage).invoke("go", {"thread_id": "t2"})
    with pytest.raises(GraphMismatchError):
        without.compile(checkpointer=storage).invoke(None, {"thread_id": "t2", "on_graph_change": "allow"})


def test_another_function_body_sync_or_async_is_no_change_of_the_graph(storage: Any):
    def graph(b: Any) -> Any:
        built = StateGraph(Notes, name="body").add_node("a", note("a")).add_node("b", b)
        return built.add_edge(START, "a").add_edge("a", "b").compile(checkpointer=storage, interrupt_before=["b"])

    async def later(state: Notes) -> dict[str, Any]:
        return {"notes": ["async"]}

    graph(note("sync")).invoke("go", THREAD)
    assert graph(later).invoke(None, THREAD).state.notes == ["a", "async"]


class Renamed(AgentState):
    notes: Annotated[list[int], operator.add] = []
    subject: str = "none"


def test_a_checkpoint_that_fits_its_class_no_longer_is_listed_all_the_same():
    storage = InMemoryCheckpointStorage()
    grown(storage).invoke({"topic": "old"}, THREAD)
    snapshot = grown(storage, state=Renamed).get_state(THREAD)
    assert (snapshot.values.notes, dict(snapshot.extra)) == (["a"], {"topic": "old"})
    assert "notes" in str(snapshot.invalid)


class Before(BaseModel):
    n: str = "many"


class After(BaseModel):
    n: int = 0


def test_what_no_longer_fits_a_pydantic_model_is_named_by_its_field():
    def compiled(cls: Any) -> Any:
        graph = StateGraph(cls, name="renamed").add_node("a", lambda state: {}).set_entry_point("a").add_edge("a", END)
        return graph.compile(storage)

    storage = InMemoryCheckpointStorage()
    compiled(Before).invoke({"n": "lots"}, THREAD)
    assert compiled(After).get_state(THREAD).invalid.errors()[0]["loc"] == ("n",)

"""What people ask of time travel and parallel nodes elsewhere: a test for each ask, named after it."""

from __future__ import annotations

import asyncio
import json
import operator
import threading
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import pytest
from pydantic import BaseModel

from agentbench import FileCheckpointStorage, InMemoryCheckpointStorage, SQLCheckpointStorage
from agentbench.exceptions import GraphMismatchError
from agentbench.stategraph import (
    END,
    START,
    AgentState,
    ConcurrentUpdateError,
    GraphError,
    GraphRecursionError,
    InvalidUpdateError,
    NodeError,
    Overwrite,
    StateGraph,
    StateValidationError,
    ThreadBusyError,
    interrupt,
    upsert_messages,
)
from tests.parts.errors import raises
from tests.parts.graphs import note

THREAD = {"thread_id": "t1"}


class Notes(AgentState):
    notes: Annotated[list[str], operator.add] = []
    n: int = 0


def line(*names: str, nodes: dict[str, Any] | None = None, storage: Any = None, **settings: Any) -> Any:
    graph = StateGraph(Notes, name="line")
    for before, name in zip((START, *names), names, strict=False):
        graph.add_node(name, (nodes or {}).get(name, note(name))).add_edge(before, name)
    return graph.compile(storage, **settings)


def fan(nodes: dict[str, Any], state: Any = Notes, **settings: Any) -> Any:
    graph = StateGraph(state, name="fan")
    for name, node in nodes.items():
        graph.add_node(name, node).add_edge(START, name)
    return graph.compile(**settings)


def at(app: Any, *following: str) -> Any:
    return next(each for each in app.get_state_history(THREAD) if each.next == following)


def test_a_rerun_from_an_old_checkpoint_has_a_new_id_and_moves_the_head() -> None:
    app = line("a", "b")
    app.invoke("go", THREAD)
    old = at(app, "b")

    result = app.invoke(None, old.config)

    history = app.get_state_history(THREAD)
    assert history[0].config["checkpoint_id"] == result.checkpoint_id
    assert old.config["checkpoint_id"] in [each.config["checkpoint_id"] for each in history]
    assert [each.metadata["source"] for each in history[:2]] == ["step", "fork"]


def test_a_replay_runs_nodes_again_and_asks_again() -> None:
    app = line("ask", nodes={"ask": lambda state: {"notes": [interrupt("which?")]}})
    app.invoke("go", THREAD)
    app.invoke({"resume": "first"}, THREAD)

    app.invoke(None, app.get_state_history(THREAD)[-1].config)
    result = app.invoke({"resume": "second"}, THREAD)

    assert result.state.notes == ["second"]


def test_branches_do_not_leak_writes_into_each_other() -> None:
    app = line("a", "b")
    app.invoke("go", THREAD)
    left = app.fork(at(app, "b").config, values={"notes": ["left"]})
    right = app.fork(at(app, "b").config, values={"notes": ["right"]})

    assert app.invoke(None, left).state.notes == ["a", "left", "b"]
    assert app.invoke(None, right).state.notes == ["a", "right", "b"]
    assert app.get_state(THREAD).values.notes == ["a", "b"]


def test_an_update_without_as_node_keeps_what_runs_next() -> None:
    app = line("a", "b", interrupt_before=["b"])
    app.invoke("go", THREAD)

    app.update_state(THREAD, {"n": 7})

    assert app.get_state(THREAD).next == ("b",)
    assert app.invoke(None, THREAD).state.n == 7


def test_a_checkpoint_tells_its_nodes_and_a_node_can_be_retried() -> None:
    app = line("a", "b", "c")
    app.invoke("go", THREAD)
    frame = app.get_state_history(THREAD).to_frame()
    before_b = frame[frame["next"].map(lambda names: names == ["b"])].iloc[0]

    assert frame["writers"].tolist()[1:] == [["a"], ["b"], ["c"]]
    assert app.invoke(None, {**THREAD, "checkpoint_id": before_b["checkpoint_id"]}).state.notes == ["a", "b", "c"]
    assert app.update_state(THREAD, {"notes": ["mine"]}, as_node="b")
    assert app.invoke(None, THREAD).state.notes == ["a", "b", "c", "mine", "c"]


def test_what_a_node_returns_is_validated_before_it_is_saved() -> None:
    app = line("a", "b", nodes={"b": lambda state: {"n": "many"}})

    with raises(StateValidationError, "'n'") as caught:
        app.invoke("go", THREAD)

    assert (caught.value.node, caught.value.field) == ("b", "n")
    assert app.get_state(THREAD).values.notes == ["a"]


def test_an_undeclared_key_is_refused_with_the_closest_field() -> None:
    with raises(InvalidUpdateError, "'notes'"):
        line("a", nodes={"a": lambda state: {"note": ["x"]}}).invoke("go", THREAD)


def test_what_a_caller_a_node_and_the_store_hold_are_not_one_object() -> None:
    mine = ["mine"]
    app = line("a", nodes={"a": lambda state: state.notes.append("in place")})

    result = app.invoke({"notes": mine}, THREAD)
    mine.append("later")
    result.state.notes.append("later")

    assert app.get_state(THREAD).values.notes == ["mine"]
    assert "return {'notes': ...}" in result.warnings[0]


def test_a_field_with_a_reducer_can_be_cleared_and_its_items_replaced() -> None:
    from agentbench import Message
    from agentbench.stategraph import RemoveMessage

    class Chat(AgentState):
        context: Annotated[list[Message], upsert_messages] = []

    graph = StateGraph(Chat).add_node(
        "edit", lambda state: [Message.text_message("new", "user", "1"), RemoveMessage("2")]
    )
    app = graph.set_entry_point("edit").compile()
    said = [Message.text_message("old", "user", "1"), Message.text_message("gone", "user", "2")]

    assert [each.text for each in app.invoke(said, THREAD).state.context] == ["new"]
    clear = line("clear", nodes={"clear": lambda state: {"notes": Overwrite([])}})
    assert clear.invoke({"notes": ["old"]}, THREAD).state.notes == []


def test_two_values_for_one_field_name_nodes_field_and_remedies() -> None:
    writers = {"a": lambda state: {"n": 1}, "b": lambda state: {"n": 2}}

    with raises(ConcurrentUpdateError, "'a'", "'b'", "'n'", "reducer", "replace_value"):
        fan(writers).invoke("go", THREAD)

    assert fan({**writers, "b": lambda state: {"n": 1}}).invoke("go", THREAD).state.n == 1
    assert fan(writers, on_conflict="last").invoke("go", THREAD).state.n == 2


def test_the_order_of_parallel_updates_is_the_authors() -> None:
    async def slow(state: Notes) -> dict[str, Any]:
        await asyncio.sleep(0.02)
        return {"notes": ["slow"]}

    assert fan({"slow": slow, "quick": note("quick")}).invoke("go", THREAD).state.notes == ["slow", "quick"]


def test_a_fan_in_runs_once_and_one_that_never_fires_is_named() -> None:
    graph = StateGraph(Notes).add_node("a", note("a")).add_node("b", note("b")).add_node("c", note("c"))
    graph.add_edge(START, "a").add_edge("a", "b").add_edge(["a", "b"], "c")

    assert graph.compile().invoke("go", THREAD).state.notes == ["a", "b", "c"]
    half = StateGraph(Notes).add_node("a", note("a")).add_node("b", note("b")).add_node("c", note("c"))
    half.add_conditional_edges(START, lambda state: "a", ["a", "b"]).add_edge(["a", "b"], "c")
    result = half.compile().invoke("go", THREAD)
    assert "b did not finish, so 'c' did not run" in result.warnings[0]


def test_parallel_questions_have_ids_of_their_own_and_nothing_runs_in_vain() -> None:
    ran: list[str] = []

    def asker(name: str) -> Any:
        def ask(state: Notes) -> dict[str, Any]:
            ran.append(name)
            return {"notes": [interrupt(name)]}

        return ask

    app = fan({"a": asker("a"), "b": asker("b"), "c": lambda state: ran.append("c")})
    asked = app.invoke("go", THREAD).interrupts
    app.invoke({"resume": {asked[1].id: "B"}}, THREAD)
    result = app.invoke({"resume": {asked[0].id: "A"}}, THREAD)

    assert len({each.id for each in asked}) == 2
    assert result.state.notes == ["A", "B"]
    assert sorted(ran) == ["a", "a", "b", "b", "c"]


def test_a_question_is_not_swallowed_by_a_wrapper() -> None:
    def careful(state: Notes) -> dict[str, Any]:
        try:
            return {"notes": [interrupt("ok?")]}
        except Exception:  # noqa: BLE001 - as careful wrappers do
            return {"notes": ["swallowed"]}

    app = line("careful", nodes={"careful": careful})
    app.invoke("go", THREAD)

    assert app.invoke({"resume": "yes"}, THREAD).state.notes == ["yes"]


def test_plain_input_goes_on_with_a_pause_and_an_empty_one_is_no_input() -> None:
    app = line("a", "b", interrupt_before=["b"])
    app.invoke("go", THREAD)

    assert app.invoke({"messages": "more"}, THREAD).state.notes == ["a", "b"]
    app = line("a", "b", interrupt_before=["b"])
    app.invoke("go", THREAD)
    assert app.invoke({}, THREAD).state.notes == ["a", "b"]


def test_a_running_graph_can_be_stopped_from_outside_and_goes_on() -> None:
    began, calls = threading.Event(), []

    async def slow(state: Notes) -> dict[str, Any]:
        calls.append(1)
        if len(calls) == 1:
            began.set()
            await asyncio.sleep(60)
        return {"notes": ["slow"]}

    app = line("a", "slow", nodes={"slow": slow})
    results: list[Any] = []
    running = threading.Thread(target=lambda: results.append(app.invoke("go", THREAD)))
    running.start()
    began.wait(10)

    assert app.stop(THREAD) == {"ok": True, "running": True}
    running.join(10)
    assert results[0].state.execution_meta.interrupt_reason == "stop_requested"
    assert app.invoke(None, THREAD).state.notes == ["a", "slow"]


def test_a_branch_that_fails_neither_loses_nor_repeats_the_others() -> None:
    ran: list[str] = []

    def flaky(state: Notes) -> dict[str, Any]:
        ran.append("flaky")
        if ran.count("flaky") == 1:
            raise RuntimeError("down")
        return {"notes": ["flaky"]}

    def good(state: Notes) -> dict[str, Any]:
        ran.append("good")
        return {"notes": ["good"]}

    app = fan({"good": good, "flaky": flaky})
    with raises(NodeError, "down"):
        app.invoke("go", THREAD)

    assert app.get_state(THREAD).pending_writes == {"1:good:1": [("notes", ["good"])]}
    assert app.invoke(None, THREAD).state.notes == ["good", "flaky"]
    assert sorted(ran) == ["flaky", "flaky", "good"]


def test_what_has_finished_is_not_repeated_after_a_crash(tmp_path: Path) -> None:
    ran: list[str] = []

    class Crash(BaseException):
        pass

    def graph(*, crashes: bool) -> Any:
        async def quick(state: Notes) -> dict[str, Any]:
            ran.append("quick")
            return {"notes": ["quick"]}

        async def slow(state: Notes) -> dict[str, Any]:
            ran.append("slow")
            await asyncio.sleep(0.2)
            if crashes:
                raise Crash
            return {"notes": ["slow"]}

        built = StateGraph(Notes, name="crash").add_node("quick", quick).add_node("slow", slow)
        built.add_edge(START, "quick").add_edge(START, "slow")
        return built.compile(FileCheckpointStorage(tmp_path), durability="task")

    with pytest.raises(Crash):
        graph(crashes=True).invoke("go", THREAD)

    assert graph(crashes=False).invoke(None, THREAD).state.notes == ["quick", "slow"]
    assert ran == ["quick", "slow", "slow"]


def test_two_writers_of_one_thread_do_not_overwrite_each_other(tmp_path: Path) -> None:
    storage = SQLCheckpointStorage(f"sqlite:///{tmp_path}/threads.db")

    def other(state: Notes) -> dict[str, Any]:
        if not state.n:
            line("a", nodes={"a": note("other")}, storage=storage).invoke({"n": 1}, THREAD)
        return {"notes": ["first"]}

    with pytest.raises(ThreadBusyError):
        line("a", nodes={"a": other}, storage=storage).invoke("go", THREAD)

    assert line("a", storage=storage).get_state(THREAD).values.notes == ["other"]


def test_the_recursion_limit_leaves_a_result_and_a_thread_that_goes_on() -> None:
    graph = StateGraph(Notes).add_node("a", note("a")).add_edge(START, "a")
    app = graph.add_conditional_edges("a", lambda state: "a" if len(state.notes) < 5 else END, ["a", END]).compile()

    with raises(GraphRecursionError, "3") as caught:
        app.invoke("go", {**THREAD, "recursion_limit": 3})

    assert caught.value.result.state.notes == ["a"] * 3
    assert app.invoke(None, THREAD).state.notes == ["a"] * 5


def test_checkpoints_do_not_grow_with_the_square_of_the_conversation(tmp_path: Path) -> None:
    def size(turns: int) -> int:
        path = tmp_path / str(turns)
        app = line("say", nodes={"say": lambda state: f"answer {len(state.context)} " + "x" * 200},
                   storage=FileCheckpointStorage(path))  # fmt: skip
        for _ in range(turns):
            app.invoke("question " + "x" * 200, THREAD)
        said = sum(len(json.dumps(message.to_dict())) for message in app.get_state(THREAD).values.context)
        stored = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        return stored // said

    assert size(80) <= size(20) + 1


class Trade(BaseModel):
    price: float


class Market(AgentState):
    model_config = {"arbitrary_types_allowed": True}
    prices: pd.DataFrame | None = None
    trade: Trade | None = None


def test_data_frames_and_types_of_ones_own_are_stored_typed(tmp_path: Path) -> None:
    def app() -> Any:
        graph = StateGraph(Market, name="market")
        graph.add_node("load", lambda state: {"prices": pd.DataFrame({"p": [1.5]}), "trade": Trade(price=2)})
        return graph.set_entry_point("load").compile(FileCheckpointStorage(tmp_path))

    app().invoke("go", THREAD)
    values = app().get_state(THREAD).values

    assert values.prices["p"].tolist() == [1.5]
    assert values.trade == Trade(price=2)


def test_threads_are_listed_deleted_copied_and_branched() -> None:
    app = line("a", "b")
    app.invoke("go", THREAD)

    copied = app.fork(at(app, "b").config)
    branched = app.fork(at(app, "b").config, thread_id="t1", values={"notes": ["branch"]})

    assert (copied["thread_id"], branched["thread_id"]) == ("t1~1", "t1")
    assert app.list_threads() == ["t1", "t1~1"]
    assert app.get_state(THREAD).values.notes == ["a", "branch"]
    assert app.delete_thread(copied) > 0
    assert app.list_threads() == ["t1"]


def test_a_graph_that_changed_says_what_changed_and_may_go_on() -> None:
    storage = InMemoryCheckpointStorage()
    line("a", "b", storage=storage, interrupt_before=["b"]).invoke("go", THREAD)
    changed = line("a", "b", "c", storage=storage)

    with raises(GraphMismatchError, "'c'"):
        changed.invoke(None, THREAD)

    assert changed.invoke(None, {**THREAD, "on_graph_change": "allow"}).state.notes == ["a", "b", "c"]


@pytest.mark.filterwarnings("ignore:No edge leads to")
def test_a_picture_invents_no_edges() -> None:
    from agentbench.notebook.graph.shape import read_shape

    graph = StateGraph(Notes).add_node("a", note("a")).add_node("b", note("b"))
    app = graph.add_edge(START, "a").add_conditional_edges("a", lambda state: "b").compile()

    edges = {(edge.source, edge.target) for edge in read_shape(app).edges}
    assert edges == {(START, "a"), ("a", "dynamic: <lambda>"), ("b", END)}


def test_nodes_that_changed_nothing_are_shown_to_have_run() -> None:
    app = line("quiet", nodes={"quiet": lambda state: None})

    assert list(app.stream("go", THREAD, stream_mode="updates")) == [{"quiet": None}]
    assert app.invoke("go", THREAD).to_frame()["node"].tolist() == ["quiet"]


def test_a_slow_branch_in_a_graph_of_its_own_does_not_block_a_fast_one() -> None:
    order: list[str] = []

    def step(name: str, seconds: float) -> Any:
        async def work(state: Notes) -> None:
            await asyncio.sleep(seconds)
            order.append(name)

        return work

    def branch(name: str, seconds: float) -> Any:
        graph = StateGraph(Notes).add_node(f"{name} 1", step(f"{name} 1", seconds))
        graph.add_node(f"{name} 2", step(f"{name} 2", seconds))
        return graph.add_edge(START, f"{name} 1").add_edge(f"{name} 1", f"{name} 2").compile()

    fan({"slow": branch("slow", 0.15), "fast": branch("fast", 0)}).invoke("go", THREAD)

    assert order == ["fast 1", "fast 2", "slow 1", "slow 2"]


def test_a_graph_that_saves_nothing_says_so_when_asked_for_history() -> None:
    app = fan({"a": note("a")}, checkpointer=False)
    app.invoke("go", THREAD)

    with raises(GraphError, "checkpointer=False"):
        app.get_state(THREAD)

"""What people ask of time travel and parallel nodes elsewhere: a test for each ask, named after it."""

from __future__ import annotations

import asyncio
import json
import operator
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import pytest
from pydantic import BaseModel

from agentbench import FileCheckpointStorage, SQLCheckpointStorage
from agentbench.stategraph import (
    END,
    START,
    AgentState,
    GraphError,
    StateGraph,
    ThreadBusyError,
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


def test_a_checkpoint_tells_its_nodes_and_a_node_can_be_retried() -> None:
    app = line("a", "b", "c")
    app.invoke("go", THREAD)
    frame = app.get_state_history(THREAD).to_frame()
    before_b = frame[frame["next"].map(lambda names: names == ["b"])].iloc[0]

    assert frame["writers"].tolist()[1:] == [["a"], ["b"], ["c"]]
    assert app.invoke(None, {**THREAD, "checkpoint_id": before_b["checkpoint_id"]}).state.notes == ["a", "b", "c"]
    assert app.update_state(THREAD, {"notes": ["mine"]}, as_node="b")
    assert app.invoke(None, THREAD).state.notes == ["a", "b", "c", "mine", "c"]


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


@pytest.mark.filterwarnings("ignore:No edge leads to")
def test_a_picture_invents_no_edges() -> None:
    from agentbench.workflows.draw.shape import read_shape

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

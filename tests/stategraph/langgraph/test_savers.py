"""Storages under LangGraph's names."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, TypedDict

import pytest

from agentbench.stategraph import (
    START,
    AsyncSqliteSaver,
    CompiledGraph,
    InMemorySaver,
    MemorySaver,
    SqliteSaver,
    StateGraph,
)

THREAD = {"configurable": {"thread_id": "1"}}


class Counted(TypedDict):
    n: int


def counter(saver: Any) -> CompiledGraph[Counted]:
    graph = StateGraph(Counted).add_node("up", lambda state: {"n": state["n"] + 1})
    return graph.add_edge(START, "up").set_finish_point("up").compile(checkpointer=saver)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "threads.db")


@pytest.mark.parametrize("cls", [InMemorySaver, MemorySaver])
def test_a_thread_is_kept_in_memory(cls: type[InMemorySaver]) -> None:
    saver = cls()
    counter(saver).invoke({"n": 1}, THREAD)

    with saver as same:
        assert counter(same).get_state(THREAD).values == {"n": 2}
    assert counter(saver).get_state(THREAD).values == {"n": 2}


def test_a_thread_in_a_file_outlives_its_storage(path: str) -> None:
    with SqliteSaver.from_conn_string(path) as saver:
        counter(saver).invoke({"n": 1}, THREAD)

    assert counter(SqliteSaver.from_conn_string(path)).get_state(THREAD).values == {"n": 2}


async def test_a_storage_is_opened_for_async_code(path: str) -> None:
    async with AsyncSqliteSaver.from_conn_string(path) as saver:
        await counter(saver).ainvoke({"n": 1}, THREAD)

    async with InMemorySaver() as empty:
        assert not (await counter(empty).aget_state(THREAD)).exists
    assert (await counter(SqliteSaver(path)).aget_state(THREAD)).values == {"n": 2}


def test_a_connection_names_the_file(path: str) -> None:
    saver = SqliteSaver(sqlite3.connect(path, check_same_thread=False))
    counter(saver).invoke({"n": 1}, THREAD)

    assert counter(SqliteSaver(path)).get_state(THREAD).values == {"n": 2}


def test_a_database_in_memory_is_a_storage_in_memory() -> None:
    assert isinstance(SqliteSaver.from_conn_string(":memory:"), InMemorySaver)
    with pytest.raises(ValueError, match="InMemoryCheckpointStorage"):
        SqliteSaver(sqlite3.connect(":memory:"))

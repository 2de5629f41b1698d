"""The storage in a database, as users meet it: an SQLite file, and a real PostgreSQL."""

from __future__ import annotations

import os
import pickle
import sqlite3
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agentbench.checkpoints.sql import SQLCheckpointStorage
from agentbench.exceptions import MissingExtraError, WorkflowCheckpointException
from tests.parts.errors import raises
from tests.parts.storages import checkpoint, conversation
from tests.servers.postgres import PASSWORD, PostgresServer

Make = Callable[..., SQLCheckpointStorage]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints.db"


@pytest.fixture
def make(file: Path) -> Iterator[Make]:
    pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    made: list[SQLCheckpointStorage] = []

    def open_one(path_or_url: Any = file, **options: Any) -> SQLCheckpointStorage:
        made.append(SQLCheckpointStorage(path_or_url, **options))
        return made[-1]

    yield open_one
    for storage in made:
        storage.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, file: Path) -> Any:
    return file if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture
def storage(place: Any, make: Make) -> SQLCheckpointStorage:
    return make(place)


# -------------------------------------------------------------------------------------------------------- construction


def test_the_module_is_imported_without_sqlalchemy() -> None:
    code = "import sys, agentbench.checkpoints.sql; sys.exit('sqlalchemy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_sqlalchemy_the_extra_is_named_at_construction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(MissingExtraError) as caught:
        SQLCheckpointStorage("checkpoints.db")
    assert caught.value.extra == "sql"


def test_without_psycopg_its_extra_is_named_at_construction(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with raises(MissingExtraError, "PostgreSQL") as caught:
        make("postgresql://me@localhost/name")
    assert caught.value.extra == "postgres"


def test_a_repr_shows_the_place_and_no_secret(make: Make, file: Path) -> None:
    assert repr(make()) == f"SQLCheckpointStorage('sqlite:///{file}')"
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    shown = repr(make("postgresql://me:secret@localhost/work"))
    assert shown == "SQLCheckpointStorage('postgresql+psycopg://me:***@localhost/work')"


# ------------------------------------------------------------------------------------------------------ what is written


async def test_500_checkpoints_of_a_conversation_fit_into_a_megabyte(make: Make, file: Path) -> None:
    storage, entries, sizes = make(), conversation(500), []
    for seq in range(1, 501):
        await storage.save(checkpoint(seq, state={"conversation": entries[:seq], "graph": "g" * 300}))
        if seq % 100 == 0:
            sizes.append(sum(map(os.path.getsize, file.parent.iterdir())))
    assert sizes[-1] <= 1024 * 1024
    assert sizes[-1] <= 6 * sizes[0]
    assert (await make().load("flow-450")).state["conversation"] == entries[:450]


async def test_space_that_was_freed_is_used_again(make: Make, file: Path) -> None:
    storage, sizes = make(), []
    for number in range(160):
        await storage.save(checkpoint(number, state={"text": os.urandom(2000).hex()}))
        if number % 40 == 39:
            await storage.prune(workflow_name="flow", keep=1)
            sizes.append(os.path.getsize(file))  # noqa: ASYNC240  it takes no time
    assert sizes[-1] < 1.5 * sizes[0]


def test_a_storage_that_is_never_closed_leaves_nothing_open(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    code = """
import asyncio, sys
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.sql import SQLCheckpointStorage
storage = SQLCheckpointStorage(sys.argv[1])
asyncio.run(storage.save(WorkflowCheckpoint("flow", "hash")))
"""
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", code, str(tmp_path / "a.db")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    assert [each.name for each in tmp_path.iterdir()] == ["a.db"]  # closed in good order: no log is left


# --------------------------------------------------------------------------------------------------------------- errors


async def test_a_locked_database_is_an_error_that_names_what_was_not_saved(make: Make, file: Path) -> None:
    storage = make(f"sqlite:///{file}?timeout=0.05")
    await storage.save(checkpoint(1))
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with raises(WorkflowCheckpointException, "'flow-2'") as caught:
            await storage.save(checkpoint(2))
    assert str(file) in str(caught.value)
    await storage.save(checkpoint(2))
    assert await storage.list_checkpoint_ids(workflow_name="flow") == ["flow-1", "flow-2"]


async def test_a_server_that_is_away_is_an_error_and_comes_back(
    postgres_url: str, postgres_server: PostgresServer, make: Make
) -> None:
    storage = make(postgres_url)
    await storage.save(checkpoint(1, state={"conversation": conversation(50)}))
    postgres_server.stop()
    try:
        with raises(WorkflowCheckpointException, "'flow-2'") as caught:
            await storage.save(checkpoint(2, state={"conversation": conversation(51)}))
    finally:
        postgres_server.start()
    shown = "".join(traceback.format_exception(caught.value))
    assert PASSWORD not in shown
    assert "sesame" not in shown
    await storage.save(checkpoint(2, state={"conversation": conversation(51)}))
    assert (await make(postgres_url).load("flow-2")).state == {"conversation": conversation(51)}
    assert (await storage.load("flow-1")).state == {"conversation": conversation(50)}


async def test_a_planted_pickle_is_not_run(make: Make, file: Path, tmp_path: Path) -> None:
    storage = make()
    await storage.save(checkpoint(1, state={"text": "t" * 3000}))

    class Trap:
        def __reduce__(self) -> Any:
            return (open, (str(tmp_path / "sprung"), "w"))

    with closing(sqlite3.connect(file)) as other:
        for table, column in (("records", "content"), ("parts", "text")):
            other.execute(f"UPDATE agentbench_{table} SET {column} = ?", (pickle.dumps(Trap()),))
            other.commit()
            with raises(WorkflowCheckpointException, "flow-1"):
                await storage.load("flow-1")
    assert not (tmp_path / "sprung").exists()

"""Storages by their addresses: what kind it is, what is refused, and that nothing is made by looking."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.file import FileCheckpointStorage
from agentbench.checkpoints.opening import displayed_address, open_storage
from agentbench.exceptions import WorkflowCheckpointException
from tests.parts.errors import raises


def saved() -> WorkflowCheckpoint:
    return WorkflowCheckpoint("flow", "hash", checkpoint_id="cp-1", state={"a": 1})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "a folder"
    path.mkdir()
    return path


async def kept_in(target: str | os.PathLike[str]) -> list[str]:
    storage: Any = open_storage(target)
    try:
        ids: list[str] = await storage.list_checkpoint_ids(workflow_name="flow")
    finally:
        storage.close()
    return ids


async def keep(target: str | os.PathLike[str]) -> None:
    storage: Any = open_storage(target, create=True)
    try:
        await storage.save(saved())
    finally:
        storage.close()


# ------------------------------------------------------------------------------------------------------------- folders


async def test_a_folder_is_opened_by_path_and_by_url(folder: Path) -> None:
    files = FileCheckpointStorage(folder)
    await files.save(saved())
    files.close()
    for target in (folder, str(folder), f"{folder}/", folder.as_uri(), folder.as_uri().replace("//", "//localhost", 1)):
        assert await kept_in(target) == ["cp-1"]


async def test_a_folder_with_the_suffix_of_a_database_is_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "runs.db"
    folder.mkdir()
    await keep(folder)
    assert isinstance(open_storage(folder), FileCheckpointStorage)


@pytest.mark.parametrize("name", ["absent", "absent.db", "deep/absent", "absent.sqlite"])
def test_what_is_not_there_is_an_error_and_is_not_made(name: str, tmp_path: Path) -> None:
    for target in (str(tmp_path / name), (tmp_path / name).as_uri()):
        with pytest.raises(WorkflowCheckpointException) as caught:
            open_storage(target)
        assert "sqlite:///" in str(caught.value), "it says what addresses look like"
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_storage_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.db"
    file.write_text("milk, eggs")
    for create in (False, True):
        with raises(WorkflowCheckpointException, "SQLite"):
            open_storage(file, create=create)
    assert file.read_text() == "milk, eggs"


@pytest.mark.parametrize(("target", "problem"), [("", "empty"), ("file://other/folder", "another machine")])
def test_addresses_that_lead_nowhere_are_errors(target: str, problem: str) -> None:
    with pytest.raises(WorkflowCheckpointException, match=problem):
        open_storage(target)


# ----------------------------------------------------------------------------------------------------------- databases


@pytest.mark.parametrize("name", ["runs.db", "runs.sqlite", "runs.SQLITE3", "no suffix"])
async def test_a_file_of_sqlite_is_known_by_its_content(name: str, tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")
    await keep(f"sqlite:///{tmp_path / name}")
    assert await kept_in(tmp_path / name) == ["cp-1"]
    assert await kept_in(f"sqlite:///{tmp_path / name}") == ["cp-1"]
    assert await kept_in((tmp_path / name).as_uri()) == ["cp-1"]


async def test_a_suffix_makes_a_database(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")
    await keep(tmp_path / "runs.db")
    assert (tmp_path / "runs.db").read_bytes().startswith(b"SQLite format 3\0")


def test_an_absent_database_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(WorkflowCheckpointException):
        open_storage(f"sqlite:///{tmp_path / 'absent.db'}")
    assert list(tmp_path.iterdir()) == []


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")
    path = tmp_path / "other.db"
    other = sqlite3.connect(path)
    other.execute("create table things (name text)")
    other.commit()
    other.close()
    before = path.read_bytes()
    for target in (str(path), f"sqlite:///{path}"):
        with raises(WorkflowCheckpointException, "checkpoints"):
            open_storage(target)
    assert path.read_bytes() == before
    (tmp_path / "empty.db").touch()
    with raises(WorkflowCheckpointException, "checkpoints"):
        open_storage(tmp_path / "empty.db")
    assert (tmp_path / "empty.db").read_bytes() == b""


@pytest.mark.parametrize("target", ["sqlite://", "sqlite:///:memory:", "sqlite+pysqlite://"])
def test_a_database_in_memory_is_refused(target: str) -> None:
    for create in (False, True):
        with raises(WorkflowCheckpointException, "memory"):
            open_storage(target, create=create)


def test_a_missing_driver_is_an_error_without_the_password() -> None:
    pytest.importorskip("sqlalchemy")
    with pytest.raises((WorkflowCheckpointException, ValueError)) as caught:
        open_storage("nodb://me:hunter2@localhost/runs")
    assert "nodb" in str(caught.value)
    assert "hunter2" not in str(caught.value)


# -------------------------------------------------------------------------------------------------------------- servers


def test_a_redis_database_that_is_none_is_refused() -> None:
    cases: list[str] = ["xx", "1/2", "0x1", "-1", "runs/"]
    for database in cases:
        with raises(WorkflowCheckpointException, "database") as caught:
            open_storage(f"redis://me:hunter2@127.0.0.1:1/{database}", create=True)
        assert "hunter2" not in str(caught.value)


def test_an_address_with_a_slash_too_few_is_refused_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(WorkflowCheckpointException) as caught:
        open_storage("postgresql:/me:hunter2@host/runs")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("url", ["redis://127.0.0.1:1/0", "rediss://127.0.0.1:1", "unix:///nowhere.sock"])
def test_a_redis_server_is_not_contacted_before_it_is_needed(url: str) -> None:
    pytest.importorskip("redis")
    from agentbench.checkpoints.redis import RedisCheckpointStorage

    storage = open_storage(url)
    assert isinstance(storage, RedisCheckpointStorage)
    storage.close()


def test_a_database_server_that_is_away_is_an_error_at_first_use() -> None:
    pytest.importorskip("sqlalchemy")
    pytest.importorskip("psycopg")
    from agentbench.checkpoints.sql import SQLCheckpointStorage

    storage = open_storage("postgresql://me:hunter2@127.0.0.1:1/runs")
    assert isinstance(storage, SQLCheckpointStorage)
    assert "hunter2" not in repr(storage)
    storage.close()


def test_a_database_of_a_server_is_not_written_to_by_looking(postgres_url: str) -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    for _ in range(2):
        with raises(WorkflowCheckpointException, "checkpoints"):
            open_storage(postgres_url)
    from agentbench.checkpoints.sql_storage.session import database_url

    engine = sqlalchemy.create_engine(database_url(postgres_url), poolclass=sqlalchemy.pool.NullPool)
    assert sqlalchemy.inspect(engine).get_table_names() == []
    engine.dispose()


def test_an_address_is_displayed_without_what_may_be_secret() -> None:
    cases: list[tuple[str, str]] = [
        ("runs", "runs"),
        ("a@b/c?d", "a@b/c?d"),
        ("redis://localhost:6379/0", "redis://localhost:6379/0"),
        ("postgresql://me:p@ss/w@host/name?password=x", "postgresql://***@host/name"),
        ("redis://:secret@host", "redis://***@host"),
        (" redis://me:secret@host", " redis://***@host"),
        ("postgresql:/me:secret@host/name", "postgresql:/***@host/name"),
        ("postgresql:me:sec/ret@host/name", "postgresql:***@host/name"),
        ("redis:secret@host?password=x", "redis:***@host"),
        ("C:/runs/a@b", "C:/runs/a@b"),
        ("C:\\runs", "C:\\runs"),
    ]
    for target, shown in cases:
        assert displayed_address(target) == shown


def test_a_missing_file_is_an_error_without_the_password() -> None:
    with pytest.raises(WorkflowCheckpointException) as caught:
        open_storage("sqlite://me:secret@nowhere/x")
    assert "secret" not in str(caught.value)

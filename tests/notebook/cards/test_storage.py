"""A storage shows its chains, without reading content and without leaving anything behind."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from agentbench import FileCheckpointStorage, InMemoryCheckpointStorage, SQLCheckpointStorage, WorkflowCheckpoint
from agentbench.checkpoints.redis import RedisCheckpointStorage
from agentbench.notebook.cards.checkpoint import storage_bundle

TIME = "2026-11-22T02:33:10.123456+00:00"


def fill(storage: Any, *chains: str) -> None:
    async def main() -> None:
        for chain in chains:
            for seq in (1, 2):
                metadata = {"seq": seq}
                await storage.save(WorkflowCheckpoint(chain, "h", f"{chain}-{seq}", timestamp=TIME, metadata=metadata))

    asyncio.run(main())


def lines(storage: Any) -> list[str]:
    return str(storage_bundle(storage)["text/plain"]).splitlines()


def test_chains_are_reported_with_their_counts_and_last_times(tmp_path: Path):
    database = SQLCheckpointStorage(tmp_path / "runs.db")
    for storage in (InMemoryCheckpointStorage(), FileCheckpointStorage(tmp_path / "folder"), database):
        fill(storage, "b<b>", "a")
        told = lines(storage)
        assert told[0] == f"{storage!r}: 2 chains"
        assert told[2:] == [f"  a     2  {TIME}", f"  b<b>  2  {TIME}"]
        assert "b&lt;b&gt;" in storage_bundle(storage)["text/html"]
    database.close()
    assert lines(database)[0].endswith(": 2 chains")
    database.close()


def test_a_view_leaves_nothing_behind(tmp_path: Path):
    database = SQLCheckpointStorage(tmp_path / "none.db")
    assert lines(database) == [repr(database)]
    (tmp_path / "empty.db").touch()
    assert len(lines(SQLCheckpointStorage(tmp_path / "empty.db"))) == 1
    folder = FileCheckpointStorage(tmp_path / "folder")
    assert lines(folder)[0] == f"{folder!r}: 0 chains"
    (tmp_path / "folder").rmdir()
    assert lines(folder) == [repr(folder)]
    assert os.listdir(tmp_path) == ["empty.db"]
    assert (tmp_path / "empty.db").stat().st_size == 0


def test_a_server_is_not_contacted():
    for storage in (
        SQLCheckpointStorage("postgresql://me:secret@127.0.0.1:1/work"),
        RedisCheckpointStorage("redis://127.0.0.1:1/0"),
    ):
        assert lines(storage) == [repr(storage)]
        assert "secret" not in str(storage_bundle(storage))


def test_what_cannot_be_listed_is_shown_by_its_address(tmp_path: Path):
    class Broken(InMemoryCheckpointStorage):
        async def list_workflow_names(self, prefix: str = "") -> list[str]:
            raise OSError("gone")

    assert lines(Broken()) == ["Broken(checkpoints=0, chains=0)"]
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(b"SQLite format 3\0 agentbench_schema and nothing else")
    assert len(lines(SQLCheckpointStorage(damaged))) == 1

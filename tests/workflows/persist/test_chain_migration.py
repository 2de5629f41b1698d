"""A whole chain in a new graph: a copy that appears at once, or not at all; the command for it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agentbench.checkpoints.file import FileCheckpointStorage
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.checkpoints.storage import CheckpointStorage, SupportsSaveAll
from agentbench.cli import main
from agentbench.exceptions import MigrationError, WorkflowCheckpointException
from agentbench.workflows.persist.executor_content import Changes
from agentbench.workflows.persist.planned_migration import migrate_chain
from tests.checkpoints.flow_versions import fill, migration, new, ring
from tests.parts.errors import raises

CHANGES = Changes(**migration)


class Simple:
    """A storage of six methods, which can fail at a save."""

    def __init__(self, inner: InMemoryCheckpointStorage, fails_at: int = -1) -> None:
        self.inner, self.fails_at, self.saves = inner, fails_at, 0
        for name in ("load", "list_checkpoints", "list_checkpoint_ids", "delete", "get_latest"):
            setattr(self, name, getattr(inner, name))

    async def save(self, checkpoint: Any) -> str:
        self.saves += 1
        if self.saves == self.fails_at:
            raise OSError("disk full")
        return await self.inner.save(checkpoint)

    load: Any
    list_checkpoints: Any
    list_checkpoint_ids: Any
    delete: Any
    get_latest: Any


async def test_every_checkpoint_of_a_chain_is_copied_in_order_and_continues() -> None:
    storage = InMemoryCheckpointStorage()
    await fill(storage, 6)
    originals = await storage.list_checkpoints(workflow_name="ring")
    await migrate_chain(storage, "ring", "copy", new.graph, CHANGES)
    copies = await storage.list_checkpoints(workflow_name="copy")
    assert await storage.list_checkpoints(workflow_name="ring") == originals
    assert [each.metadata["forked_from"] for each in copies] == [each.checkpoint_id for each in originals]
    assert [each.previous_checkpoint_id for each in copies[1:]] == [each.checkpoint_id for each in copies[:-1]]
    assert [each.metadata["seq"] for each in copies] == [each.metadata["seq"] for each in originals]
    expected = (await ring("ping", "pong").run(6)).get_outputs()
    for copy in copies:
        result = await new.run(checkpoint_id=copy.checkpoint_id, checkpoint_storage=storage)
        assert result.get_outputs() == expected


async def test_one_checkpoint_that_cannot_move_stops_the_whole_copy() -> None:
    storage = InMemoryCheckpointStorage()
    await fill(storage, 6)
    with raises(MigrationError, name="pong"):
        await migrate_chain(storage, "ring", "copy", new.graph, Changes(dropped=frozenset(["pong"])))
    assert await storage.list_workflow_names() == ["ring"]


@pytest.mark.parametrize(("chain", "name"), [("ring", "ring"), ("nothing", "copy")])
async def test_a_chain_without_checkpoints_and_a_name_that_is_taken_are_refused(chain: str, name: str) -> None:
    storage = InMemoryCheckpointStorage()
    await fill(storage, 2)
    with pytest.raises(MigrationError):
        await migrate_chain(storage, chain, name, new.graph, CHANGES)
    assert len(await storage.list_infos()) == 2


async def test_a_storage_that_saves_one_by_one_keeps_nothing_of_a_copy_that_failed() -> None:
    inner = InMemoryCheckpointStorage()
    await fill(inner, 4)
    storage: CheckpointStorage = Simple(inner, fails_at=3)
    assert not isinstance(storage, SupportsSaveAll)
    with pytest.raises(WorkflowCheckpointException, match="disk full"):
        await migrate_chain(storage, "ring", "copy", new.graph, CHANGES)
    assert await inner.list_workflow_names() == ["ring"]
    await migrate_chain(Simple(inner), "ring", "copy", new.graph, CHANGES)
    assert len(await inner.list_infos(workflow_name="copy")) == 4


# ---- the command


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    storage = FileCheckpointStorage(tmp_path)
    asyncio.run(fill(storage, 3))
    storage.close()
    return tmp_path


def chains(folder: Path) -> dict[str, int]:
    async def count() -> dict[str, int]:
        storage = FileCheckpointStorage(folder)
        names = await storage.list_workflow_names()
        counts = {name: len(await storage.list_checkpoint_ids(workflow_name=name)) for name in names}
        storage.close()
        return counts

    return asyncio.run(count())


COMMAND = ["--to", "tests.checkpoints.flow_versions:new", "--with", "tests.checkpoints.flow_versions:migration"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--dry-run"], {"ring": 3}),
        ([], {"ring": 4}),
        (["--all"], {"ring": 3, "ring~migrated": 3}),
        (["--all", "--as", "two"], {"ring": 3, "two": 3}),
    ],
    ids=["a dry run", "the head", "the chain", "a chain with a name"],
)
def test_the_command_prints_the_preview_and_saves(
    options: list[str], expected: dict[str, int], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["checkpoints", "migrate", str(folder), "ring", *COMMAND, *options]) == 0
    assert "renamed    pong -> pang" in capsys.readouterr().out
    assert chains(folder) == expected


@pytest.mark.parametrize(
    "options",
    [
        ["nothing", *COMMAND],
        ["ring", "--to", "tests.checkpoints.flow_versions:missing"],
        ["ring", "--to", "tests.checkpoints.flow_versions:migration"],
        ["ring", "--to", "tests.checkpoints.flow_versions:new", "--with", "tests.checkpoints.flow_versions:new"],
        ["ring", "--to", "tests.checkpoints.flow_versions:new"],
        ["ring", "--to", "one thing"],
    ],
    ids=["no chain", "no object", "no workflow", "no migration", "no function", "no module"],
)
def test_mistakes_in_the_command_are_explained_and_nothing_is_saved(
    options: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["checkpoints", "migrate", str(folder), *options]) == 1
    assert capsys.readouterr().err
    assert chains(folder) == {"ring": 3}

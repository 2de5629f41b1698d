"""Inputs that begin at a checkpoint: the same run with other values, many times."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Never

import pytest

from agentbench import (
    Executor,
    InMemoryCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowContext,
    handler,
)
from agentbench.batch import RowStatus, Start, run_many
from tests.parts.errors import raises


class Read(Executor):
    """Remembers the tone, and passes the text on."""

    @handler
    async def read(self, text: str, ctx: WorkflowContext[str]) -> None:
        ctx.set_state("tone", "long")
        await ctx.send_message(text)


class Think(Executor):
    """One more superstep, so that a run can be interrupted in the middle."""

    @handler
    async def think(self, text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(text)


class Write(Executor):
    """Writes in the tone; fails while the file `broken` exists."""

    def __init__(self, broken: str) -> None:
        super().__init__("write")
        self.broken = broken

    @handler
    async def write(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        if self.broken and os.path.exists(self.broken):  # noqa: ASYNC240 - a small file
            msg = "broken"
            raise ValueError(msg)
        await ctx.yield_output(f"{text}, {ctx.get_state('tone')}")


def writing(broken: Path | str = "") -> Workflow:
    read, think, write = Read("read"), Think("think"), Write(str(broken))
    return WorkflowBuilder(start_executor=read, name="writing").add_edge(read, think).add_edge(think, write).build()


async def checkpoint_of(workflow: Workflow) -> WorkflowCheckpoint:
    """Return the checkpoint after `read`."""
    storage = InMemoryCheckpointStorage()
    await workflow.run("hello", checkpoint_storage=storage)
    return (await storage.list_checkpoints(workflow_name="writing"))[0]


@pytest.mark.parametrize("checkpoints", ["failed", "none"])
@pytest.mark.parametrize("is_stored", [False, True])
async def test_a_run_begins_at_an_edited_copy_of_a_checkpoint(
    tmp_path: Path, is_stored: bool, checkpoints: str
) -> None:
    into = str(tmp_path / "rows.db") if is_stored else None
    checkpoint = await checkpoint_of(writing())
    starts = [
        Start(checkpoint),
        Start(checkpoint, {"state": {"tone": "short"}}),
        Start(checkpoint, {"messages": {"read": ["bye"]}}),
    ]
    batch = await run_many(writing(), starts, into, checkpoints=checkpoints)
    assert [(row.output, row.path, row.supersteps) for row in batch.rows()] == [
        ("hello, long", "think > write", 2),
        ("hello, short", "think > write", 2),
        ("bye, long", "think > write", 2),
    ]
    assert checkpoint.state["tone"] == "long"
    rerun = batch.open(batch.rows()[1].key, rerun=True)
    assert (await rerun.result()).get_outputs() == ["hello, short"]
    batch.close()


async def test_a_start_of_a_database_is_retried_by_a_later_call(tmp_path: Path) -> None:
    into, broken = str(tmp_path / "rows.db"), tmp_path / "broken"
    broken.touch()
    start = Start(await checkpoint_of(writing()), {"state": {"tone": "short"}})
    batch = await run_many(writing(broken), [start], into, keys=["a"], retry=0)
    assert (batch.row("a").status, batch.row("a").path) == (RowStatus.FAILED, "think > write")
    batch.close()
    broken.unlink()
    batch = await run_many(writing(broken), [start], into, keys=["a"])
    row = batch.row("a")
    assert (row.output, row.path, row.attempts) == ("hello, short", "think > write", 2)
    assert row.input == start
    batch.close()


async def test_a_start_that_does_not_fit_is_named() -> None:
    checkpoint = await checkpoint_of(writing())
    with raises(TypeError, "checkpoint", "storage.load"):
        Start(checkpoint.checkpoint_id)
    with raises(ValueError, "'tone'", "'state'"):
        Start(checkpoint, {"tone": "short"})
    alone = Write("")
    other = WorkflowBuilder(start_executor=alone, name="other").build()
    batch = await run_many(other, [Start(checkpoint), "fine"], keys=["a", "b"])
    error = batch.row("a").error
    assert (error and error.type, batch.row("b").status) == ("GraphMismatchError", RowStatus.FINISHED)
    batch.close()

"""Processes that are killed while they save a migrated copy of a chain.

Run as `python -m tests.checkpoints.killed_migrations STORAGE FOLDER COUNT`: one warm process forks the others.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.workflows.persist.executor_content import Changes
from agentbench.workflows.persist.planned_migration import migrate_chain
from tests.checkpoints.flow_versions import fill, migration, new
from tests.checkpoints.killed_writers import open_storage

LENGTH = 60


async def prepare(kind: str, folder: Path) -> None:
    storage = open_storage(kind, folder)
    await fill(storage, LENGTH)
    storage.close()


async def migrate(kind: str, folder: Path, reports: int) -> None:
    """Copy the chain, and report when the writing begins."""
    storage = open_storage(kind, folder)
    save = storage.save_all

    async def report(checkpoints: Sequence[WorkflowCheckpoint]) -> None:
        os.write(reports, b"!")
        await save(checkpoints)

    storage.save_all = report
    await migrate_chain(storage, "ring", "copy", new.graph, Changes(**migration))
    storage.close()


def kill_one(kind: str, folder: Path, delay_s: float) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            asyncio.run(migrate(kind, folder, writing))
        finally:
            os._exit(1)
    os.close(writing)
    os.read(reading, 1)
    os.close(reading)
    time.sleep(delay_s)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def main(kind: str, folder: Path, count: int) -> None:
    chain = folder / "chain"
    chain.mkdir()
    asyncio.run(prepare(kind, chain))
    delays = random.Random(kind)
    for number in range(count):
        shutil.copytree(chain, folder / f"{number:03}")
        kill_one(kind, folder / f"{number:03}", delays.random() ** 3 * 0.05)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))

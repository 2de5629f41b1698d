"""Threads of random graphs whose processes are killed at random points, and go on in the next process.

Run as `python -m tests.stategraph.laws.kills FOLDER COUNT`: one warm process forks those that are killed. Prints what
went wrong.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import traceback
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from agentbench import FileCheckpointStorage, SQLCheckpointStorage
from agentbench._clock import RandomIds
from agentbench.stategraph import ExecutionStatus
from agentbench.testing import set_runtime_defaults
from tests.stategraph.laws.graphs import RandomGraph, answers, values_of

CONFIG = {"thread_id": "t", "recursion_limit": 60}


class Journal:
    """Lines that outlast their process, which is killed when it has written some of them."""

    def __init__(self, path: Path, left: int) -> None:
        self.path = path
        self.left = left

    def note(self, line: str) -> None:
        file = os.open(self.path, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
        os.write(file, f"{line}\n".encode())
        os.close(file)
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def new_id(self, kind: str) -> str:
        if kind == "cp":
            self.note("saving")
        return RandomIds().new_id(kind)


async def go_on(app: Any) -> Any:
    """Take a thread to its end, from wherever it is."""
    snapshot = await app.aget_state(CONFIG)
    while snapshot.status is not ExecutionStatus.COMPLETED:
        data: Any = answers(list(snapshot.interrupts)) if snapshot.interrupts else None
        await app.ainvoke(data if snapshot.exists else "go", CONFIG)
        snapshot = await app.aget_state(CONFIG)
    return snapshot.values


def live(seed: int, folder: Path, rng: Random, *, is_last: bool) -> None:
    """Do what one process does."""
    journal = Journal(folder / "journal", 0 if is_last or rng.random() < 0.4 else rng.randint(1, 40))
    journal.note("life")
    set_runtime_defaults(ids=journal)
    storage: Any = FileCheckpointStorage(folder)
    if seed % 2:
        storage = SQLCheckpointStorage(folder / "threads.db")
    durability = "task" if seed % 3 == 0 else "step"
    app = RandomGraph(seed, journal.note, lambda: 0.001).compile(storage, durability=durability)
    if not is_last and journal.left < 0:
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.005, 0.06))
    with contextlib.closing(storage) if seed % 2 else contextlib.nullcontext():
        values = asyncio.run(go_on(app))
    (folder / "written").write_text(repr(values_of(values)))
    (folder / "written").rename(folder / "values")


def live_in_fork(seed: int, folder: Path, rng: Random, *, is_last: bool) -> None:
    """Live in a process of its own."""
    child = os.fork()
    if child == 0:
        try:
            live(seed, folder, rng, is_last=is_last)
        except BaseException:  # noqa: BLE001 - told to the parent by the file
            (folder / "error").write_text(traceback.format_exc())
        os._exit(0)
    os.waitpid(child, 0)


def judge(seed: int, folder: Path) -> str | None:
    """Live through up to six lives, and return what is wrong in the end."""
    folder.mkdir()
    expected = repr(values_of(asyncio.run(go_on(RandomGraph(seed).compile()))))
    rng = Random(f"kills {seed}")
    for life in range(7):
        live_in_fork(seed, folder, Random(rng.random()), is_last=life == 6)
        if (folder / "error").exists() or (folder / "values").exists():
            break
    if (folder / "error").exists():
        return (folder / "error").read_text()
    found = (folder / "values").read_text()
    if found != expected:
        return f"{found} is not {expected}"
    lives = (folder / "journal").read_text().split("life\n")[1:]
    repeated = [node for lines in lives for node, count in Counter(lines.splitlines()).items() if count > 40]
    return f"{repeated} ran in a circle" if repeated else None


def main(folder: str, count: str) -> None:
    """Judge so many threads; print what is wrong with them."""
    for storage in (FileCheckpointStorage(folder), SQLCheckpointStorage(Path(folder) / "first.db")):
        asyncio.run(go_on(RandomGraph(0).compile(storage)))  # imports what forks would import again and again
    for seed in range(int(count)):
        if problem := judge(seed, Path(folder) / f"{seed:03}"):
            print(seed, problem, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Processes that write checkpoints until they are killed.

Run as `python -m tests.checkpoints.killed_writers STORAGE FOLDER COUNT`: one warm process forks the writers, because a
new interpreter for each would take most of the time.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from agentbench import Executor, FileCheckpointStorage, Workflow, WorkflowBuilder, WorkflowContext, handler
from agentbench.checkpoints.storage import CheckpointStorage

LAST_SUPERSTEP = 23


class Talker(Executor):
    """Adds a line to the conversation and passes the turn on; yields the conversation at the end."""

    signature_key = "Talker"  # this module is `__main__` to the writers

    @handler
    async def on_turn(self, turn: int, ctx: WorkflowContext[int, list[str]]) -> None:
        conversation: list[str] = ctx.get_state("conversation") or []
        conversation.append(f"{self.id} in turn {turn}: {'x' * (turn * 37 % 200)}")
        ctx.set_state("conversation", conversation)
        if turn <= LAST_SUPERSTEP:
            await ctx.send_message(turn + 1)
        else:
            await ctx.yield_output(conversation)


def make_workflow(name: str, storage: CheckpointStorage | None = None) -> Workflow:
    """Two talkers."""
    ping, pong = Talker("ping"), Talker("pong")
    builder = WorkflowBuilder(start_executor=ping, max_iterations=1000, name=name, checkpoint_storage=storage)
    return builder.add_edge(ping, pong).add_edge(pong, ping).build()


def open_storage(kind: str, folder: Path) -> Any:
    """A storage in a folder of its own."""
    if kind == "file":
        return FileCheckpointStorage(folder)
    if kind == "pruned file":
        return FileCheckpointStorage(folder, keep_last=3)
    from agentbench.checkpoints.sql import SQLCheckpointStorage

    return SQLCheckpointStorage(folder / "checkpoints.db")


async def write_for_ever(kind: str, folder: Path, reports: int) -> NoReturn:
    """Run one workflow after another, each on a chain of its own, and report each superstep once it is over."""
    storage = open_storage(kind, folder)
    for number in itertools.count():
        async for event in make_workflow(f"chain-{number}", storage).run(1, stream=True):
            if event.type == "superstep_completed":
                os.write(reports, f"{number} {event.iteration}\n".encode())
    raise AssertionError


def kill_one(kind: str, folder: Path, n_reports: int, delay_s: float) -> list[list[int]]:
    """Let a process write, kill it a while after so many reports, and return all: numbers of chain and superstep."""
    folder.mkdir()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            asyncio.run(write_for_ever(kind, folder, writing))
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as reports:
        lines = [reports.readline() for _ in range(n_reports)]
        time.sleep(delay_s)
        os.kill(child, signal.SIGKILL)
        lines += reports.readlines()
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        message = f"The writer in {folder} ended by itself, with status {status}."
        raise RuntimeError(message)
    return [list(map(int, line.split())) for line in lines]


async def warm_up(storage: Any) -> None:
    """Load what a writer loads when it first saves, and leave no thread behind that a fork would cut off."""
    await make_workflow("warm", storage).run(1)
    storage.close()


def main(kind: str, folder: str, count: str) -> None:
    """Kill writers at random moments, always the same ones; print one line of JSON for each."""
    asyncio.run(warm_up(open_storage(kind, Path(folder) / "warm")))
    moments = random.Random(f"moments of {kind}")
    for number in range(int(count)):
        reports = kill_one(kind, Path(folder) / f"{number:03}", moments.randrange(36), moments.uniform(0, 0.005))
        print(json.dumps(reports), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

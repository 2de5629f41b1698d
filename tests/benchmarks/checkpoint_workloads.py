"""W4: a conversation that grows by one message of 200 bytes per superstep, with a checkpoint after each.

Bare is one row per step in SQLite, written ahead and not synced, that holds the new message alone: a log from which a
program could read its conversation back, without anything that a checkpoint is besides.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agentbench import (
    CheckpointInfo,
    Executor,
    FileCheckpointStorage,
    InMemoryCheckpointStorage,
    Message,
    SQLCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowContext,
    handler,
)
from agentbench.workflows.persist.executor_content import Changes
from agentbench.workflows.persist.planned_migration import migrate_chain
from tests.benchmarks.workload import Await, Call, Workload
from tests.checkpoints.flow_versions import fill, migration, new

SUPERSTEPS = 500
MANY = 10_000
_NO_LIMIT = 10**9

OPEN: dict[str, Callable[[Path], Any]] = {
    "file": lambda folder: FileCheckpointStorage(folder / "checkpoints"),
    "SQLite": lambda folder: SQLCheckpointStorage(folder / "checkpoints.db"),
}


class Talk(Executor):
    """Adds a message to the shared conversation and passes the turn on."""

    def __init__(self, name: str, limit: int) -> None:
        super().__init__(name)
        self.limit = limit

    @handler
    async def on_turn(self, n: int, ctx: WorkflowContext[int, int]) -> None:
        conversation = ctx.get_state("conversation") or []
        conversation.append(message(n))
        ctx.set_state("conversation", conversation)
        if n >= self.limit:
            await ctx.yield_output(n)
        else:
            await ctx.send_message(n + 1)


def message(n: int) -> str:
    return f"{n:08d}".ljust(200, "x")


def conversation_of(limit: int, storage: Any) -> Workflow:
    one, other = Talk("one", limit), Talk("other", limit)
    builder = WorkflowBuilder(start_executor=one, name="talk", max_iterations=_NO_LIMIT, checkpoint_storage=storage)
    return builder.add_edge(one, other).add_edge(other, one).build()


@contextmanager
def opened(kind: str) -> Iterator[tuple[Any, Path]]:
    """A storage of a kind in a folder of its own."""
    with TemporaryDirectory() as name:
        storage = OPEN[kind](Path(name))
        try:
            yield storage, Path(name)
        finally:
            storage.close()


def _in_memory(wait: Await) -> Call:
    def run() -> None:
        storage = InMemoryCheckpointStorage()
        wait(conversation_of(SUPERSTEPS, storage).run(0))
        assert len(wait(storage.list_checkpoint_ids(workflow_name="talk"))) == SUPERSTEPS + 1

    return run


def _durable(kind: str) -> Callable[[Await], Call]:
    def prepare(wait: Await) -> Call:
        def run() -> None:
            with opened(kind) as (storage, _):
                wait(conversation_of(SUPERSTEPS, storage).run(0))
                assert len(wait(storage.list_checkpoint_ids(workflow_name="talk"))) == SUPERSTEPS + 1

        return run

    return prepare


def _bare(_: Await) -> Call:
    def run() -> None:
        with TemporaryDirectory() as folder:
            database = sqlite3.connect(f"{folder}/bare.db", isolation_level=None)
            database.execute("pragma journal_mode = wal")
            database.execute("pragma synchronous = normal")
            database.execute("create table steps (id integer primary key, parent integer, body text)")
            for n in range(SUPERSTEPS):
                database.execute("begin")
                body = json.dumps({"n": n, "new": message(n)})
                database.execute("insert into steps (parent, body) values (?, ?)", (n, body))
                database.execute("commit")
            assert database.execute("select count(*) from steps").fetchone() == (SUPERSTEPS,)
            database.close()

    return run


class Keep(Executor):
    """Keeps 500 values of its own, of which each superstep replaces one."""

    def __init__(self, name: str, make: Callable[[int], Any]) -> None:
        super().__init__(name)
        self.make = make
        self.values = [make(n) for n in range(500)]

    @handler
    async def on_turn(self, n: int, ctx: WorkflowContext[int, int]) -> None:
        self.values[n % 500] = self.make(n)
        if n < SUPERSTEPS:
            await ctx.send_message(n + 1)

    async def on_checkpoint_save(self) -> dict[str, Any]:
        return {"values": self.values}


KEPT: dict[str, Callable[[int], Any]] = {
    "texts": message,
    "messages": lambda n: Message("user", [message(n)]),
    "dictionaries": lambda n: {"n": n, "text": message(n), "tags": ["a", "b"]},
}


def _keeping(make: Callable[[int], Any]) -> Callable[[Await], Call]:
    def prepare(wait: Await) -> Call:
        def run() -> None:
            with opened("file") as (storage, _):
                one, other = Keep("one", make), Keep("other", make)
                builder = WorkflowBuilder(start_executor=one, max_iterations=_NO_LIMIT, checkpoint_storage=storage)
                wait(builder.add_edge(one, other).add_edge(other, one).build().run(0))

        return run

    return prepare


WORKLOADS = (
    *(
        Workload(
            name=f"H5 {kind}",
            what=f"a superstep of two executors that keep 500 {kind} each, saved in files",
            unit="us",
            per_call=SUPERSTEPS,
            agentbench=_keeping(make),
        )
        for kind, make in KEPT.items()
    ),
    Workload(
        name="W4 memory",
        what="a superstep with a checkpoint in memory",
        unit="us",
        per_call=SUPERSTEPS,
        agentbench=_in_memory,
    ),
    *(
        Workload(
            name=f"W4 {kind}",
            what="a superstep with a checkpoint on disk (bare: one row in SQLite)",
            unit="us",
            per_call=SUPERSTEPS,
            agentbench=_durable(kind),
            bare=_bare,
        )
        for kind in OPEN
    ),
)


def kilobytes(kind: str, supersteps: int = SUPERSTEPS) -> float:
    """Size on disk of all files of a conversation, the storage still open."""
    with opened(kind) as (storage, folder):
        asyncio.run(_run(conversation_of(supersteps, storage)))
        return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1024


def growth(kind: str) -> float:
    """How much more five times the supersteps need."""
    return kilobytes(kind, SUPERSTEPS) / kilobytes(kind, SUPERSTEPS // 5)


async def _run(workflow: Workflow, **how: Any) -> None:
    await workflow.run(0, **how)


def listing_ms(kind: str, rounds: int) -> float:
    """Time that a fresh object needs to list 500 checkpoints."""

    async def list_all(folder: Path) -> int:
        storage = OPEN[kind](folder)
        try:
            return len(await storage.list_checkpoints(workflow_name="talk"))
        finally:
            storage.close()

    return _median_ms(kind, list_all, rounds)


def resuming_ms(kind: str, rounds: int) -> float:
    """Time that a fresh object and a fresh workflow need to find the last checkpoint and to go on from it."""

    async def resume(folder: Path) -> int:
        storage = OPEN[kind](folder)
        try:
            latest = await storage.get_latest(workflow_name="talk")
            workflow = conversation_of(SUPERSTEPS, storage=None)
            await workflow.run(checkpoint_id=latest.checkpoint_id, checkpoint_storage=storage)
            return len(latest.state["conversation"])
        finally:
            storage.close()

    return _median_ms(kind, resume, rounds)


def _median_ms(kind: str, work: Callable[[Path], Any], rounds: int) -> float:
    with opened(kind) as (storage, folder):
        asyncio.run(_run(conversation_of(SUPERSTEPS, storage)))
        seconds = []
        for _ in range(rounds):
            began = time.perf_counter()
            assert asyncio.run(work(folder)) == SUPERSTEPS + 1
            seconds.append(time.perf_counter() - began)
    return 1e3 * statistics.median(seconds)


def migrating_s(kind: str, rounds: int) -> float:
    """Time to copy a chain of 1,000 checkpoints to a graph in which an executor has another name."""
    seconds = []
    with opened(kind) as (storage, folder):
        asyncio.run(fill(storage, 1000))
        for number in range(rounds):
            fresh = OPEN[kind](folder)
            began = time.perf_counter()
            copies = asyncio.run(migrate_chain(fresh, "ring", f"copy-{number}", new.graph, Changes(**migration)))
            seconds.append(time.perf_counter() - began)
            assert len(copies) == 1000
            fresh.close()
    return statistics.median(seconds)


@contextmanager
def ten_thousand(kind: str) -> Iterator[Any]:
    """A fresh object on a chain of 10,000 checkpoints."""
    with opened(kind) as (storage, folder):
        asyncio.run(_save_many(storage))
        storage.close()
        fresh = OPEN[kind](folder)
        try:
            yield fresh
        finally:
            fresh.close()


async def _save_many(storage: Any) -> None:
    signature = {"start_executor": "one", "executors": {"one": "m.Talk"}, "edge_groups": []}
    talk: list[str] = []
    for n in range(MANY):
        talk.append(message(n))
        metadata = {"seq": n + 1, "source": "step", "run_id": f"run-{n // 1000}", "writers": ["one"]}
        metadata["graph_signature"] = signature
        await storage.save(
            WorkflowCheckpoint(
                "talk",
                "hash",
                checkpoint_id=f"cp-{n}",
                previous_checkpoint_id=f"cp-{n - 1}" if n else None,
                state={"conversation": talk},
                iteration_count=n,
                metadata=metadata,
            )
        )


def list_many(storage: Any) -> list[CheckpointInfo]:
    infos: list[CheckpointInfo] = asyncio.run(_awaited(storage.list_infos(workflow_name="talk")))
    assert len(infos) == MANY
    return infos


def latest_of_many(storage: Any) -> None:
    latest = asyncio.run(_awaited(storage.get_latest(workflow_name="talk")))
    assert len(latest.state["conversation"]) == MANY


def load_one_of_many(storage: Any) -> None:
    found = asyncio.run(_awaited(storage.load(f"cp-{MANY // 2}")))
    assert len(found.state["conversation"]) == MANY // 2 + 1


async def _awaited(work: Any) -> Any:
    return await work

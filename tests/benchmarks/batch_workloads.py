"""Many runs: what a batch costs beside the same runs under `asyncio.gather`, in one process and on a cluster."""

from __future__ import annotations

import asyncio
import gc
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from agentbench import (
    Executor,
    RunOptions,
    ScriptedChatClient,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
)
from agentbench.batch import RowStatus, Traffic, run_many
from agentbench.batch.store.database import BatchDatabase
from agentbench.batch.store.store import BatchStore, Ending
from agentbench.checkpoints import InMemoryCheckpointStorage, SQLCheckpointStorage

STEPS = 10


class Step(Executor):
    """One of ten supersteps, with some work for the processor."""

    def __init__(self, id: str, work_s: float = 0.0) -> None:  # noqa: A002 - as of executors
        super().__init__(id)
        self.work_s = work_s

    @handler
    async def step(self, place: tuple[int, int], ctx: WorkflowContext[tuple[int, int], int]) -> None:
        number, done = place
        ends = time.process_time() + self.work_s
        while self.work_s and time.process_time() < ends:
            pass
        if done + 1 == STEPS:
            await ctx.yield_output(number)
        else:
            await ctx.send_message((number, done + 1))


def stepping(work_s: float = 0.0) -> Workflow:
    """Return a workflow of ten supersteps."""
    even, odd = Step("even", work_s), Step("odd", work_s)
    return WorkflowBuilder(start_executor=even, name="stepping").add_edge(even, odd).add_edge(odd, even).build()


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def gathered(kind: str, runs: int) -> float:
    """Run clones under `gather`, 20 at once, with their checkpoints in memory, in SQLite or nowhere; seconds."""
    workflow = stepping()

    async def run(storage: Any) -> float:
        gate = asyncio.Semaphore(20)

        async def one(number: int) -> None:
            async with gate:
                options = RunOptions(chain=f"gathered/{number}")
                await workflow.clone().run((number, 0), checkpoint_storage=storage, options=options)

        began = time.perf_counter()
        await asyncio.gather(*map(one, range(runs)))
        return time.perf_counter() - began

    with _folder() as folder:
        if kind == "SQLite":
            storage = SQLCheckpointStorage(folder / "runs.db")
            seconds = asyncio.run(run(storage))
            storage.close()
            return seconds
        return asyncio.run(run(InMemoryCheckpointStorage() if kind == "memory" else None))


def batched(kind: str, runs: int, *, backend: Any = "here", work_s: float = 0.0, into: str | None = None) -> float:
    """Run the same inputs as a batch; seconds."""
    with ExitStack() as stack:
        if kind == "SQLite" and into is None:
            into = str(stack.enter_context(_folder()) / "rows.db")
        batch = run_many(
            stepping(work_s),
            ((number, 0) for number in range(runs)),
            into,
            concurrency=20,
            backend=backend,
            checkpoints="none" if kind == "none" else "failed",
        )

        async def run() -> float:
            began = time.perf_counter()
            await batch
            return time.perf_counter() - began

        gc.collect()
        seconds = asyncio.run(run())
        assert batch.progress.counts["finished"] == runs
        batch.close()
    return seconds


def row_ms(into: str, rows: int = 500) -> float:
    """Write finished rows one by one, each with the traffic of two nodes and three edges; the median in ms."""
    store = BatchStore(BatchDatabase(into), "rows")
    traffic = [Traffic("", source, target, 5, 0.1, 0, 0.0, 0, 5) for source, target in
               (("even", ""), ("odd", ""), ("Workflow", "even"), ("even", "odd"), ("odd", "even"))]  # fmt: skip
    fields = {"error": None, "attempts": 1, "supersteps": 10, "path": " > ".join(["even", "odd"] * 5), "output": 7,
              "started": time.time(), "seconds": 0.1, "queued_seconds": 0.0, "run_id": "r" * 36, "graph_hash": "g" * 32,
              "worker": "host:1"}  # fmt: skip
    claims = store.register([(str(number), 0, (number, 0)) for number in range(rows)], claim=True)
    times = []
    for claim in claims:
        began = time.perf_counter()
        assert store.end([Ending(claim, RowStatus.FINISHED, dict(fields), traffic)]) == [True]
        times.append(time.perf_counter() - began)
    store.close()
    return statistics.median(times) * 1e3


def _resident_mb() -> float:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


class Once(Executor):
    """One superstep."""

    @handler
    async def once(self, number: int, ctx: WorkflowContext[int, int]) -> None:
        await ctx.yield_output(number)


def driver_mb(rows: int = 100_000) -> float:
    """Return the memory that a batch of this many rows adds to its process, after it has run a few."""
    workflow = WorkflowBuilder(start_executor=Once("once"), name="once").build()
    with _folder() as folder:
        warm = run_many(workflow, range(500), folder / "warm.db", concurrency=20).result()
        warm.close()
        gc.collect()
        before, most = _resident_mb(), 0.0
        batch = run_many(workflow, iter(range(rows)), folder / "rows.db", concurrency=20)
        for number, _ in enumerate(batch):
            if number % 5000 == 0:
                most = max(most, _resident_mb())
        most = max(most, _resident_mb())
        assert batch.progress.counts["finished"] == rows
        batch.close()
    return most - before


def explore_s(runs: int = 10_000) -> float:
    """Return the seconds that the map of a batch in SQLite takes, built and drawn."""
    with _folder() as folder:
        batch = run_many(
            stepping(), ((number, 0) for number in range(runs)), folder / "rows.db", concurrency=50
        ).result()
        began = time.perf_counter()
        batch.explore()._repr_mimebundle_()
        seconds = time.perf_counter() - began
        batch.close()
    return seconds


@contextmanager
def _two_workers() -> Iterator[Any]:
    from distributed import Client, LocalCluster

    options = {"host": "127.0.0.1", "dashboard_address": None, "silence_logs": 50}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **options) as cluster,
        Client(cluster) as client,
    ):
        batched("SQLite", 50, backend=client)  # imports everything there
        yield client


def process_overhead_ms(runs: int = 1000) -> float:
    """Return what a run costs on two workers beyond half of its time here, in ms."""
    with _two_workers() as client:
        return (batched("SQLite", runs, backend=client) - batched("SQLite", runs) / 2) / runs * 1e3


def two_workers_s(runs: int = 1000) -> tuple[float, float]:
    """Return the seconds of runs of ten executors with 1 ms for the processor, on two workers and here."""
    with _two_workers() as client:
        return batched("SQLite", runs, backend=client, work_s=0.001), batched("SQLite", runs, work_s=0.001)


class Answer(Executor):
    """One of ten supersteps, each with a call of a scripted model."""

    def __init__(self, id: str, client: ScriptedChatClient) -> None:  # noqa: A002 - as of executors
        super().__init__(id)
        self.client = client

    @handler
    async def answer(self, done: int, ctx: WorkflowContext[int, int]) -> None:
        await self.client.get_response(f"{ctx.get_state('tone')}, {done}")
        if done + 1 == STEPS:
            await ctx.yield_output(done)
        else:
            await ctx.send_message(done + 1)


def what_if_s() -> tuple[float, float]:
    """Run five variants five times from superstep 3 of 10: seconds with `what_if`, and with 30 forks by hand."""

    async def measure() -> tuple[float, float]:
        client = ScriptedChatClient("An answer.", on_exhausted="repeat_last")
        even, odd = Answer("even", client), Answer("odd", client)
        workflow = WorkflowBuilder(start_executor=even, name="answers").add_edge(even, odd).add_edge(odd, even).build()
        run = workflow.start(0, checkpoint_storage=InMemoryCheckpointStorage())
        await run.result()
        before = next(info for info in run.checkpoints if info.iteration == 2)
        variants = {f"tone {number}": {"state": {"tone": number}} for number in range(5)}
        gc.collect()
        began = time.perf_counter()
        result = await run.what_if(at=3, variants=variants, repeat=5, progress=False)
        result.summary()
        ours = time.perf_counter() - began
        result.batch.close()
        gc.collect()
        began = time.perf_counter()
        for number in range(30):
            fork = await run.fork(before, state_updates={"tone": number})
            await fork.result()
        return ours, time.perf_counter() - began

    return asyncio.run(measure())

"""A workflow of ten supersteps that notes each call in a file, for tests of crashes."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from typing import Any

from agentbench import Executor, Workflow, WorkflowBuilder, WorkflowContext, handler
from agentbench.batch import run_many

STEPS = 10


class Count(Executor):
    """Counts up, with one line in the log per call: a side effect that must not be repeated once its step is saved."""

    def __init__(self, id: str, log: str) -> None:  # noqa: A002 - as of executors
        super().__init__(id)
        self.log = log

    @handler
    async def count(self, step: tuple[int, int], ctx: WorkflowContext[tuple[int, int], int]) -> None:
        number, done = step
        with open(self.log, "a", encoding="ascii") as file:  # noqa: ASYNC230 - a line at once, in one write
            file.write(f"{number} {done} {os.getpid()}\n")
        if done + 1 == STEPS:
            await ctx.yield_output(number * number)
        else:
            await ctx.send_message((number, done + 1))


def counting_workflow(log: Path | str) -> Workflow:
    """Return the workflow, which notes its calls in a file."""
    even, odd = Count("even", str(log)), Count("odd", str(log))
    builder = WorkflowBuilder(start_executor=even, name="counting")
    return builder.add_edge(even, odd).add_edge(odd, even).build()


def inputs(count: int) -> list[tuple[int, int]]:
    """Return inputs of the workflow."""
    return [(number, 0) for number in range(count)]


def repeated_steps(log: Path) -> list[str]:
    """Return what breaks the promise: steps that ran again although a later one had begun, so that they were saved."""
    reached: defaultdict[str, int] = defaultdict(int)
    broken = []
    for line in log.read_text("ascii").splitlines():
        number, done, _ = line.split()
        if int(done) < reached[number]:
            broken.append(line)
        reached[number] = max(reached[number], int(done))
    return broken


def table(batch: Any) -> list[tuple[Any, ...]]:
    """Return the part of the rows that must be equal however often processes end."""
    return [
        (row.position, row.input, str(row.status), row.output, row.supersteps, row.path, row.error)
        for row in batch.rows()
    ]


def main(into: str, log: str, count: str, backend: str) -> None:
    """Run the batch in this process, as a driver that tests may kill."""
    where: Any = backend
    if backend.startswith("tcp://"):
        from distributed import Client

        where = Client(backend)
    batch = run_many(counting_workflow(log), inputs(int(count)), into=into, backend=where, concurrency=16)
    batch.result()
    print("done", flush=True)

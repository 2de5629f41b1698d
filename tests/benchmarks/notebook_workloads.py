"""Workloads of the notebook layer: what Python does for a picture, a table and a click, without the browser's part."""

import itertools
from collections.abc import Callable
from typing import Any

import pandas as pd

from agentbench import InMemoryCheckpointStorage, WorkflowCheckpoint, run_sync
from agentbench.notebook import checkpoints_frame, draw
from agentbench.notebook.stepper import stepper
from tests.benchmarks.engine_workloads import ring
from tests.benchmarks.workload import Await, Call, Prepare, Workload

CHECKPOINTS = 10_000
CLICKS = 20


def _drawing(nodes: int) -> Prepare:
    def prepare(_: Await) -> Call:
        fresh = itertools.count()  # other ids each time: pictures of the same graph are made once
        return lambda: draw(ring(nodes, f"h{next(fresh)}_"), direction="auto")._repr_mimebundle_()

    return prepare


async def _filled() -> InMemoryCheckpointStorage:
    storage = InMemoryCheckpointStorage()
    previous: str | None = None
    for number in range(CHECKPOINTS):
        checkpoint = WorkflowCheckpoint(
            "bench",
            "hash",
            previous_checkpoint_id=previous,
            iteration_count=number,
            metadata={"seq": number + 1, "source": "step", "run_id": "run", "writers": ["a"]},
        )
        previous = await storage.save(checkpoint)
    return storage


def _frame(_: Await) -> Call:
    storage = run_sync(_filled())

    def once() -> None:
        frame = checkpoints_frame(storage)
        assert len(frame) == CHECKPOINTS

    return once


def _bare_frame(_: Await) -> Call:
    infos = run_sync(run_sync(_filled()).list_infos())

    def once() -> None:
        frame = pd.DataFrame([(i.checkpoint_id, i.iteration, i.timestamp, i.source, i.n_messages) for i in infos])
        assert len(frame) == CHECKPOINTS

    return once


def _clicks(nodes: int) -> Prepare:
    def prepare(_: Await) -> Call:
        panel: Any = stepper(ring(nodes), 0, max_supersteps=10**9)
        panel._repr_mimebundle_()  # from now on there is a panel, which is redrawn
        return _step(panel.step)

    return prepare


def _bare_clicks(nodes: int) -> Prepare:
    def prepare(_: Await) -> Call:
        run = ring(nodes).start(0, checkpoint_storage=InMemoryCheckpointStorage())
        return _step(lambda: run_sync(run.step()))

    return prepare


def _step(step: Callable[[], object]) -> Call:
    def once() -> None:
        for _ in range(CLICKS):
            step()

    return once


WORKLOADS = (
    Workload(
        name="draw 50",
        what="building and drawing 50 nodes",
        unit="ms",
        per_call=1,
        agentbench=_drawing(50),
        by_wall=True,
    ),
    Workload(
        name="draw 500",
        what="building and drawing 500 nodes",
        unit="ms",
        per_call=1,
        agentbench=_drawing(500),
        by_wall=True,
    ),
    Workload(
        name="frame",
        what="10,000 checkpoints as a data frame; bare: five of its columns by pandas alone",
        unit="s",
        per_call=1,
        agentbench=_frame,
        bare=_bare_frame,
    ),
    Workload(
        name="click 50",
        what="a step in a panel with 50 nodes; bare: of the run without a panel",
        unit="ms",
        per_call=CLICKS,
        agentbench=_clicks(50),
        bare=_bare_clicks(50),
    ),
    Workload(
        name="click 500",
        what="a step in a panel with 500 nodes; bare: of the run without a panel",
        unit="ms",
        per_call=CLICKS,
        agentbench=_clicks(500),
        bare=_bare_clicks(500),
    ),
)

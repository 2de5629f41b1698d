"""Workloads of the notebook layer: what Python does for a picture, a table and a click, without the browser's part."""

import datetime as dt
import decimal
import itertools
from collections.abc import Callable
from typing import Any, Literal

import pandas as pd
from pydantic import BaseModel, Field

from agentbench import CheckpointInfo, InMemoryCheckpointStorage, WorkflowCheckpoint, WorkflowEvent, run_sync
from agentbench.notebook import checkpoints_frame, diff, draw, events_frame, form, stepper, timeline
from agentbench.workflows.events.events import EventStamps
from tests.benchmarks.engine_workloads import ring
from tests.benchmarks.workload import Await, Call, Prepare, Workload

CHECKPOINTS = 10_000
CLICKS = 20
CALLS = 1_000


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


def _drawn_before(_: Await) -> Call:
    workflow = ring(50)
    draw(workflow)._repr_mimebundle_()
    return lambda: draw(workflow)._repr_mimebundle_()


class Address(BaseModel):
    """Part of a form."""

    street: str
    city: str = "Vienna"


class Person(BaseModel):
    """A form of twelve fields of many kinds."""

    name: str = Field(min_length=2)
    notes: str = Field("", max_length=500)
    age: int = Field(ge=0, le=150)
    price: decimal.Decimal = decimal.Decimal("9.99")
    member: bool = True
    size: Literal["S", "M", "L", "XL", "XXL"] = "M"
    born: dt.date = dt.date(1990, 1, 1)
    code: int | str = 1
    address: Address
    nickname: str | None = None
    tags: list[str] = ["new"]
    scores: dict[str, int] = {}


GIVEN = {"name": "Ada", "age": "36", "address.street": "Ring 1"}


def _form(_: Await) -> Call:
    return lambda: form(Person)._repr_mimebundle_()


def _checked(_: Await) -> Call:
    made = form(Person)
    for path, text in GIVEN.items():
        made.set_raw(path, text)

    def once() -> None:
        assert made.validate(), made.errors

    return once


def _infos_frame(_: Await) -> Call:
    infos = [
        CheckpointInfo("w", f"cp-{n}", n, "2024-01-01T00:00:00+00:00", seq=n + 1, run_id=f"run-{n // 1000}")
        for n in range(CHECKPOINTS)
    ]
    return lambda: checkpoints_frame(infos)


def _events(supersteps: int, executors: int) -> list[WorkflowEvent[Any]]:
    made: list[WorkflowEvent[Any]] = []
    for step in range(supersteps):
        calls = [WorkflowEvent.executor_invoked(f"worker {n}", f"text {step}") for n in range(executors)]
        ends = [WorkflowEvent.executor_completed(f"worker {n}", ["sent"]) for n in range(executors)]
        first, last = WorkflowEvent.superstep_started(step), WorkflowEvent.superstep_completed(step)
        for event in (first, *calls, *ends, last):
            event._stamps = EventStamps(len(made) + 1, "run-1", step, 1_704_067_200_000_000_000 + len(made) * 1_000_000)
            made.append(event)
    return made


def _events_frame(_: Await) -> Call:
    events = _events(10_000, 2)

    def once() -> None:
        assert len(events_frame(events)) == 60_000

    return once


def _timeline(bars: int) -> Prepare:
    def prepare(_: Await) -> Call:
        events = _events(bars // 4, 4)
        return lambda: timeline(events).svg

    return prepare


def _difference(_: Await) -> Call:
    def state(version: int) -> WorkflowCheckpoint:
        texts = {f"part {n}": f"{n * version if n % 10 == 0 else n:040d}" * 25 for n in range(1_000)}  # 1 MB
        return WorkflowCheckpoint("w", "hash", checkpoint_id=f"cp-{version}", state={"texts": texts})

    before, after = state(1), state(2)

    def once() -> None:
        assert len(diff(before, after).changes) == 99

    return once


def _round_trips(_: Await) -> Call:
    async def nothing() -> int:
        return 1

    def once() -> None:
        for _ in range(CALLS):
            run_sync(nothing())

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
    Workload(
        name="draw 100",
        what="building and drawing 100 nodes",
        unit="ms",
        per_call=1,
        agentbench=_drawing(100),
        by_wall=True,
    ),
    Workload(name="draw again", what="drawing 50 nodes again", unit="ms", per_call=1, agentbench=_drawn_before),
    Workload(name="form", what="a form of twelve fields on a page", unit="ms", per_call=1, agentbench=_form),
    Workload(name="form check", what="checking all of it", unit="ms", per_call=1, agentbench=_checked),
    Workload(
        name="frame of infos", what="10,000 infos as a data frame", unit="ms", per_call=1, agentbench=_infos_frame
    ),
    Workload(
        name="frame of events", what="60,000 events as a data frame", unit="ms", per_call=1, agentbench=_events_frame
    ),
    Workload(name="timeline 300", what="a timeline of 300 bars", unit="ms", per_call=1, agentbench=_timeline(300)),
    Workload(name="timeline 5000", what="a timeline of 5,000 bars", unit="ms", per_call=1, agentbench=_timeline(5000)),
    Workload(name="diff", what="comparing two states of 1 MB", unit="ms", per_call=1, agentbench=_difference),
    Workload(
        name="round trip",
        what="a coroutine to the engine thread, and its result",
        unit="us",
        per_call=CALLS,
        agentbench=_round_trips,
        by_wall=True,
    ),
)

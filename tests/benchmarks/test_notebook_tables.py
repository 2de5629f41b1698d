"""How long frames, timelines and forms take. Prints figures and judges none."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench import CheckpointInfo, WorkflowCheckpoint, WorkflowEvent, WorkflowMessage
from agentbench.workflows.events.events import EventStamps

pytest.importorskip("pandas")
pytest.importorskip("pytest_benchmark")


def infos(count: int) -> list[CheckpointInfo]:
    return [
        CheckpointInfo(
            "w",
            f"cp-{n}",
            n,
            f"2024-01-01T{n // 3600:02d}:{n // 60 % 60:02d}:{n % 60:02d}.000000+00:00",
            previous_checkpoint_id=f"cp-{n - 1}" if n else None,
            seq=n + 1,
            run_id=f"run-{n // 1000}",
        )
        for n in range(count)
    ]


def checkpoints(count: int) -> list[WorkflowCheckpoint]:
    return [
        WorkflowCheckpoint(
            "w",
            "hash",
            checkpoint_id=info.checkpoint_id,
            previous_checkpoint_id=info.previous_checkpoint_id,
            iteration_count=info.iteration,
            timestamp=info.timestamp,
            messages={"a": [WorkflowMessage(f"text {info.iteration}", "a"), WorkflowMessage({"n": 1}, "a")]},
            state={"n": info.iteration, "draft": {"text": f"version {info.iteration // 3}"}},
        )
        for info in infos(count)
    ]


def events(supersteps: int, executors: int) -> list[WorkflowEvent[Any]]:
    made: list[WorkflowEvent[Any]] = []
    for step in range(supersteps):
        started = WorkflowEvent.superstep_started(step)
        calls = [WorkflowEvent.executor_invoked(f"worker {n}", f"text {step}") for n in range(executors)]
        ends = [WorkflowEvent.executor_completed(f"worker {n}", ["sent"]) for n in range(executors)]
        for event in (started, *calls, *ends, WorkflowEvent.superstep_completed(step)):
            event._stamps = EventStamps(len(made) + 1, "run-1", step, 1_704_067_200_000_000_000 + len(made) * 1_000_000)
            made.append(event)
    return made


def test_10000_infos_to_a_frame(benchmark: Any):
    from agentbench.notebook import checkpoints_frame

    given = infos(10_000)
    assert len(benchmark(checkpoints_frame, given)) == 10_000


@pytest.mark.parametrize("wide", [False, True], ids=["changes", "wide"])
def test_10000_states_to_a_frame(benchmark: Any, wide: bool):
    from agentbench.notebook import state_frame

    given = checkpoints(10_000)
    assert len(benchmark(state_frame, given, wide=wide)) >= 10_000


def test_20000_messages_to_a_frame(benchmark: Any):
    from agentbench.notebook import messages_frame

    given = checkpoints(10_000)
    assert len(benchmark(messages_frame, given)) == 20_000


def test_60000_events_to_a_frame(benchmark: Any):
    from agentbench.notebook import events_frame

    given = events(10_000, 2)
    assert len(benchmark(events_frame, given)) == 60_000


@pytest.mark.parametrize("bars", [300, 5000])
def test_a_timeline(benchmark: Any, bars: int):
    from agentbench.notebook import timeline

    given = events(bars // 4, 4)
    assert benchmark(lambda: timeline(given).svg).startswith("<svg")


def test_a_form_and_its_check(benchmark: Any):
    from agentbench.notebook import form

    def make() -> bool:
        made = form(int, value=3)
        made.set_raw("value", "12")
        return made.validate()

    assert benchmark(make)


def test_a_form_of_twelve_fields_and_its_check(benchmark: Any):
    from agentbench.notebook import form
    from tests.benchmarks.notebook_workloads import GIVEN, Person

    def make() -> bool:
        made = form(Person)
        for path, text in GIVEN.items():
            made.set_raw(path, text)
        return made.validate()

    assert benchmark(make)


def usages(count: int) -> list[WorkflowEvent[Any]]:
    counts = {"input_token_count": 900, "output_token_count": 80}
    made: list[WorkflowEvent[Any]] = []
    for n in range(count):
        event: WorkflowEvent[Any] = WorkflowEvent(
            "model_usage", {"model": "m", "usage_details": counts}, executor_id="a"
        )
        event._stamps = EventStamps(n + 1, "run-1", n // 4, n * 1_000_000)
        made.append(event)
    return made


def large_state(version: int) -> dict[str, Any]:
    """About a megabyte, of which one hundredth differs from version to version."""
    texts = {f"note {n}": f"{n} " * 200 + (str(version) if n % 100 == 0 else "") for n in range(1_000)}
    return {"notes": texts, "rows": [{"id": n, "value": n * (version if n % 100 == 0 else 1)} for n in range(5_000)]}


def test_10000_calls_of_models_to_a_frame(benchmark: Any):
    from agentbench.notebook import usage_frame

    given = usages(10_000)
    assert len(benchmark(usage_frame, given, prices={"m": (1.0, 2.0)})) == 10_000


def test_a_picture_of_10000_calls_of_models(benchmark: Any):
    from agentbench.notebook import usage

    given = usages(10_000)
    assert benchmark(lambda: usage(given, prices={"m": (1.0, 2.0)}).svg).startswith("<svg")


def test_10000_infos_to_runs(benchmark: Any):
    from agentbench.notebook import runs_frame

    given = infos(10_000)
    assert len(benchmark(runs_frame, given)) == 10


def test_requests_among_10000_checkpoints(benchmark: Any):
    from agentbench.notebook import requests_frame

    given = checkpoints(10_000)
    assert len(benchmark(requests_frame, given)) == 0


@pytest.mark.parametrize("count", [300, 10_000])
def test_a_lineage(benchmark: Any, count: int):
    from agentbench.notebook import lineage

    given = infos(count)
    assert benchmark(lambda: lineage(given).svg).startswith("<svg")


@pytest.mark.parametrize("form", ["frame", "html"])
def test_a_difference_of_two_megabytes(benchmark: Any, form: str):
    from agentbench.notebook import diff

    one, two = (WorkflowCheckpoint("w", "h", checkpoint_id=f"cp-{n}", state=large_state(n)) for n in (1, 2))
    forms = {
        "frame": lambda plot: plot.frame,
        "html": lambda plot: plot._repr_mimebundle_(),
    }
    assert len(benchmark(lambda: forms[form](diff(one, two)))) > 0


@pytest.mark.parametrize("supersteps", [300, 5_000])
def test_two_runs_compared(benchmark: Any, supersteps: int):
    from agentbench.notebook import compare

    one, other = events(supersteps, 2), events(supersteps, 2)
    assert benchmark(lambda: compare(one, other).html).startswith("<div")


@pytest.mark.parametrize("limit", [20, None])
def test_10000_checkpoints_of_a_file_to_a_frame(benchmark: Any, limit: int | None):
    pytest.importorskip("sqlalchemy")
    from agentbench.notebook import checkpoints_frame
    from tests.benchmarks.checkpoint_workloads import ten_thousand

    with ten_thousand("SQLite") as storage:
        assert len(benchmark(checkpoints_frame, storage, limit=limit)) == (limit or 10_000)

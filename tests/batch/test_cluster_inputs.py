"""What is sent to the workers of a cluster, and what is named because it cannot be."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any, Never

import pytest

from agentbench import Executor, Workflow, WorkflowBuilder, WorkflowContext, executor, handler
from agentbench._bridge import run_sync
from agentbench.batch import Start, run_many
from agentbench.exceptions import BatchError, PlacementError, UnpicklableError
from tests.batch.counting import counting_workflow, inputs
from tests.batch.test_starts import checkpoint_of, writing
from tests.batch.test_wrong_uses import echoing
from tests.parts.cluster import client  # noqa: F401 - a fixture
from tests.parts.errors import raises

# ruff: noqa: F811 - the fixture


def test_a_start_is_sent_to_workers(tmp_path: Path, client: Any) -> None:
    start = Start(run_sync(checkpoint_of(writing())), {"state": {"tone": "short"}})
    batch = run_many(writing(), [start], tmp_path / "rows.db", backend=client).result()
    assert [row.output for row in batch.rows()] == ["hello, short"]
    batch.close()


def test_a_closed_client_and_one_of_an_event_loop_are_named(tmp_path: Path, client: Any) -> None:
    from distributed import Client

    address = client.scheduler.address
    closed = Client(address)
    closed.close()
    with raises(PlacementError, "closed"):
        run_many(echoing(), [1], tmp_path / "rows.db", backend=closed)

    async def use() -> None:
        async with Client(address, asynchronous=True) as own:
            with raises(PlacementError, "asynchronous"):
                run_many(echoing(), [1], tmp_path / "rows.db", backend=own)

    run_sync(use())


def test_a_lock_in_a_closure_is_named_before_anything_is_sent(tmp_path: Path, client: Any) -> None:
    lock = threading.Lock()

    def build() -> Workflow:
        with lock:
            return echoing()

    with raises(UnpicklableError, culprit=".lock"):
        run_many(build, [1], tmp_path / "rows.db", backend=client)


def notebook_class(name: str) -> Any:
    """Return a class as a cell of a notebook defines it."""
    return type(name, (), {"__module__": "__main__", "__qualname__": name})


@pytest.mark.parametrize("is_output", [False, True])
def test_a_class_of_a_notebook_is_named_before_anything_is_sent(tmp_path: Path, client: Any, is_output: bool) -> None:
    car = notebook_class("Car")

    @executor(id="drive")
    async def drive(number: int, ctx: WorkflowContext[Never, car]) -> None: ...  # type: ignore[valid-type]

    @executor(id="park")
    async def park(value: car, ctx: WorkflowContext[Never, int]) -> None: ...  # type: ignore[valid-type]

    workflow = WorkflowBuilder(start_executor=drive if is_output else park, name="cars").build()
    with raises(UnpicklableError, "module", culprit="Car"):
        run_many(workflow, [1], tmp_path / "rows.db", backend=client)


def test_an_input_of_a_class_of_a_notebook_is_named_before_it_is_sent(tmp_path: Path, client: Any) -> None:
    batch = run_many(echoing(), [notebook_class("Car")()], tmp_path / "rows.db", backend=client, keys=["a"])
    with raises(UnpicklableError, "module", culprit="Car"):
        batch.result()
    assert batch.rows() == []
    batch.close()


def test_a_module_of_this_machine_is_named_with_the_way_to_send_it(
    tmp_path: Path, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "from tests.batch.test_wrong_uses import echoing\ndef build():\n    return echoing()\n"
    (tmp_path / "only_this_machine.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    import only_this_machine  # type: ignore[import-not-found]

    try:
        batch = run_many(only_this_machine.build, [1], tmp_path / "rows.db", backend=client)
        with raises(UnpicklableError, "register_pickle_by_value", culprit="only_this_machine"):
            batch.result()
        batch.close()
    finally:
        del sys.modules["only_this_machine"]


def test_workers_with_another_python_are_named(tmp_path: Path, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {"workers": {"tcp://worker": {"host": {"python": "3.9.1.final.0"}}}}
    monkeypatch.setattr(client, "get_versions", lambda: facts)
    batch = run_many(echoing(), [1], tmp_path / "rows.db", backend=client)
    with raises(PlacementError, "tcp://worker", "3.9.1"):
        batch.result()
    batch.close()


def test_a_file_that_workers_cannot_reach_is_named(
    tmp_path: Path, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "run", lambda function: {"tcp://worker": "another-machine:1:2"})
    batch = run_many(echoing(), [1], tmp_path / "rows.db", backend=client)
    with raises(BatchError, "tcp://worker", "rows.db"):
        batch.result()
    batch.close()


class MakeLock(Executor):
    """Yields what cannot be stored."""

    @handler
    async def make(self, number: int, ctx: WorkflowContext[Never, object]) -> None:
        await ctx.yield_output(threading.Lock() if number == 1 else number)


def test_an_output_that_workers_cannot_store_fails_its_row_alone(tmp_path: Path, client: Any) -> None:
    workflow = WorkflowBuilder(start_executor=MakeLock("make"), name="locks").build()
    batch = run_many(workflow, [1, 2], tmp_path / "rows.db", backend=client).result()
    assert [row.error and row.error.type for row in batch.rows()] == ["UnstorableValueError", None]
    batch.close()


def test_a_limit_below_the_number_of_workers_leaves_only_so_many_at_work(client: Any, tmp_path: Path) -> None:
    limits = {"even": 1, "odd": 4}
    workflow = counting_workflow(tmp_path / "log.txt")
    batch = run_many(workflow, inputs(60), tmp_path / "rows.db", backend=client, limits=limits, concurrency=4).result()
    assert batch.progress.counts["finished"] == 60
    assert len({row.worker for row in batch.rows()}) == 1
    batch.close()

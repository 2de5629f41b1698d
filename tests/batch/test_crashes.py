"""Whatever ends (workers, drivers, the database): the same table in the end, and no saved step runs again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agentbench.batch import run_many
from tests.batch.counting import STEPS, counting_workflow, repeated_steps, table
from tests.parts.cluster import client  # noqa: F401 - a fixture
from tests.parts.nightly import NIGHTLY
from tests.servers.postgres import PostgresServer

COUNT = 10_000 if NIGHTLY else 300
KILLS = 40 if NIGHTLY else 3
PATIENCE_S = 1800 if NIGHTLY else 180


@pytest.fixture(params=["sqlite", "postgres"])
def into(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "rows.db") if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log.txt"


class Drivers:
    """Drivers in processes of their own, which a test may kill."""

    def __init__(self, into: str, log: Path) -> None:
        self._arguments = [into, str(log)]
        self.running: list[subprocess.Popen[str]] = []

    def start(self, backend: str = "here") -> subprocess.Popen[str]:
        program = "import sys; from tests.batch.counting import main; main(*sys.argv[1:])"
        command = [sys.executable, "-c", program, *self._arguments, str(COUNT), backend]
        self.running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        return self.running[-1]

    def close(self) -> None:
        for driver in self.running:
            driver.kill()
            driver.wait()
            assert driver.stdout is not None
            driver.stdout.close()


@pytest.fixture
def drivers(into: str, log: Path) -> Iterator[Drivers]:
    made = Drivers(into, log)
    yield made
    made.close()


def wait_for_lines(log: Path, count: int, drivers: Drivers) -> None:
    """Wait until this many steps have run."""
    ends = time.monotonic() + PATIENCE_S
    while not log.exists() or log.read_bytes().count(b"\n") < count:
        assert time.monotonic() < ends, "the batch makes no progress"
        assert drivers.running[-1].poll() is None, "the driver has ended"
        time.sleep(0.01)


def wait_for_two_workers(client: Any) -> None:  # noqa: F811
    """Wait until two workers run.

    The cluster does not replace a worker that failed to start, for example because the killed one still held its
    name. So if two do not arrive in time, ask for one more: it gets a new name.
    """
    wanted = max(2, len(client.cluster.worker_spec))
    for more in range(6):
        client.cluster.scale(wanted + more)  # replaces a worker that its nanny has given up
        with suppress(TimeoutError):
            client.wait_for_workers(2, timeout=PATIENCE_S / 6)
            return
    raise AssertionError("the cluster has lost its workers")


def check_table(into: str, log: Path) -> None:
    """Check that all rows are as they should be, and that no saved step has run again."""
    batch = run_many(counting_workflow(log), [], into)
    path = " > ".join(["even", "odd"] * (STEPS // 2))
    assert table(batch) == [
        (number, (number, 0), "finished", number * number, STEPS, path, None) for number in range(COUNT)
    ]
    traffic = batch.traffic()
    assert sum(each.messages for each in traffic) == COUNT * STEPS
    assert sum(each.calls for each in traffic) == COUNT * STEPS
    assert repeated_steps(log) == []
    assert batch.store.busy() == 0
    batch.close()


def test_a_driver_that_is_killed_goes_on_with_the_next_call(into: str, log: Path, drivers: Drivers) -> None:
    for number in (1, 2):
        driver = drivers.start()
        wait_for_lines(log, number * COUNT * STEPS // 4, drivers)
        driver.send_signal(signal.SIGKILL)
        driver.wait()
    assert drivers.start().wait(PATIENCE_S) == 0
    check_table(into, log)


def test_two_drivers_share_a_batch_and_one_finishes_if_the_other_is_killed(
    into: str, log: Path, drivers: Drivers
) -> None:
    first, second = drivers.start(), drivers.start()
    wait_for_lines(log, COUNT * STEPS // 3, drivers)
    first.send_signal(signal.SIGKILL)
    assert second.wait(PATIENCE_S) == 0
    check_table(into, log)
    processes = {line.split()[2] for line in log.read_text("ascii").splitlines()}
    assert processes == {str(first.pid), str(second.pid)}


def test_a_cluster_loses_workers_and_drivers(into: str, log: Path, drivers: Drivers, client: Any) -> None:  # noqa: F811
    address, pick = client.scheduler.address, random.Random(7)
    drivers.start(address)
    restarts = 0
    for number in range(1, KILLS + 1):
        wait_for_lines(log, number * COUNT * STEPS // (KILLS + 2), drivers)
        wait_for_two_workers(client)
        processes = [nanny.pid for nanny in client.cluster.workers.values() if nanny.pid]
        with suppress(ProcessLookupError):
            if processes:
                os.kill(pick.choice(processes), signal.SIGKILL)
        if restarts < 2 and number > (restarts + 1) * KILLS // 3:
            restarts += 1
            drivers.running[-1].kill()
            drivers.running[-1].wait()
            drivers.start(address)
    assert drivers.running[-1].wait(PATIENCE_S) == 0
    check_table(into, log)


def test_a_database_that_is_restarted_is_waited_for(
    postgres_server: PostgresServer, postgres_url: str, log: Path
) -> None:
    drivers = Drivers(postgres_url, log)
    try:
        driver = drivers.start()
        wait_for_lines(log, COUNT * STEPS // 3, drivers)
        postgres_server.stop()
        time.sleep(1.0)
        postgres_server.start()
        assert driver.wait(PATIENCE_S) == 0
    finally:
        drivers.close()
    check_table(postgres_url, log)


def test_an_input_that_ends_its_processes_fails_in_the_end(tmp_path: Path) -> None:
    into = str(tmp_path / "rows.db")
    program = (
        "import os, sys\n"
        "from agentbench import WorkflowBuilder, WorkflowContext, executor\n"
        "from agentbench.batch import run_many\n"
        "@executor(id='crash')\n"
        "async def crash(number: int, ctx: WorkflowContext[int, int]) -> None:\n"
        "    os._exit(3)\n"
        "batch = run_many(WorkflowBuilder(start_executor=crash, name='crashing').build(), [1], sys.argv[1]).result()\n"
        "print(batch.rows()[0].error.type)\n"
    )
    codes = []
    for _ in range(12):
        ended = subprocess.run([sys.executable, "-c", program, into], capture_output=True, text=True, check=False)
        codes.append(ended.returncode)
        if ended.returncode == 0:
            break
    assert codes[:-1] == [3] * (len(codes) - 1)
    assert ended.stdout.strip() == "LostProcessesError"

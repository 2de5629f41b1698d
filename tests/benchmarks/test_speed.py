"""The workloads of `gates.py` under pytest-benchmark: `pytest tests/benchmarks --benchmark-only`. No time is asserted.

Each workload is a group of two results, `bare` and `agentbench`. Before each round of the latter the bare half runs
once more, so that `extra_info` holds ratios taken inside one round; they are listed below the tables.
"""

import asyncio
import statistics
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.benchmarks import fresh
from tests.benchmarks.agent_workloads import WORKLOADS as AGENTS
from tests.benchmarks.checkpoint_workloads import WORKLOADS as CHECKPOINTS
from tests.benchmarks.engine_workloads import WORKLOADS as ENGINE
from tests.benchmarks.graph_workloads import WORKLOADS as GRAPHS
from tests.benchmarks.notebook_workloads import WORKLOADS as NOTEBOOK
from tests.benchmarks.workload import Await, Call, Workload

ROUNDS = 5

HALVES = [
    pytest.param(workload, half, id=f"{workload.name}-{half}")
    for workload in ENGINE + AGENTS + CHECKPOINTS + GRAPHS + NOTEBOOK
    for half in workload.halves
]


@pytest.fixture
def wait() -> Iterator[Await]:
    loop = asyncio.new_event_loop()
    yield loop.run_until_complete
    loop.close()


@pytest.mark.parametrize(("workload", "half"), HALVES)
def test_workload(workload: Workload, half: str, wait: Await, benchmark: Any) -> None:
    benchmark.group = f"{workload.name}: {workload.what}, times {workload.per_call}"
    call = workload.halves[half](wait)
    if half == "bare" or workload.bare is None:
        benchmark.pedantic(call, rounds=ROUNDS, warmup_rounds=1)
    else:
        _in_turn(benchmark, call, workload.bare(wait))


def test_first_use(benchmark: Any) -> None:
    benchmark.group = "W7 first use: a fresh process, importing and one small run"
    fresh.compile_package()
    bare = _in_turn(benchmark, lambda: fresh.run_script(fresh.ONE_RUN), lambda: fresh.run_script(fresh.ASYNCIO))
    benchmark.extra_info["ms above bare"] = 1e3 * (statistics.median(_seconds(benchmark)) - statistics.median(bare))


def test_first_picture(benchmark: Any) -> None:
    benchmark.group = "first picture: the same, and a drawing"
    fresh.compile_package()
    _in_turn(benchmark, lambda: fresh.run_script(fresh.FIRST_PICTURE), lambda: fresh.run_script(fresh.ONE_RUN))


def test_kept_bytes_and_drift(benchmark: Any) -> None:
    benchmark.group = "W9: 100,000 supersteps"
    benchmark.extra_info["drift"] = benchmark.pedantic(fresh.drift, (time.process_time,), rounds=1)
    benchmark.extra_info["bytes per superstep"] = fresh.bytes_per_superstep()


def _in_turn(benchmark: Any, call: Call, bare: Call) -> list[float]:
    """Measure a call, with the bare one before each round; the seconds of the latter."""
    seconds: list[float] = []

    def bare_first() -> None:
        began = time.perf_counter()
        bare()
        seconds.append(time.perf_counter() - began)

    bare(), call()
    benchmark.pedantic(call, setup=bare_first, rounds=ROUNDS)
    ratios = [ours / less for ours, less in zip(_seconds(benchmark), seconds, strict=True)]
    benchmark.extra_info["ratio to bare"] = statistics.median(ratios)
    benchmark.extra_info["ratios"] = ratios
    return seconds


def _seconds(benchmark: Any) -> list[float]:
    seconds: list[float] = benchmark.stats.stats.data
    return seconds

"""What only a process of its own can show: the cost of the first use, and memory."""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import agentbench
from agentbench import run_sync
from tests.benchmarks.engine_workloads import Bounce, ping_pong
from tests.benchmarks.workload import Figures

ROOT = Path(__file__).parents[2]

ASYNCIO = """
import asyncio

async def main():
    assert await asyncio.create_task(asyncio.sleep(0, "HELLO")) == "HELLO"

asyncio.run(main())
"""

ONE_RUN = """
import asyncio
from agentbench import Executor, WorkflowBuilder, WorkflowContext, handler

class Upper(Executor):
    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(text.upper())

class Show(Executor):
    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(text)

async def main():
    upper, show = Upper(id="upper"), Show(id="show")
    workflow = WorkflowBuilder(start_executor=upper, name="first").add_edge(upper, show).build()
    assert (await workflow.run("hello")).get_outputs() == ["HELLO"]

asyncio.run(main())
"""

FIRST_PICTURE = (
    ONE_RUN
    + """
from agentbench.notebook import draw

upper, show = Upper(id="upper"), Show(id="show")
workflow = WorkflowBuilder(start_executor=upper, name="first").add_edge(upper, show).build()
assert "upper" in draw(workflow).svg
"""
)

FIRST_DRAW = """
import time
from tests.benchmarks.engine_workloads import ring
from agentbench.notebook import draw

workflow = ring(10)
began = time.perf_counter()
assert "h9" in draw(workflow)._repr_mimebundle_()["image/svg+xml"]
print(1e3 * (time.perf_counter() - began))
"""

FIRST_TURN = """
from tests.benchmarks.agent_workloads import first_turn_ms

print(first_turn_ms())
"""

MANY_RUNS = """
import asyncio, os
from tests.benchmarks.engine_workloads import RUN_SUPERSTEPS, RUNS, Sleepy, ping_pong

async def main():
    workflows = [ping_pong(Sleepy, RUN_SUPERSTEPS) for _ in range(RUNS)]
    await asyncio.gather(*(workflow.run(0) for workflow in workflows))
    with open("/proc/self/statm") as statm:
        print(int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20)

asyncio.run(main())
"""


def compile_package() -> None:
    """Write byte code, as an installed package has it."""
    compileall.compile_dir(str(Path(agentbench.__file__).parent), quiet=1)


def run_script(script: str) -> str:
    """Run a script in a new interpreter and return what it printed."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-W", "ignore", "-c", script]
    return subprocess.run(command, cwd=ROOT, env=env, check=True, capture_output=True, text=True).stdout


def processor_seconds(script: str) -> float:
    """Time that a script kept the processor busy in a new interpreter, its start included."""
    if sys.platform == "win32":  # does not tell; the clock on the wall has to do
        began = time.perf_counter()
        run_script(script)
        return time.perf_counter() - began
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run_script(script)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def first_use(script: str, bare: str, rounds: int) -> Figures:
    """Seconds of whole processes, in turn."""
    compile_package()
    run_script(script), run_script(bare)
    seconds: dict[str, list[float]] = {"bare": [], "agentbench": []}
    for _ in range(rounds):
        seconds["bare"].append(processor_seconds(bare))
        seconds["agentbench"].append(processor_seconds(script))
    return Figures(seconds)


def resident_mib() -> float | None:
    """Memory of a process that has just run W10; `None` where the system does not tell."""
    return float(run_script(MANY_RUNS)) if sys.platform == "linux" else None


def bytes_per_superstep(supersteps: int = 20_000) -> float:
    """Memory that a run keeps for each superstep, its events included; exact, by tracing allocations."""
    marks: dict[int, int] = {}

    def probe(n: int) -> None:
        if n in (supersteps // 10, supersteps):
            marks[n] = tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        _long_run(supersteps, probe)
    finally:
        tracemalloc.stop()
    return (marks[supersteps] - marks[supersteps // 10]) / (supersteps - supersteps // 10)


def drift(clock: Callable[[], float], supersteps: int = 100_000) -> float:
    """How much slower the second half of a long run is than its first tenth; 1 is not at all."""
    marks: dict[int, float] = {}

    def probe(n: int) -> None:
        if n in (0, supersteps // 10, supersteps // 2, supersteps):
            marks[n] = clock()

    _long_run(supersteps, probe)
    tenth = (marks[supersteps // 10] - marks[0]) / (supersteps // 10)
    half = (marks[supersteps] - marks[supersteps // 2]) / (supersteps - supersteps // 2)
    return half / tenth


def _long_run(supersteps: int, probe: Callable[[int], None]) -> None:
    workflow = ping_pong(Bounce, supersteps, probe)
    assert run_sync(workflow.run(0)).get_outputs() == [supersteps]

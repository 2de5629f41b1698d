"""The stop button of a notebook, in a real kernel: the cell ends, the work ends, and the run can be continued."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

jupyter_client = pytest.importorskip("jupyter_client")
pytest.importorskip("ipykernel")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="cells tell that they wait through a named pipe")

WAIT_S = 60.0  # only a bound for a test that hangs

# Superstep 3 of the first run never ends by itself; it says through the pipe that it has begun.
SETUP = """
import asyncio, os
from agentbench import Executor, InMemoryCheckpointStorage, WorkflowBuilder, WorkflowContext, handler, run_sync
from agentbench._bridge import submit
from agentbench.notebook import progress, stepper, wait

blocked = True

class Count(Executor):
    @handler
    async def count(self, left: int, ctx: WorkflowContext[int, str]) -> None:
        if left == 2 and blocked:
            with open({pipe!r}, "w") as pipe:
                pipe.write("x")
            try:
                await asyncio.sleep(3600)
            finally:
                ended.append(left)
        if left:
            await ctx.send_message(left - 1)
        else:
            await ctx.yield_output("through")

def build():
    global blocked, ended
    blocked, ended = True, []
    one, other = Count(id="one"), Count(id="other")
    return (WorkflowBuilder(start_executor=one, name="count", checkpoint_storage=InMemoryCheckpointStorage())
            .add_edge(one, other).add_edge(other, one).build())
"""


class Kernel:
    """A kernel, a client of it, and the pipe through which cells tell that they wait."""

    def __init__(self, folder: Path) -> None:
        self.pipe = folder / "waiting"
        os.mkfifo(self.pipe)
        self._manager: Any = jupyter_client.KernelManager(kernel_name="python3")
        environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parents[3]), *sys.path[:1]]))
        environment["IPYTHONDIR"] = str(folder)
        self._manager.start_kernel(env=environment, cwd=str(folder))
        self._client: Any = self._manager.blocking_client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=WAIT_S)

    def run(self, code: str) -> str:
        """What a cell prints; it must end well."""
        status, said = self._result(self._client.execute(code))
        assert status == "ok", said
        return said

    def run_and_interrupt(self, code: str) -> tuple[str, float]:
        """Interrupt a cell once its work waits; the name of its error, and the seconds from the one to the other."""
        message = self._client.execute(code)
        self._wait_for_pipe()
        before = time.monotonic()
        self._manager.interrupt_kernel()
        status, said = self._result(message)
        assert status == "error"
        return said, time.monotonic() - before

    def _wait_for_pipe(self) -> None:
        told: queue.Queue[str] = queue.Queue()
        threading.Thread(target=lambda: told.put(self.pipe.read_text()), daemon=True).start()
        assert told.get(timeout=WAIT_S) == "x"

    def _result(self, message: str) -> tuple[str, str]:
        said, status, error = "", "ok", ""
        while True:
            told = self._client.get_iopub_msg(timeout=WAIT_S)
            if told["parent_header"].get("msg_id") != message:
                continue
            kind, content = told["msg_type"], told["content"]
            if kind == "stream":
                said += content["text"]
            elif kind == "error":
                status, error = "error", content["ename"]
            elif kind == "status" and content["execution_state"] == "idle":
                return (status, error) if status == "error" else (status, said)

    def close(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)
        self._manager.cleanup_resources()
        self._manager.context.destroy()


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    made = Kernel(tmp_path_factory.mktemp("kernel"))
    try:
        made.run(SETUP.format(pipe=str(made.pipe)))
        yield made
    finally:
        made.close()


#: What a cell runs, the error that ends it, and how its run is continued.
CELLS = {
    "progress awaited": ("await progress(run)", "CancelledError", "resume"),
    "progress waited for": ("progress(run).wait()", "KeyboardInterrupt", "resume"),
    "run_sync": ("run_sync(run.result())", "KeyboardInterrupt", "resume"),
    "engine work awaited": ("await wait(submit(run.result()))", "CancelledError", "resume"),
    "stepper run": ("panel.run()", "KeyboardInterrupt", "panel"),
    "stepper awaited": ("await panel.arun()", "CancelledError", "panel"),
    "stepper stepped": ("panel.step(9)", "KeyboardInterrupt", "panel"),
}


@pytest.mark.parametrize("name", CELLS)
def test_an_interrupted_cell_ends_its_work_and_leaves_it_resumable(kernel: Kernel, name: str) -> None:
    code, error, way = CELLS[name]
    start = "flow.start(5)" if way == "resume" else "None"
    kernel.run(f"flow = build(); run = {start}; panel = None if run else stepper(flow, 5)")
    raised, seconds = kernel.run_and_interrupt(code)
    assert raised == error
    print(f"{name}: {1000 * seconds:.0f} ms from interrupt to idle")
    assert kernel.run("print(ended)") == "[2]\n"
    kernel.run("blocked = False")
    if way == "resume":
        assert kernel.run("print(run.status.value)") == "CANCELLED\n"
        resumed = "run_sync(flow.start(resume_from=run.last_checkpoint).result()).get_outputs()"
        assert kernel.run(f"print({resumed})") == "['through']\n"
    else:
        assert kernel.run("print('step' in panel._session.model.allowed, panel.superstep)") == "True 2\n"
        assert kernel.run("panel.run(); print(panel.status, panel.result.get_outputs())") == "done ['through']\n"


def test_a_bar_says_that_the_run_was_cancelled(kernel: Kernel) -> None:
    kernel.run("flow = build(); run = flow.start(5); shown = progress(run)")
    kernel.run_and_interrupt("await shown")
    assert kernel.run("print(shown)").endswith(", cancelled)\n")


def test_a_cell_that_waits_blocks_no_later_one(kernel: Kernel) -> None:
    kernel.run("flow = build(); run = flow.start(5)")
    kernel.run_and_interrupt("run_sync(run.result())")
    assert kernel.run("print(run_sync(asyncio.sleep(0, 'alive')))") == "alive\n"

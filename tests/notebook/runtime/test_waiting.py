"""Waiting in a notebook: interruptible awaits, and the one door to nested loops."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
import threading

import pytest

from agentbench.exceptions import NestedLoopError
from agentbench.notebook import submit
from agentbench.notebook.runtime import waiting
from agentbench.notebook.runtime.waiting import run_sync, wait
from tests.endless import WAIT_S, for_ever
from tests.parts.errors import raises


def test_a_cell_gets_the_result_of_engine_work() -> None:
    async def cell() -> str:
        return await wait(submit(asyncio.sleep(0, "done")))

    assert asyncio.run(cell()) == "done"


def test_a_cell_gets_the_error_of_engine_work() -> None:
    async def fail() -> None:
        raise LookupError("gone")

    async def cell() -> None:
        await wait(submit(fail()))

    with raises(LookupError, "gone"):
        asyncio.run(cell())


def test_the_loop_of_a_waiting_cell_is_never_idle_for_long() -> None:
    began, ended = threading.Event(), threading.Event()

    async def cell() -> list[float]:
        loop = asyncio.get_running_loop()
        delays: list[float] = []
        call_at = loop.call_at

        def noted(when: float, *args: object, **kwargs: object) -> asyncio.TimerHandle:
            delays.append(when - loop.time())
            return call_at(when, *args, **kwargs)  # type: ignore[arg-type]

        loop.call_at = noted  # type: ignore[method-assign]
        future = submit(for_ever(began, ended))
        waiter = asyncio.ensure_future(wait(future))
        await asyncio.to_thread(began.wait, WAIT_S)
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter
        return delays

    assert any(delay <= 0.2 for delay in asyncio.run(cell()))


def test_an_interrupted_cell_cancels_the_work_and_waits_for_its_clean_up() -> None:
    began, ended = threading.Event(), threading.Event()

    async def cell() -> bool:
        waiter = asyncio.ensure_future(wait(submit(for_ever(began, ended))))
        await asyncio.to_thread(began.wait, WAIT_S)
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter
        return ended.is_set()

    assert asyncio.run(cell())


def test_a_loop_that_cannot_be_patched_is_named() -> None:
    class Foreign(asyncio.AbstractEventLoop):
        pass

    asyncio._set_running_loop(Foreign())  # type: ignore[abstract]
    try:
        with raises(NestedLoopError, "Foreign", "await sleep"):
            run_sync(asyncio.sleep(0), nested=True)
    finally:
        asyncio._set_running_loop(None)


def test_without_a_nest_package_nesting_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_PACKAGES", ("no_such_package_for_sure",))

    async def cell() -> None:
        run_sync(asyncio.sleep(0), nested=True)

    with raises(NestedLoopError, "nest-asyncio2", "nest-asyncio"):
        asyncio.run(cell())


def test_nesting_runs_on_the_running_loop_and_warns_once_of_its_price() -> None:
    pytest.importorskip("nest_asyncio2")
    script = """
        import asyncio, json, warnings
        from agentbench.notebook.runtime.waiting import nest_state, run_sync

        async def where():
            await asyncio.sleep(0)
            return asyncio.get_running_loop()

        async def cell():
            loop = asyncio.get_running_loop()
            same = [run_sync(where(), nested=True) is loop for _ in range(2)]
            try:
                run_sync(asyncio.Event().wait(), timeout=0, nested=True)
            except TimeoutError:
                same.append("timed out")
            return same

        before = nest_state()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", RuntimeWarning)
            same = asyncio.run(cell())
        after = nest_state()
        costs = [str(w.message) for w in caught if "1.1 to 1.7 times slower" in str(w.message)]
        print(json.dumps([before.loaded, before.applied, before.task_is_c, same, len(costs), after.applied]))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60, check=True
    )
    assert json.loads(done.stdout) == [[], None, True, [True, True, "timed out"], 1, "nest_asyncio2"]


def test_a_whole_run_leaves_the_loops_of_this_process_as_they_were() -> None:
    script = """
        import asyncio, json, sys

        def patched():
            return sorted(name for name in sys.modules if name.startswith("nest_asyncio"))

        before = (asyncio.Task, asyncio.Future, asyncio.run, asyncio.BaseEventLoop.run_until_complete, patched())
        import agentbench, agentbench.notebook
        from agentbench.notebook import progress, stepper
        from tests.notebook.graphs import chain

        panel = stepper(chain("abc"), "x")
        panel.step()
        panel.run()
        panel.back()
        panel.close()
        progress(chain("abc").start("x")).wait()

        async def cell():
            panel = stepper(chain("abc"), "x")
            await panel.astep()
            await panel.arun()
            await progress(chain("abc").start("x"))
            panel.close()

        asyncio.run(cell())
        after = (asyncio.Task, asyncio.Future, asyncio.run, asyncio.BaseEventLoop.run_until_complete, patched())
        print(json.dumps([before == after, asyncio.Task.__module__]))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=120, check=True
    )
    assert json.loads(done.stdout.splitlines()[-1]) == [True, "_asyncio"]

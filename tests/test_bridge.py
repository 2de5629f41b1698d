"""The engine thread: work for synchronous callers."""

from __future__ import annotations

import asyncio
import contextvars
import os
import queue
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentbench import _bridge
from agentbench._bridge import (
    EngineThread,
    await_on,
    call_later,
    engine_thread,
    home_loop,
    on_engine_thread,
    run_sync,
    submit,
    wait_sync,
)
from agentbench.exceptions import NestedLoopError, NoBlockingError
from tests.endless import WAIT_S, for_ever


@pytest.fixture
def engine() -> Iterator[EngineThread]:
    thread = EngineThread(name="engine-under-test")
    yield thread
    thread.close()


async def answer() -> int:
    return 42


# --- run_sync ---------------------------------------------------------------------------------------------------------


def test_a_sync_helper_inside_a_running_loop_gets_the_result_too() -> None:
    async def cell() -> int:
        return run_sync(answer())

    assert asyncio.run(cell()) == 42


def test_what_cannot_be_awaited_is_refused_with_the_value_named() -> None:
    with pytest.raises(TypeError, match="42 cannot be awaited"):
        submit(42)  # type: ignore[arg-type]


def test_work_that_outlasts_its_time_is_cancelled_before_the_caller_hears_of_it() -> None:
    began, ended = threading.Event(), threading.Event()
    with pytest.raises(TimeoutError, match=r"for_ever.*1e-09"):
        run_sync(for_ever(began, ended), timeout=1e-9)
    assert not began.is_set() or ended.is_set()


def test_on_the_engine_thread_it_names_the_await_form_instead_of_waiting_for_itself() -> None:
    async def nested() -> int:
        return run_sync(answer())

    with pytest.raises(NestedLoopError, match="await"):
        run_sync(nested())


def test_without_threads_it_names_the_await_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_bridge, "threads_available", lambda: False)
    with pytest.raises(NoBlockingError, match="await"):
        run_sync(answer())


class InterruptAt:
    """Raises `KeyboardInterrupt` at the n-th instruction that this thread executes in the bridge, or in asyncio."""

    FILES = (_bridge.__file__, asyncio.base_events.__file__)

    def __init__(self, number: int) -> None:
        self.left = number
        self.where = ""

    def __call__(self, frame: Any, event: str, arg: object) -> Any:
        if frame.f_code.co_filename not in self.FILES:
            return None
        frame.f_trace_opcodes = True
        if event in ("line", "opcode"):
            self.left -= 1
            if self.left == 0:
                self.where = frame.f_code.co_name
                raise KeyboardInterrupt
        return self


def interrupted_run_sync(number: int) -> tuple[str, bool]:
    """Interrupt `run_sync` at its n-th instruction; where that was, and whether the work is still there after it."""
    began, ended = threading.Event(), threading.Event()
    interrupt, before = InterruptAt(number), sys.gettrace()
    work = for_ever(began, ended)
    sys._getframe().f_trace_opcodes = True  # Python 3.12 sends instructions only if this was set before
    sys.settrace(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_sync(work)
    finally:
        sys.settrace(before)
    run_sync(asyncio.sleep(0))  # whatever was handed over has had its turn by now
    if not began.is_set():
        work.close()
        return interrupt.where, False
    return interrupt.where, not ended.is_set()


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_an_interrupt_at_any_instruction_leaves_no_work_behind() -> None:
    run_sync(answer())
    where, number = "", 0
    while where != "wait_until_done":  # from there on it waits
        number += 1
        where, left = interrupted_run_sync(number)
        assert not left, f"interrupted at instruction {number}, in {where}"
    assert number > 100


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent the POSIX way here")
def test_ctrl_c_ends_a_waiting_script_and_its_work() -> None:
    script = """
        import asyncio, os, signal
        from agentbench._bridge import run_sync

        # A suite that runs in the background of a shell inherits that it ignores the signal.
        signal.signal(signal.SIGINT, signal.default_int_handler)

        async def work():
            try:
                # Not at once: the caller has to wait already, as it does when a person presses the keys.
                asyncio.get_running_loop().call_later(0.5, os.kill, os.getpid(), signal.SIGINT)
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                print("work cancelled", flush=True)
                raise

        try:
            run_sync(work())
        except KeyboardInterrupt:
            print("caller interrupted", flush=True)
        print(run_sync(asyncio.sleep(0, "still alive")))
    """
    assert _output_of(script).split("\n") == ["work cancelled", "caller interrupted", "still alive"]


# --- submit -----------------------------------------------------------------------------------------------------------


def test_work_sees_a_copy_of_the_callers_context_and_keeps_its_own_changes_to_itself() -> None:
    colour: contextvars.ContextVar[str] = contextvars.ContextVar("colour")
    colour.set("green")

    async def look() -> str:
        seen = colour.get()
        colour.set("red")
        return seen

    assert run_sync(look()) == "green"
    assert colour.get() == "green"


def test_a_future_is_done_only_when_the_cancelled_work_has_ended(engine: EngineThread) -> None:
    began, may_end = threading.Event(), threading.Event()

    async def reluctant() -> str:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.to_thread(may_end.wait, WAIT_S)
            raise
        return "never"

    future = submit(reluctant(), loop=engine.loop)
    assert began.wait(WAIT_S)
    assert future.cancel()
    assert not future.done()
    may_end.set()
    assert future.wait_until_done(WAIT_S)
    assert future.cancelled()
    assert not future.cancel()


def test_work_cancelled_before_it_began_never_runs(engine: EngineThread) -> None:
    ran: list[str] = []
    loop_is_held, release = threading.Event(), threading.Event()

    async def work() -> None:
        ran.append("ran")

    def hold() -> None:
        loop_is_held.set()
        release.wait(WAIT_S)

    engine.loop.call_soon_threadsafe(hold)
    assert loop_is_held.wait(WAIT_S)
    future = submit(work(), loop=engine.loop)
    future.cancel()
    release.set()
    assert future.wait_until_done(WAIT_S)
    assert future.cancelled()
    assert ran == []


def test_an_await_in_another_loop_that_is_cancelled_cancels_the_work(engine: EngineThread) -> None:
    began, ended = threading.Event(), threading.Event()
    future = submit(for_ever(began, ended), loop=engine.loop)

    async def cell() -> None:
        waiter = asyncio.ensure_future(asyncio.wrap_future(future))
        await asyncio.to_thread(began.wait, WAIT_S)
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter

    asyncio.run(cell())
    assert ended.wait(WAIT_S)


def test_work_that_raises_system_exit_does_not_end_the_loop_for_the_others(engine: EngineThread) -> None:
    async def leave() -> None:
        raise SystemExit(3)

    future = submit(leave(), loop=engine.loop)
    assert future.wait_until_done(WAIT_S)
    assert isinstance(future.exception(), SystemExit)
    assert submit(answer(), loop=engine.loop).result(WAIT_S) == 42


# --- life -------------------------------------------------------------------------------------------------------------


def test_closing_cancels_what_runs_and_ends_the_thread() -> None:
    thread = EngineThread(name="to-be-closed")
    began, ended = threading.Event(), threading.Event()
    future = submit(for_ever(began, ended), loop=thread.loop)
    assert began.wait(WAIT_S)
    assert thread.close(timeout_s=WAIT_S)
    assert ended.is_set()
    assert future.cancelled()
    assert not thread.alive
    assert thread.close()


def test_closing_leaves_deaf_work_behind_and_frees_those_who_wait_for_it() -> None:
    thread = EngineThread(name="to-be-abandoned")
    began, release = threading.Event(), threading.Event()

    async def deaf() -> None:
        began.set()
        release.wait(WAIT_S)

    future = submit(deaf(), loop=thread.loop)
    assert began.wait(WAIT_S)
    assert not thread.close(timeout_s=0)
    assert future.cancelled()
    release.set()
    assert thread.close(timeout_s=WAIT_S)


def test_the_engine_of_the_process_is_made_anew_when_it_was_closed() -> None:
    before = engine_thread()
    assert engine_thread() is before
    before.close(timeout_s=WAIT_S)
    assert run_sync(answer()) == 42
    assert engine_thread() is not before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
def test_a_forked_child_gets_an_engine_of_its_own() -> None:
    script = """
        import asyncio, os, warnings
        from agentbench._bridge import run_sync
        warnings.simplefilter("ignore")  # newer Pythons warn of forks in threaded programs
        run_sync(asyncio.sleep(0))
        child = os.fork()
        if child == 0:
            print(run_sync(asyncio.sleep(0, "child works")), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print(run_sync(asyncio.sleep(0, "parent works")))
    """
    assert _output_of(script).split("\n") == ["child works", "parent works"]


def test_a_process_with_deaf_work_still_exits() -> None:
    script = """
        import asyncio, threading
        from agentbench import _bridge
        _bridge._CLOSE_LIMIT_S = 0.0
        began = threading.Event()

        async def deaf():
            began.set()
            threading.Event().wait()

        _bridge.submit(deaf())
        began.wait()
        print("leaving")
    """
    assert _output_of(script) == "leaving"


def test_the_loop_cannot_be_changed_under_open_runs() -> None:
    run_sync(answer())
    with pytest.raises(RuntimeError, match="already runs with 'asyncio'"):
        _bridge.choose_engine_loop("uvloop")
    _bridge.choose_engine_loop("asyncio")


def test_uvloop_is_used_where_it_was_chosen_by_name() -> None:
    script = """
        import asyncio, sys, types

        class Loop(asyncio.SelectorEventLoop):
            pass

        # Stands for the package, which only some platforms have.
        sys.modules["uvloop"] = types.SimpleNamespace(new_event_loop=Loop)
        from agentbench._bridge import choose_engine_loop, engine_thread, run_sync

        async def kind():
            return type(asyncio.get_running_loop()).__name__

        choose_engine_loop("uvloop")
        print(run_sync(kind()), engine_thread().loop_name)
    """
    assert _output_of(script) == "Loop uvloop"


def _output_of(script: str) -> str:
    """What a fresh process prints; it must end by itself and well."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# --- Ctrl-C -----------------------------------------------------------------------------------------------------------

INTERRUPTED = """
import asyncio, os, signal
from agentbench import WorkflowBuilder, WorkflowContext, executor, run_sync

signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background inherits that it is ignored

@executor
async def slow(text: str, ctx: WorkflowContext[str]) -> None:
    await asyncio.sleep(0.3)  # the main thread waits by then: in the middle of an import Python may drop an interrupt
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.sleep(3600)

workflow = WorkflowBuilder(start_executor=slow).build()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there Ctrl-C comes from a console")
@pytest.mark.parametrize(
    ("line", "own_frames"),
    [
        ("run_sync(workflow.run('x'))", 2),
        ("run_sync(workflow.start('x').step())", 2),
        ("asyncio.run(workflow.run('x'))", 2),
    ],
)
def test_an_interrupt_shows_the_lines_of_the_user_and_few_of_the_library(line, own_frames, tmp_path):
    (tmp_path / "program.py").write_text(f"{INTERRUPTED}{line}\n", encoding="utf-8")
    command = [sys.executable, "program.py"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    traceback = ended.stderr.splitlines()
    assert traceback[-1] == "KeyboardInterrupt"
    assert any(line in each for each in traceback)
    library = str(Path(_bridge.__file__).parent)
    assert len([each for each in traceback if library in each]) == own_frames, ended.stderr


# --- objects that are bound to a loop --------------------------------------------------------------------------------


async def running() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def test_work_is_awaited_on_the_loop_that_it_needs() -> None:
    async def elsewhere() -> tuple[Any, ...]:
        home = home_loop()
        return await await_on(home, running()), home, await await_on(asyncio.get_running_loop(), running())

    found, home, here = asyncio.run(elsewhere())
    assert found is home
    assert here is not home


def test_a_cancelled_caller_waits_for_the_end_of_the_work() -> None:
    began, ended = threading.Event(), threading.Event()

    async def elsewhere() -> None:
        call = asyncio.ensure_future(await_on(home_loop(), for_ever(began, ended)))
        await asyncio.to_thread(began.wait, WAIT_S)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert ended.is_set()

    asyncio.run(elsewhere())


@pytest.mark.parametrize("levels", [0, 1, 2])
def test_work_for_a_loop_whose_thread_waits_for_it_is_refused(levels: int) -> None:
    async def cell() -> None:
        mine = asyncio.get_running_loop()

        async def needs_mine(level: int) -> None:
            if level:  # what submits it is waited for, so that it is, too
                await asyncio.wrap_future(submit(needs_mine(level - 1)))
            else:
                await await_on(mine, answer())

        with pytest.raises(NestedLoopError) as caught:
            run_sync(needs_mine(levels), timeout=WAIT_S)
        assert caught.value.call == "answer"
        assert await wrap(submit(needs_mine(levels))) is None  # nobody waits on that loop

    async def wrap(future: Any) -> Any:
        return await asyncio.wrap_future(future)

    asyncio.run(cell())


def test_work_that_begins_before_its_caller_blocks_the_loop_is_refused_too() -> None:
    async def cell() -> None:
        mine, blocked = asyncio.get_running_loop(), threading.Event()

        async def needs_mine() -> None:
            await asyncio.to_thread(blocked.wait, WAIT_S)
            await await_on(mine, answer())

        future = submit(needs_mine())
        blocked.set()
        with pytest.raises(NestedLoopError):
            wait_sync(future, timeout=WAIT_S)

    asyncio.run(cell())


def test_work_for_a_loop_that_does_not_run_is_refused() -> None:
    still = asyncio.new_event_loop()
    with pytest.raises(NestedLoopError) as caught:
        run_sync(await_on(still, answer(), name="Tool.connect"))
    assert caught.value.call == "Tool.connect"
    still.close()


def test_a_function_is_called_later_on_the_engine_thread() -> None:
    called: queue.SimpleQueue[bool] = queue.SimpleQueue()
    call_later(0, lambda: called.put(on_engine_thread()))
    assert called.get(timeout=WAIT_S) is True

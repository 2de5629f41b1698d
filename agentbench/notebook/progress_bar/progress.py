"""`progress`: a run driven to its end under a bar, in a notebook or a terminal, leaving one line of text behind."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol

from agentbench import _bridge
from agentbench.exceptions import StepperClosed, StepperStateError
from agentbench.notebook.progress_bar.displays import Bar, Display, Lines, Widget
from agentbench.notebook.progress_bar.state import ProgressState
from agentbench.notebook.runtime import settings
from agentbench.notebook.runtime.kernel import in_kernel
from agentbench.notebook.runtime.waiting import wait
from agentbench.notebook.stepping.model.messages import USUAL_LIMIT
from agentbench.notebook.text.escape import esc
from agentbench.notebook.text.phrases import workflow_name
from agentbench.workflows.events.events import WorkflowEvent, WorkflowRunState
from agentbench.workflows.run.run import WorkflowRun

if TYPE_CHECKING:
    from agentbench.notebook.stepping.stepper import Stepper

__all__ = ["Progress", "progress"]

_See = Callable[[WorkflowEvent[Any]], None]

_TICK_S = 0.1
_SHOW_AFTER_S = 0.5


def progress(run: WorkflowRun | Stepper, *, total: int | None = None) -> Progress:
    """Drive a run under a progress bar.

    In a notebook it is a widget with a Stop button, in a terminal tqdm's bar if tqdm is installed, else a line every
    five seconds. Runs under half a second show none. At the end one line of text stays, without times where outputs are
    compared.

    Args:
        run: A run that is not driven yet, `workflow.start(...)`; or a stepper, which then runs as with its Run button.
        total: How many supersteps are expected, if that is known. Otherwise they are counted, against the
            `max_supersteps` of a stepper if one was chosen.

    Returns:
        `await progress(run)` in a cell, `progress(run).wait()` in a script. Both give the final `WorkflowRunState` and
        raise what the run raises. The stop button of the notebook, or Ctrl-C, ends the run too; its last checkpoint
        continues it.

    Raises:
        TypeError: `run` is neither, or `total` is no number of supersteps.
        ValueError: `total` is less than 1.

    Example:
        run = workflow.start("hello")
        await progress(run)
        run.outputs
    """
    return Progress(run, total=total)


class Progress:
    """A run under a bar; made by `progress`, which documents the arguments.

    Nothing runs until it is awaited in a cell, or its `wait()` is called in a script; both raise what the run raises.

    Attributes:
        state: How far the run is.
        run: The run or stepper being driven.

    Example:
        status = progress(workflow.start("hello")).wait()
    """

    def __init__(
        self,
        run: WorkflowRun | Stepper,
        *,
        total: int | None = None,
        open_display: Callable[[Progress], Display | None] | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._driver = _driver_of(run)
        self.state = ProgressState(_check_total(total), limit=self._driver.limit)
        self.run = run
        self._open = open_display or _display_for
        self._now = now
        self._began = 0.0
        # A tick may come while the run ends: what is closed stays closed.
        self._lock = threading.Lock()
        self._display: Display | None = None
        self._begun = self._opened = self._over = False

    @property
    def name(self) -> str:
        """The name of the workflow, in one line."""
        return esc(self._driver.name, into="line", limit=60)

    def __repr__(self) -> str:
        if not self._begun:
            return f"Progress({self.name}, not begun: await it, or call its wait())"
        return f"Progress({self.name}, {self.state.count}, {self.state.state})"

    def __await__(self) -> Generator[Any, None, WorkflowRunState]:
        return self._drive().__await__()

    async def _drive(self) -> WorkflowRunState:
        loop = _home_loop()
        with self._drawing(loop):
            await self._driver.arun(self.state.see, loop)
        return self._driver.status

    def wait(self) -> WorkflowRunState:
        """Drive the run and wait for its end; for scripts and cells that do not await."""
        _bridge.require_blocking("progress")
        guard = _bridge.cancelled_with_caller
        with guard(), self._drawing(None), guard():
            self._driver.run_sync(self.state.see)
        return self._driver.status

    def stop(self) -> None:
        """End the run; its last checkpoint continues it. From any thread; returns at once."""
        self._driver.stop()

    @contextmanager
    def _drawing(self, loop: asyncio.AbstractEventLoop | None) -> Iterator[None]:
        """Draw while the run is driven, and leave one line when it is over."""
        self._begun, self._began = True, self._now()
        ticking = _bridge.submit(self._tick(), loop=loop)
        try:
            yield
        finally:
            ticking.cancel()
            with self._lock:
                self._over = True
            self.state.state = str(self._driver.status)
            self.state.elapsed_s = self._now() - self._began
            text = self.state.last_words(self.name, times=not _is_compared())
            if self._display is None or not self._display.close(text):
                print(text, flush=True)  # noqa: T201 - the line that stays is what it is for

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            self.tick()

    def tick(self) -> None:
        """Draw how far it is, if it has lasted long enough to be worth a bar."""
        with self._lock:
            self.state.elapsed_s = self._now() - self._began
            if self._over or self.state.elapsed_s < _SHOW_AFTER_S:
                return
            if not self._opened:
                self._opened = True
                self._display = self._open(self)
            if self._display is not None:
                self._display.draw(self.state)


# --- what is driven ---------------------------------------------------------------------------------------------------


class _Driver(Protocol):
    """Drives a run to its end and passes its events on."""

    @property
    def name(self) -> str: ...
    @property
    def status(self) -> WorkflowRunState: ...
    @property
    def limit(self) -> int | None: ...
    async def arun(self, see: _See, loop: asyncio.AbstractEventLoop | None) -> None: ...
    def run_sync(self, see: _See) -> None: ...
    def stop(self) -> None: ...


def _driver_of(run: object) -> _Driver:
    if isinstance(run, WorkflowRun):
        return _RunDriver(run)
    from agentbench.notebook.stepping.stepper import Stepper

    if isinstance(run, Stepper):
        return _StepperDriver(run)
    msg = f"progress() drives a run or a stepper; got a {type(run).__name__}. Make a run: workflow.start(input)."
    raise TypeError(msg)


def _check_total(total: int | None) -> int | None:
    if total is None:
        return None
    if isinstance(total, bool) or not isinstance(total, int):
        msg = f"total is {total!r}; expected the number of supersteps, or None if it is not known."
        raise TypeError(msg)
    if total < 1:
        msg = f"total is {total}; expected 1 superstep or more, or None if the number is not known."
        raise ValueError(msg)
    return total


class _RunDriver:
    def __init__(self, run: WorkflowRun) -> None:
        self._run = run

    @property
    def name(self) -> str:
        return workflow_name(self._run.workflow)

    @property
    def status(self) -> WorkflowRunState:
        return self._run.status

    @property
    def limit(self) -> int | None:
        return None  # `max_iterations` guards against cycles without an end: no run is expected to come that far

    async def arun(self, see: _See, loop: asyncio.AbstractEventLoop | None) -> None:
        await wait(_bridge.submit(self._watch(see), loop=loop))

    def run_sync(self, see: _See) -> None:
        _bridge.wait_sync(_bridge.submit(self._watch(see)))

    async def _watch(self, see: _See) -> None:
        async for event in self._run.watch_stream():
            see(event)

    def stop(self) -> None:
        self._run.stop()


class _StepperDriver:
    def __init__(self, panel: Stepper) -> None:
        self._panel = panel
        self._stopping: threading.Thread | None = None

    @property
    def name(self) -> str:
        return self._panel.name

    @property
    def status(self) -> WorkflowRunState:
        # A run that is stopped before its first superstep has not got a state of its own yet.
        return WorkflowRunState.CANCELLED if self._panel.status == "cancelled" else self._panel.handle.status

    @property
    def limit(self) -> int | None:
        return None if self._panel.max_supersteps == USUAL_LIMIT else self._panel.max_supersteps

    async def arun(self, see: _See, loop: asyncio.AbstractEventLoop | None) -> None:
        with self._watching(see):
            await self._panel.arun()
            if self._stopping is not None:
                await asyncio.to_thread(self._stopping.join)

    def run_sync(self, see: _See) -> None:
        with self._watching(see):
            self._panel.run()
            if self._stopping is not None:
                self._stopping.join()

    @contextmanager
    def _watching(self, see: _See) -> Iterator[None]:
        unsubscribe = self._panel.on("event", see)
        try:
            yield
        finally:
            unsubscribe()
        if self.status is WorkflowRunState.FAILED and self._panel.error is not None:
            raise self._panel.error

    def stop(self) -> None:
        if not _bridge.threads_available():
            self._stop()
        elif self._stopping is None:
            # A stepper's stop() waits for the superstep in flight to end, which a click must not.
            self._stopping = threading.Thread(target=self._stop, name="agentbench-stop", daemon=True)
            self._stopping.start()

    def _stop(self) -> None:
        with suppress(StepperStateError, StepperClosed):  # it was over already
            self._panel.stop()


def _home_loop() -> asyncio.AbstractEventLoop | None:
    """The loop on which runs are driven, `None` for the engine's."""
    if settings.current().loop == "kernel" or not _bridge.threads_available():
        return asyncio.get_running_loop()
    return None


# --- where it is drawn ------------------------------------------------------------------------------------------------


def _is_compared() -> bool:
    """Whether outputs are compared with stored ones, so that they must hold no times."""
    return settings.current().deterministic or "PYTEST_CURRENT_TEST" in os.environ


def _display_for(bar: Progress) -> Display | None:
    if _is_compared():
        return None
    if in_kernel() and importlib.util.find_spec("ipywidgets") is not None:
        return Widget(bar.name, bar.stop)
    if not sys.stderr.isatty():
        return Lines()
    return Bar(bar.name, bar.state.most) if importlib.util.find_spec("tqdm") is not None else Lines()

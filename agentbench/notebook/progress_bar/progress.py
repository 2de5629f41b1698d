"""`progress`: a run driven to its end under a bar, in a notebook or a terminal, leaving one line of text behind."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

from agentbench import _bridge
from agentbench.notebook.progress_bar.displays import Bar, Display, Lines, Widget
from agentbench.notebook.progress_bar.state import ProgressState
from agentbench.notebook.runtime import settings
from agentbench.notebook.runtime.kernel import in_kernel
from agentbench.notebook.runtime.waiting import wait
from agentbench.notebook.text.escape import esc
from agentbench.notebook.text.phrases import workflow_name
from agentbench.workflows.events.events import WorkflowRunState
from agentbench.workflows.run.run import WorkflowRun

__all__ = ["Progress", "progress"]

_TICK_S = 0.1
_SHOW_AFTER_S = 0.5


def progress(run: WorkflowRun, *, total: int | None = None) -> Progress:
    """Drive a run under a progress bar.

    In a notebook it is a widget with a Stop button, in a terminal tqdm's bar if tqdm is installed, else a line every
    five seconds. Runs under half a second show none. At the end one line of text stays, without times where outputs are
    compared.

    Args:
        run: A run that is not driven yet, `workflow.start(...)`.
        total: How many supersteps are expected, if that is known. Otherwise they are counted.

    Returns:
        `await progress(run)` in a cell, `progress(run).wait()` in a script. Both give the final `WorkflowRunState` and
        raise what the run raises. The stop button of the notebook, or Ctrl-C, ends the run too; its last checkpoint
        continues it.

    Raises:
        TypeError: `run` is no run, or `total` is no number of supersteps.
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
        run: The run being driven.

    Example:
        status = progress(workflow.start("hello")).wait()
    """

    def __init__(
        self,
        run: WorkflowRun,
        *,
        total: int | None = None,
        open_display: Callable[[Progress], Display | None] | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        driven: object = run
        if not isinstance(driven, WorkflowRun):
            msg = f"progress() drives a run; got a {type(run).__name__}. Make one: workflow.start(input)."
            raise TypeError(msg)
        self.state = ProgressState(_check_total(total))
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
        return esc(workflow_name(self.run.workflow), into="line", limit=60)

    def __repr__(self) -> str:
        if not self._begun:
            return f"Progress({self.name}, not begun: await it, or call its wait())"
        return f"Progress({self.name}, {self.state.count}, {self.state.state})"

    def __await__(self) -> Generator[Any, None, WorkflowRunState]:
        return self._drive().__await__()

    async def _drive(self) -> WorkflowRunState:
        loop = _home_loop()
        with self._drawing(loop):
            await wait(_bridge.submit(self._watch(), loop=loop))
        return self.run.status

    async def _watch(self) -> None:
        async for event in self.run.watch_stream():
            self.state.see(event)

    def wait(self) -> WorkflowRunState:
        """Drive the run and wait for its end; for scripts and cells that do not await."""
        _bridge.require_blocking("progress")
        guard = _bridge.cancelled_with_caller
        with guard(), self._drawing(None), guard():
            _bridge.wait_sync(_bridge.submit(self._watch()))
        return self.run.status

    def stop(self) -> None:
        """End the run; its last checkpoint continues it. From any thread; returns at once."""
        self.run.stop()

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
            self.state.state = str(self.run.status)
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
    return Bar(bar.name, bar.state.total) if importlib.util.find_spec("tqdm") is not None else Lines()

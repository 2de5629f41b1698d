"""`progress`: runs to the end with a progress bar, in a notebook or a terminal, and leaves one line of text."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

from agentbench import _bridge
from agentbench._limits import require_limit
from agentbench._text.escape import esc
from agentbench._text.phrases import count_text, duration_text, state_text, workflow_name
from agentbench.notebook.progress_bar.state import Bar, Display, Lines, ProgressState, Widget, items_html
from agentbench.notebook.runtime import settings
from agentbench.notebook.runtime.kernel import in_kernel, show_in_cell
from agentbench.notebook.runtime.waiting import wait
from agentbench.workflows.events.events import WorkflowRunState
from agentbench.workflows.run.run import WorkflowRun

_TICK_S = 0.1
_SHOW_AFTER_S = 0.5


def progress(run: WorkflowRun, *, total: int | None = None) -> Progress:
    """Drive a run with a progress bar.

    In a notebook the bar is a widget with a Stop button, in a terminal a tqdm bar if tqdm is installed, otherwise a
    line every five seconds. Runs under half a second show none. At the end one line of text stays, without times if
    outputs are compared.

    Args:
        run: A run that is not driven yet, `workflow.start(...)`.
        total: The expected number of supersteps, if known.

    Returns:
        `await progress(run)` in a cell, `progress(run).wait()` in a script. Both return the `WorkflowRunState` and
        raise the errors of the run. The stop button of the notebook, or Ctrl-C, also ends the run; it can be resumed
        from its last checkpoint.

    Raises:
        TypeError: `run` is not a run.
        ValueError: `total` is not a number of 1 or more.

    Example:
        run = workflow.start("hello")
        await progress(run)
        run.outputs
    """
    return Progress(run, total=total)


class Progress:
    """A run with a progress bar; made by `progress`, which documents the arguments.

    Nothing runs until it is awaited in a cell, or `wait()` is called in a script; both raise the errors of the run.

    Attributes:
        state: The progress of the run.
        run: The run being driven.

    Example:
        status = progress(workflow.start("hello")).wait()
    """

    def __init__(self, run: WorkflowRun, *, total: int | None = None) -> None:
        driven: object = run
        if not isinstance(driven, WorkflowRun):
            msg = f"progress() needs a run; got a {type(run).__name__}. Make one: workflow.start(input)."
            raise TypeError(msg)
        require_limit("total", total, least=1, none="a number that is not known")
        self.state = ProgressState(total)
        self.run = run
        self._began: float | None = None
        # A tick may come while the run ends, so a closed display must stay closed.
        self._lock = threading.Lock()
        self._display: Display | None = None
        self._over = False

    @property
    def name(self) -> str:
        """The name of the workflow, in one line."""
        return esc(workflow_name(self.run.workflow), into="line", limit=60)

    def __repr__(self) -> str:
        if self._began is None:
            return f"Progress({self.name}, not begun: await it, or call its wait())"
        return f"Progress({self.name}, {self.state.count}, {state_text(self.run.status, self.state.unanswered)})"

    def __await__(self) -> Generator[Any, None, WorkflowRunState]:
        return self._drive().__await__()

    async def _drive(self) -> WorkflowRunState:
        on_kernel = settings.current().loop == "kernel" or not _bridge.threads_available()
        loop = asyncio.get_running_loop() if on_kernel else None  # None: the engine's
        with self._drawing(loop):
            await wait(_bridge.submit(self._watch(), loop=loop))
        return self.run.status

    async def _watch(self) -> None:
        async for event in self.run.watch_stream():
            self.state.see(event)

    def wait(self) -> WorkflowRunState:
        """Drive the run and wait for its end; for scripts and cells without `await`."""
        _bridge.require_blocking("progress")
        guard = _bridge.cancelled_with_caller
        with guard(), self._drawing(None), guard():
            _bridge.wait_sync(_bridge.submit(self._watch()))
        return self.run.status

    def stop(self) -> None:
        """End the run; it can be resumed from its last checkpoint. Callable from any thread; returns immediately."""
        self.run.stop()

    @contextmanager
    def _drawing(self, loop: asyncio.AbstractEventLoop | None) -> Iterator[None]:
        """Draw while the run is driven, and leave one line at the end."""
        self._began = began = time.monotonic()
        ticking = _bridge.submit(self._tick(began), loop=loop)
        try:
            yield
        finally:
            ticking.cancel()
            with self._lock:
                self._over = True
            self.state.elapsed_s = time.monotonic() - began
            text = f"{self.name}: {self.state.last_words(self.run.status, times=not is_compared())}"
            if self._display is None or not self._display.close(text):
                print(text, flush=True)  # noqa: T201 - the line that stays is what it is for

    async def _tick(self, began: float) -> None:
        await asyncio.sleep(_SHOW_AFTER_S)
        with self._lock:
            self._display = None if self._over else _display_for(self)
        while True:
            with self._lock:
                if self._over:
                    return
                self.state.elapsed_s = time.monotonic() - began
                if self._display is not None:
                    self._display.draw(self.state)
            await asyncio.sleep(_TICK_S)


def is_compared() -> bool:
    """Whether outputs are compared with stored ones, so that they must not contain times."""
    return settings.current().deterministic or "PYTEST_CURRENT_TEST" in os.environ


def _display_for(bar: Progress) -> Display | None:
    if is_compared():
        return None
    if in_kernel() and importlib.util.find_spec("ipywidgets") is not None:
        return Widget(bar.name, bar.stop)
    has_bar = sys.stderr.isatty() and importlib.util.find_spec("tqdm") is not None
    return Bar(bar.name, bar.state.total) if has_bar else Lines()


_DRAW_EVERY_S = 0.1


@contextmanager
def item_progress(name: str, total: int) -> Iterator[Callable[[], None]]:
    """Show the number of finished items after half a second; nothing if outputs are compared.

    Args:
        name: Name of the bar.
        total: Number of items.

    Yields:
        A function to call for each finished item.
    """
    began, done, drawn_at = time.monotonic(), 0, 0.0
    display: Any = None
    bar: Any = None

    def last_words() -> str:
        return f"{name}: {done:,} of {count_text(total, 'item')}, {duration_text(time.monotonic() - began)}"

    def advance() -> None:
        nonlocal done, drawn_at, display, bar
        done += 1
        now = time.monotonic()
        if is_compared() or now - began < _SHOW_AFTER_S or now - drawn_at < _DRAW_EVERY_S:
            return
        drawn_at = now
        if in_kernel():
            views = {
                "text/plain": last_words(),
                "text/html": str(items_html(name, done, total, duration_text(now - began))),
            }
            if display is None:
                display = show_in_cell(views, raw=True, display_id=True)
            else:
                display.update(views, raw=True)
        elif sys.stderr.isatty() and importlib.util.find_spec("tqdm") is not None:
            bar = bar or importlib.import_module("tqdm").tqdm(total=total, desc=name, unit="item", leave=False)
            bar.update(done - bar.n)

    try:
        yield advance
    finally:
        if display is not None:
            display.update({"text/plain": last_words()}, raw=True)
        if bar is not None:
            bar.close()

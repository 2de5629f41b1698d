"""`progress`: a run driven to its end under a bar, in a notebook or a terminal, leaving one line of text behind."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Protocol

from agentbench import _bridge
from agentbench.notebook import settings
from agentbench.notebook.escaping import esc
from agentbench.notebook.pacing import TRAIT_LOCK
from agentbench.notebook.step_log import counted, tokens_of
from agentbench.notebook.stepper_screen import in_kernel, show_in_cell
from agentbench.notebook.waiting import wait
from agentbench.workflow.events import WorkflowEvent, WorkflowRunState
from agentbench.workflow.run import WorkflowRun

__all__ = ["Display", "Progress", "ProgressState", "progress"]

_TICK_S = 0.1
_SHOW_AFTER_S = 0.5
_LINE_EVERY_S = 5.0
_NAMES = 4


def progress(run: WorkflowRun, *, total: int | None = None) -> Progress:
    """Drive a run under a progress bar.

    In a notebook it is a widget with a Stop button, in a terminal tqdm's bar if tqdm is installed, else a line every
    five seconds. Runs under half a second show none. What stays is one line of text, without times where outputs are
    compared.

    Args:
        run: A run that nobody drives yet: `workflow.start(...)`.
        total: How many supersteps are expected, if that is known; otherwise they are counted.

    Returns:
        `await progress(run)` in a cell, `progress(run).wait()` in a script. Both give the final `WorkflowRunState` and
        raise what the run raises.

    Example:
        ```python
        run = workflow.start("hello")
        await progress(run)
        run.outputs
        ```
    """
    return Progress(run, total=total)


@dataclass
class ProgressState:
    """How far a run is, from its events.

    Attributes:
        total: Supersteps expected, `None` if unknown.
        supersteps: Supersteps that have ended, that of the start executors included.
        calls: Handlers that were called.
        tokens: Tokens that agents used.
        elapsed_s: Seconds since it began.
        state: Of the run, as last told.
    """

    total: int | None = None
    supersteps: int = 0
    calls: int = 0
    tokens: int = 0
    elapsed_s: float = 0.0
    state: str = "STARTED"
    _at_work: Counter[str] = field(default_factory=Counter)
    _called_here: int = 0
    _ended_here: int = 0

    def see(self, event: WorkflowEvent[Any]) -> None:
        """Take in one event."""
        who = event.source_id or ""
        if event.type == "superstep_started":
            self.supersteps += self._called_here > 0 and self.supersteps == 0
            self._called_here = self._ended_here = 0
        elif event.type == "superstep_completed":
            self.supersteps += 1
        elif event.type == "executor_invoked":
            self._at_work[who] += 1
            self._called_here += 1
            self.calls += 1
        elif event.type in ("executor_completed", "executor_failed"):
            self._at_work[who] -= 1
            self._ended_here += 1
        elif event.type == "status" and event.state is not None:
            self.state = str(event.state)
        self.tokens += tokens_of(event)

    @property
    def at_work(self) -> tuple[str, ...]:
        """Executors whose handlers run now."""
        return tuple(name for name, count in self._at_work.items() if count > 0)

    @property
    def share_here(self) -> tuple[int, int]:
        """Handlers that ended, and handlers that were called, in the present superstep."""
        return self._ended_here, self._called_here

    def words(self, *, times: bool) -> str:
        """How far it is, in one line."""
        count = counted(self.supersteps, "superstep")
        if self.total is not None:
            count = f"{self.supersteps:,} of {counted(self.total, 'superstep')}"
        parts = [count, counted(self.calls, "call")]
        if self.tokens:
            parts.append(counted(self.tokens, "token"))
        if times:
            parts.append(f"{self.elapsed_s:,.1f} s")
        names = [esc(name, into="line", limit=32) for name in self.at_work]
        if names:
            more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
            parts.append(f"at work: {', '.join(names[:_NAMES])}{more}")
        return ", ".join(parts)

    def last_words(self, name: str, *, times: bool) -> str:
        """The one line that stays."""
        done = {
            "IDLE": "done",
            "IDLE_WITH_PENDING_REQUESTS": "waits for an answer",
            "FAILED": "failed",
            "CANCELLED": "stopped",
        }
        self._at_work.clear()
        return f"{esc(name, into='line', limit=60)}: {done.get(self.state, 'paused')}, {self.words(times=times)}"


class Display(Protocol):
    """Where a bar is drawn."""

    def draw(self, state: ProgressState) -> None:
        """Show how far it is."""

    def close(self) -> None:
        """Take the bar away."""


class Progress:
    """A run under a bar; made by `progress`.

    Attributes:
        state: How far it is.
    """

    def __init__(
        self,
        run: WorkflowRun,
        *,
        total: int | None = None,
        open_display: Callable[[Progress], Display | None] | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.state = ProgressState(total)
        self.run = run
        self._open = open_display or _display_for
        self._now = now
        self._display: Display | None = None
        self._opened = False
        self._began = 0.0

    def __repr__(self) -> str:
        return f"Progress({self.run.workflow.name}, {self.state.supersteps} supersteps, {self.state.state})"

    def __await__(self) -> Generator[Any, None, WorkflowRunState]:
        return self._awaited().__await__()

    async def _awaited(self) -> WorkflowRunState:
        try:
            return await wait(_bridge.submit(self._drive()))
        finally:
            self._leave_line()

    def wait(self) -> WorkflowRunState:
        """Drive the run and wait for its end; for scripts and cells that do not await."""
        _bridge.require_blocking("progress")
        try:
            return _bridge.wait_sync(_bridge.submit(self._drive()))
        finally:
            self._leave_line()

    def stop(self) -> None:
        """End the run; its last checkpoint continues it."""
        self.run.stop()

    async def _drive(self) -> WorkflowRunState:
        self._began = self._now()
        ticking = asyncio.ensure_future(self._tick())
        try:
            async for event in self.run.watch_stream():
                self.state.see(event)
        finally:
            ticking.cancel()
            self.state.state = str(self.run.status)
            self.state.elapsed_s = self._now() - self._began
            if self._display is not None:
                self._display.close()
        return self.run.status

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            self.tick()

    def tick(self) -> None:
        """Draw how far it is, if it has lasted long enough to be worth a bar."""
        self.state.elapsed_s = self._now() - self._began
        if self.state.elapsed_s < _SHOW_AFTER_S:
            return
        if not self._opened:
            self._opened = True
            self._display = self._open(self)
        if self._display is not None:
            self._display.draw(self.state)

    def _leave_line(self) -> None:
        text = self.state.last_words(str(self.run.workflow.name), times=not _compared())
        print(text, flush=True)  # noqa: T201 - the line that stays is what it is for


def _compared() -> bool:
    """Whether outputs are compared with stored ones, so that they must hold no times."""
    return settings.current().deterministic or "PYTEST_CURRENT_TEST" in os.environ


def _display_for(shown: Progress) -> Display | None:
    if _compared():
        return None
    if in_kernel() and importlib.util.find_spec("ipywidgets") is not None:
        return _Widget(shown)
    if not sys.stderr.isatty():
        return _Lines()
    return _Bar(shown.state.total) if importlib.util.find_spec("tqdm") is not None else _Lines()


# --- where it is drawn ------------------------------------------------------------------------------------------------


class _Widget:
    """Two bars and a Stop button."""

    def __init__(self, shown: Progress) -> None:
        import ipywidgets

        wide = ipywidgets.Layout(width="260px")
        self._supersteps = ipywidgets.IntProgress(max=shown.state.total or 1, layout=wide)
        self._here = ipywidgets.IntProgress(max=1, layout=wide)
        self._words = ipywidgets.HTML()
        self._names = ipywidgets.HTML()
        stop = ipywidgets.Button(description="Stop", layout=ipywidgets.Layout(width="auto"))
        stop.on_click(lambda _: shown.stop())
        self._box = ipywidgets.VBox(
            [ipywidgets.HBox([self._supersteps, self._words, stop]), ipywidgets.HBox([self._here, self._names])]
        )
        show_in_cell(self._box)

    def draw(self, state: ProgressState) -> None:
        ended, called = state.share_here
        with TRAIT_LOCK:
            if state.total is not None:
                self._supersteps.value = min(state.supersteps, state.total)
            else:
                self._supersteps.max = self._supersteps.value = max(state.supersteps, 1)
            self._here.max, self._here.value = max(called, 1), ended
            self._words.value = f'<span role="status">{esc(state.words(times=True))}</span>'
            self._names.value = f"{ended} of {called} in this superstep"

    def close(self) -> None:
        with TRAIT_LOCK:
            self._words.value = ""
            self._box.close()


class _Bar:
    """The bar of tqdm."""

    def __init__(self, total: int | None) -> None:
        self._bar = importlib.import_module("tqdm.auto").tqdm(total=total, unit="superstep", leave=False)

    def draw(self, state: ProgressState) -> None:
        self._bar.set_postfix_str(", ".join(state.at_work[:_NAMES]), refresh=False)
        self._bar.update(state.supersteps - self._bar.n)
        self._bar.refresh()

    def close(self) -> None:
        self._bar.close()


class _Lines:
    """A line every five seconds."""

    def __init__(self) -> None:
        self._next_at = _LINE_EVERY_S

    def draw(self, state: ProgressState) -> None:
        if state.elapsed_s >= self._next_at:
            self._next_at = state.elapsed_s + _LINE_EVERY_S
            print(state.words(times=True), file=sys.stderr, flush=True)  # noqa: T201 - a person watches

    def close(self) -> None:
        return

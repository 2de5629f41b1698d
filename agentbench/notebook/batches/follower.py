"""Calls a drawing function after changes of a batch, at most a few times per second."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from agentbench import _bridge
from agentbench._workers import run_in_thread


class Follower:
    """Calls `draw` after changes of a batch, at most once per `interval_s`, on a worker thread.

    A batch may report thousands of changes per second: each only sets a flag. While `paused` nothing is drawn.
    """

    def __init__(self, batch: Any, draw: Callable[[], object], *, interval_s: float) -> None:
        self._draw, self._interval_s = draw, interval_s
        self._lock = threading.Lock()
        self._is_due = self._is_changed = self._is_closed = False
        self.paused = False
        self._unsubscribe: Callable[[], object] = batch.listen(self._note_change)

    def _note_change(self) -> None:
        self._is_changed = True
        if not (self._is_due or self.paused):  # two threads may both come here, which costs one more look at the flag
            self._is_due = True
            _bridge.call_later(self._interval_s, self._draw_in_thread)

    def _draw_in_thread(self) -> None:
        self._is_due = False
        _bridge.submit(run_in_thread(self.draw_changes))  # drawing reads the database, which would block the loop

    def draw_changes(self) -> None:
        """Draw now if there was a change since the last time."""
        with self._lock:
            if self._is_changed and not self._is_closed:
                self._is_changed = False  # before drawing: a change during it is drawn next time
                self._draw()

    def close(self) -> None:
        """Stop following."""
        self._is_closed = True
        self._unsubscribe()

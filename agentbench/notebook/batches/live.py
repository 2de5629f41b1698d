"""The display of a running batch: its panel in a cell, a line of text in a terminal."""

from __future__ import annotations

import shutil
import sys
from typing import Any, Protocol

from agentbench.exceptions import WidgetsUnavailable
from agentbench.notebook.batches.cards import batch_bundle
from agentbench.notebook.batches.follower import Follower
from agentbench.notebook.batches.panel import BatchPanel
from agentbench.notebook.batches.words import progress_line
from agentbench.notebook.progress_bar.progress import is_compared
from agentbench.notebook.runtime.kernel import in_kernel, show_in_cell

_LINE_EVERY_S = 1.0


class LiveDisplay(Protocol):
    """The display of a running batch."""

    def close(self) -> None:
        """Show the last state, because the batch has ended."""


def show_live(batch: Any, progress: bool | None = None) -> LiveDisplay:
    """Show a batch while it runs: its panel in the running cell, one line of text per second in a terminal.

    If outputs are compared, only one line is printed, at the end and without times.

    Args:
        batch: The batch.
        progress: Whether to show it; by default only in notebooks.

    Returns:
        The display. Its `close` shows the last state; a panel stays, and its buttons keep working.

    Example:
        display = show_live(batch, progress=True)
        batch.result()
        display.close()
    """
    if not (in_kernel() if progress is None else progress):
        return NoDisplay()
    if is_compared():
        return LastLine(batch)
    return CellDisplay(batch) if in_kernel() else TextProgress(batch)


class NoDisplay:
    """Shows nothing."""

    def close(self) -> None:
        """Do nothing."""


class LastLine:
    """Prints one line without times at the end, for outputs that are compared."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def close(self) -> None:
        """Print the line."""
        print(progress_line(self._batch.progress), flush=True)  # noqa: T201 - this line is the display


class TextProgress:
    """Writes the state of a batch to stderr, once per second while it changes; on a terminal into one line."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch
        self._rewrites = sys.stderr.isatty()
        self._follower = Follower(batch, self._write, interval_s=_LINE_EVERY_S)

    def _write(self) -> None:
        text = progress_line(self._batch.progress)
        room = shutil.get_terminal_size().columns - 1  # a line that wraps cannot be rewritten
        sys.stderr.write(f"\r\x1b[K{text[:room]}" if self._rewrites else f"{text}\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Write the last line, which stays."""
        self._follower.close()
        self._write()
        if self._rewrites:
            sys.stderr.write("\n")


class CellDisplay:
    """The panel of a batch in the running cell; its static display if widgets are missing."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch
        self.panel = BatchPanel(batch)
        self._static: Any = None
        try:
            _ = self.panel.widget
        except WidgetsUnavailable:
            self._static = show_in_cell(batch_bundle(batch), raw=True, display_id=True)
        else:
            show_in_cell(self.panel)

    def close(self) -> None:
        """Show the last state; the panel stays."""
        if self._static is None:
            self.panel.finish()
        else:
            self._static.update(batch_bundle(self._batch), raw=True)

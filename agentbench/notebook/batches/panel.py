"""The live panel of a batch: progress, errors, rows to open, and the buttons that control it."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable
from typing import Any

from agentbench._secrets import mask_text
from agentbench.batch.rows import BatchProgress, BatchRow
from agentbench.exceptions import WidgetsUnavailable
from agentbench.notebook.batches.cards import batch_bundle
from agentbench.notebook.batches.follower import Follower
from agentbench.notebook.batches.inbox import BatchInbox, batch_inbox
from agentbench.notebook.batches.opening import Below, try_call
from agentbench.notebook.batches.words import (
    ROW_HEAD,
    count_texts,
    latest_rows,
    line,
    progress_line,
    row_cells,
    share_text,
    speed_texts,
    use_texts,
)
from agentbench.notebook.progress_bar.progress import is_compared
from agentbench.notebook.runtime.stand_in import StandIn, WidgetDisplay, needs_widgets

_INTERVAL_S = 0.25
_LATEST, _FILTERED = 20, 50
_LONGEST_ID = 100


class BatchPanel(WidgetDisplay):
    """The live panel of a batch. A cell displays it; `text` is its state in one line.

    It draws at most four times per second, and only while a person can see it and something has changed. A click on a
    row opens its run in a stepper below, or offers to run its input again if its checkpoints are not kept.

    Example:
        panel = BatchPanel(batch)
        panel  # the last expression of a cell displays it
        panel.open("row-7")
    """

    def __init__(self, batch: Any) -> None:
        self.batch = batch
        self._filter: tuple[str, str] | None = None
        self._lock = threading.RLock()  # the kernel and a worker thread draw
        self._names: dict[str, str] = {}
        """Long keys and names of error classes, by their ids on the page."""
        self._sent: dict[str, dict[str, Any]] = {}
        self._basis: object = None
        self._visible: dict[str, bool] = {}
        self._page: Any = None
        self._below: Any = None
        self._follower: Follower | None = None
        self._stand_in = StandIn(self, lambda: batch_bundle(batch))

    @property
    def text(self) -> str:
        """The state of the batch in one line."""
        return progress_line(self.batch.progress)

    @property
    def widget(self) -> Any:
        """The panel as an ipywidget, created once.

        Raises:
            WidgetsUnavailable: ipywidgets or anywidget is missing.
        """
        if self._below is None:
            with needs_widgets("print(batch) and batch.frame() work without widgets"):
                from agentbench.notebook.batches.page import BatchPage
            self._page = BatchPage(self._on_message, name=f"Batch {line(self.batch.name)}")
            self._below = Below(self.batch, self._page)
            self._follower = Follower(self.batch, self.draw, interval_s=_INTERVAL_S)
        return self._below.box

    def open(self, key: str, *, rerun: bool = False) -> None:
        """Show a row below the panel: its card, and its run in a stepper.

        Args:
            key: The key of the row.
            rerun: Run the input again, in the stepper, instead of reading the checkpoints of its run.
        """
        _ = self.widget
        self._send("view", self._below.open_row(key, self._id_of(key), rerun=rerun))

    def answer(self) -> None:
        """Show the open questions of the batch below the panel, as forms."""
        _ = self.widget
        self.close_opened()
        self._below.show(batch_inbox(self.batch))

    def close_opened(self) -> None:
        """Close what is shown below the panel."""
        if self._below is not None:
            self._below.close()
            self._send("view", {})

    def _id_of(self, text: str) -> str:
        """Return the id of a key or a name on the page: the text itself unless it is long."""
        if len(text) <= _LONGEST_ID:
            return text
        short = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
        self._names[short] = text
        return short

    # ---- drawing -----------------------------------------------------------------------------------------------------

    def draw(self) -> None:
        """Send what has changed to the page."""
        with self._lock:
            if self._page is None:
                return
            progress = self.batch.progress
            facts = self._facts(progress)
            if facts != self._sent.get("progress"):
                self._send("progress", facts)
            # The rows are only read again if one of them can have changed.
            basis = (self._filter, progress.counts if self._filter is None else self._count_of_filter(progress))
            if basis != self._basis:
                self._basis = basis
                rows = self._read_rows(progress)
                cells = [{"id": self._id_of(row.key), "cells": row_cells(row)} for row in rows]
                self._send("rows", {"head": ROW_HEAD, "rows": cells, "title": self._title(progress)})
        self._stand_in.touch()

    def _send(self, kind: str, message: dict[str, Any]) -> None:
        self._sent[kind] = message
        self._page.send({"kind": kind, **message})

    def _facts(self, progress: BatchProgress) -> dict[str, Any]:
        total = max(progress.total or 0, sum(progress.counts.values()), 1)
        counts = {str(status): count for status, count in progress.counts.items()}
        slowest = [] if is_compared() else progress.slowest
        return {
            "name": line(progress.name),
            "state": progress.state,
            "reason": line(mask_text(progress.reason), 400),
            "share": share_text(progress),
            "bar": {name: round(100 * count / total, 2) for name, count in counts.items() if name != "open"},
            "counts": list(count_texts(progress).items()),
            "facts": [*speed_texts(progress), *use_texts(progress)],
            "elapsed": None if is_compared() else round(progress.elapsed_s),
            "errors": [[self._id_of(name), f"{line(name)} {count:,}"] for name, count in progress.errors],
            "slowest": [[self._id_of(key), line(key, 40), f"{seconds:,.1f} s"] for key, seconds in slowest],
            "filter": None if self._filter is None else self._id_of(self._filter[1]),
            "buttons": list(self._buttons(progress)),
        }

    def _buttons(self, progress: BatchProgress) -> Iterable[tuple[str, str]]:
        failed, waiting = (progress.counts.get(status, 0) for status in ("failed", "waiting"))
        if progress.state == "running":
            yield "cancel", "Cancel"
        elif progress.state != "done":
            yield "resume", "Start" if progress.state == "ready" else "Resume"
        if failed and progress.state != "running":
            yield "retry", f"Retry {failed:,} failed"
        if isinstance(self._below.opened, BatchInbox):
            yield "close", "Close questions"
        elif waiting:
            yield "answer", f"Answer {waiting:,} waiting"

    def _count_of_filter(self, progress: BatchProgress) -> object:
        by, name = self._filter or ("", "")
        if by == "error":
            return dict(progress.errors).get(name)
        return (progress.counts.get(name), progress.running)

    def _read_rows(self, progress: BatchProgress) -> list[BatchRow]:
        if self._filter is None:
            return latest_rows(self.batch, _LATEST)
        by, name = self._filter
        rows: list[BatchRow] = self.batch.rows(**{by: name}, limit=_FILTERED)
        return rows

    def _title(self, progress: BatchProgress) -> str:
        if self._filter is None:
            return "All rows" if sum(progress.counts.values()) <= _LATEST else f"Latest {_LATEST} rows"
        by, name = self._filter
        count = dict(progress.errors).get(name, 0) if by == "error" else progress.counts.get(name, 0)
        title = f"Rows with {line(name)}" if by == "error" else f"{line(name).capitalize()} rows"
        return f"{title}: the first {_FILTERED} of {count:,}" if count > _FILTERED else title

    # ---- from the page; unknown kinds, keys and names are ignored ----------------------------------------------------

    def _on_message(self, message: dict[str, Any]) -> None:
        kind, view = message["kind"], message.get("view")
        sent_id = str(message.get("id"))
        named = self._names.get(sent_id, sent_id)
        calls: dict[str, Callable[[], object]] = {
            "cancel": self.batch.cancel,
            "resume": self.batch.resume,
            "retry": lambda: self.batch.failed.retry(),
            "answer": self.answer,
            "close": self.close_opened,
        }
        if kind == "ready":
            self.draw()
            for each, sent in self._sent.items():
                self._page.send({"kind": each, "view": view, **sent})
        elif kind == "visible":
            self._see(str(view), is_visible=message.get("visible") is True)
        elif kind == "filter":
            self._choose(message.get("by"), named)
        elif kind in ("open", "rerun"):
            self._try(lambda: self.open(named, rerun=kind == "rerun"))
        elif kind in calls:
            self._try(calls[kind])

    def _try(self, call: Callable[[], object]) -> None:
        self._page.send({"kind": "problem", "text": try_call(call)})
        self.draw()

    def _choose(self, by: object, name: str) -> None:
        """Filter the rows by a status or a class of errors; the same filter again, or none, shows the latest rows."""
        progress = self.batch.progress
        names = {"status": progress.counts, "error": dict(progress.errors)}.get(str(by), {})
        wanted = (str(by), name) if name in names else None
        self._filter = None if wanted == self._filter else wanted
        self.draw()

    def _see(self, view: str, *, is_visible: bool) -> None:
        self._visible[view] = is_visible
        if self._follower is not None:
            self._follower.paused = not any(self._visible.values())
            self._follower.draw_changes()

    # ---- the rest of the display -------------------------------------------------------------------------------------

    def close(self) -> None:
        """Free the panel, and close what is shown below it. The batch goes on. May be called twice."""
        from agentbench.notebook.runtime.widgets import close_all

        if self._follower is None:
            return
        self._follower.close()
        self._stand_in.close()
        self._below.close()
        close_all(self._below.box)
        self._below = self._page = self._follower = None

    def finish(self) -> None:
        """Draw the last state now, because the batch has ended; the panel stays."""
        self.draw()
        self._stand_in.update()

    def _bundle_without_widgets(self, error: WidgetsUnavailable) -> dict[str, Any]:
        bundle = batch_bundle(self.batch)
        return {**bundle, "text/plain": f"{bundle['text/plain']}\n{error}"}

    def __repr__(self) -> str:
        return f"BatchPanel({line(self.batch.name)})"

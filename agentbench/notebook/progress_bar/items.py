"""A progress bar over many items, such as those of an evaluation. At the end a line of text stays."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from agentbench._text.phrases import count_text, duration_text
from agentbench.notebook.progress_bar.displays import items_html
from agentbench.notebook.progress_bar.progress import is_compared
from agentbench.notebook.runtime.kernel import in_kernel, show_in_cell

_SHOW_AFTER_S = 0.5
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

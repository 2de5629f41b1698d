"""Panels on a plain page: scripts and style sheets of the library, cells that run in this process, no JupyterLab."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from tests.browser.cells import CELL_S, Cells
from tests.browser.notebook_page import Page

USE_THEME = """
dark => {
  document.body.dataset.jpThemeLight = String(!dark);
  document.getElementById("dark").media = dark ? "all" : "not all";
}
"""


@dataclass
class PlainPage(Page):
    """A page that shows cells.

    Attributes:
        cells: The cells; what they define is in `cells.names`.
        started: The cells that were started, in their order.
    """

    cells: Cells = field(default_factory=Cells)
    started: list[Future[int]] = field(default_factory=list)

    @property
    def panel(self) -> Any:
        """The cells with their outputs."""
        return self.page.locator("#notebook")

    def start(self, *sources: str) -> None:
        """Run more cells, which may wait for what happens on the page."""
        self.started += [self.cells.start(source) for source in sources]

    def run(self, source: str) -> Any:
        """Run one more cell to its end; its output."""
        self.start(source)
        return self.output(-1)

    def output(self, number: int) -> Any:
        """The output of a cell, once it has ended."""
        return self.page.locator(f"#cell-{self.started[number].result(CELL_S)}")

    def use_theme(self, *, dark: bool) -> None:
        """Change to the dark or the light theme."""
        self.page.evaluate(USE_THEME, dark)


@contextlib.contextmanager
def open_plain(context: Any, sources: Sequence[str], *, dark: bool, finished: bool, size: Any) -> Iterator[PlainPage]:
    """Open a page and run the cells, to their end or not."""
    with Cells().running() as cells, contextlib.closing(context.new_page()) as page:
        page.set_viewport_size(size)
        shown = PlainPage(page, cells.base, cells=cells, problems=cells.problems)
        page.goto(cells.base)
        shown.use_theme(dark=dark)
        shown.start(*sources)
        for cell in shown.started if finished else []:
            cell.result(CELL_S)
        yield shown

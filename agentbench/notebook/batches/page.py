"""The page's side of a batch: widgets without any text in their traits.

From the page of a panel: `ready`; `visible` (whether a person can see it); `filter` (by `status` or `error`; neither
for all); `open` and `rerun` (row), `close`; `cancel`, `resume`, `retry`, `answer`. To the page: `progress`, `rows`,
`view` (the opened row) and `problem`.
"""

from __future__ import annotations

from agentbench.notebook.batches.files import explore_script, explore_style, read_files
from agentbench.notebook.look.style import read_script
from agentbench.notebook.runtime.widgets import MessageWidget


class BatchPage(MessageWidget):
    """The widget of a batch, which sends and receives messages."""

    _esm = read_script("dom.js") + read_files("rows.js", "batch.js")
    _css = read_script("theme.css") + read_files("batch.css")


class SwitchPage(MessageWidget):
    """The check box of a group of equal questions. To the page: `switch` (count, on); from it: `ready`, `set` (on)."""

    _esm = read_script("dom.js") + read_files("switch.js")
    _css = read_files("switch.css")


class ExplorePage(MessageWidget):
    """The widget of a map.

    From the page: `ready`; `filter` (by `path`, `node` or `error`, and its place in the table); `open`, `rerun` and
    `close`, as of a panel. To the page: `map` (graph and tables, once), `rows`, `view` and `problem`.
    """

    _esm = explore_script()
    _css = explore_style()

"""The page's side of a list of runs: a widget without any text in its traits.

From the page: `ready`, `refresh`, `open` (id). To the page: `runs`, the rows; `view`, the opened run: the HTML of a
checkpoint, which the page puts into a frame without scripts, or the reason why it cannot be opened.
"""

from __future__ import annotations

from pathlib import Path

from agentbench.notebook.look.style import read_script
from agentbench.notebook.runtime.widgets import MessageWidget

_STATIC = Path(__file__).parent / "static"


class RunListPanel(MessageWidget):
    """The widget of a list of runs, which sends and receives messages."""

    _esm = read_script("dom.js", "display.js") + (_STATIC / "run_list.js").read_text(encoding="utf-8")
    _css = read_script("theme.css") + (_STATIC / "run_list.css").read_text(encoding="utf-8")

"""Write the scripts of the panels into a folder, each as a page gets it: one module of several files.

Run `python -m tests.tools.write_scripts FOLDER`; CI lints them there, and the tests in tests/scripts read them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from agentbench.notebook.chat_panel.page import ChatPanel
from agentbench.notebook.forms.page import FormPanel
from agentbench.notebook.graph_panel.live import GraphPanel
from agentbench.notebook.plots.panel import PlotPanel
from agentbench.notebook.run_list.page import RunListPanel
from agentbench.notebook.runtime.one_widget import _OneWidget
from agentbench.notebook.stepping.page import StepperPart

WIDGETS = (ChatPanel, FormPanel, GraphPanel, PlotPanel, RunListPanel, StepperPart, _OneWidget)


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for widget in WIDGETS:
        script = str(widget._esm)
        (folder / f"{widget.__name__.strip('_')}.mjs").write_text(script, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))

"""The notebook layer: graphs, panels, steppers, forms, frames and plots in cells.

Every name is imported at its first use, so that drawing a graph loads no pandas and a frame no widgets.
"""

# A new name is entered in both tables below; a test compares them.

import importlib

TYPE_CHECKING = False  # that of typing, whose import takes longer than all the rest
if TYPE_CHECKING:
    from agentbench.checkpoints.editing import Edit as Edit
    from agentbench.notebook.cards.conversation.views import Transcript as Transcript
    from agentbench.notebook.cards.conversation.views import transcript as transcript
    from agentbench.notebook.cells.executor_cell import Definition as Definition
    from agentbench.notebook.cells.executor_cell import define_executor as define_executor
    from agentbench.notebook.cells.workbench import Workbench as Workbench
    from agentbench.notebook.cells.workbench import older_code as older_code
    from agentbench.notebook.cells.workbench import workbench as workbench
    from agentbench.notebook.cells.workflow_cell import define_workflow as define_workflow
    from agentbench.notebook.commands.doctor import doctor as doctor
    from agentbench.notebook.commands.magics import load_ipython_extension as load_ipython_extension
    from agentbench.notebook.commands.magics import unload_ipython_extension as unload_ipython_extension
    from agentbench.notebook.forms.form import Form as Form
    from agentbench.notebook.forms.form import FormState as FormState
    from agentbench.notebook.forms.form import form as form
    from agentbench.notebook.forms.form import request_form as request_form
    from agentbench.notebook.forms.inbox import Inbox as Inbox
    from agentbench.notebook.forms.inbox import inbox as inbox
    from agentbench.notebook.frames.differences import diff_frame as diff_frame
    from agentbench.notebook.frames.frames import Frames as Frames
    from agentbench.notebook.frames.frames import checkpoints_frame as checkpoints_frame
    from agentbench.notebook.frames.frames import events_frame as events_frame
    from agentbench.notebook.frames.frames import lineage_frame as lineage_frame
    from agentbench.notebook.frames.frames import messages_frame as messages_frame
    from agentbench.notebook.frames.frames import requests_frame as requests_frame
    from agentbench.notebook.frames.frames import runs_frame as runs_frame
    from agentbench.notebook.frames.frames import state_frame as state_frame
    from agentbench.notebook.frames.frames import timeline_frame as timeline_frame
    from agentbench.notebook.frames.frames import usage_frame as usage_frame
    from agentbench.notebook.graph.view import GraphView as GraphView
    from agentbench.notebook.graph.view import draw as draw
    from agentbench.notebook.graph_panel.live import GraphPanel as GraphPanel
    from agentbench.notebook.graph_panel.panel import make_graph_panel as make_graph_panel
    from agentbench.notebook.look.prose import Prose as Prose
    from agentbench.notebook.look.prose import prose as prose
    from agentbench.notebook.plots.compare import ComparePlot as ComparePlot
    from agentbench.notebook.plots.compare import compare as compare
    from agentbench.notebook.plots.diff import DiffPlot as DiffPlot
    from agentbench.notebook.plots.diff import diff as diff
    from agentbench.notebook.plots.lineage import lineage as lineage
    from agentbench.notebook.plots.plot import Plot as Plot
    from agentbench.notebook.plots.timeline import timeline as timeline
    from agentbench.notebook.plots.usage import usage as usage
    from agentbench.notebook.progress_bar.progress import Progress as Progress
    from agentbench.notebook.progress_bar.progress import progress as progress
    from agentbench.notebook.runtime.prices import Price as Price
    from agentbench.notebook.runtime.settings import Settings as Settings
    from agentbench.notebook.runtime.settings import configure as configure
    from agentbench.notebook.runtime.waiting import nest_state as nest_state
    from agentbench.notebook.runtime.waiting import run_sync as run_sync
    from agentbench.notebook.runtime.waiting import submit as submit
    from agentbench.notebook.runtime.waiting import wait as wait
    from agentbench.notebook.stepping.model.messages import StepperStatus as StepperStatus
    from agentbench.notebook.stepping.start import stepper as stepper
    from agentbench.notebook.stepping.stepper import Stepper as Stepper
    from agentbench.workflows.draw.python_code import to_python as to_python
    from agentbench.workflows.run.break_places import Breakpoint as Breakpoint

_MODULE_OF = {
    "Breakpoint": "agentbench.workflows.run.break_places",
    "ComparePlot": "plots.compare",
    "Definition": "cells.executor_cell",
    "DiffPlot": "plots.diff",
    "Edit": "agentbench.checkpoints.editing",
    "Form": "forms.form",
    "FormState": "forms.form",
    "Frames": "frames.frames",
    "GraphPanel": "graph_panel.live",
    "GraphView": "graph.view",
    "Inbox": "forms.inbox",
    "Plot": "plots.plot",
    "Price": "runtime.prices",
    "Progress": "progress_bar.progress",
    "Prose": "look.prose",
    "Settings": "runtime.settings",
    "Stepper": "stepping.stepper",
    "StepperStatus": "stepping.model.messages",
    "Transcript": "cards.conversation.views",
    "Workbench": "cells.workbench",
    "checkpoints_frame": "frames.frames",
    "compare": "plots.compare",
    "configure": "runtime.settings",
    "define_executor": "cells.executor_cell",
    "define_workflow": "cells.workflow_cell",
    "diff": "plots.diff",
    "diff_frame": "frames.differences",
    "doctor": "commands.doctor",
    "draw": "graph.view",
    "events_frame": "frames.frames",
    "form": "forms.form",
    "inbox": "forms.inbox",
    "lineage": "plots.lineage",
    "lineage_frame": "frames.frames",
    "load_ipython_extension": "commands.magics",
    "make_graph_panel": "graph_panel.panel",
    "messages_frame": "frames.frames",
    "nest_state": "runtime.waiting",
    "older_code": "cells.workbench",
    "progress": "progress_bar.progress",
    "prose": "look.prose",
    "request_form": "forms.form",
    "requests_frame": "frames.frames",
    "run_sync": "runtime.waiting",
    "runs_frame": "frames.frames",
    "state_frame": "frames.frames",
    "stepper": "stepping.start",
    "submit": "runtime.waiting",
    "timeline": "plots.timeline",
    "timeline_frame": "frames.frames",
    "to_python": "agentbench.workflows.draw.python_code",
    "transcript": "cards.conversation.views",
    "unload_ipython_extension": "commands.magics",
    "usage": "plots.usage",
    "usage_frame": "frames.frames",
    "wait": "runtime.waiting",
    "workbench": "cells.workbench",
}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    home = _MODULE_OF[name]  # without the name of this package, or the whole name of a module below it
    module = importlib.import_module(home if home.startswith("agentbench.") else f"{__name__}.{home}")
    value: object = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)  # not the folders below, which the first import of each would add

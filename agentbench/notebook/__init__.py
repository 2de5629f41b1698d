"""The notebook layer: graphs, panels, steppers, forms, frames and plots in cells.

Every name is imported at its first use, so that drawing a graph loads no pandas and a frame no widgets. To add a name,
enter it below and run `python -m tests.tools.write_stub`, which writes `__init__.pyi` for editors and type checkers.
"""

import importlib

from agentbench._arguments import name_arguments

# Module -> the public names that it defines. A module of this package goes without the package's name.
_NAMES_OF = {
    "cards.conversation.views": ("Transcript", "transcript"),
    "cells.executor_cell": ("Definition", "define_executor"),
    "cells.workbench": ("Workbench", "older_code", "workbench"),
    "cells.workflow_cell": ("define_workflow",),
    "chat_panel.chat": ("Chat", "chat"),
    "commands.doctor": ("doctor",),
    "commands.magics": ("load_ipython_extension", "unload_ipython_extension"),
    "forms.form": ("Form", "FormState", "form", "request_form"),
    "forms.inbox": ("Inbox", "inbox"),
    "frames.differences": ("diff_frame",),
    "frames.frames": (
        *("Frames", "checkpoints_frame", "events_frame", "lineage_frame", "messages_frame", "requests_frame"),
        *("runs_frame", "state_frame", "timeline_frame", "usage_frame"),
    ),
    "graph.view": ("GraphView", "draw"),
    "graph_panel.live": ("GraphPanel",),
    "graph_panel.panel": ("make_graph_panel",),
    "look.prose": ("Prose", "prose"),
    "plots.compare": ("ComparePlot", "compare"),
    "plots.diff": ("DiffPlot", "diff"),
    "plots.lineage": ("lineage",),
    "plots.plot": ("Plot",),
    "plots.timeline": ("timeline",),
    "plots.usage": ("usage",),
    "progress_bar.progress": ("Progress", "progress"),
    "run_list.run_list": ("PastRun", "RunList", "runs"),
    "runtime.one_widget": ("as_anywidget",),
    "runtime.prices": ("Price",),
    "runtime.settings": ("Settings", "configure"),
    "runtime.waiting": ("nest_state", "run_sync", "submit", "wait"),
    "stepping.model.messages": ("StepperStatus",),
    "stepping.start": ("stepper",),
    "stepping.stepper": ("Stepper",),
    "agentbench.checkpoints.editing": ("Edit",),
    "agentbench.workflows.draw.python_code": ("to_python",),
    "agentbench.workflows.run.break_places": ("Breakpoint",),
}

_MODULE_OF = {
    name: module if module.startswith("agentbench.") else f"{__name__}.{module}"
    for module, names in _NAMES_OF.items()
    for name in names
}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    value: object = name_arguments(getattr(importlib.import_module(_MODULE_OF[name]), name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__

"""What a person sees: graphs, panels, steppers, forms, frames.

Every name is found when it is first touched, so that drawing a graph loads no pandas and a frame no widgets. To add a
name, enter it in both tables below; a test compares them.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentbench.notebook.forms import Form as Form
    from agentbench.notebook.forms import FormState as FormState
    from agentbench.notebook.forms import form as form
    from agentbench.notebook.forms import request_form as request_form
    from agentbench.notebook.graph_view import GraphView as GraphView
    from agentbench.notebook.graph_view import draw as draw
    from agentbench.notebook.html_panel import HtmlGraphPanel as HtmlGraphPanel
    from agentbench.notebook.live_panel import GraphPanel as GraphPanel
    from agentbench.notebook.panel import make_graph_panel as make_graph_panel
    from agentbench.notebook.settings import Settings as Settings
    from agentbench.notebook.settings import configure as configure
    from agentbench.notebook.settings import load_ipython_extension as load_ipython_extension
    from agentbench.notebook.settings import unload_ipython_extension as unload_ipython_extension

_MODULE_OF = {
    "Form": "forms",
    "FormState": "forms",
    "GraphPanel": "live_panel",
    "GraphView": "graph_view",
    "HtmlGraphPanel": "html_panel",
    "Settings": "settings",
    "configure": "settings",
    "draw": "graph_view",
    "form": "forms",
    "load_ipython_extension": "settings",
    "make_graph_panel": "panel",
    "request_form": "forms",
    "unload_ipython_extension": "settings",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    value = getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})

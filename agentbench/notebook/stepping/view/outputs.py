"""What the Output tab of a stepper shows: each output as the object displays itself, else as values."""

from __future__ import annotations

import base64
from typing import Any

from agentbench.notebook.history.log import outputs_of
from agentbench.notebook.stepping.model.model import StepperModel
from agentbench.notebook.text.escape import esc
from agentbench.notebook.text.phrases import count_text
from agentbench.notebook.text.value_tree import Entry

__all__ = ["Display", "outputs_in"]

#: A caption, a media type and its data: text, of a PNG in base 64.
Display = tuple[str, str, str]

_MOST_OUTPUTS = 20
_LONGEST = 2_000_000
_MEDIA_TYPES = ("image/svg+xml", "image/png", "text/html")


def outputs_in(model: StepperModel) -> tuple[str, list[Display], list[Entry]]:
    """Return a title, the outputs that have a display of their own, and the others as values; the newest first."""
    found = [(report.superstep, event) for report in model.reports for event in outputs_of(report)][::-1]
    displays: list[Display] = []
    entries: list[Entry] = []
    for superstep, event in found[:_MOST_OUTPUTS]:
        name = f"{esc(event.source_id, into='line', limit=60)}, superstep {superstep}"
        display = _display_of(event.data)
        if display is None:
            entries.append(Entry(name, event.data))
        else:
            displays.append((f"{name}: {esc(type(event.data).__name__, into='line', limit=60)}", *display))
    title = (
        count_text(len(found), "output") + (", newest first" if len(found) > 1 else "") if found else "No output yet"
    )
    return title, displays, entries


def _display_of(value: Any) -> tuple[str, str] | None:
    """The picture or the HTML of an object; `None` for one that has neither, or a very large one."""
    from IPython.core.formatters import DisplayFormatter
    from IPython.core.getipython import get_ipython

    shell: Any = get_ipython()
    formatter: Any = DisplayFormatter() if shell is None else shell.display_formatter
    bundle, _ = formatter.format(value, include=_MEDIA_TYPES)
    for media_type in _MEDIA_TYPES:
        data = bundle.get(media_type)
        if isinstance(data, bytes):
            data = base64.b64encode(data).decode()
        if isinstance(data, str) and len(data) <= _LONGEST:
            return media_type, data
    return None

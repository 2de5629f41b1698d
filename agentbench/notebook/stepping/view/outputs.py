"""The content of a stepper's Output tab: each output by its own display, otherwise as values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agentbench._text.escape import esc
from agentbench._text.phrases import count_text
from agentbench._text.value_tree import Entry
from agentbench.notebook.runtime.bundles import display_of
from agentbench.notebook.stepping.model.model import StepperModel

Display = tuple[int, str, str, str]
"""The number of values above it, a caption, a media type and its data as text (PNG in base 64)."""

_MOST_OUTPUTS = 20


def outputs_in(model: StepperModel) -> tuple[str, tuple[Display, ...], list[Entry]]:
    """Return a title, the outputs that have a display of their own, and the others as values; the newest first."""
    outputs = model.displayed_record.outputs
    newest = [
        (f"{esc(event.source_id, into='line', limit=60)}, superstep {superstep}", event.data)
        for superstep, event in outputs[: -_MOST_OUTPUTS - 1 : -1]
    ]
    title = (
        count_text(len(outputs), "output") + (", newest first" if len(outputs) > 1 else "")
        if outputs
        else "No output yet"
    )
    return title, *split_displays(newest)


def split_displays(named: Iterable[tuple[str, Any]]) -> tuple[tuple[Display, ...], list[Entry]]:
    """Split named values into displays, for those that have one, and entries."""
    displays: list[Display] = []
    entries: list[Entry] = []
    for name, value in named:
        display = display_of(value)
        if display is None:
            entries.append(Entry(name, value))
        else:
            caption = f"{name}: {esc(type(value).__name__, into='line', limit=60)}"
            displays.append((len(entries), caption, *display))
    return tuple(displays), entries

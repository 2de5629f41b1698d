"""Displays of progress: a widget in a notebook, a tqdm bar in a terminal, or a line every five seconds."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

from agentbench._text.phrases import count_text
from agentbench.notebook.look.html import Markup, element
from agentbench.notebook.look.style import read_static
from agentbench.notebook.progress_bar.state import ProgressState
from agentbench.notebook.runtime.kernel import show_in_cell
from agentbench.notebook.runtime.pacing import TRAIT_LOCK

_LINE_EVERY_S = 5.0
_TURN_S = 2.4  # time of the moving bar from end to end, if the total is unknown


def progress_html(state: ProgressState, name: str) -> Markup:
    """Return two bars: supersteps, and the executors of the current one. Without a total, the first bar only moves."""
    ended, called = state.share_here
    here = f"{ended:,} of {called:,} finished"
    spent = " · ".join(state.consumption())
    return element(
        "div",
        *_row("Run", "supersteps", (state.supersteps, state.total), state.count, spent, state.elapsed_s),
        *_row("Now", "executors", (ended, called), here, state.names_at_work),
        class_="abp",
        role="group",
        aria_label=f"Progress of {name}",
    )


def items_html(name: str, done: int, total: int, more: str) -> Markup:
    """Return one bar for the finished items of a total, with its own style."""
    style = element("style", Markup(read_static("theme.css") + read_static("progress.css")))
    row = _row(name, "items", (done, total), f"{done:,} of {count_text(total, 'item')}", more)
    return element("div", style, element("div", *row, class_="abp", role="group", aria_label=f"Progress of {name}"))


def _row(
    label: str, what: str, share: tuple[int, int | None], text: str, more: str, elapsed_s: float = 0.0
) -> list[Markup]:
    value, total = share
    if total is None:
        at = 72 * (1 - abs(1 - elapsed_s % (2 * _TURN_S) / _TURN_S))
        fill = element("div", class_="abp-fill abp-open", style=f"left:{at:.1f}%")
    else:
        value = min(value, total)
        fill = element("div", class_="abp-fill", style=f"width:{100 * value / max(total, 1):.1f}%")
    values = {} if total is None else {"aria_valuemin": 0, "aria_valuemax": total, "aria_valuenow": value}
    names = {"role": "progressbar", "aria_label": what, "aria_valuetext": text}
    bar = element("div", fill, class_="abp-rail", **names, **values)
    words = element("div", element("b", text), element("span", f" · {more}") if more else None, class_="abp-text")
    return [element("div", label, class_="abp-label"), bar, words]


class Widget:
    """Two bars and a Stop button; `stop` is called when it is pressed, and must return immediately."""

    def __init__(self, name: str, stop: Callable[[], object]) -> None:
        import ipywidgets

        self._name = name
        self._bars = ipywidgets.HTML()
        self._bars.add_class("abp-main")
        # Updated for screen readers every five seconds, not ten times a second.
        self._status = ipywidgets.HTML()
        self._next_status_s = 0.0
        self._button = ipywidgets.Button(description="Stop", tooltip=f"Stop {name}; it can be resumed later")
        self._button.add_class("abp-stop")
        self._button.on_click(lambda _: self._press(stop))
        style = ipywidgets.HTML(f"<style>{read_static('theme.css')}{read_static('progress.css')}</style>")
        for hidden in (self._status, style):
            hidden.add_class("abp-side")
        self._box = ipywidgets.HBox([self._bars, self._button, self._status, style])
        self._box.add_class("abp-box")
        self._display: Any = show_in_cell(self._box, display_id=True)

    def _press(self, stop: Callable[[], object]) -> None:
        with TRAIT_LOCK:
            self._button.disabled, self._button.description = True, "Stopping …"
        stop()

    def draw(self, state: ProgressState) -> None:
        """Display the progress."""
        with TRAIT_LOCK:
            self._bars.value = str(progress_html(state, self._name))
            if state.elapsed_s >= self._next_status_s:
                self._next_status_s = state.elapsed_s + _LINE_EVERY_S
                self._status.value = element("span", state.words(), role="status", class_="abp-quiet")

    def close(self, last_words: str) -> bool:
        """Replace the bars with one line of text, so that they are not stored."""
        from agentbench.notebook.runtime.widgets import close_all

        with TRAIT_LOCK:
            self._bars.value = self._status.value = ""
            close_all(self._box)
        if self._display is not None:
            self._display.update({"text/plain": last_words}, raw=True)
        return self._display is not None


class Bar:
    """A tqdm bar."""

    def __init__(self, name: str, total: int | None) -> None:
        self._bar = importlib.import_module("tqdm.auto").tqdm(total=total, desc=name, unit="superstep", leave=False)

    def draw(self, state: ProgressState) -> None:
        """Display the progress."""
        parts = filter(None, [*state.consumption(times=False), state.names_at_work])
        self._bar.set_postfix_str(", ".join(parts), refresh=False)
        self._bar.update(state.supersteps - self._bar.n)
        self._bar.refresh()

    def close(self, last_words: str) -> bool:
        """Remove the bar."""
        self._bar.close()
        return False


class Lines:
    """Prints a line every five seconds."""

    def __init__(self) -> None:
        self._next_at = _LINE_EVERY_S

    def draw(self, state: ProgressState) -> None:
        """Print the progress, if it is time."""
        if state.elapsed_s >= self._next_at:
            self._next_at = state.elapsed_s + _LINE_EVERY_S
            print(state.words(), file=sys.stderr, flush=True)  # noqa: T201 - a person watches

    def close(self, last_words: str) -> bool:
        """Do nothing, because the lines stay."""
        return False


Display = Widget | Bar | Lines
"""A display of progress; `close` returns whether the final text replaced it."""

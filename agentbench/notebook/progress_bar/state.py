"""Pure: the progress of a run, from its events, in numbers and in words."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agentbench._text.escape import esc
from agentbench._text.phrases import count_text, duration_text, state_text
from agentbench.notebook.history.run_history import Superstep
from agentbench.notebook.history.usage import tokens_of
from agentbench.notebook.look.html import Markup, element
from agentbench.notebook.look.style import read_static
from agentbench.notebook.runtime.kernel import show_in_cell
from agentbench.notebook.runtime.pacing import TRAIT_LOCK
from agentbench.workflows.events.events import WorkflowEvent, count_unanswered

_NAMES = 4


@dataclass
class ProgressState:
    """The progress of a run: finished and expected supersteps, tokens, seconds, open requests."""

    total: int | None = None
    supersteps: int = 0
    tokens: int = 0
    elapsed_s: float = 0.0
    unanswered: int = 0
    _here: Superstep = field(default_factory=lambda: Superstep(0))
    _calls_before: int = 0

    def see(self, event: WorkflowEvent[Any]) -> None:
        """Add one event."""
        if event.type == "superstep_started":
            # The start executors run before the first of these events; they count as a superstep.
            self.supersteps += bool(self._here.calls) and self.supersteps == 0
            self._calls_before = self.calls
            self._here = Superstep(event.iteration or 0)
        self._here.add(event)
        if event.type == "superstep_completed":
            self.supersteps += bool(self._here.calls)  # the last superstep may be empty
        self.tokens += tokens_of(event)
        self.unanswered = count_unanswered([event]) or self.unanswered

    @property
    def calls(self) -> int:
        """Number of called handlers."""
        return self._calls_before + self.share_here[1]

    @property
    def share_here(self) -> tuple[int, int]:
        """Numbers of finished and of called handlers in the current superstep."""
        calls = list(self._here.calls.values())
        called = sum(call.messages_in for call in calls)
        return called - sum(call.at_work for call in calls), called

    @property
    def names_at_work(self) -> str:
        """The executors whose handlers are running; at most the first four."""
        at_work = [call.executor for call in list(self._here.calls.values()) if call.at_work > 0]
        names = [esc(name, into="line", limit=32) for name in at_work[:_NAMES]]
        more = f" and {len(at_work) - _NAMES} more" if len(at_work) > _NAMES else ""
        return f"{', '.join(names)}{more}"

    @property
    def count(self) -> str:
        """The number of supersteps in words."""
        if self.total is None:
            return count_text(self.supersteps, "superstep")
        return f"{self.supersteps:,} of {count_text(self.total, 'superstep')}"

    def consumption(self, *, times: bool = True) -> list[str]:
        """Return the tokens, if any, and the time that the run has used."""
        tokens = [count_text(self.tokens, "token")] if self.tokens else []
        return [*tokens, duration_text(self.elapsed_s)] if times else tokens

    def words(self, *, times: bool = True) -> str:
        """Return the progress in one line."""
        at_work = [f"running: {self.names_at_work}"] if self.names_at_work else []
        return ", ".join([self.count, count_text(self.calls, "call"), *self.consumption(times=times), *at_work])

    def last_words(self, status: object, *, times: bool) -> str:
        """Return the outcome in one line."""
        end = "paused" if str(status).startswith("IN_PROGRESS") else state_text(status, self.unanswered)
        return ", ".join([end, self.count, count_text(self.calls, "call"), *self.consumption(times=times)])


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

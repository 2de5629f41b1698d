"""An interactive plot: a switch between its forms, and rows to select by mouse or keyboard."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anywidget
import traitlets

from agentbench._text.escape import esc
from agentbench.notebook.look.png import small_png
from agentbench.notebook.look.style import read_script
from agentbench.notebook.runtime.listeners import CallbackList, Unsubscribe
from agentbench.notebook.runtime.stand_in import StandIn


class PlotPanel(anywidget.AnyWidget):
    """An interactive plot, made by `Plot.panel`.

    Attributes:
        svg: The displayed form.
        choices: Names of the forms, if there are several.
        choice: Index of the displayed form; set by both sides.
        selected: Index of the selected row, -1 for none; set by both sides.
        label: The name for screen readers.
    """

    _esm = read_script("dom.js", "svg.js", "plot.js")

    svg = traitlets.Unicode("").tag(sync=True)
    choices = traitlets.List(traitlets.Unicode()).tag(sync=True)
    choice = traitlets.Int(0).tag(sync=True)
    selected = traitlets.Int(-1).tag(sync=True)
    label = traitlets.Unicode("").tag(sync=True)

    def __init__(self, title: str, forms: Mapping[str, Callable[[], str]], keys: Sequence[str] = ()) -> None:
        """Show the first form; `keys` are the keys of the selectable rows."""
        self._title = esc(title, into="line", limit=200)
        self._draw = list(forms.values())
        self._keys = list(keys)
        self._listeners = CallbackList()
        names = list(forms) if len(forms) > 1 else []
        super().__init__(svg=self._draw[0](), choices=names, label=self._title)
        self.observe(self._show_choice, "choice")
        self.observe(self._notify, "selected")

    @property
    def chosen(self) -> str | None:
        """The key of the selected row, such as the id of a checkpoint; `None` before one is selected."""
        return self._keys[self.selected] if 0 <= self.selected < len(self._keys) else None

    def on_select(self, fn: Callable[[str], object]) -> Unsubscribe:
        """Call a function with the key of each selected row; returns a function that removes it."""
        return self._listeners.add("select", fn)

    def close(self) -> None:
        """Close the panel and drop its content. May be called twice."""
        if self.comm is not None:
            with self.hold_sync():
                self.svg, self.label, self.choices = "", "", []
        self._listeners.clear()
        super().close()

    def __repr__(self) -> str:
        return f"PlotPanel({self._title!r})"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        pictures = {"image/svg+xml": self.svg, "image/png": small_png(self.svg)}
        still = StandIn(self, lambda: {kind: picture for kind, picture in pictures.items() if picture})
        return still.bundle(super()._repr_mimebundle_(**kwargs), kwargs.get("include"))

    def _show_choice(self, change: Any) -> None:
        if 0 <= change["new"] < len(self._draw):  # a page may send any value
            self.svg = self._draw[change["new"]]()

    def _notify(self, _change: Any) -> None:
        if self.chosen is not None:
            self._listeners.emit("select", self.chosen)

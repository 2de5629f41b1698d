"""The common form of all plots: a picture or a table, the same in words, and the data behind it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from agentbench._extras import require
from agentbench.notebook.look.html import is_wanted

if TYPE_CHECKING:
    import pandas as pd

    from agentbench.notebook.plots.panel import PlotPanel

__all__ = ["Plot", "TablePlot", "require_one_of"]


def require_one_of(name: str, value: str, kinds: Any) -> None:
    """Raise for an argument that is none of the values of a `Literal`.

    Raises:
        ValueError: It is another one.
    """
    expected = get_args(kinds)
    if value not in expected:
        msg = f"{name} is {value!r}; expected {', '.join(map(repr, expected[:-1]))} or {expected[-1]!r}."
        raise ValueError(msg)


class _View:
    """One of the two kinds of plots; `_main` names the part that a cell displays, after its suffix."""

    _main = "svg"
    _media_type = "image/svg+xml"

    def __init__(self, title: str, text: Callable[[], str], frame: "Callable[[], pd.DataFrame]") -> None:
        self.title = title
        self._text = text
        self._frame = frame

    @cached_property
    def text(self) -> str:
        """The content in words, at most 60 lines."""
        return self._text()

    @property
    def frame(self) -> "pd.DataFrame":
        """The data behind it, to start from with another plotting package; a new frame at each reading."""
        return self._frame()

    def save(self, path: str | Path) -> Path:
        """Write a file; the suffix says what: .svg (of tables .html), .txt or .csv.

        Raises:
            ValueError: For another suffix.
        """
        path = Path(path)
        suffixes = {f".{self._main}": self._main, ".txt": "text", ".csv": "csv"}
        kind = suffixes.get(path.suffix.lower())
        if kind is None:
            msg = f"{path.name!r} names no format. Expected one of the suffixes {', '.join(suffixes)}."
            raise ValueError(msg)
        content = self.frame.to_csv() if kind == "csv" else getattr(self, kind)
        path.write_text(content, encoding="utf-8", newline="\n")
        return path

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.title!r})"

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, Any]:
        parts = {self._media_type: self._main, "text/plain": "text"}
        return {kind: getattr(self, parts[kind]) for kind in parts if is_wanted(kind, include, exclude)}


class Plot(_View):
    """A picture with its words and its data; each part is built at its first use.

    Made by `timeline`, `lineage` and `usage`. A cell displays the picture.

    Args:
        title: One line about it.
        svg: Draws the picture.
        text: Returns the words.
        frame: Returns the data.
        forms: Other ways to draw it, by name; `svg` is the first of them.
        keys: The key of each row of the picture, where rows can be chosen.

    Raises:
        MissingExtraError: `frame` needs pandas, `panel` needs anywidget.

    Example:
        plot = timeline(run)
        plot.save("timeline.svg")
        plot.frame
    """

    def __init__(
        self,
        title: str,
        *,
        svg: Callable[[], str],
        text: Callable[[], str],
        frame: "Callable[[], pd.DataFrame]",
        forms: Mapping[str, Callable[[], str]] | None = None,
        keys: Sequence[str] = (),
    ) -> None:
        super().__init__(title, text, frame)
        self._draw = svg
        self._forms = forms
        self._keys = keys

    @cached_property
    def svg(self) -> str:
        """The picture, with its own colours for light and dark pages."""
        return self._draw()

    def panel(self) -> "PlotPanel":
        """Return the plot as a widget: its forms to switch between, its rows to choose by mouse or keyboard.

        Raises:
            MissingExtraError: anywidget is not installed.
        """
        require("anywidget", extra="notebook", purpose="show a plot that can be worked with")
        from agentbench.notebook.plots.panel import PlotPanel

        return PlotPanel(self.title, self._forms or {"": lambda: self.svg}, self._keys)


class TablePlot(_View):
    """A table with its words and its data, as `compare` and `diff` make them; its text can be selected.

    Args:
        title: One line about it.
        html: Returns the table.
        text: Returns the words.
        frame: Returns the data.

    Raises:
        MissingExtraError: `frame` needs pandas.

    Example:
        compare(before, after).save("compare.html")
    """

    _main = "html"
    _media_type = "text/html"

    def __init__(
        self, title: str, *, html: Callable[[], str], text: Callable[[], str], frame: "Callable[[], pd.DataFrame]"
    ) -> None:
        super().__init__(title, text, frame)
        self._table = html

    @cached_property
    def html(self) -> str:
        """The table as HTML, in the colours of the page around it."""
        return self._table()

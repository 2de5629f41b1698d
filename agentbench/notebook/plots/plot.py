"""The common form of all plots: a standalone picture, the same in words, and the data behind it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentbench._extras import require
from agentbench.notebook.look.html import is_wanted

if TYPE_CHECKING:
    import pandas as pd

    from agentbench.notebook.plots.panel import PlotPanel

__all__ = ["Plot"]

_SUFFIXES = {".svg": "svg", ".txt": "text", ".csv": "csv"}


class Plot:
    """A picture with its words and its data; each part is built at its first use.

    Made by `timeline`, `lineage`, `usage`, `compare` and `diff`. A cell displays the picture.

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
        self.title = title
        self._svg = svg
        self._text = text
        self._frame = frame
        self._forms = forms
        self._keys = keys

    @cached_property
    def svg(self) -> str:
        """The picture, with its own colours for light and dark pages."""
        return self._svg()

    @cached_property
    def text(self) -> str:
        """The picture in words, at most 60 lines."""
        return self._text()

    @property
    def frame(self) -> "pd.DataFrame":
        """The data behind it, to start from with another plotting package; a new frame at each reading."""
        return self._frame()

    def panel(self) -> "PlotPanel":
        """Return the plot as a widget: its forms to switch between, its rows to choose by mouse or keyboard.

        Raises:
            MissingExtraError: anywidget is not installed.
        """
        require("anywidget", extra="notebook", purpose="show a plot that can be worked with")
        from agentbench.notebook.plots.panel import PlotPanel

        return PlotPanel(self.title, self._forms or {"": lambda: self.svg}, self._keys)

    def save(self, path: str | Path) -> Path:
        """Write a file; the suffix says what: .svg, .txt or .csv.

        Raises:
            ValueError: For another suffix.
        """
        path = Path(path)
        kind = _SUFFIXES.get(path.suffix.lower())
        if kind is None:
            msg = f"{path.name!r} names no format. Expected one of the suffixes {', '.join(_SUFFIXES)}."
            raise ValueError(msg)
        content = self.frame.to_csv() if kind == "csv" else getattr(self, kind)
        path.write_text(content, encoding="utf-8", newline="\n")
        return path

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.title!r})"

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, Any]:
        parts = {"image/svg+xml": "svg", "text/plain": "text"}
        return {kind: getattr(self, parts[kind]) for kind in parts if is_wanted(kind, include, exclude)}

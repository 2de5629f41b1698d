"""The common form of all plots: a picture or a table, the same in words, and the data behind it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from agentbench._extras import require
from agentbench.notebook.look.png import small_png
from agentbench.notebook.runtime.bundles import is_wanted

if TYPE_CHECKING:
    import pandas as pd

    from agentbench.notebook.plots.panel import PlotPanel

__all__ = ["Plot", "aligned", "cut_lines", "require_one_of"]


def require_one_of(name: str, value: str, kinds: Any) -> None:
    """Raise for an argument that is none of the values of a `Literal`.

    Raises:
        ValueError: It is another one.
    """
    expected = get_args(kinds)
    if value not in expected:
        msg = f"{name} is {value!r}; expected {', '.join(map(repr, expected[:-1]))} or {expected[-1]!r}."
        raise ValueError(msg)


def cut_lines(lines: Sequence[str], most: int = 57) -> Sequence[str]:
    """Return lines of text without their middle, where there are very many."""
    half = most // 2
    return lines if len(lines) <= most else [*lines[:half], f"… {len(lines) - 2 * half:,} more …", *lines[-half:]]


def aligned(rows: Sequence[Sequence[str]], right: Collection[int]) -> list[str]:
    """Return rows of cells as lines of text in columns; the columns `right` end below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    pads = [str.rjust if at in right else str.ljust for at in range(len(widths))]
    return [
        "  ".join(pad(cell, width) for pad, cell, width in zip(pads, row, widths, strict=True)).rstrip() for row in rows
    ]


class Plot:
    """A picture or a table, with its words and its data; each part is built at its first use. A cell displays it.

    `timeline`, `lineage` and `usage` make pictures: `svg`. `compare` and `diff` make tables: `html`.

    Args:
        title: One line about it.
        text: Returns the words.
        frame: Returns the data.
        svg: Draws the picture.
        html: Returns the table, for a plot without a picture.
        forms: Other ways to draw the picture, by name; `svg` is the first of them.
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
        text: Callable[[], str],
        frame: "Callable[[], pd.DataFrame]",
        svg: Callable[[], str] | None = None,
        html: Callable[[], str] | None = None,
        forms: Mapping[str, Callable[[], str]] | None = None,
        keys: Sequence[str] = (),
    ) -> None:
        self.title = title
        self._text = text
        self._frame = frame
        self._make = {kind: make for kind, make in (("svg", svg), ("html", html)) if make is not None}
        self._forms = forms
        self._keys = keys

    @cached_property
    def svg(self) -> str:
        """The picture, with its own colours for light and dark pages; tables have none."""
        return self._made("svg")

    @cached_property
    def html(self) -> str:
        """The table, in the colours of the page around it, its text to be selected; pictures have none."""
        return self._made("html")

    def _made(self, kind: str) -> str:
        if kind not in self._make:
            msg = f"{type(self).__name__} has no {kind}; it has {', '.join(self._make)}, text and frame."
            raise AttributeError(msg)
        return self._make[kind]()

    @cached_property
    def text(self) -> str:
        """The content in words, at most 60 lines."""
        return self._text()

    @property
    def frame(self) -> "pd.DataFrame":
        """The data behind it, to start from with another plotting package; a new frame at each reading."""
        return self._frame()

    def panel(self) -> "PlotPanel":
        """Return the picture as a widget: its forms to switch between, its rows to choose by mouse or keyboard.

        Raises:
            MissingExtraError: anywidget is not installed.
        """
        require("anywidget", extra="notebook", purpose="show a plot that can be worked with")
        from agentbench.notebook.plots.panel import PlotPanel

        return PlotPanel(self.title, self._forms or {"": lambda: self.svg}, self._keys)

    def save(self, path: str | Path) -> Path:
        """Write a file; the suffix says what: .svg (of tables .html), .txt or .csv.

        Raises:
            ValueError: For another suffix.
        """
        path = Path(path)
        kinds = {**{f".{kind}": kind for kind in self._make}, ".txt": "text", ".csv": "csv"}
        kind = kinds.get(path.suffix.lower())
        if kind is None:
            msg = f"{path.name!r} names no format. Expected one of the suffixes {', '.join(kinds)}."
            raise ValueError(msg)
        content = self.frame.to_csv() if kind == "csv" else getattr(self, kind)
        path.write_text(content, encoding="utf-8", newline="\n")
        return path

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.title!r})"

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, Any]:
        kinds = {"image/svg+xml": "svg", "text/html": "html", "text/plain": "text"}
        bundle: dict[str, Any] = {
            media_type: getattr(self, kind)
            for media_type, kind in kinds.items()
            if kind in (*self._make, "text") and is_wanted(media_type, include, exclude)
        }
        if "svg" in self._make and is_wanted("image/png", include, exclude) and (png := small_png(self.svg)):
            bundle["image/png"] = png
        return bundle

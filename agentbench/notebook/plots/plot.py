"""The common base of all plots: a picture or a table, its text, and its data."""

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


def require_one_of(name: str, value: str, kinds: Any) -> None:
    """Check that an argument is one of the values of a `Literal`.

    Raises:
        ValueError: It is another value.
    """
    expected = get_args(kinds)
    if value not in expected:
        msg = f"{name} is {value!r}; expected {', '.join(map(repr, expected[:-1]))} or {expected[-1]!r}."
        raise ValueError(msg)


def cut_lines(lines: Sequence[str], most: int = 57) -> Sequence[str]:
    """Return lines of text, without their middle if there are too many."""
    half = most // 2
    return lines if len(lines) <= most else [*lines[:half], f"… {len(lines) - 2 * half:,} more …", *lines[-half:]]


def align_columns(rows: Sequence[Sequence[str]], right: Collection[int]) -> list[str]:
    """Return rows of cells as lines of text in columns; the columns `right` are right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    pads = [str.rjust if at in right else str.ljust for at in range(len(widths))]
    return [
        "  ".join(pad(cell, width) for pad, cell, width in zip(pads, row, widths, strict=True)).rstrip() for row in rows
    ]


class Plot:
    """A picture or a table, with its text and its data; each part is built at its first use. A cell displays it.

    `timeline`, `lineage` and `usage` make pictures: `svg`. `compare` and `diff` make tables: `html`.

    Args:
        title: One line of description.
        text: Returns the text.
        frame: Returns the data.
        svg: Draws the picture.
        html: Returns the table of a plot without a picture.
        forms: Forms of the picture by name; `svg` is the first one.
        keys: The key of each row, if rows can be selected.

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
        """The picture, with its own colours for light and dark pages; tables do not have one."""
        return self._made("svg")

    @cached_property
    def html(self) -> str:
        """The table, in the colours of the page; pictures do not have one."""
        return self._made("html")

    def _made(self, kind: str) -> str:
        if kind not in self._make:
            msg = f"{type(self).__name__} has no {kind}; it has {', '.join(self._make)}, text and frame."
            raise AttributeError(msg)
        return self._make[kind]()

    @cached_property
    def text(self) -> str:
        """The content as plain text, at most 60 lines."""
        return self._text()

    @property
    def frame(self) -> "pd.DataFrame":
        """The data, for use with other plotting packages; a new frame at each access."""
        return self._frame()

    def panel(self) -> "PlotPanel":
        """Return the picture as a widget, with a switch between its forms and rows to select by mouse or keyboard.

        Raises:
            MissingExtraError: anywidget is not installed.
        """
        require("anywidget", extra="notebook", purpose="show an interactive plot")
        from agentbench.notebook.plots.panel import PlotPanel

        return PlotPanel(self.title, self._forms or {"": lambda: self.svg}, self._keys)

    def save(self, path: str | Path) -> Path:
        """Write a file in the format of its suffix: .svg (.html for tables), .txt or .csv.

        Raises:
            ValueError: For another suffix.
        """
        path = Path(path)
        kinds = {**{f".{kind}": kind for kind in self._make}, ".txt": "text", ".csv": "csv"}
        kind = kinds.get(path.suffix.lower())
        if kind is None:
            msg = f"{path.name!r} has no known format. Expected one of the suffixes {', '.join(kinds)}."
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

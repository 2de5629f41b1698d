"""Small pages of facts and tables, as HTML and as plain text; all values in them are escaped."""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from agentbench._text.escape import esc
from agentbench.notebook.look.states import STATES
from agentbench.notebook.look.style import read_static

MAX_ROWS = 60

_CELL_LIMIT = 160
_TEXT_CELL_LIMIT = 72
_TITLE_LIMIT = 400

_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?(?:\+00:00|Z)", re.ASCII)
# The sign of a run with unanswered requests.
_EXCLAMATION = "M0-3.6V.8M0 3.4h0"
_UUID = re.compile(r"([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)


class Markup(str):
    """Finished HTML. Plain strings that are combined with it are escaped.

    Bundles contain a plain `str`, because hosts such as marimo write subclasses of `str` as objects.
    """

    __slots__ = ()


def element(tag: str, *children: object, **attributes: object) -> Markup:
    """Return one HTML element; children and values that are not `Markup` are escaped, `None` is omitted.

    A trailing underscore of an attribute is dropped (`class_`).
    """
    pairs = ((name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items() if value is not None)
    written = "".join(f' {name}="{_escape(value)}"' for name, value in pairs)
    inside = "".join(_escape(child) for child in children if child is not None)
    return Markup(f"<{tag}{written}>{inside}</{tag}>")


def image(svg: str, alt: str) -> Markup:
    """Return a picture as an HTML image, so that its ids and style do not affect the page."""
    encoded = base64.b64encode(svg.encode()).decode("ascii")
    return Markup(f'<img alt="{esc(alt)}" src="data:image/svg+xml;base64,{encoded}">')


def _escape(value: object) -> str:
    return value if isinstance(value, Markup) else esc(value)


def shorten(value: str) -> str | None:
    """Shorten a UTC time to the second or a UUID to its first part; `None` for other text."""
    if time := _TIME.fullmatch(value):
        return f"{time[1]} {time[2]} UTC"
    if uuid := _UUID.fullmatch(value):
        return f"{uuid[1]}…"
    return None


@dataclass(frozen=True)
class Table:
    """A titled table. Rows after the sixtieth are only counted. In HTML, times and UUIDs are shortened.

    Cells show their `str()`, cut to `limit` characters; the default limit is lower for text than for HTML.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[object]]
    limit: int | None = None

    @property
    def hidden(self) -> str:
        """The number of omitted rows, in words; empty if there are none."""
        return f"… {len(self.rows) - MAX_ROWS:,} more" if len(self.rows) > MAX_ROWS else ""

    def html(self) -> Markup:
        """The table as HTML."""
        head = element("tr", *(element("th", name, scope="col") for name in self.head))
        rows = [[esc_cell(cell, self.limit or _CELL_LIMIT) for cell in row] for row in self.rows[:MAX_ROWS]]
        body = [element("tr", *(element("td", cell) for cell in row)) for row in rows]
        if self.hidden:
            body.append(element("tr", element("td", self.hidden, colspan=len(self.head))))
        parts = element("caption", self.title), element("thead", head), element("tbody", *body)
        return element("table", *parts, class_="ab_table")

    def lines(self) -> list[str]:
        """The table as lines of text, columns aligned."""
        limit = self.limit or _TEXT_CELL_LIMIT
        cells = [[esc_line(cell, limit) for cell in row] for row in self.rows[:MAX_ROWS]]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        rows = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
        return [self.title.lower(), *(f"  {row}" for row in [*rows, self.hidden] if row)]


def esc_cell(cell: object, limit: int) -> Markup:
    """Return a cell of an HTML table, cut; a time or a UUID is shortened, with its full text as title."""
    if isinstance(cell, Markup):
        return cell
    if isinstance(cell, str) and (short := shorten(cell)) is not None:
        return element("span", short, title=cell)
    return Markup(esc(cell, limit=limit))


def esc_line(cell: object, limit: int = _TEXT_CELL_LIMIT) -> str:
    """Return a cell of a text table, cut to one line."""
    return esc(cell, into="line", limit=limit)


@dataclass(frozen=True)
class Page:
    """The content of one object's display: its name, its state, short facts for the first line, tables and a picture.

    `look` is the key in the table of states that defines colour and sign, or `unanswered`. Empty tables are omitted.
    """

    title: str
    state: str = ""
    look: str = "idle"
    facts: Sequence[str] = ()
    tables: Sequence[Table] = ()
    picture: Markup | None = field(default=None, repr=False)

    def html(self) -> str:
        """The page as HTML with its own style."""
        head = [element("b", esc_line(self.title, _TITLE_LIMIT))]
        if self.state:
            head.append(element("span", self._sign(), esc_line(self.state), class_=f"ab_state ab_is_{self.look}"))
        if self.facts:
            facts = (esc_cell(each, _TITLE_LIMIT) if shorten(each) else esc(esc_line(each)) for each in self.facts)
            head.append(element("span", Markup(" · ".join(facts))))
        page = element(
            "div",
            element("style", Markup(read_static("views.css"))),
            element("p", Markup(" ".join(head)), class_="ab_head"),  # spaces, because some pages remove styles
            self.picture,
            *(table.html() for table in self.tables if table.rows),
            class_="ab_view",
        )
        return str(page)

    def _sign(self) -> Markup | None:
        """The state's sign as a shape, because many fonts lack the character."""
        icon = _EXCLAMATION if self.look == "unanswered" else STATES[self.look].icon
        if not icon:
            return None
        path = element("path", d=icon, fill="none", stroke="currentColor", stroke_width="1.9", stroke_linecap="round")
        return element("svg", path, viewBox="-5 -5 10 10", width="12", height="12", aria_hidden="true")

    def text(self) -> str:
        """The page as text."""
        first = ", ".join(esc_line(fact) for fact in (self.state, *self.facts) if fact)
        lines = [esc_line(self.title, _TITLE_LIMIT) + (f": {first}" if first else "")]
        return "\n".join([*lines, *(line for table in self.tables if table.rows for line in table.lines())])

    def bundle(self) -> dict[str, str]:
        """The page by media type."""
        return {"text/plain": self.text(), "text/html": self.html()}

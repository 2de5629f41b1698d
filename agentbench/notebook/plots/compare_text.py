"""A comparison of two runs in words: the first divergence, and a line per superstep or per part that differs."""

from collections.abc import Sequence

from agentbench.notebook.history.compare import Row, RunComparison
from agentbench.notebook.text.escape import esc

__all__ = ["Line", "compare_text", "lines_of"]

_MOST_LINES = 60
_MOST_PARTS = 8
_CELL = 44
_SIGNS = {"equal": "=", "changed": "\N{NOT EQUAL TO}", "only_a": "\N{MINUS SIGN}", "only_b": "+"}


class Line(tuple[str, str, str, str, str]):
    """Superstep, sign, part, and what it did on both sides; equal supersteps in a row are one line."""

    __slots__ = ()

    @property
    def is_equal(self) -> bool:
        """Whether the sides do not differ here."""
        return self[1] == _SIGNS["equal"]


def lines_of(found: RunComparison, *, most: int = _MOST_LINES) -> list[Line]:
    """Return the table aligned by superstep.

    Args:
        found: The comparison.
        most: At most so many lines; the last one counts the omitted ones.
    """
    lines: list[Line] = []
    equal: list[int] = []
    for step, rows in found.steps.items():
        if step in found.different:
            _flush(found, equal, lines)
            lines += _differing(step, rows)
        else:
            equal.append(step)
    _flush(found, equal, lines)
    if len(lines) > most:
        hidden = len(lines) - most + 1
        lines = [*lines[: most - 1], Line(("", "", f"… {hidden:,} more lines", "", ""))]
    return lines


def _flush(found: RunComparison, equal: list[int], lines: list[Line]) -> None:
    """Add one line for the equal supersteps up to here."""
    if equal:
        numbers = f"{equal[0]}" if len(equal) == 1 else f"{equal[0]}\N{EN DASH}{equal[-1]}"
        names = dict.fromkeys(row.part for step in equal for row in found.steps[step])
        parts = ", ".join(esc(name, into="line", limit=40) for name in list(names)[:6])
        more = f" and {len(names) - 6} more" if len(names) > 6 else ""
        lines.append(Line((numbers, _SIGNS["equal"], parts + more, "", "")))
        equal.clear()


def _differing(step: int, rows: Sequence[Row]) -> list[Line]:
    """Return a line per differing part, then one line with the equal parts."""
    parts = [row for row in rows if row.op != "equal"]
    lines = [
        Line((str(step) if at == 0 else "", _SIGNS[row.op], _part(row), row.a, row.b))
        for at, row in enumerate(parts[:_MOST_PARTS])
    ]
    if len(parts) > _MOST_PARTS:
        lines.append(Line(("", _SIGNS["changed"], f"… {len(parts) - _MOST_PARTS} more", "", "")))
    same = [esc(row.part, into="line", limit=40) for row in rows if row.op == "equal"]
    if same:
        lines.append(Line(("", _SIGNS["equal"], ", ".join(same[:6]), "", "")))
    return lines


def _part(row: Row) -> str:
    return ("state." if row.kind == "state" else "") + esc(row.part, into="line", limit=80)


def compare_text(found: RunComparison) -> str:
    """Return title, first divergence and table, at most 60 lines."""
    lines = lines_of(found, most=_MOST_LINES - 3)
    names = (found.a.name, found.b.name) if any(not line.is_equal for line in lines) else ("", "")
    cells = [("superstep", "", "", *names), *lines]
    table = [[each if len(each) <= _CELL else f"{each[: _CELL - 1]}…" for each in row] for row in cells]
    widths = [max(len(row[at]) for row in table) for at in range(5)]
    # The text of equal parts may run into the last columns, which are empty there.
    widths[2] = max((len(row[2]) for row, line in zip(table[1:], lines, strict=True) if not line.is_equal), default=0)
    body = [
        "  ".join([row[0].rjust(widths[0]), row[1] or " ", *(row[at].ljust(widths[at]) for at in (2, 3, 4))]).rstrip()
        for row in table
    ]
    return "\n".join([found.title, found.verdict, *(body if lines else [])])

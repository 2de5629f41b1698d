"""The usage of models in words: a title, an aligned table, and the numbers of both."""

from collections.abc import Mapping, Sequence

from agentbench.notebook.history.usage import Usage
from agentbench.notebook.text.escape import esc
from agentbench.notebook.text.phrases import count_text, run_names

__all__ = ["cost_digits", "cost_text", "short_count", "token_text", "usage_text", "usage_title"]

_MOST_LINES = 60
_UNKNOWN = "\N{EN DASH}"


def usage_title(total: Usage, run_ids: Sequence[str]) -> str:
    """One line about all calls."""
    parts = [count_text(total.calls, "model call")]
    if total.tokens_in is not None or total.tokens_out is not None:
        parts.append(f"{token_text(total.tokens_in)} tokens in, {token_text(total.tokens_out)} out")
    if total.cost is not None:
        parts.append(f"cost {cost_text(total.cost, cost_digits(total.cost))}")
    return f"usage of {run_names(run_ids)}: {', '.join(parts)}"


def usage_text(groups: Mapping[int, Usage] | Mapping[str, Usage], total: Usage, title: str, head: str) -> str:
    """A line per group, columns aligned, and the sum; at most 60 lines.

    Args:
        groups: The usage by superstep, executor or model.
        total: The sum.
        title: The first line.
        head: Heading of the groups.
    """
    if not groups:
        return title
    digits = cost_digits(total.cost or max((each.cost or 0.0 for each in groups.values()), default=0.0))
    body = [_cells(esc(key, into="line", limit=40), used, digits) for key, used in groups.items()]
    room = _MOST_LINES - 3
    if len(body) > room:
        half = room // 2
        hidden = (f"… {len(body) - 2 * half:,} more", "", "", "", "", "")
        body = [*body[:half], hidden, *body[-half:]]
    rows = [(head, "calls", "in", "out", "cached", "cost"), *body, _cells("all", total, digits)]
    columns = range(len(rows[0]) if any(row[-1] not in ("", _UNKNOWN) for row in rows[1:]) else len(rows[0]) - 1)
    widths = [max(len(row[column]) for row in rows) for column in columns]
    numbers = all(isinstance(key, int) for key in groups)
    lines = [
        "  ".join(
            row[column].ljust(widths[column]) if column == 0 and not numbers else row[column].rjust(widths[column])
            for column in columns
        ).rstrip()
        for row in rows
    ]
    return "\n".join([title, *lines])


def _cells(name: str, used: Usage, digits: int) -> tuple[str, ...]:
    counts = (token_text(count) for count in (used.calls, used.tokens_in, used.tokens_out, used.tokens_cached))
    return (name, *counts, cost_text(used.cost, digits))


def token_text(count: int | None) -> str:
    """A count with its thousands apart; a dash where it is not known."""
    return _UNKNOWN if count is None else f"{count:,}"


def short_count(count: float) -> str:
    """A count for an axis: `800`, `1.5k`, `20k`, `3M`."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g}{unit}"
    return f"{count:.3g}"


def cost_digits(largest: float) -> int:
    """Digits behind the point that show a cost of this size, the same for a whole column."""
    for digits, size in ((2, 1.0), (4, 0.01)):
        if largest >= size:
            return digits
    return 6 if largest else 2


def cost_text(cost: float | None, digits: int) -> str:
    """A cost; a dash where it is not known."""
    return _UNKNOWN if cost is None else f"{cost:,.{digits}f}"

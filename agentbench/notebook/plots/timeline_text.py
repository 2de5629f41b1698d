"""A timeline in words, at most 60 lines of them."""

from collections.abc import Sequence

from agentbench.notebook.history.run_history import ExecutorCall as Bar
from agentbench.notebook.plots.timeline import duration_text
from agentbench.notebook.text.escape import esc
from agentbench.notebook.text.phrases import count_text, run_names

__all__ = ["timeline_text", "timeline_title"]

_MOST_LINES = 60
_NAMED = 12


def timeline_title(bars: Sequence[Bar], run_ids: Sequence[str], *, times: bool) -> str:
    """One line about all bars."""
    executors, steps = len({bar.executor for bar in bars}), len({bar.superstep for bar in bars})
    parts = [count_text(steps, "superstep"), count_text(executors, "executor")]
    known = [t for bar in bars for t in (bar.start_ns, bar.end_ns) if t is not None]
    if times and known:
        parts.append(duration_text(max(known) - min(known)))
    return f"timeline of {run_names(run_ids)}: {', '.join(parts)}"


def timeline_text(bars: Sequence[Bar], title: str, *, times: bool) -> str:
    """A line per superstep.

    Args:
        bars: By superstep and plan order.
        title: The first line.
        times: Whether durations are written.
    """
    steps: dict[int, list[Bar]] = {}
    for bar in bars:
        steps.setdefault(bar.superstep, []).append(bar)
    lines = [f"superstep {step}: {_listed_words(those, times=times)}" for step, those in steps.items()]
    if len(lines) > _MOST_LINES - 1:
        head, tail = (_MOST_LINES - 2) // 2, (_MOST_LINES - 2) - (_MOST_LINES - 2) // 2
        lines = [*lines[:head], f"… {len(lines) - head - tail} more supersteps …", *lines[-tail:]]
    return "\n".join([esc(title, into="line", limit=200), *lines])


def _listed_words(bars: Sequence[Bar], *, times: bool) -> str:
    listed = ", ".join(_bar_words(bar, times=times) for bar in bars[:_NAMED])
    return listed + (f", and {len(bars) - _NAMED} more" if len(bars) > _NAMED else "")


def _bar_words(bar: Bar, *, times: bool) -> str:
    notes = [] if bar.status == "completed" else [bar.status]
    if bar.messages_in > 1:
        notes.append(f"x{bar.messages_in}")
    if bar.requests and bar.status != "waiting":
        notes.append(f"asked {len(bar.requests)}")
    if times and bar.duration_ns is not None:
        notes.append(duration_text(bar.duration_ns))
    if times and bar.wait_ns is not None:
        notes.append(f"waited {duration_text(bar.wait_ns)} for a person")
    name = esc(bar.executor, into="line", limit=60)
    return f"{name} ({', '.join(notes)})" if notes else name

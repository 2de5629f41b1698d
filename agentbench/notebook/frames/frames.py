"""Runs and checkpoint chains as pandas data frames. pandas is loaded when the first frame is built."""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agentbench._text.phrases import count_text
from agentbench.notebook.frames.checkpoints import checkpoints_frame, lineage_frame, messages_frame, state_frame
from agentbench.notebook.frames.differences import Side, comparison_frame, diff_frame
from agentbench.notebook.frames.runs import events_frame, requests_frame, runs_frame, timeline_frame, usage_frame
from agentbench.notebook.history.compare import compare_sides, read_sides
from agentbench.notebook.history.sources import Chosen, read_checkpoints
from agentbench.notebook.look.html import Page, Table
from agentbench.notebook.runtime.bundles import is_wanted

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Frames",
    "checkpoints_frame",
    "events_frame",
    "lineage_frame",
    "messages_frame",
    "requests_frame",
    "runs_frame",
    "state_frame",
    "timeline_frame",
    "usage_frame",
]


def _of_source(build: "Callable[..., pd.DataFrame]") -> "Callable[..., pd.DataFrame]":
    """Return a method that builds a frame of the source and accepts the other arguments of the function."""

    @functools.wraps(build)
    def method(frames: "Frames", **options: Any) -> "pd.DataFrame":
        return build(frames.source, **options)

    return method


class Frames:
    """All frames of one source; each call builds a new one. A cell displays the list of frames.

    Each method takes the arguments of the function of the same name: `timeline(since=3)` is `timeline_frame(source,
    since=3)`. Frames omit columns that are empty in all rows, and show the first 8 characters of long ids; ids in an
    index are whole, for look-ups. Code that uses a column that may be empty should pass `full=True`: that frame has all
    columns and whole ids.

    Args:
        source: A storage, a run, a result, or a list of those. A run that saves checkpoints supports all frames.

    Raises:
        TypeError: By each method, if no frame can be made from the source.
        ValueError: By each method, if `limit` is negative or `since` is not a valid time.

    Example:
        frames = Frames(run)
        frames.timeline()
        frames.state(wide=True)
    """

    def __init__(self, source: Any) -> None:
        self.source = source

    checkpoints = _of_source(checkpoints_frame)
    messages = _of_source(messages_frame)
    state = _of_source(state_frame)
    events = _of_source(events_frame)
    timeline = _of_source(timeline_frame)
    usage = _of_source(usage_frame)
    requests = _of_source(requests_frame)
    runs = _of_source(runs_frame)
    lineage = _of_source(lineage_frame)

    def diff(
        self, a: Side | None = None, b: Side | None = None, *, limit: int | None = None, full: bool = False
    ) -> "pd.DataFrame":
        """Tabulate the differences between two checkpoints, by default the last two of the source; see `diff_frame`.

        Raises:
            ValueError: The source has fewer than two checkpoints, and `a` or `b` is missing.
        """
        if a is None or b is None:
            last = read_checkpoints(self.source, Chosen(limit=2), content_wanted=True).rows[-2:]
            if len(last) < 2:
                msg = f"The source has {len(last)} checkpoints; a comparison needs two. Pass them: diff(a, b)."
                raise ValueError(msg)
            a, b = last
        return diff_frame(a, b, source=self.source, limit=limit, full=full)

    def compare(self, other: Any) -> "pd.DataFrame":
        """Compare this source with another one, superstep by superstep; see `compare`."""
        return comparison_frame(compare_sides(*read_sides(self.source, other, None)))

    def __repr__(self) -> str:
        return f"Frames({type(self.source).__name__})"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        handle = getattr(self.source, "handle", self.source)
        facts = []  # only facts that are known without reading
        for name, noun in (("events", "event"), ("checkpoints", "checkpoint")):
            known = getattr(handle, name, None)
            if isinstance(known, (list, tuple)):
                facts.append(count_text(len(known), noun))
        table = Table("Tables", ("frame", "one row per", "read from"), _TABLES)
        parts = Page(f"Frames of {type(self.source).__name__}", facts=facts, tables=[table]).bundle()
        return {kind: part for kind, part in parts.items() if is_wanted(kind, include, exclude)}


_TABLES = (
    ("checkpoints()", "checkpoint", "checkpoints"),
    ("messages()", "message queued in a checkpoint", "checkpoints"),
    ("state()", "changed key; wide=True: checkpoint", "checkpoints or events"),
    ("events()", "event", "events"),
    ("timeline()", "executor and superstep", "events"),
    ("usage()", "model call", "events"),
    ("requests()", "request to a person", "checkpoints or events"),
    ("runs()", "run", "checkpoints or events"),
    ("lineage()", "checkpoint and its parent", "checkpoints"),
    ("diff(a, b)", "difference between two checkpoints", "checkpoints"),
    ("compare(other)", "executor or key, compared with another run", "checkpoints or events"),
)
"""Each frame, the meaning of its rows, and the source of its data."""

"""Pictures of runs: plain SVG that stands alone, with the data behind it. Nothing here needs a plotting package."""

from collections.abc import Callable, Collection
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from agentbench.notebook import settings
from agentbench.notebook.checkpoint_frames import forks, lineage_frame
from agentbench.notebook.event_frames import run_bars, timeline_frame
from agentbench.notebook.frame_sources import Chosen, read_infos, read_runs
from agentbench.notebook.lineage_plot import lineage_rows, lineage_svg, lineage_text, with_origins
from agentbench.notebook.timeline_layout import By
from agentbench.notebook.timeline_svg import timeline_svg
from agentbench.notebook.timeline_text import timeline_text, timeline_title

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Plot", "lineage", "timeline"]

_SUFFIXES = {".svg": "svg", ".txt": "text", ".csv": "csv"}


class Plot:
    """A picture with its words and its data. Made by `timeline` and `lineage`; each part is built when it is asked for.

    Args:
        title: One line about it.
        svg: Draws it.
        text: Says it.
        frame: Tabulates it.
    """

    def __init__(
        self, title: str, *, svg: Callable[[], str], text: Callable[[], str], frame: "Callable[[], pd.DataFrame]"
    ) -> None:
        self.title = title
        self._svg = svg
        self._text = text
        self._frame = frame

    @cached_property
    def svg(self) -> str:
        """The picture, with its own colours for light and dark pages."""
        return self._svg()

    @cached_property
    def text(self) -> str:
        """The same in words, at most 60 lines."""
        return self._text()

    @property
    def frame(self) -> "pd.DataFrame":
        """The data behind it, to start from with another plotting package; a new frame at each reading."""
        return self._frame()

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
        return f"Plot({self.title!r})"

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, Any]:
        parts = {"image/svg+xml": "svg", "text/plain": "text"}
        wanted = [kind for kind in parts if (not include or kind in include) and kind not in (exclude or ())]
        return {kind: getattr(self, parts[kind]) for kind in wanted}


def timeline(source: Any, *, by: By = "time", run_id: str | None = None, width: float = 640) -> Plot:
    """Draw what each executor of a run did, and when: a lane per executor, a band per superstep.

    Failures are hatched, questions to people marked with a pause sign. Pauses much longer than the work are cut out of
    the axis. Beyond 2,000 bars supersteps are folded into columns.

    Args:
        source: A run, a result, or a list of events.
        by: `"time"`: as long as things took; `"step"`: every superstep equally wide. Runs that were not observed keep
            no times and are drawn in equal steps.
        run_id: Only this one of several runs.
        width: Of the picture, in points; text stays readable at 600 pixels.

    Raises:
        ValueError: If `by` is neither.
    """
    if by not in get_args(By):
        msg = f"by is {by!r}; expected 'time' or 'step'."
        raise ValueError(msg)
    runs = read_runs(source, Chosen(run_id=run_id), events_wanted=True)
    bars = [bar for run in runs for bar in run_bars(run)]
    times = not settings.current().deterministic
    title = timeline_title(bars, [run.run_id for run in runs if run.run_id is not None], times=times)

    def words() -> str:
        return timeline_text(bars, title, times=times)

    return Plot(
        title,
        svg=lambda: timeline_svg(bars, title=title, description=words(), by=by, width=width, times=times),
        text=words,
        frame=lambda: timeline_frame(source, run_id=run_id),
    )


def lineage(source: Any, *, current: Any = None, workflow_name: str | None = None, width: float = 640) -> Plot:
    """Draw which checkpoint followed which: time flows down, forks are branches to the right.

    Of a run that went on from a checkpoint of another one, that checkpoint is shown too.

    Args:
        source: A storage, a run, a result, or a list of those.
        current: The checkpoint to ring: its id or info.
        workflow_name: Only this chain.
        width: Of the picture, in points; text stays readable at 600 pixels.
    """
    read = read_infos(source, Chosen(workflow_name))
    ringed = getattr(current, "checkpoint_id", current)
    infos = with_origins(read.rows, read.by_id)
    rows = lineage_rows(infos, current=ringed, branching=forks(list(read.by_id.values())))
    branches = sum(row.is_fork for row in rows)
    count = len(infos)
    title = f"{count} checkpoint{'' if count == 1 else 's'}, {branches} fork{'' if branches == 1 else 's'}"
    return Plot(
        title,
        svg=lambda: lineage_svg(rows, title=title, width=width),
        text=lambda: lineage_text(rows, title=title),
        frame=lambda: lineage_frame(source, workflow_name=workflow_name),
    )

"""What differs between two checkpoints, with the changed words marked."""

from collections.abc import Collection, Iterator
from typing import Any

from agentbench.checkpoints.diff import CheckpointDiff
from agentbench.checkpoints.difference.changes import CheckpointChange
from agentbench.notebook.frames.differences import Side, diff_of, frame_of
from agentbench.notebook.history.changes.lines import counts, diff_bundle, diff_text
from agentbench.notebook.history.sources import Chosen
from agentbench.notebook.look.html import MAX_ROWS, is_wanted
from agentbench.notebook.plots.diff_svg import diff_svg
from agentbench.notebook.plots.plot import Plot
from agentbench.notebook.text.escape import esc

__all__ = ["DiffPlot", "diff"]


class DiffPlot(Plot):
    """The differences of two checkpoints, as `diff` returns them. Iterates over its changes; false if there are none.

    A notebook displays a table whose text can be selected; `svg` is the same as a picture, `frame` as a data frame.

    Attributes:
        found: The `CheckpointDiff` itself.

    Example:
        found = diff("cp-0001", "cp-0002", source=storage)
        [change.path for change in found]
    """

    def __init__(self, found: CheckpointDiff, width: float) -> None:
        self.found = found
        sides = " and ".join(esc(side.checkpoint_id, into="line", limit=40) for side in (found.before, found.after))
        title = f"{sides}: {counts(found)}"
        super().__init__(
            title,
            svg=lambda: diff_svg(found, title=sides, description=self.text, width=width),
            text=lambda: diff_text(found, limit=MAX_ROWS),
            frame=lambda: frame_of(found, Chosen()),
        )

    @property
    def changes(self) -> tuple[CheckpointChange, ...]:
        """The changes, in the order of the parts of a checkpoint."""
        return self.found.changes

    def __iter__(self) -> Iterator[CheckpointChange]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def __getitem__(self, place: int) -> CheckpointChange:
        return self.found[place]

    def __str__(self) -> str:
        return str(self.found)

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, Any]:
        parts = diff_bundle(self.found)
        return {kind: part for kind, part in parts.items() if is_wanted(kind, include, exclude)}


def diff(a: Side, b: Side, *, source: Any = None, width: float = 760) -> DiffPlot:
    """Compare two checkpoints; a cell displays the result as a table with the changed words marked.

    Args:
        a: The checkpoint before, its info or its id.
        b: The checkpoint after, its info or its id.
        source: A storage, or a run or stepper that saves checkpoints; needed for infos and ids.
        width: Width of the picture, in points.

    Raises:
        TypeError: A side is an info or an id, but `source` stores no checkpoints.
        WorkflowCheckpointException: An id is unknown.

    Example:
        before, after = run.checkpoints[-2:]
        diff(before, after, source=run)
    """
    return DiffPlot(diff_of(a, b, source), width)

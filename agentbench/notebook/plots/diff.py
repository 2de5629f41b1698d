"""The differences between two checkpoints, with the changed words marked."""

from collections.abc import Iterator
from typing import Any

from agentbench._text.changes import counts
from agentbench._text.escape import esc
from agentbench.checkpoints.diff import CheckpointDiff
from agentbench.checkpoints.difference.changes import CheckpointChange
from agentbench.notebook.frames.differences import Side, diff_of, frame_of
from agentbench.notebook.history.changes import diff_bundle
from agentbench.notebook.history.sources import Chosen
from agentbench.notebook.plots.plot import Plot


class DiffPlot(Plot):
    """The differences between two checkpoints, made by `diff`. Iterates over its changes; false if there are none.

    Attributes:
        found: The `CheckpointDiff` itself.

    Example:
        found = diff("cp-0001", "cp-0002", source=storage)
        [change.path for change in found]
    """

    def __init__(self, found: CheckpointDiff) -> None:
        self.found = found
        sides = " and ".join(esc(side.checkpoint_id, into="line", limit=40) for side in (found.before, found.after))
        super().__init__(
            f"{sides}: {counts(found)}",
            html=lambda: diff_bundle(found)["text/html"],
            text=lambda: diff_bundle(found)["text/plain"],
            frame=lambda: frame_of(found, Chosen(), full=True),
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


def diff(a: Side, b: Side, *, source: Any = None) -> DiffPlot:
    """Compare two checkpoints; a cell displays the result as a table with the changed words marked.

    Args:
        a: The earlier checkpoint, its info or its id.
        b: The later checkpoint, its info or its id.
        source: A storage, or a run or stepper that saves checkpoints; needed for infos and ids.

    Raises:
        TypeError: A side is an info or an id, but `source` does not store checkpoints.
        WorkflowCheckpointException: An id is unknown.

    Example:
        before, after = run.checkpoints[-2:]
        diff(before, after, source=run)
    """
    return DiffPlot(diff_of(a, b, source))

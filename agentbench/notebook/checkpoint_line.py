"""Pure: the checkpoints that lead to now, oldest first, and which one of them is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from agentbench.checkpoints.info import CheckpointInfo
from agentbench.notebook.activity import ElementStates

__all__ = ["CheckpointLine", "Past"]


@dataclass(slots=True)
class Past:
    """A checkpoint on the line: its info, the states of the graph when it was saved, and its label.

    Attributes:
        info: What is known of it without loading it.
        states: States of the elements of the graph.
        label: What it is called.
        stop: (label, checkpoint id), for the line of checkpoints on the page.
    """

    info: CheckpointInfo
    states: ElementStates
    label: str = field(init=False)
    stop: tuple[str, str] = field(init=False)

    def __post_init__(self) -> None:
        """Name it once: the line of checkpoints is read at each drawing."""
        said = {"answer": ", answered", "fork": ", forked", "update": ", edited"}.get(self.info.source, "")
        self.label = f"superstep {self.info.iteration}{said}"
        self.stop = (self.label, self.info.checkpoint_id)


class CheckpointLine:
    """The line of one stepper; forks cut it and go on, so that it always leads to now.

    Attributes:
        past: Its checkpoints, oldest first.
        viewing: Place of the one that is looked at, `None` for the present.
    """

    def __init__(self) -> None:
        self.past: list[Past] = []
        self.viewing: int | None = None
        self._kept = 0  # checkpoints of earlier runs that the present one descends from

    def begin(self, infos: Sequence[CheckpointInfo]) -> None:
        """A run goes on from the last of these."""
        self.past = [Past(info, dict.fromkeys(info.writers, "done")) for info in infos]
        self._kept = len(self.past)

    def branch(self, index: int, copy: CheckpointInfo | None) -> None:
        """A new run goes on from the checkpoint at a place, or rather from the (edited) copy of it."""
        origin = self.past[index]
        self.past = self.past[: index + 1]
        if copy is not None:
            self.past.append(Past(copy, origin.states))
        self._kept = len(self.past)
        self.look_at(None)

    def learn(self, saved: Sequence[CheckpointInfo], states: ElementStates) -> None:
        """The present run has saved these so far; new ones get this picture."""
        # One that was put back to where it began has that among its own.
        begun = bool(saved and self._kept and saved[0] == self.past[self._kept - 1].info)
        first = self._kept - begun  # place of what it saved first
        known = len(self.past) - first
        # A superstep that takes up an answer saves twice: first what stood before it.
        if len(self.past) > self._kept and self.past[-1].info not in saved[known - 1 : known]:
            del self.past[self._kept :]  # it was put back to an earlier checkpoint
        self.past += [Past(info, states) for info in saved[len(self.past) - first :]]

    def picture(self, states: ElementStates) -> None:
        """This is the picture of the newest checkpoint of the present run."""
        if len(self.past) > self._kept:
            self.past[-1].states = states

    @property
    def displayed(self) -> int | None:
        """Index of the checkpoint that is displayed, `None` before the first."""
        if self.viewing is not None:
            return self.viewing
        return len(self.past) - 1 if self.past else None

    @property
    def displayed_id(self) -> str | None:
        """Id of the checkpoint that is displayed, `None` before the first."""
        return None if self.displayed is None else self.past[self.displayed].info.checkpoint_id

    def look_at(self, index: int | None) -> None:
        """Show a checkpoint; the last one is the present."""
        self.viewing = None if index is None or index >= len(self.past) - 1 else index

    def index_of(self, checkpoint_id: str) -> int:
        """Place of a checkpoint.

        Raises:
            LookupError: If it is not on the line.
        """
        for index, past in enumerate(self.past):
            if past.info.checkpoint_id == checkpoint_id:
                return index
        known = ", ".join(past.info.checkpoint_id for past in self.past) or "none yet"
        msg = f"Checkpoint {checkpoint_id!r} is not on the line of this run. Its checkpoints are: {known}."
        raise LookupError(msg)

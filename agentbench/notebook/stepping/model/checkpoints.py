"""Pure: the checkpoints that lead to the current state of a run, oldest first, and which one is displayed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from agentbench.checkpoints.info import CheckpointInfo
from agentbench.notebook.history.activity import ElementStates, course_of


@dataclass(slots=True)
class Past:
    """A checkpoint that led to the current state, and the states of all graph elements when it was saved."""

    info: CheckpointInfo
    states: ElementStates
    label: str = field(init=False)
    """Its superstep and origin."""
    stop: tuple[str, str] = field(init=False)
    """Label and id of the checkpoint, for the page."""

    def __post_init__(self) -> None:
        """Set the label once, because the page reads all labels at each update."""
        origin = {"answer": ", answered", "fork": ", forked", "update": ", edited"}.get(self.info.source, "")
        self.label = f"superstep {self.info.iteration}{origin}"
        self.stop = (self.label, self.info.checkpoint_id)


class StepperCheckpoints:
    """The checkpoints that lead to a stepper's current state; a fork drops those after its origin."""

    def __init__(self) -> None:
        self.past: list[Past] = []  # oldest first
        self.viewing: int | None = None  # index of the earlier checkpoint that is displayed
        self._inherited = 0  # checkpoints of earlier runs that the current run descends from

    def begin(self, infos: Sequence[CheckpointInfo]) -> None:
        """Start with the checkpoints of a run that resumes from the last one."""
        self.past = []
        for info in infos:
            self._add(info, dict.fromkeys(info.writers, "done"))
        self._inherited = len(self.past)

    def branch(self, origin: CheckpointInfo, copy: CheckpointInfo | None) -> None:
        """Drop the checkpoints after `origin`, for a run that starts from it or from its (edited) copy."""
        del self.past[self.index_of(origin.checkpoint_id) + 1 :]
        if copy is not None:
            self.past.append(Past(copy, self.past[-1].states))
        self._inherited = len(self.past)
        self.look_at(None)

    def add_missing(self, saved: Sequence[CheckpointInfo], before: ElementStates, now: ElementStates) -> None:
        """Add the checkpoints that are missing here; `saved` holds all checkpoints of the current run.

        The newest one gets the graph states `now`. A superstep that processes an answer saves twice; its first
        checkpoint gets the states `before` it.
        """
        # A run that was restored to its start also lists that checkpoint as its own.
        begun = bool(saved and self._inherited and saved[0] == self.past[self._inherited - 1].info)
        first = self._inherited - begun  # index of the first one that it saved
        n_known = len(self.past) - first
        if len(self.past) > self._inherited and self.past[-1].info not in saved[n_known - 1 : n_known]:
            del self.past[self._inherited :]  # the run was restored to an earlier checkpoint
        for info in saved[len(self.past) - first :]:
            self._add(info, now if info is saved[-1] else before)

    def _add(self, info: CheckpointInfo, states: ElementStates) -> None:
        self.past.append(Past(info, course_of((past.states for past in self.past[-1:]), states)))

    @property
    def viewed(self) -> CheckpointInfo | None:
        """The earlier checkpoint that is displayed, `None` for the current state."""
        return None if self.viewing is None else self.past[self.viewing].info

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

    @property
    def place(self) -> str:
        """The position of the displayed checkpoint, such as `3 of 7`."""
        return f"{(self.displayed or 0) + 1} of {len(self.past)}"

    @property
    def compared_ids(self) -> list[str]:
        """Ids of the previous and the displayed checkpoint; empty if there are fewer than two."""
        at = self.displayed
        return [past.info.checkpoint_id for past in self.past[at - 1 : at + 1]] if at else []

    def look_at(self, index: int | None) -> None:
        """Display a checkpoint; the last index displays the current state."""
        self.viewing = None if index is None or index >= len(self.past) - 1 else index

    def index_of(self, checkpoint_id: str) -> int:
        """Return the index of a checkpoint.

        Raises:
            LookupError: The checkpoint does not lead to the current state.
        """
        for index, past in enumerate(self.past):
            if past.info.checkpoint_id == checkpoint_id:
                return index
        ids = ", ".join(past.info.checkpoint_id for past in self.past) or "none yet"
        msg = f"Checkpoint {checkpoint_id!r} does not lead to the current state. The checkpoints that do: {ids}."
        raise LookupError(msg)

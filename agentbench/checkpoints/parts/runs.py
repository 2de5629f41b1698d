"""A list in its stored form, with the entries from which it was written or as which it was read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

RUN: Final = 16
_ID_LENGTH: Final = 28

Block = tuple[int, int, str]
"""A stored part of a list: its height (0 for a run, 1 for a list of `RUN` runs, ...), its first run, and its id."""


def split_ids(ids: str) -> list[str]:
    """Return the ids in a text without separators."""
    return [ids[at : at + _ID_LENGTH] for at in range(0, len(ids), _ID_LENGTH)]


def blocks_of(levels: Sequence[str]) -> Iterator[Block]:
    """Yield the blocks that a spine lists, in the order of the entries; the highest ones come first."""
    first = 0
    for height in range(len(levels) - 1, -1, -1):
        for name in split_ids(levels[height]):
            yield height, first, name
            first += RUN**height


def blocks_in(block: Block, ids: str) -> list[Block]:
    """Return the blocks that a block of a height above 0 lists."""
    height, first, _ = block
    return [(height - 1, first + n * RUN ** (height - 1), name) for n, name in enumerate(split_ids(ids))]


class Runs:
    """A list as it was last written, or read."""

    __slots__ = (
        *("entries", "length", "levels", "marshalled", "parts_in_tail", "spine", "spine_weight", "tail"),
        *("tail_weights", "weights", "written_tail"),
    )

    def __init__(self) -> None:
        self.entries: list[Any] = []
        """The entries themselves, if they are immutable."""
        self.length, self.marshalled = 0, b""
        """The number of entries and their marshalled form, if they are plain values."""
        self.levels: list[list[str]] = [[]]
        """Ids of all runs, of all lists of `RUN` runs, and so on."""
        self.spine: str | None = None
        """The part that lists the levels; None until it is needed."""
        self.tail: list[str] = []
        """JSON of the entries after the last full run; and the same with ids instead of parts."""
        self.written_tail: list[str] = []
        self.parts_in_tail = 0
        self.weights: list[int] = [0]
        """The weight of the full runs up to each one, with all they refer to; the weight of the spine with its lists of
        runs; and of each entry of the tail.
        """
        self.spine_weight = 0
        self.tail_weights: list[int] = []

    @property
    def weight(self) -> int:
        """Return the weight of the list, with all it refers to."""
        return self.weights[-1] + self.spine_weight + sum(self.tail_weights)

    def cut_back(self, length: int) -> None:
        """Keep only the full runs of the first `length` entries."""
        n_runs = length // RUN
        del self.entries[n_runs * RUN :]
        del self.weights[n_runs + 1 :]
        self.tail.clear()
        self.written_tail.clear()
        self.tail_weights.clear()
        self.parts_in_tail = 0
        self.spine, self.spine_weight = None, 0
        for level in self.levels:
            del level[n_runs:]
            n_runs //= RUN
        while len(self.levels) > 1 and not self.levels[-1]:
            del self.levels[-1]  # as if the list had never been longer

    def copy(self) -> Runs:
        """Return a copy that can change."""
        copied = Runs()
        copied.entries, copied.levels = self.entries.copy(), [level.copy() for level in self.levels]
        copied.spine, copied.spine_weight, copied.parts_in_tail = self.spine, self.spine_weight, self.parts_in_tail
        copied.tail, copied.written_tail = self.tail.copy(), self.written_tail.copy()
        copied.weights, copied.tail_weights = self.weights.copy(), self.tail_weights.copy()
        return copied

    def has(self, block: Block) -> bool:
        """Return whether a block is a part of this list, at the same place."""
        height, first, name = block
        at = first // RUN**height
        return height < len(self.levels) and at < len(self.levels[height]) and self.levels[height][at] == name

    def add_from(self, other: Runs, block: Block) -> None:
        """Add the runs of a block of another list to this one, which ends where the block begins."""
        height, first, _ = block
        end = first + RUN**height
        self.entries += other.entries[first * RUN : end * RUN]
        before = self.weights[-1] - other.weights[first]
        self.weights += [weight + before for weight in other.weights[first + 1 : end + 1]]
        while len(self.levels) <= height:
            self.levels.append([])
        for level in range(height + 1):
            self.levels[level] += other.levels[level][first // RUN**level : end // RUN**level]

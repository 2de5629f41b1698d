"""The memory of a storage for one chain: what it wrote and read last."""

from __future__ import annotations

from typing import Any

from agentbench._copying import isolate
from agentbench.checkpoints.parts.joining import PartReader, join_part
from agentbench.checkpoints.parts.parts import Fetch, PartReference, PartTexts, PartWriter, part_id
from agentbench.checkpoints.parts.runs import Runs
from agentbench.serialization.writer import JsonWriter


class ChainMemory:
    """What a storage remembers of a chain, so that it writes and reads only what differs from the last time."""

    def __init__(self, generation: int) -> None:
        self.generation = generation
        self.spoilt = False
        self.size = 0
        """About the number of characters of the value that was last written or read."""
        self._writer = PartWriter()
        self._last_part: tuple[Any, PartReference] | None = None
        self._lists_read: list[Runs] = []

    def cut(self, value: Any) -> tuple[str, PartTexts]:
        """Return the JSON of a value and its parts that are not stored yet; from now on they count as stored."""
        cut = self._writer.cut(value)
        self.size = self._writer.weight + len(cut[0])
        return cut

    def make_part(self, value: Any) -> tuple[PartReference, PartTexts]:
        """Make a value a separate part; meant for a value that stays equal along the chain."""
        if self._last_part is not None and self._last_part[0] == value:
            return self._last_part[1], {}
        text = JsonWriter().write(value)
        reference = PartReference(part_id(text))
        self._last_part = isolate(value), reference
        return reference, {str(reference): text}

    def join(self, text: str, fetch: Fetch) -> Any:
        """Join a value like `join_parts`, but read only the parts that differ from the value that was read before.

        Immutable entries of lists are the same objects as before, and a later `cut` knows them. One thread at a time.
        """
        reader = PartReader(fetch, self._lists_read)
        value = reader.join(text)
        self._lists_read, self.size = reader.lists, reader.weight + len(text)
        self._writer.lists_read = {id(runs.entries[0]): runs for runs in reader.lists}
        return value

    def join_part(self, name: str, fetch: Fetch) -> Any:
        """Read a value that `make_part` wrote."""
        last = self._last_part
        return isolate(last[0]) if last is not None and last[1] == name else join_part(name, fetch)

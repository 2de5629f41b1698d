"""Joins the parts into which `parts.py` cuts values."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from agentbench._copying import is_atomic
from agentbench.checkpoints.parts.parts import (
    LIGHT,
    PART,
    RUNS,
    SHORT,
    Fetch,
    ids_in,
    is_flat,
    refer_to,
    require_weight,
    verify_part,
    weight,
)
from agentbench.checkpoints.parts.runs import RUN, Block, Runs, blocks_in, blocks_of, split_ids
from agentbench.exceptions import WorkflowCheckpointException
from agentbench.serialization.reader import JsonReader
from agentbench.serialization.writer import JsonWriter, quote

_SPINES = re.compile(r'"part\.runs","v":\["([pr][A-Za-z0-9_-]{27})"')
_TEXTS = re.compile(r'"([^"]*)"')


def join_parts(text: str, fetch: Fetch) -> Any:
    """Join a value; parts are fetched once per level of reference, not one by one."""
    return PartReader(fetch).join(text)


def join_part(name: str, fetch: Fetch) -> Any:
    """Read a value that `ChainMemory.make_part` wrote."""
    return join_parts(refer_to(name), fetch)


def live_parts(contents: Iterable[str], fetch: Fetch) -> set[str]:
    """Find the parts that texts need, directly or not; text that only looks like an id may keep a part needlessly."""
    live: set[str] = set()
    for content in contents:
        live |= ids_in(content)
    fresh = {name for name in live if name[0] == "r"}
    while fresh:
        names = {name for text in fetch(fresh).values() for name in ids_in(text)}
        fresh = {name for name in names - live if name[0] == "r"}
        live |= names
    return live


class PartReader(JsonReader):
    """Reads one value; `former` are lists that were read before, whose common runs are not read again."""

    def __init__(self, fetch: Fetch, former: Iterable[Runs] = ()) -> None:
        super().__init__()
        self._fetch = fetch
        self._texts: dict[str, str] = {}
        self.weight = 0
        # Texts, and lists of atoms, are read once, however often they are referenced.
        self._flat: dict[str, Any] = {}
        self.lists: list[Runs] = []
        """The lists of immutable entries in the value."""
        self._former: dict[str, list[Runs]] = {}
        """By their first block of each height."""
        self._taken: set[int] = set()
        for runs in former:
            for level in runs.levels:
                if level:
                    self._former.setdefault(level[0], []).append(runs)
        self.decoders[PART] = self._read_part
        self.decoders[RUNS] = self._read_runs

    def join(self, text: str) -> Any:
        """Read a value and the parts to which it refers."""
        self._fetch_parts(text)
        return self.read(text)

    def _fetch_parts(self, text: str) -> None:
        """Fetch the parts to which a text refers, level by level, without those that `former` lists have."""
        spines = set(_SPINES.findall(text))
        wanted = ids_in(text)
        blocks: dict[str, Block] = {}
        while wanted:
            found = self._fetch(wanted)
            self._texts.update(found)
            wanted, below = set(), []
            for name, part in found.items():
                if name in spines:
                    below.append([*blocks_of(_TEXTS.findall(part))])
                elif name in blocks and blocks[name][0]:
                    below.append(blocks_in(blocks[name], part[1:-1]))
                elif name[0] == "r":
                    wanted |= ids_in(part)
            blocks = {block[2]: block for group in below for block in self._unread(group)}
            wanted = {name for name in wanted | blocks.keys() if name not in self._texts}

    def _unread(self, blocks: list[Block]) -> list[Block]:
        former = self._former.get(blocks[0][2], ()) if blocks else ()
        return [block for block in blocks if not any(runs.has(block) for runs in former)]

    def _read_part(self, name: Any) -> Any:
        if name not in self._texts and isinstance(name, str):
            self._texts.update(self._fetch([name]))
        text = self._texts.get(name) if isinstance(name, str) else None
        if text is None:
            message = f"Its part {name!r} is missing: it was removed from the storage, or lost."
            raise WorkflowCheckpointException(message)
        self._add_weight(weight(text))
        if name in self._flat:
            value = self._flat[name]
            return value.copy() if type(value) is list else value
        if not verify_part(name, text):
            message = f"Its part {name!r} is damaged: the stored text differs from the saved one."
            raise WorkflowCheckpointException(message)
        value = self.read(text)
        if type(value) is str or (type(value) is list and is_flat(text)):
            self._flat[name] = value
            return value.copy() if type(value) is list else value
        return value

    def _add_weight(self, added: int) -> None:
        self.weight += added
        require_weight(self.weight)

    def _read_runs(self, found: Any) -> list[Any]:
        spine, *groups = found
        runs, are_frozen = Runs(), True
        if spine is not None:
            levels = self._read_part(spine)
            are_frozen = self._add_blocks([*blocks_of(levels)], runs, None)
            runs.spine = spine
            runs.spine_weight = weight(self._texts[spine]) + LIGHT * sum(map(len, runs.levels[1:]))
        n_before = len(runs.entries)
        for group in groups:
            if isinstance(group, str):
                for name in split_ids(group):
                    self._add_tail_part(name, runs)
            else:
                for entry in group:
                    are_frozen &= self._add_tail_entry(entry, runs)
        if runs.entries and are_frozen and all(map(is_atomic, runs.entries[n_before:])):
            self.lists.append(runs)
            return runs.entries.copy()
        return runs.entries

    def _add_blocks(self, blocks: list[Block], runs: Runs, former: Runs | None) -> bool:
        """Add the entries of blocks to a list, and return whether all those that were read now are immutable."""
        are_frozen = True
        for block in blocks:
            height, first, name = block
            if former is None and first == 0:
                former = self._take_former(name)
            if former is not None and former.has(block):
                before = runs.weights[-1]
                runs.add_from(former, block)
                self._add_weight(runs.weights[-1] - before)
            elif height:
                are_frozen &= self._add_blocks(blocks_in(block, self._read_part(name)), runs, former)
                while len(runs.levels) <= height:
                    runs.levels.append([])
                runs.levels[height].append(name)
            else:
                before = self.weight
                entries = self._read_part(name)
                runs.entries += entries
                runs.levels[0].append(name)
                runs.weights.append(runs.weights[-1] + self.weight - before)
                are_frozen = are_frozen and len(entries) == RUN and all(map(is_atomic, entries))
        return are_frozen

    def _take_former(self, name: str) -> Runs | None:
        """Return a list that begins with this block; each one once, so that two equal lists share no entries."""
        for runs in self._former.get(name, ()):
            if id(runs) not in self._taken:
                self._taken.add(id(runs))
                return runs
        return None

    def _add_tail_part(self, name: str, runs: Runs) -> None:
        before = self.weight
        runs.entries.append(self._read_part(name))
        runs.tail.append(self._texts[name])
        runs.written_tail.append(name)
        runs.tail_weights.append(self.weight - before)
        runs.parts_in_tail += 1

    def _add_tail_entry(self, entry: Any, runs: Runs) -> bool:
        """Add an entry that was written in place, and return whether its text is known."""
        runs.entries.append(entry)
        text = quote(entry) if type(entry) is str else JsonWriter().write(entry) if is_atomic(entry) else ""
        runs.tail.append(text)
        runs.written_tail.append(text)
        runs.tail_weights.append(0)
        return 0 < len(text) <= SHORT

"""Cuts values into texts that a chain of checkpoints stores once, and joins them again.

A part is a text under an id derived from it, so equal texts are the same part, whoever writes them and when. The
checkpoints of a chain share parts. Three rules determine the parts:

- A text longer than `LONG` characters is one.
- Lists and dictionaries with more than `RUN` entries are cut into runs of `RUN`. A run is a part, `RUN` of them are
  listed in a part, and so on upwards; what is left over on each level is listed in one more part, the spine.
- The entries after the last full run are parts if they are longer than `SHORT` characters, so that they need not be
written again while a run fills.

The cuts depend on the value alone, not on its history. Appending to a list of n entries writes the new entries at most
twice and a few ids; a change in the middle writes its run and the lists above it; forks and replays write nothing that
is already stored.
"""

from __future__ import annotations

import marshal
import re
from binascii import b2a_base64
from collections.abc import Callable, Collection, Iterable, Mapping
from hashlib import blake2b
from itertools import compress, count, groupby
from operator import is_not
from typing import Any, Final, TypeAlias

from agentbench._copying import is_atomic, isolate
from agentbench.checkpoints.parts.runs import RUN, Block, Runs, blocks_in, blocks_of, split_ids
from agentbench.exceptions import WorkflowCheckpointException
from agentbench.serialization.reader import JsonReader
from agentbench.serialization.writer import TAG, JsonWriter, quote

LONG: Final = 1024
SHORT: Final = 64

_FEW: Final = 4
"""Shorter lists are written in place, whatever their entries: a part would cost more than it saves."""
_MOST_KNOWN: Final = 50_000
"""Limit of identities kept in memory for an endless chain; writing a text twice does no harm."""

LARGEST: Final = 1 << 29
"""Limit of the total weight of a value's parts, each counted as often as it is referred to, for writers and readers.
Without it, parts that each refer to the next one twice would be few and small, but unfold without end.
"""
_LIGHT, _HEAVY = 128, 2048

PartTexts: TypeAlias = Mapping[str, str]
Fetch: TypeAlias = Callable[[Collection[str]], PartTexts]

_PART, _RUNS = "part", "part.runs"
_PART_MARK = '{"__t__":"part","v":"'
_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")
_LIST_START: Final = 5  # a marshalled list begins with a letter and its length
_IDS = re.compile(r'"((?:[pr][A-Za-z0-9_-]{27})+)"')
_SPINES = re.compile(r'"part\.runs","v":\["([pr][A-Za-z0-9_-]{27})"')
_TEXTS = re.compile(r'"([^"]*)"')


# ------------------------------------------------------------------------------------------------------------------ ids


def part_id(text: str) -> str:
    """Return the id of a part: `r` if it may refer to other parts, otherwise `p`, then 160 bits of its hash."""
    digest = blake2b(text.encode(), digest_size=20).digest()
    return ("p" if _IDS.search(text) is None else "r") + b2a_base64(digest)[:27].translate(_URL_SAFE).decode()


def verify_part(wanted: str, text: str) -> bool:
    """Return whether a text is the one stored under an id."""
    try:
        return part_id(text) == wanted
    except UnicodeEncodeError:
        return False


def weight(text: str) -> int:
    """Return the weight of a part per reference: its characters, or the cost of building it again."""
    if text[:1] == '"':  # one object, however often it is referenced
        return _LIGHT
    return max(len(text), _LIGHT if _is_flat(text) else _HEAVY)


def _is_flat(text: str) -> bool:
    """Return whether a part is an atom or a list of atoms."""
    return "{" not in text and text.rfind("[") <= 0


def _ids_in(text: str) -> set[str]:
    return {name for ids in _IDS.findall(text) for name in split_ids(ids)}


class PartReference(str):
    """The id of a part, in the place where a value refers to it."""

    __slots__ = ()


# -------------------------------------------------------------------------------------------------------------- cutting


class ChainMemory:
    """A writer's memory of its chain, so that unchanged values are not encoded again."""

    def __init__(self, generation: int) -> None:
        self.generation = generation
        self.spoilt = False
        self.size = 0
        """About the number of characters of the value that was last written or read."""
        self._writer = _PartWriter()
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
        reader = _PartReader(fetch, self._lists_read)
        value = reader.join(text)
        self._lists_read, self.size = reader.lists, reader.weight + len(text)
        self._writer.lists_read = {id(runs.entries[0]): runs for runs in reader.lists}
        return value

    def join_part(self, name: str, fetch: Fetch) -> Any:
        """Read a value that `make_part` wrote."""
        last = self._last_part
        return isolate(last[0]) if last is not None and last[1] == name else join_part(name, fetch)


class _PartWriter(JsonWriter):
    """Writes one value after another, and collects their parts."""

    longest_plain = LONG
    longest_dict = RUN

    def __init__(self) -> None:
        super().__init__()
        self._methods[PartReference] = _reference
        self._known: set[str] = set()
        self.weight = 0
        self._parts: dict[str, str] = {}
        # By the identity of the first entry, and the number of earlier lists that begin with it.
        self._runs: dict[tuple[int, int], Runs] = {}
        self._runs_before: dict[tuple[int, int], Runs] = {}
        self._plain_runs: dict[bytes, Runs] = {}
        self._plain_runs_before: dict[bytes, Runs] = {}
        self._texts: dict[int, tuple[str, str]] = {}
        self._texts_before: dict[int, tuple[str, str]] = {}
        self.lists_read: Mapping[int, Runs] = {}
        """The lists that were read last, by the identity of their first entries; they do not change."""

    def cut(self, value: Any) -> tuple[str, PartTexts]:
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        self._parts, self.weight = {}, 0
        # Removed first, because it is only half written if the value turns out to be unstorable.
        self._runs_before, self._runs = self._runs, {}
        self._plain_runs_before, self._plain_runs = self._plain_runs, {}
        self._texts_before, self._texts = self._texts, {}
        try:
            text = self.write(value)
            _require_weight(self.weight)
        except BaseException:
            self._runs, self._plain_runs, self._texts = {}, {}, {}
            raise
        self._known.update(self._parts)
        return text, self._parts

    def write_text(self, value: str) -> str:
        if len(value) <= LONG:
            return quote(value)
        self.weight += _LIGHT
        cached = self._texts_before.get(id(value))
        if cached is None or cached[0] is not value:
            cached = (value, self._part(quote(value)))
        self._texts[id(value)] = cached
        return cached[1]

    def write_list(self, value: list[Any]) -> str:
        length = len(value)
        if length < _FEW:
            return self.write_items(value)
        before = self.weight
        return self._written(self._runs_of(value) or self._runs_of_plain(value) or self._new_runs(value), before)

    def _new_runs(self, value: Iterable[Any]) -> Runs:
        runs = Runs()
        self._append(runs, *self._write_each(value))
        return runs

    def _write_pair(self, pair: tuple[Any, Any]) -> str:
        return f"[{self.write(pair[0])},{self.write(pair[1])}]"

    def _write_each(
        self, items: Iterable[Any], write: Callable[[Any], str] | None = None
    ) -> tuple[list[str], list[int]]:
        """Return the texts of items, and the weight of the parts to which each refers."""
        texts: list[str] = []
        weights: list[int] = []
        write = write or self.write
        for item in items:
            before = self.weight
            texts.append(write(item))
            weights.append(self.weight - before)
        return texts, weights

    def write_pairs(self, value: dict[Any, Any]) -> str:
        if len(value) <= RUN:
            return super().write_pairs(value)
        before, runs = self.weight, Runs()
        self._append(runs, *self._write_each(value.items(), self._write_pair))
        return self.add_tag("dict", self._written(runs, before))

    def _runs_of(self, value: list[Any]) -> Runs | None:
        """Return the runs of a list of immutable entries, writing only new ones; None for any other list."""
        first, nth = id(value[0]), 0
        while (first, nth) in self._runs:  # several lists of this checkpoint begin with the same entry
            nth += 1
        runs, read = self._runs_before.get((first, nth)) or Runs(), self.lists_read.get(first)
        if read is not None and not _begins(value, runs.entries) and not nth:
            runs = read.copy()
        same = _common_length(runs.entries, value)
        new = value[same:]
        if not all(map(is_atomic, new)):
            return None
        if same < len(runs.entries):
            runs.cut_back(same)
            new = value[len(runs.entries) :]
        self._append(runs, *self._write_each(new))
        runs.entries.extend(new)
        self._runs[first, nth] = runs
        return runs

    def _runs_of_plain(self, value: list[Any]) -> Runs | None:
        """Return the runs of a list of plain values, which may change in place; None for any other list."""
        try:
            first, marshalled = marshal.dumps(value[0], 2), marshal.dumps(value, 2)[_LIST_START:]
        except ValueError:
            return None
        runs = self._plain_runs_before.get(first)
        if runs is None or not marshalled.startswith(runs.marshalled):
            runs = Runs()
        new, weights = self._write_each(value[runs.length :])
        if any(TAG in text for text in new):  # tuples, bytes and other values that JSON lacks
            return None
        self._append(runs, new, weights)
        runs.length, runs.marshalled = len(value), marshalled
        self._plain_runs[first] = runs
        return runs

    def _append(self, runs: Runs, texts: list[str], weights: list[int]) -> None:
        tail = runs.tail
        tail.extend(texts)
        runs.tail_weights.extend(
            [own + weight(text) if len(text) > SHORT else own for text, own in zip(texts, weights, strict=True)]
        )
        if len(tail) < RUN:
            runs.written_tail.extend(self._shorten(runs, texts))
            return
        for at in range(0, len(tail) - RUN + 1, RUN):
            self._append_run(runs, tail[at : at + RUN], sum(runs.tail_weights[at : at + RUN]))
        del runs.tail_weights[: len(tail) - len(tail) % RUN]
        del tail[: len(tail) - len(tail) % RUN]
        runs.parts_in_tail = 0
        runs.written_tail = self._shorten(runs, tail)
        runs.spine = None
        self._raise_levels(runs.levels)

    def _append_run(self, runs: Runs, texts: list[str], weight_of_all: int) -> None:
        """Append a full run, in which short parts of the tail are written in place."""
        inside = sum([weight(text) for text in texts if SHORT < len(text) <= LONG])
        run = f"[{','.join([text if len(text) <= LONG else self._part(text) for text in texts])}]"
        runs.levels[0].append(self._part_id(run))
        runs.weights.append(runs.weights[-1] + weight_of_all - inside + weight(run))

    def _shorten(self, runs: Runs, texts: list[str]) -> list[str]:
        runs.parts_in_tail += sum([len(text) > SHORT for text in texts])
        return [text if len(text) <= SHORT else self._part_id(text) for text in texts]

    def _raise_levels(self, levels: list[list[str]]) -> None:
        for height, level in enumerate(levels):  # grows during the loop
            above = levels[height + 1] if height + 1 < len(levels) else []
            for at in range(len(above) * RUN, len(level) - RUN + 1, RUN):
                above.append(self._part_id(f'"{"".join(level[at : at + RUN])}"'))
            if above and height + 1 == len(levels):
                levels.append(above)

    def _written(self, runs: Runs, before: int) -> str:
        """Return the spine, then the entries after it; `before` is the weight of everything written before the list."""
        levels = runs.levels
        if runs.spine is None and levels[0]:
            rest = []
            for height, level in enumerate(levels):
                taken = len(levels[height + 1]) * RUN if height + 1 < len(levels) else 0
                rest.append(f'"{"".join(level[taken:])}"')
            spine = f"[{','.join(rest)}]"
            runs.spine = self._part_id(spine)
            runs.spine_weight = weight(spine) + _LIGHT * sum(map(len, levels[1:]))
        self.weight = before + runs.weight
        tail = _groups(runs)
        if runs.spine is not None:
            return self.add_tag(_RUNS, f'["{runs.spine}"{"," if tail else ""}{tail}]')
        if runs.parts_in_tail:
            return self.add_tag(_RUNS, f"[null,{tail}]")
        return tail or "[]"

    def _part(self, text: str) -> str:
        return text if text.startswith(_PART_MARK) else _reference(self._part_id(text))

    def _part_id(self, text: str) -> str:
        name = part_id(text)
        if name not in self._known:
            self._parts[name] = text
        return name


def _require_weight(found: int) -> None:
    if found > LARGEST:
        message = (
            f"Its parts unfold to more than {LARGEST:,} characters, because lists or dictionaries that occur in it "
            "many times are read as many times. Store them once, and refer to them by an id."
        )
        raise WorkflowCheckpointException(message)


def _reference(name: str) -> str:
    return f'{_PART_MARK}{name}"}}'


def _groups(runs: Runs) -> str:
    """Return the part after the last full run: ids of consecutive parts as one text, other entries in arrays."""
    forms = runs.written_tail
    if not forms:
        return ""
    if runs.parts_in_tail == len(forms):
        return f'"{"".join(forms)}"'
    if not runs.parts_in_tail:
        return f"[{','.join(forms)}]"
    groups = []
    for are_parts, group in groupby(zip(runs.tail, forms, strict=True), lambda entry: entry[0] is not entry[1]):
        texts = [form for _, form in group]
        groups.append(f'"{"".join(texts)}"' if are_parts else f"[{','.join(texts)}]")
    return ",".join(groups)


def _common_length(former: list[Any], value: list[Any]) -> int:
    return next(compress(count(), map(is_not, former, value)), min(len(former), len(value)))


def _begins(value: list[Any], former: list[Any]) -> bool:
    """Return whether a list seems to begin with another one, judged by the last entry of that."""
    return 0 < len(former) <= len(value) and former[-1] is value[len(former) - 1]


# -------------------------------------------------------------------------------------------------------------- joining


def join_parts(text: str, fetch: Fetch) -> Any:
    """Join a value; parts are fetched once per level of reference, not one by one."""
    return _PartReader(fetch).join(text)


def join_part(name: str, fetch: Fetch) -> Any:
    """Read a value that `ChainMemory.make_part` wrote."""
    return join_parts(_reference(name), fetch)


def live_parts(contents: Iterable[str], fetch: Fetch) -> set[str]:
    """Find the parts that texts need, directly or not; text that only looks like an id may keep a part needlessly."""
    live: set[str] = set()
    for content in contents:
        live |= _ids_in(content)
    fresh = {name for name in live if name[0] == "r"}
    while fresh:
        names = {name for text in fetch(fresh).values() for name in _ids_in(text)}
        fresh = {name for name in names - live if name[0] == "r"}
        live |= names
    return live


class _PartReader(JsonReader):
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
        self.decoders[_PART] = self._read_part
        self.decoders[_RUNS] = self._read_runs

    def join(self, text: str) -> Any:
        """Read a value and the parts to which it refers."""
        self._fetch_parts(text)
        return self.read(text)

    def _fetch_parts(self, text: str) -> None:
        """Fetch the parts to which a text refers, level by level, without those that `former` lists have."""
        spines = set(_SPINES.findall(text))
        wanted = _ids_in(text)
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
                    wanted |= _ids_in(part)
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
        if type(value) is str or (type(value) is list and _is_flat(text)):
            self._flat[name] = value
            return value.copy() if type(value) is list else value
        return value

    def _add_weight(self, added: int) -> None:
        self.weight += added
        _require_weight(self.weight)

    def _read_runs(self, found: Any) -> list[Any]:
        spine, *groups = found
        runs, are_frozen = Runs(), True
        if spine is not None:
            levels = self._read_part(spine)
            are_frozen = self._add_blocks([*blocks_of(levels)], runs, None)
            runs.spine = spine
            runs.spine_weight = weight(self._texts[spine]) + _LIGHT * sum(map(len, runs.levels[1:]))
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

"""Cuts values into texts that a chain of checkpoints stores once; `joining.py` joins them again.

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

from agentbench._copying import is_atomic
from agentbench.checkpoints.parts.runs import RUN, Runs, split_ids
from agentbench.exceptions import WorkflowCheckpointException
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
LIGHT, _HEAVY = 128, 2048

PartTexts: TypeAlias = Mapping[str, str]
Fetch: TypeAlias = Callable[[Collection[str]], PartTexts]

PART, RUNS = "part", "part.runs"
_PART_MARK = '{"__t__":"part","v":"'
_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")
_LIST_START: Final = 5  # a marshalled list begins with a letter and its length
_IDS = re.compile(r'"((?:[pr][A-Za-z0-9_-]{27})+)"')


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
        return LIGHT
    return max(len(text), LIGHT if is_flat(text) else _HEAVY)


def is_flat(text: str) -> bool:
    """Return whether a part is an atom or a list of atoms."""
    return "{" not in text and text.rfind("[") <= 0


def ids_in(text: str) -> set[str]:
    """Return the ids of parts in a text, including what only looks like one."""
    return {name for ids in _IDS.findall(text) for name in split_ids(ids)}


class PartReference(str):
    """The id of a part, in the place where a value refers to it."""

    __slots__ = ()


# -------------------------------------------------------------------------------------------------------------- cutting


class PartWriter(JsonWriter):
    """Writes one value after another, and collects their parts."""

    longest_plain = LONG
    longest_dict = RUN

    def __init__(self) -> None:
        super().__init__()
        self._methods[PartReference] = refer_to
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
        """Return the JSON of a value and its parts that are not stored yet; from now on they count as stored."""
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        self._parts, self.weight = {}, 0
        # Removed first, because it is only half written if the value turns out to be unstorable.
        self._runs_before, self._runs = self._runs, {}
        self._plain_runs_before, self._plain_runs = self._plain_runs, {}
        self._texts_before, self._texts = self._texts, {}
        try:
            text = self.write(value)
            require_weight(self.weight)
        except BaseException:
            self._runs, self._plain_runs, self._texts = {}, {}, {}
            raise
        self._known.update(self._parts)
        return text, self._parts

    def write_text(self, value: str) -> str:
        """Write a text, a long one as a part."""
        if len(value) <= LONG:
            return quote(value)
        self.weight += LIGHT
        cached = self._texts_before.get(id(value))
        if cached is None or cached[0] is not value:
            cached = (value, self._part(quote(value)))
        self._texts[id(value)] = cached
        return cached[1]

    def write_list(self, value: list[Any]) -> str:
        """Write a list in runs."""
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
        """Write a dictionary as pairs, many of them in runs."""
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
        if read is not None and not _begins_with(value, runs.entries) and not nth:
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
            runs.spine_weight = weight(spine) + LIGHT * sum(map(len, levels[1:]))
        self.weight = before + runs.weight
        tail = _groups(runs)
        if runs.spine is not None:
            return self.add_tag(RUNS, f'["{runs.spine}"{"," if tail else ""}{tail}]')
        if runs.parts_in_tail:
            return self.add_tag(RUNS, f"[null,{tail}]")
        return tail or "[]"

    def _part(self, text: str) -> str:
        return text if text.startswith(_PART_MARK) else refer_to(self._part_id(text))

    def _part_id(self, text: str) -> str:
        name = part_id(text)
        if name not in self._known:
            self._parts[name] = text
        return name


def require_weight(found: int) -> None:
    """Raise `WorkflowCheckpointException` if a value weighs more than `LARGEST`."""
    if found > LARGEST:
        message = (
            f"Its parts unfold to more than {LARGEST:,} characters, because lists or dictionaries that occur in it "
            "many times are read as many times. Store them once, and refer to them by an id."
        )
        raise WorkflowCheckpointException(message)


def refer_to(name: str) -> str:
    """Return the JSON that refers to a part."""
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


def _begins_with(value: list[Any], former: list[Any]) -> bool:
    """Return whether a list seems to begin with another one, judged by the last entry of that."""
    return 0 < len(former) <= len(value) and former[-1] is value[len(former) - 1]

"""Pure: which items of one list became which items of another one."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

Pairs = list[tuple[int, int]]

_ID_NAMES = ("message_id", "id", "request_id", "call_id", "checkpoint_id", "executor_id", "task_id", "run_id")
_MOST_STEPS = 250_000


def find_ids(before: Sequence[Any], after: Sequence[Any]) -> tuple[str, list[Any], list[Any]] | None:
    """Find the key or attribute that tells the items of both lists apart.

    Args:
        before: Items of one list.
        after: Items of the other one.

    Returns:
        Its name and the ids of all items; `None` where no name is one that all items have, each list without doubles.
    """
    for name in _ID_NAMES:
        lists = [_ids(items, name) for items in (before, after)]
        if None not in lists:
            return name, lists[0] or [], lists[1] or []
    return None


def _ids(items: Sequence[Any], name: str) -> list[Any] | None:
    ids = []
    for item in items:
        found = _id(item, name)
        if found is None:
            return None
        ids.append(found)
    return ids if len(set(ids)) == len(ids) else None


def _id(item: Any, name: str) -> Any:
    if isinstance(item, (str, bytes, int, float, type)):
        return None
    try:
        found = item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)
    except Exception:  # noqa: BLE001 - properties are user code
        return None
    return found if type(found) in (str, int, UUID) else None


def align(before: Sequence[int], after: Sequence[int]) -> Iterator[tuple[int | None, int | None]]:
    """Pair the places of two lists: equal items first, as many as can be in order, then what lies between them.

    Args:
        before: One list, equal items having equal numbers.
        after: The other one.

    Yields:
        Places before and after, in order; `None` on one side for an item that is only on the other.
    """
    at, to = 0, 0
    for i, j in [*_equal_pairs(before, after), (len(before), len(after))]:
        for _ in range(min(i - at, j - to)):
            yield at, to
            at, to = at + 1, to + 1
        yield from ((place, None) for place in range(at, i))
        yield from ((None, place) for place in range(to, j))
        if i < len(before):
            yield i, j
        at, to = i + 1, j + 1


def _equal_pairs(before: Sequence[int], after: Sequence[int]) -> Pairs:
    if len(before) > len(after):  # the shorter one first, so that ties are broken alike in both directions
        return [(i, j) for j, i in _equal_pairs(after, before)]
    if len(before) * len(after) <= _MOST_STEPS:
        return _longest_common(before, after)
    anchors = _anchors(before, after)
    pairs: Pairs = []
    at, to = 0, 0
    for i, j in [*anchors, (len(before), len(after))]:
        if (i - at) * (j - to) <= _MOST_STEPS:  # what is longer, and has no anchor in it, is paired place by place
            pairs += [(at + x, to + y) for x, y in _longest_common(before[at:i], after[to:j])]
        if i < len(before):
            pairs.append((i, j))
        at, to = i + 1, j + 1
    return pairs


def _longest_common(before: Sequence[int], after: Sequence[int]) -> Pairs:
    """The longest common subsequence, by the textbook table."""
    n, m = len(before), len(after)
    lengths = [[0] * (m + 1) for _ in range(n + 1)]
    for i in range(n - 1, -1, -1):
        row, below = lengths[i], lengths[i + 1]
        for j in range(m - 1, -1, -1):
            row[j] = below[j + 1] + 1 if before[i] == after[j] else max(below[j], row[j + 1])
    pairs: Pairs = []
    i = j = 0
    while i < n and j < m:
        if before[i] == after[j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif lengths[i + 1][j + 1] == lengths[i][j]:
            i, j = i + 1, j + 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs


def _anchors(before: Sequence[int], after: Sequence[int]) -> Pairs:
    """Items that both lists hold once, as many as stand in the same order (patience sorting)."""
    counts, others = Counter(before), Counter(after)
    places = {number: j for j, number in enumerate(after) if others[number] == 1}
    shared = [(i, places[number]) for i, number in enumerate(before) if counts[number] == 1 and number in places]
    tails: list[int] = []
    ends: list[int] = []
    previous: list[int] = []
    for at, (_, j) in enumerate(shared):
        pile = bisect_left(tails, j)
        tails[pile : pile + 1] = [j]
        ends[pile : pile + 1] = [at]
        previous.append(ends[pile - 1] if pile else -1)
    chosen: Pairs = []
    at = ends[-1] if ends else -1
    while at >= 0:
        chosen.append(shared[at])
        at = previous[at]
    return chosen[::-1]

"""Pure functions that match the items of one list with those of another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any
from uuid import UUID

_ID_NAMES = ("message_id", "id", "request_id", "call_id", "checkpoint_id", "executor_id", "task_id", "run_id")


def find_ids(before: Sequence[Any], after: Sequence[Any]) -> tuple[str, list[Any], list[Any]] | None:
    """Return the name and the ids of all items of both lists; `None` if no name identifies all items."""
    for name in _ID_NAMES:
        if all(_id(item, name) is not None for items in (before, after) for item in items):
            old, new = ([_id(item, name) for item in items] for items in (before, after))
            if len(set(old)) == len(old) and len(set(new)) == len(new):
                return name, old, new
    return None


def _id(item: Any, name: str) -> Any:
    if isinstance(item, (str, bytes, int, float, type)):
        return None
    try:
        found = item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)
    except Exception:  # noqa: BLE001 - properties are user code
        return None
    return found if type(found) in (str, int, UUID) else None


def align(before: Sequence[int], after: Sequence[int]) -> Iterator[tuple[int | None, int | None]]:
    """Pair the positions of equal items, in order, and the items between; `None` for an item on one side only."""
    if len(before) > len(after):  # the shorter one first, so that both directions find the same pairs
        yield from ((i, j) for j, i in align(after, before))
        return
    for _, at, at_end, to, to_end in SequenceMatcher(None, before, after).get_opcodes():
        yield from zip_longest(range(at, at_end), range(to, to_end))

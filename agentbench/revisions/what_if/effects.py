"""Whether two groups of outcomes differ by more than chance: distances between outcomes, and a permutation test."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from operator import itemgetter
from typing import Any, Final

from agentbench._text.redact import fields_of, message_text
from agentbench.batch.rows import BatchRow, RowStatus

LEVEL: Final = 0.05
_SHORT: Final = 60
"""Texts up to this length are equal or not; of longer ones the words are compared."""
FEWEST: Final = 3
"""From this number of outcomes in each group on, the mid-p value keeps the level."""
_MOST_EXACT: Final = 5_000
"""Up to this many divisions into two groups all of them are computed; otherwise some are drawn."""
_DRAWS: Final = 2_000
_DEEPEST: Final = 8


@dataclass(frozen=True)
class Outcome:
    """How a branch ended, in the form that distances need.

    Attributes:
        ending: Its status, and the class of its error.
        path: The executors that ran.
        parts: The texts, numbers and other plain values of its output, by their place in it.
    """

    ending: str
    path: str
    parts: Mapping[tuple[str, ...], Any]

    @classmethod
    def of(cls, row: BatchRow) -> Outcome:
        """Return the outcome of a row."""
        ending = str(row.status) if row.error is None else f"{row.status}: {row.error.type}"
        parts = _parts(row.output, ()) if row.status == RowStatus.FINISHED else ()
        return cls(ending, row.path, dict(parts))

    @cached_property
    def words(self) -> dict[tuple[str, ...], Counter[Any]]:
        """The words and pairs of words of each text."""
        texts = {place: part.split() for place, part in self.parts.items() if isinstance(part, str)}
        return {place: Counter([*words, *pairwise(words)]) for place, words in texts.items()}


def _parts(value: Any, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the plain values in a value. Of messages and answers of agents only the text counts: their ids differ."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        value = message_text(value) or value
    if isinstance(value, (str, int, float)) or value is None:
        yield place, value
        return
    inner: Iterable[tuple[str, Any]] = fields_of(value)
    if isinstance(value, (list, tuple)):
        inner = ((str(number), each) for number, each in enumerate(value))
    found = False
    for name, each in inner if len(place) < _DEEPEST else ():
        found = True
        yield from _parts(each, (*place, name))
    if not found:
        yield place, repr(value)


def readable(value: Any, depth: int = 0) -> Any:
    """Return a value with the text of messages and answers of agents in place of them, because their ids differ."""
    if text := message_text(value):
        return text
    if depth < _DEEPEST and isinstance(value, Mapping):
        return {key: readable(each, depth + 1) for key, each in value.items()}
    if depth < _DEEPEST and isinstance(value, (list, tuple)):
        return [readable(each, depth + 1) for each in value]
    return value


def distances(outcomes: Sequence[Outcome]) -> list[list[float]]:
    """Return the distance of each pair of outcomes, between 0 and 2.

    Different endings have distance 1. Otherwise it is the mean over the parts of the output: 0 or 1 for categories and
    short texts, the difference of numbers as a fraction of their range, and for long texts the share of words and pairs
    of words that only one of them has. Different paths add 1.
    """
    numbers: dict[tuple[str, ...], list[float]] = {}
    for outcome in outcomes:
        for place, part in outcome.parts.items():
            if _is_number(part):
                numbers.setdefault(place, []).append(part)
    ranges = {place: max(found) - min(found) for place, found in numbers.items()}
    table = [[0.0] * len(outcomes) for _ in outcomes]
    for (i, one), (j, other) in combinations(enumerate(outcomes), 2):
        table[i][j] = table[j][i] = _distance(one, other, ranges)
    return table


def _distance(one: Outcome, other: Outcome, ranges: Mapping[tuple[str, ...], float]) -> float:
    away = float(one.path != other.path)
    if one.ending != other.ending:
        return away + 1.0
    if one.parts == other.parts:
        return away
    places = one.parts.keys() | other.parts.keys()
    return away + sum(_part_distance(one, other, place, ranges) for place in places) / len(places)


def _part_distance(
    one: Outcome, other: Outcome, place: tuple[str, ...], ranges: Mapping[tuple[str, ...], float]
) -> float:
    if place not in one.parts or place not in other.parts:
        return 1.0
    a, b = one.parts[place], other.parts[place]
    if a == b and type(a) is type(b):
        return 0.0
    if _is_number(a) and _is_number(b):
        return abs(a - b) / ranges[place] if ranges[place] else 0.0
    if isinstance(a, str) and isinstance(b, str) and max(len(a), len(b)) > _SHORT:
        words, others = one.words[place], other.words[place]
        return 1 - 2 * (words & others).total() / max(1, words.total() + others.total())
    return 1.0


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def permutation_p(table: Sequence[Sequence[float]], first: int, seed: int = 0) -> float:
    """Return the p-value of the hypothesis that the first outcomes and the others come from the same distribution.

    The statistic is the energy distance: twice the mean distance between the groups, minus the mean distances within
    them. It is compared with that of other divisions of the same outcomes into two groups of these sizes. Divisions
    with an equal statistic count half (the mid-p value), because with few distinct outcomes there are many of them.

    Args:
        table: The distances of all outcomes.
        first: How many of them, from the beginning, are the first group; fastest if it is the smaller one.
        seed: Divisions are drawn with it, so that the same outcomes have the same p-value.
    """
    count, others = len(table), len(table) - first
    rows = [math.fsum(row) for row in table]
    total = math.fsum(rows)
    if total == 0:
        return 1.0

    def energy(group: Sequence[int]) -> float:
        pick = itemgetter(*group)
        within = sum(sum(pick(row)) for row in pick(table))
        between = sum(pick(rows)) - within
        rest = total - within - 2 * between
        statistic: float = 2 * between / (first * others) - within / first**2 - rest / others**2
        return round(statistic, 9)

    observed = energy(range(first))
    if math.comb(count, first) <= _MOST_EXACT:
        found = [energy(division) for division in combinations(range(count), first)]
    else:
        chance = random.Random(seed)
        found = [observed, *(energy(chance.sample(range(count), first)) for _ in range(_DRAWS))]
    return (sum(each > observed for each in found) + found.count(observed) / 2) / len(found)


def holm(values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number by the method of Holm."""
    corrected = [1.0] * len(values)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        highest = max(highest, min(1.0, values[place] * (len(values) - rank)))
        corrected[place] = highest
    return corrected


def least_p(first: int, others: int) -> float:
    """Return the smallest p-value that groups of these sizes can have, before correction."""
    return (1 if first == others else 0.5) / math.comb(first + others, first)

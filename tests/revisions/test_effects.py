"""The statistics of a what-if: distances between outcomes, and the permutation test."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentbench import AgentResponse, Message
from agentbench.batch import BatchRow, RowError, RowStatus
from agentbench.revisions.what_if.effects import Outcome, distances, holm, permutation_p


def outcome(output: Any, path: str = "a > b", status: RowStatus = RowStatus.FINISHED, error: str = "") -> Outcome:
    return Outcome.of(BatchRow("key", 0, None, status, output, RowError(error, "broken") if error else None, path=path))


@dataclass
class Verdict:
    """A structured output."""

    label: str
    score: float


LONG = "The service was slow this morning, because the cache of the second region had been emptied by a deployment. "


@pytest.mark.parametrize(
    ("one", "other", "third", "expected"),
    [
        ("yes", "no", "yes", 1),
        (1, 2, 5, 0.25),
        (True, False, True, 1),
        (Verdict("a", 1.0), Verdict("a", 3.0), Verdict("b", 5.0), 0.25),
        ({"x": "a", "y": "b"}, {"x": "a"}, {}, 0.5),
        ([1, 2], [1, 2], [3, 4], 0),
        (
            AgentResponse(messages=[Message("assistant", ["yes"], message_id="1")]),
            AgentResponse(messages=[Message("assistant", ["yes"], message_id="2")]),
            None,
            0,
        ),
    ],
)
def test_outcomes_are_as_far_apart_as_their_parts(one: Any, other: Any, third: Any, expected: float) -> None:
    table = distances([outcome(one), outcome(other), outcome(third)])
    assert table[0][1] == pytest.approx(expected)


def test_long_texts_are_compared_by_their_words_and_paths_and_errors_count() -> None:
    near, far = outcome(LONG.replace("slow", "down")), outcome("A quite different text, in which nothing is said. " * 3)
    table = distances([outcome(LONG), near, far, outcome(LONG, path="a > c")])
    assert 0 < table[0][1] < 0.3 < 0.9 < table[0][2]
    assert table[0][3] == 1
    failed, again = (outcome(None, status=RowStatus.FAILED, error=error) for error in ("ValueError", "ValueError"))
    other = outcome(None, status=RowStatus.FAILED, error="TypeError")
    table = distances([failed, again, other, outcome(None)])
    assert table[0] == [0, 0, 1, 1]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=90),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(VALUES, min_size=2, max_size=5))
def test_distances_are_symmetric_and_between_0_and_2(values: list[Any]) -> None:
    table = distances([outcome(value, path=f"p{number % 2}") for number, value in enumerate(values)])
    for i, row in enumerate(table):
        assert row[i] == 0
        assert all(0 <= each <= 2 for each in row)
        assert row == [other[i] for other in table]


@settings(max_examples=20)
@given(
    st.lists(st.sampled_from("ab"), min_size=3, max_size=25), st.lists(st.sampled_from("abc"), min_size=3, max_size=25)
)
def test_the_same_outcomes_have_the_same_p_in_any_order(one: list[str], other: list[str]) -> None:
    def p(first: list[str], second: list[str]) -> float:
        return permutation_p(distances([*map(outcome, first), *map(outcome, second)]), len(first))

    assert 0 < p(one, other) <= 1
    assert p(one, other) == p(one, other)
    if len(one) + len(other) <= 12:  # all divisions are computed
        assert p(one, other) == pytest.approx(p(one[::-1], other[::-1]))


def test_the_level_holds_for_labels_numbers_and_long_texts() -> None:
    drawn = random.Random(4)
    kinds = {
        "labels": lambda: drawn.choice("abc"),
        "numbers": lambda: drawn.gauss(0, 1),
        "long texts": lambda: " ".join(drawn.choices(LONG.split(), k=20)),
    }
    for name, draw in kinds.items():
        found = 0
        for _ in range(100):
            table = distances([outcome(draw()) for _ in range(9)])
            found += permutation_p(table, 6) < 0.05
        assert found <= 10, name


def test_corrected_p_values_keep_their_order() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1, 1]
    assert holm([]) == []

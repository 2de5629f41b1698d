"""`compare_rows`: verdicts, and the first divergence in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.batch.comparison import compare_rows
from agentbench.batch.rows import BatchRow, RowError, RowStatus

ROW = BatchRow(
    "a", 0, "text", RowStatus.FINISHED, {"title": "cats", "words": [1, 2]}, path="read > (check, rate) > write"
)
ERROR = RowError("TimeoutError", "no answer")
FAILED = replace(ROW, status=RowStatus.FAILED, output=None, error=ERROR, path="read > (check, rate)")


@pytest.mark.parametrize(
    ("here", "there", "verdict", "where"),
    [
        (ROW, replace(ROW, seconds=3.0, run_id="other", attempts=2), "same", ""),
        (FAILED, replace(FAILED, error=replace(ERROR, traceback="elsewhere")), "same", ""),
        (replace(ROW, path="read > check > write"), ROW, "changed", "superstep 1: here check, there (check, rate)"),
        (replace(ROW, path="read"), ROW, "changed", "superstep 1: here finished, there (check, rate)"),
        (replace(ROW, output={"title": "cats", "words": [1, 3]}), ROW, "changed", "output.words[1]: here 3, there 2"),
        (replace(ROW, output=None), ROW, "changed", "output: here None, there {'title': 'cats', 'words': [1, 2]}"),
        (
            replace(ROW, output={"api_key": "x"}),
            replace(ROW, output={"api_key": "y"}),
            "changed",
            "output.api_key: here •••, there •••",
        ),
        (FAILED, ROW, "new error", "superstep 2: here failed with TimeoutError: no answer, there write"),
        (ROW, FAILED, "fixed", "superstep 2: here write, there failed with TimeoutError: no answer"),
        (replace(FAILED, path=ROW.path), ROW, "new error", "here failed with TimeoutError: no answer, there finished"),
        (
            replace(FAILED, error=RowError("KeyError", "x")),
            FAILED,
            "changed",
            "here failed with KeyError: x, there failed with TimeoutError: no answer",
        ),
        (replace(ROW, status=RowStatus.WAITING), ROW, "changed", "status: here waiting, there finished"),
    ],
)
def test_the_first_divergence_is_the_path_then_the_output_then_the_error(
    here: Any, there: Any, verdict: str, where: str
):
    [pair] = compare_rows([here], [there]).rows
    assert (pair.verdict, pair.where) == (verdict, where)


def test_rows_of_one_side_only_are_listed_with_their_side():
    comparison = compare_rows([ROW, replace(ROW, key="b")], [replace(ROW, key="c"), ROW])
    assert [(pair.key, pair.verdict) for pair in comparison.rows] == [
        ("a", "same"),
        ("b", "only here"),
        ("c", "only there"),
    ]
    assert comparison.counts == {"same": 1, "only here": 1, "only there": 1}
    assert repr(comparison) == "BatchComparison(1 same, 1 only here, 1 only there)"


OPPOSITE = {"new error": "fixed", "fixed": "new error", "only here": "only there", "only there": "only here"}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.sampled_from(["read", "read > write"]))))
def test_the_other_way_round_every_verdict_is_the_opposite(facts: list[tuple[str, bool, str]]):
    sides: tuple[dict[str, BatchRow], dict[str, BatchRow]] = ({}, {})
    for place, (key, fails, path) in enumerate(facts):
        sides[place % 2][key] = replace(FAILED if fails else ROW, key=key, path=path)
    there_and_back = compare_rows(*(side.values() for side in sides)), compare_rows(*(s.values() for s in sides[::-1]))
    forth, back = ({pair.key: pair.verdict for pair in comparison.rows} for comparison in there_and_back)
    assert back == {key: OPPOSITE.get(verdict, verdict) for key, verdict in forth.items()}

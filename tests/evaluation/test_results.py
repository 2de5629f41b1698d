"""Results: counts, gates, rows, frames, comparisons."""

from __future__ import annotations

import pytest

from agentbench import (
    AgentFrameworkException,
    CheckResult,
    EvalItemResult,
    EvalNotPassedError,
    EvalResults,
    EvalScoreResult,
    LocalEvaluator,
    RubricScore,
    evaluator,
    keyword_check,
)
from agentbench.evaluation import compare_evaluations
from tests.evaluation.conversations import item
from tests.parts.errors import raises

GOOD = {"passed": 2, "failed": 0, "errored": 0}


@pytest.mark.parametrize(
    ("fields", "all_passed"),
    [
        ({"result_counts": GOOD}, True),
        ({"result_counts": {**GOOD, "failed": 1}}, False),
        ({"result_counts": {**GOOD, "errored": 1}}, False),
        ({"result_counts": GOOD, "status": "partial"}, False),
        ({"result_counts": {"passed": 0}}, False),
        ({}, False),
        ({"sub_results": {"a": EvalResults(provider="L", result_counts=GOOD)}}, True),
        ({"sub_results": {"a": EvalResults(provider="L")}}, False),
        ({"result_counts": {"failed": 1}, "sub_results": {"a": EvalResults(provider="L", result_counts=GOOD)}}, False),
    ],
)
def test_when_all_passed(fields, all_passed):
    results = EvalResults(provider="Local", **fields)
    assert results.all_passed is all_passed
    if all_passed:
        results.raise_for_status()
    else:
        with pytest.raises(EvalNotPassedError) as caught:
            results.raise_for_status()
        assert caught.value.results is results
        assert isinstance(caught.value, AgentFrameworkException)


def test_the_error_names_what_failed_and_no_content():
    results = EvalResults(
        provider="Service",
        run_id="nightly",
        status="failed",
        error="quota",
        report_url="https://reports/7",
        result_counts={"passed": 1, "failed": 7, "errored": 1},
        items=[
            *(EvalItemResult(str(number), "fail", error_message="key=hunter2") for number in range(7)),
            EvalItemResult("8", "errored", output_text="hunter2"),
        ],
        sub_results={"writer": EvalResults(provider="Service")},
    )
    with pytest.raises(EvalNotPassedError) as caught:
        results.raise_for_status()
    assert str(caught.value) == (
        "Evaluation 'nightly' did not pass: 1 passed, 7 failed, 1 errored; status: failed; error: quota; "
        "failing parts: writer; failed items: 0, 1, 2, 3, 4 and 2 more; errored items: 8; report: https://reports/7."
    )
    with pytest.raises(EvalNotPassedError):
        results.raise_for_status("Release blocked")


async def test_rows_and_frame():
    graded = LocalEvaluator(evaluator(lambda response: len(response) / 10, name="grade"), keyword_check("paris"))
    results = await graded.evaluate([item("Paris"), item("Rome")])
    rows = results.to_rows()
    assert rows[1] == {
        "item": "1", "status": "fail", "query": "Capital of France?", "response": "Rome", "grade": 0.4,
        "keyword_check": 0.0, "error": "grade: score 0.4; keyword_check: missing: 'paris'",
    }  # fmt: skip
    pd = pytest.importorskip("pandas")
    frame = results.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert [*frame.columns] == ["item", "status", "query", "response", "grade", "keyword_check", "error"]
    assert frame["grade"].mean() == pytest.approx(0.45)
    assert frame["error"].isna().tolist() == [True, False]


def test_rows_of_parts():
    inner = EvalResults(provider="L", items=[EvalItemResult("0", "pass", [EvalScoreResult("a", 1.0, True)])])
    rows = EvalResults(provider="L", sub_results={"w": EvalResults(provider="L", sub_results={"x": inner})}).to_rows()
    assert [(row["part"], row["a"]) for row in rows] == [("w/x", 1.0)]


async def test_two_evaluations_compared():
    check = LocalEvaluator(keyword_check("paris"))
    before = await check.evaluate([item("Rome", "a"), item("Paris", "b"), item("Paris", "c"), item("Rome", "c")])
    after = await check.evaluate([item("Paris", "c"), item("Paris", "a"), item("Rome", "b"), item("Paris", "d")])
    compared = compare_evaluations(before, after)
    assert [(each["query"], each["change"]) for each in compared.to_rows()] == [
        ("c", "same"), ("a", "fixed"), ("b", "broken"), ("d", "added"), ("c", "removed"),
    ]  # fmt: skip
    assert [each.after.output_text for each in compared.broken if each.after] == ["Rome"]
    assert [each.before.output_text for each in compared.fixed if each.before] == ["Rome"]
    assert repr(compared) == "EvalComparison(1 added, 1 broken, 1 fixed, 1 removed, 1 same)"
    assert compared.to_rows()[1] == {
        "query": "a", "change": "fixed", "status before": "fail", "status after": "pass", "response before": "Rome",
        "response after": "Paris", "keyword_check before": 0.0, "keyword_check after": 1.0,
    }  # fmt: skip
    pytest.importorskip("pandas")
    frame = compared.to_frame()
    assert frame["keyword_check before"].tolist()[:3] == [1.0, 0.0, 1.0]
    assert frame["response after"].isna().tolist() == [False, False, False, False, True]


# ---- assertions about scores


def test_failed_items_are_refused_also_in_parts_and_errors_are_not():
    failed, error = EvalItemResult("0", "fail"), EvalItemResult("1", "error")
    EvalResults(provider="L", items=[error]).assert_no_failed_items()
    for results in (
        EvalResults(provider="L", items=[failed]),
        EvalResults(provider="L", sub_results={"writer": EvalResults(provider="L", items=[failed])}),
    ):
        with raises(EvalNotPassedError, results=results):
            results.assert_no_failed_items()


def test_every_score_of_a_check_is_high_enough():
    def scored(*scores: tuple[str, float]) -> EvalResults:
        items = [EvalItemResult("0", "pass", [EvalScoreResult(name, score) for name, score in scores])]
        return EvalResults(provider="L", sub_results={"writer": EvalResults(provider="L", items=items)})

    results = scored(("style", 0.8), ("facts", 0.5))
    results.assert_score_at_least(0.5)
    results.assert_score_at_least(0.8, "style")
    for minimum, name in ((0.6, None), (0.6, "facts"), (0.1, "unknown")):
        with raises(EvalNotPassedError, results=results):
            results.assert_score_at_least(minimum, name)
    with raises(EvalNotPassedError):
        scored(("style", float("nan"))).assert_score_at_least(0)


def test_scores_and_their_minimum_are_numbers():
    with raises(TypeError, "score is 'high'"):
        RubricScore("clarity", "high")  # type: ignore[arg-type]
    with raises(TypeError, "minimum is 'high'"):
        EvalResults(provider="L").assert_score_at_least("high")  # type: ignore[arg-type]


async def test_the_dimensions_of_a_rubric_are_scored():
    def style(item: object) -> CheckResult:
        return CheckResult(True, "fine", "style", 0.7, [RubricScore("clarity", 0.9), RubricScore("tone", 0.5)])

    results = await LocalEvaluator(style).evaluate([item()])
    assert [score.dimension for score in results.items[0].scores[0].dimensions] == ["clarity", "tone"]
    row = results.to_rows()[0]
    assert (row["style"], row["style: clarity"], row["style: tone"]) == (0.7, 0.9, 0.5)
    results.assert_dimension_score_at_least("clarity", 0.9)
    for dimension in ("tone", "unknown"):
        with raises(EvalNotPassedError, results=results):
            results.assert_dimension_score_at_least(dimension, 0.6)

"""The evaluator in this process: outcomes, gates, errors, many items."""

from __future__ import annotations

import asyncio

import pytest

from agentbench import (
    CheckResult,
    EvalNotPassedError,
    Evaluator,
    LocalEvaluator,
    evaluator,
    keyword_check,
)
from tests.evaluation.conversations import item
from tests.parts.errors import raises


@evaluator
def broken(response: str) -> bool:
    raise RuntimeError("no judge today")


async def test_an_item_passes_if_all_checks_do():
    results = await LocalEvaluator(
        keyword_check("paris"), evaluator(lambda response: len(response) < 10, name="brief")
    ).evaluate([item("Paris"), item("It is Paris, of course."), item("Rome")], eval_name="capitals")
    assert [each.status for each in results.items] == ["pass", "fail", "fail"]
    assert [each.item_id for each in results.items] == ["0", "1", "2"]
    assert results.result_counts == {"passed": 1, "failed": 2, "errored": 0}
    assert results.per_evaluator == {
        "keyword_check": {"passed": 2, "failed": 1, "errored": 0},
        "brief": {"passed": 2, "failed": 1, "errored": 0},
    }
    assert (results.provider, results.eval_id, results.run_id, results.status) == (
        "Local",
        "local",
        "capitals",
        "completed",
    )
    first = results.items[0]
    assert (first.input_text, first.output_text, first.error_message) == ("Capital of France?", "Paris", None)
    assert results.items[2].error_message == "keyword_check: missing: 'paris'"
    assert first.scores[0].sample == {"reason": "all keywords found"}


async def test_a_check_that_raises_makes_its_item_an_error_and_no_other():
    picky = evaluator(lambda response: broken_if_rome(response), name="picky")
    results = await LocalEvaluator(picky, keyword_check("paris")).evaluate([item("Rome"), item("Paris")])
    assert [each.status for each in results.items] == ["error", "pass"]
    assert (results.items[0].error_code, results.items[0].is_error) == ("ZeroDivisionError", True)
    assert results.items[0].error_message == "picky: Rome; keyword_check: missing: 'paris'"
    assert results.result_counts == {"passed": 1, "failed": 0, "errored": 1}
    assert results.per_evaluator["picky"] == {"passed": 1, "failed": 0, "errored": 1}
    assert not results.all_passed


def broken_if_rome(response: str) -> bool:
    if response == "Rome":
        raise ZeroDivisionError("Rome")
    return True


async def test_two_checks_of_one_name_are_two_scores_and_one_sum():
    results = await LocalEvaluator(keyword_check("paris"), keyword_check("rome")).evaluate([item()])
    assert [score.passed for score in results.items[0].scores] == [True, False]
    assert results.per_evaluator == {"keyword_check": {"passed": 1, "failed": 1, "errored": 0}}
    assert [*results.to_rows()[0]] == [
        "item",
        "status",
        "query",
        "response",
        "keyword_check",
        "keyword_check (2)",
        "error",
    ]


async def test_checks_of_an_item_run_at_once():
    both = asyncio.Barrier(2) if hasattr(asyncio, "Barrier") else None
    if both is None:
        pytest.skip("asyncio.Barrier is new in Python 3.11")

    async def meet(each: object) -> CheckResult:
        await both.wait()
        return CheckResult(True, "met", "meet")

    assert (await LocalEvaluator(meet, meet).evaluate([item()])).all_passed


async def test_a_function_that_is_no_check_is_an_error_of_the_item():
    results = await LocalEvaluator(lambda each: True).evaluate([item()])  # type: ignore[arg-type, return-value]
    assert results.items[0].error_code == "TypeError"
    assert "@evaluator" in str(results.items[0].error_message)


def test_what_makes_no_evaluator():
    with raises(ValueError):
        LocalEvaluator()
    with raises(ValueError, "80"):
        LocalEvaluator(broken, threshold=80)
    with raises(TypeError, "paris"):
        LocalEvaluator("paris")  # type: ignore[arg-type]
    assert isinstance(LocalEvaluator(broken), Evaluator)


@pytest.mark.parametrize(("threshold", "passes"), [(1.0, False), (0.76, False), (0.75, True), (0.0, True)])
async def test_the_gate_is_a_share_of_the_items(threshold, passes):
    items = [item("Paris")] * 3 + [item("Rome")]
    gate = LocalEvaluator(keyword_check("paris"), threshold=threshold)
    if passes:
        assert (await gate.run_and_check(items)).passed == 3
        return
    with raises(EvalNotPassedError, "3", "1", "0") as caught:
        await gate.run_and_check(items)
    assert caught.value.results.failed == 1
    assert (await gate.run_and_check(items, threshold=0.5)).passed == 3


async def test_no_gate_opens_for_nothing_or_for_errors():
    with pytest.raises(EvalNotPassedError) as caught:
        await LocalEvaluator(keyword_check("paris"), threshold=0).run_and_check([])
    assert caught.value.results.total == 0
    with raises(EvalNotPassedError, "0"):
        await LocalEvaluator(broken, threshold=0).run_and_check([item()])
    with pytest.raises(EvalNotPassedError):
        await LocalEvaluator(broken).run_and_check([item()], msg="Not today.")


async def test_a_thousand_items_within_a_limit_though_checks_raise():
    at_once = most = 0

    async def slow(each: object) -> CheckResult:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        at_once -= 1
        number = int(each.response)  # type: ignore[attr-defined]
        if number % 100 == 7:
            raise OSError("the judge is busy")
        return CheckResult(True, "fine", "slow")

    results = await LocalEvaluator(slow, max_concurrency=8).evaluate(item(str(number)) for number in range(1000))
    assert most == 8
    assert results.result_counts == {"passed": 990, "failed": 0, "errored": 10}
    assert [each.output_text for each in results.items] == [str(number) for number in range(1000)]
    with raises(ValueError, "max_concurrency", "0"):
        await LocalEvaluator(slow, max_concurrency=0).evaluate([item()])


async def test_cancelling_stops_all_workers():
    started, three = [], asyncio.Event()

    async def endless(each: object) -> CheckResult:
        started.append(each)
        if len(started) == 3:
            three.set()
        await asyncio.Event().wait()
        raise AssertionError

    running = asyncio.ensure_future(LocalEvaluator(endless, max_concurrency=3).evaluate([item()] * 10))
    await three.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.sleep(0)
    assert len(started) == 3


def test_its_repr_names_its_checks():
    found = repr(LocalEvaluator(broken, keyword_check("x"), threshold=0.8))
    assert found == "LocalEvaluator(broken, keyword_check, name='Local', threshold=0.8)"

"""Evaluations in a cell: what did not pass first, with its conversation; comparisons; a bar while they run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from agentbench import CheckResult, EvalResults, LocalEvaluator, RubricScore, evaluator, keyword_check
from agentbench.evaluation import compare_evaluations
from tests.evaluation.conversations import item, with_call


@evaluator
def picky(response: str) -> bool:
    if "?" in response:
        raise OSError("no judge")
    return True


PARIS = LocalEvaluator(keyword_check("paris"), picky)


def text(shown: Any) -> list[str]:
    return str(shown._repr_mimebundle_()["text/plain"]).splitlines()


def html(shown: Any) -> str:
    return str(shown._repr_mimebundle_()["text/html"])


async def test_what_did_not_pass_comes_first():
    results = await PARIS.evaluate([item(), item("Rome"), item("Paris?")], eval_name="capitals")
    assert text(results) == [
        "capitals: not passed, Local, 1 of 3 items passed, 1 error",
        "checks",
        "  keyword_check  2 of 3 items passed           mean 0.667",
        "  picky          2 of 3 items passed, 1 error  mean 1",
        "items",
        "  2  error  Capital of France?  Paris?  picky: no judge",
        "  1  fail   Capital of France?  Rome    keyword_check: missing: 'paris'",
        "  0  pass   Capital of France?  Paris",
    ]
    assert html(results).count("<details>") == 2


async def test_many_items_are_counted():
    results = await PARIS.evaluate([item() for _ in range(1000)])
    assert text(results)[-1].split(maxsplit=1) == ["…", "980 more, in items and to_frame()"]
    assert len(text(results)) == 26


async def test_what_was_expected_stands_beside_what_came():
    results = await PARIS.evaluate([item("Rome", expected_output="Paris")])
    assert text(results)[-1] == "  0  fail  Capital of France?  Rome  Paris  keyword_check: missing: 'paris'"
    assert text(results.items[0])[0] == "Item 0: fail, expected: Paris"


async def test_an_item_shows_scores_and_conversation():
    results = await PARIS.evaluate([with_call("get_weather", {"city": "Oslo"})])
    assert text(results.items[0]) == [
        "Item 0: fail",
        "scores",
        "  keyword_check  0  failed  missing: 'paris'",
        "  picky          1  passed  passed",
        "user       Weather?",
        'assistant  get_weather(city="Oslo") → rain',
        "assistant  Rain.",
    ]
    assert "get_weather" in html(results)  # the conversation of a failed item unfolds in the table


def test_a_failed_evaluation_and_its_parts():
    parts = {"writer": EvalResults(provider="S", result_counts={"passed": 1})}
    results = EvalResults(provider="S", status="failed", error="quota", report_url="https://r/1", sub_results=parts)
    assert text(results) == [
        "Evaluation: not passed, S, 0 of 0 items passed, quota, failed, https://r/1",
        "parts",
        "  writer  1 of 1 item passed",
    ]


async def test_a_comparison_shows_what_broke_first():
    before = await PARIS.evaluate([item("Rome", "a"), item("Paris", "b"), item("Paris", "c")])
    after = await PARIS.evaluate([item("Paris", "a"), item("Rome", "b"), item("Paris", "c")])
    assert text(compare_evaluations(before, after)) == [
        "Comparison of evaluations: 1 broken, 1 fixed, 1 the same",
        "evaluations",
        "  before  2 of 3 items passed",
        "  after   2 of 3 items passed",
        "changed items",
        "  broken  b  pass: Paris  fail: Rome",
        "  fixed   a  fail: Rome   pass: Paris",
    ]
    assert "nothing broken" in html(compare_evaluations(before, before))


CELL = """
import asyncio
from agentbench import CheckResult, EvalItem, LocalEvaluator, Message

async def slow(item):
    await asyncio.sleep(0.05)
    return CheckResult(True, "fine", "slow")

items = [EvalItem([Message("user", "q"), Message("assistant", "a")])] * 30
(await LocalEvaluator(slow, max_concurrency=1).evaluate(items, eval_name="many")).passed
"""


@pytest.mark.nightly
def test_a_bar_in_a_kernel_counts_the_items_and_leaves_a_line(tmp_path):
    jupyter_client = pytest.importorskip("jupyter_client")
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    environment |= {"PYTHONPATH": str(Path(__file__).parents[3]), "IPYTHONDIR": str(tmp_path)}
    manager, client = jupyter_client.manager.start_new_kernel(kernel_name="python3", env=environment, cwd=str(tmp_path))
    shown: list[dict[str, Any]] = []

    def note(message: Any) -> None:
        if message["msg_type"] in ("display_data", "update_display_data", "execute_result", "error"):
            shown.append(message["content"])

    try:
        client.execute_interactive(CELL, timeout=60, output_hook=note)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    *bars, last, result = [each["data"] for each in shown]
    assert result["text/plain"] == "30"
    assert all("many: checks" in each["text/html"] and 'role="progressbar"' in each["text/html"] for each in bars)
    assert len(bars) > 2
    assert last["text/plain"].startswith("many: checks: 30 of 30 items, ")
    assert "text/html" not in last


async def test_an_item_shows_the_dimensions_of_a_rubric_below_their_check():
    def style(item: object) -> CheckResult:
        return CheckResult(True, "fine", "style", 0.7, [RubricScore("tone", 0.5, "It is <rude>.")])

    [one] = (await LocalEvaluator(style).evaluate([item()])).items
    rows = [line.split() for line in text(one) if "style" in line]
    assert rows == [["style", "0.7", "passed", "fine"], ["style:", "tone", "0.5", "It", "is", "<rude>."]]
    assert "<rude>" not in html(one)

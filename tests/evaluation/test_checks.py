"""Checks: words, calls, and plain functions as checks."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from agentbench import (
    CheckResult,
    ExpectedToolCall,
    evaluator,
    keyword_check,
    tool_call_args_match,
    tool_called_check,
    tool_calls_present,
)
from tests.evaluation.conversations import item, with_call
from tests.parts.errors import raises

np = pytest.importorskip("numpy")


def test_keywords():
    assert keyword_check("paris", "FRANCE")(item("Paris, France")).passed
    found = keyword_check("paris", "rome")(item("Paris"))
    assert (found.passed, found.check_name) == (False, "keyword_check")
    assert "'rome'" in found.reason
    assert not keyword_check("paris", case_sensitive=True)(item("Paris")).passed


def test_tools_that_were_called():
    weather = with_call("get_weather", {})
    assert tool_called_check("get_weather")(weather).passed
    assert not tool_called_check("get_weather", "search")(weather).passed
    assert tool_called_check("get_weather", "search", mode="any")(weather).passed
    missed = tool_called_check("search", "browse", mode="any")(weather)
    assert not missed.passed
    assert missed.reason == "not called: search, browse; called: get_weather"
    with raises(ValueError, "some"):
        tool_called_check("search", mode="some")  # type: ignore[arg-type]


def test_expected_tools_are_present():
    expected = [ExpectedToolCall("get_weather")]
    assert tool_calls_present(with_call("get_weather", {}, expected_tool_calls=expected)).passed
    assert tool_calls_present(with_call("more", {})).passed  # nothing is expected
    missed = tool_calls_present(with_call("more", {}, expected_tool_calls=expected))
    assert (missed.passed, missed.reason) == (False, "not called: get_weather; called: more")


@pytest.mark.parametrize("given", [{"city": "Oslo", "days": 2}, '{"city": "Oslo", "days": 2}'])
def test_arguments_match_in_part(given):
    def match(arguments: Any) -> CheckResult:
        return tool_call_args_match(with_call("w", given, expected_tool_calls=[ExpectedToolCall("w", arguments)]))

    assert match({"city": "Oslo"}).passed
    assert match(None).passed
    wrong = match({"city": "Rome", "unit": "C"})
    assert (wrong.passed, wrong.reason) == (False, "w: city is 'Oslo', unit is missing")


def test_reasons_hold_no_secrets():
    expected = [ExpectedToolCall("login", {"password": "right"})]
    found = tool_call_args_match(with_call("login", {"password": "hunter2"}, expected_tool_calls=expected))
    assert not found.passed
    assert "hunter2" not in found.reason


def test_any_of_several_calls_may_match():
    twice = with_call("w", {"city": "Rome"}, expected_tool_calls=[ExpectedToolCall("w", {"city": "Oslo"})])
    twice.conversation += with_call("w", {"city": "Oslo"}).conversation
    assert tool_call_args_match(twice).passed
    assert not tool_call_args_match(item(expected_tool_calls=[ExpectedToolCall("w")])).passed


@pytest.mark.parametrize(
    ("value", "passed", "score"),
    [
        (True, True, None),
        (0.7, True, 0.7),
        (0, False, 0),
        (np.bool_(False), False, None),
        (np.float32(0.5), True, 0.5),
        ({"score": 0.7, "threshold": 0.8}, False, 0.7),
        ({"score": 0.1, "passed": True, "reason": "kind"}, True, 0.1),
        ({"passed": False}, False, None),
    ],
)
def test_what_a_function_may_return(value, passed, score):
    found = evaluator(lambda response: value, name="mine")(item())
    assert isinstance(found, CheckResult)
    assert (found.passed, found.score, found.check_name) == (passed, score, "mine")
    assert found.reason


@pytest.mark.parametrize("value", [None, "yes", {"score": "high"}, {"grade": 1}, [1]])
def test_what_it_may_not_return(value):
    with pytest.raises(TypeError):
        evaluator(lambda response: value, name="mine")(item())


def test_parameters_are_filled_by_name():
    seen: dict[str, Any] = {}

    @evaluator(name="all of them")
    def note(query, response, expected_output, expected_tool_calls, conversation, tools, context, *, mine=3):
        seen.update(locals())
        return True

    note(item(context="maps"))
    assert (seen["query"], seen["response"], seen["context"], seen["mine"]) == (
        "Capital of France?",
        "Paris",
        "maps",
        3,
    )
    assert (seen["expected_output"], seen["expected_tool_calls"], seen["tools"]) == ("", [], None)
    assert note.__name__ == "all of them"


def test_an_unknown_parameter_is_refused_at_once():
    with pytest.raises(TypeError):

        @evaluator
        def grade(answer: str) -> bool:
            return bool(answer)


async def test_async_functions_are_awaited():
    @evaluator
    async def judge(response: str) -> float:
        """Judge."""
        return len(response) / 10

    found = judge(item("Paris"))
    assert inspect.isawaitable(found)
    assert await found == CheckResult(True, "score 0.5", "judge", 0.5)
    assert judge.__doc__ == "Judge."


async def test_every_check_can_be_awaited():
    @evaluator
    def direct(response: str) -> CheckResult:
        return CheckResult(True, "as returned", "direct")

    @evaluator
    async def later(response: str) -> float:
        return 0.7

    for check in (keyword_check("rain"), tool_called_check("w"), tool_calls_present, tool_call_args_match, direct):
        found = check(with_call("w", {}))
        assert found.passed
        assert await found is found
    assert (await later(item("Paris"))).score == 0.7


async def test_checks_can_be_awaited_together():
    check = keyword_check("paris")
    results = await asyncio.gather(check(item("Paris")), check(item("Rome")), check(item("Paris")))
    assert [result.passed for result in results] == [True, False, True]

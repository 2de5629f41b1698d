"""Checks of one item, such as keywords in the response and tool calls."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeAlias, overload

from agentbench._secrets import is_secret_name, masked_repr
from agentbench.evaluation.items import EvalItem, ExpectedToolCall
from agentbench.evaluation.results import RubricScore

_PASSES_FROM = 0.5


@dataclass
class CheckResult:
    """The result of a check. It can be awaited and is then itself, so `await check(item)` suits sync and async checks.

    Args:
        passed: Whether the item passes.
        reason: The reason, for people.
        check_name: The name of the check.
        score: The score, if the check measures one; otherwise passing counts as 1 and failing as 0.
        dimensions: The scores of the single dimensions, if the check uses a rubric.

    Example:
        >>> CheckResult(True, "all keywords found", "keywords").passed
        True
    """

    passed: bool
    reason: str
    check_name: str
    score: float | None = None
    dimensions: list[RubricScore] = field(default_factory=list)

    def __await__(self) -> Generator[None, None, Self]:
        yield from ()
        return self

    def __hash__(self) -> int:  # asyncio.gather needs one
        return hash((self.passed, self.reason, self.check_name))


EvalCheck: TypeAlias = Callable[[EvalItem], CheckResult | Awaitable[CheckResult]]
"""A check: a sync or async function of an item."""


def keyword_check(*keywords: str, case_sensitive: bool = False) -> Callable[[EvalItem], CheckResult]:
    """Return a check that passes if all keywords occur in the response.

    Args:
        keywords: The words or phrases.
        case_sensitive: Whether to distinguish upper and lower case.

    Example:
        >>> check = keyword_check("paris")
        >>> check(EvalItem([Message("user", "Capital of France?"), Message("assistant", "Paris")])).passed
        True
    """

    def check(item: EvalItem) -> CheckResult:
        response = item.response if case_sensitive else item.response.lower()
        missing = [word for word in keywords if (word if case_sensitive else word.lower()) not in response]
        reason = f"missing: {', '.join(map(repr, missing))}" if missing else "all keywords found"
        return CheckResult(not missing, reason, "keyword_check")

    return _set_name(check, "keyword_check", keywords, case_sensitive)


def _set_name(
    check: Callable[[EvalItem], CheckResult], name: str, *arguments: object
) -> Callable[[EvalItem], CheckResult]:
    """Set the `__name__` of a check for results, and its `__qualname__` with the arguments to identify it."""
    check.__name__, check.__qualname__ = name, f"{name}{arguments}"
    return check


def tool_called_check(*names: str, mode: Literal["all", "any"] = "all") -> Callable[[EvalItem], CheckResult]:
    """Return a check that passes if tools were called anywhere in the conversation.

    Args:
        names: The names of the tools.
        mode: Whether `all` of them or `any` of them must be called.

    Raises:
        ValueError: The mode is neither `all` nor `any`.

    Example:
        from agentbench import LocalEvaluator, tool_called_check

        evaluator = LocalEvaluator(tool_called_check("search", "send", mode="any"))
    """
    if mode not in ("all", "any"):
        msg = f'mode is {mode!r}; expected "all" or "any".'
        raise ValueError(msg)

    def check(item: EvalItem) -> CheckResult:
        called = {call.name for call in item.tool_calls}
        missing = [name for name in names if name not in called]
        passed = not missing if mode == "all" else len(missing) < len(names) or not names
        reason = "called" if passed else f"not called: {', '.join(missing)}; called: {_list_names(called)}"
        return CheckResult(passed, reason, "tool_called_check")

    return _set_name(check, "tool_called_check", names, mode)


def tool_calls_present(item: EvalItem) -> CheckResult:
    """Check that every expected tool was called, in any order. Additional calls are allowed.

    Args:
        item: An item with `expected_tool_calls`; an item without them passes.

    Example:
        from agentbench import LocalEvaluator, tool_calls_present

        evaluator = LocalEvaluator(tool_calls_present)
    """
    called = {call.name for call in item.tool_calls}
    missing = [call.name for call in item.expected_tool_calls or () if call.name not in called]
    reason = (
        f"not called: {', '.join(missing)}; called: {_list_names(called)}" if missing else "all expected tools called"
    )
    return CheckResult(not missing, reason, "tool_calls_present")


def tool_call_args_match(item: EvalItem) -> CheckResult:
    """Check that every expected tool was called with the expected arguments. Additional arguments are allowed.

    Args:
        item: An item with `expected_tool_calls`; an item without them passes.

    Example:
        from agentbench import LocalEvaluator, tool_call_args_match

        evaluator = LocalEvaluator(tool_call_args_match)
    """
    problems = [problem for call in item.expected_tool_calls or () if (problem := _mismatch(call, item))]
    return CheckResult(not problems, "; ".join(problems) or "all expected calls found", "tool_call_args_match")


def _mismatch(expected: ExpectedToolCall, item: EvalItem) -> str:
    """Return how the closest call of the tool differs from the expected one; empty if a call matches."""
    calls = [call.parse_arguments() or {} for call in item.tool_calls if call.name == expected.name]
    if not calls:
        return f"{expected.name} not called"
    wanted = expected.arguments or {}
    absent: object = object()
    nearest = min(
        (
            {name: arguments.get(name, absent) for name in wanted if arguments.get(name, absent) != wanted[name]}
            for arguments in calls
        ),
        key=len,
    )
    found = (
        f"{name} is {'missing' if value is absent else '***' if is_secret_name(name) else repr(value)}"
        for name, value in nearest.items()
    )
    return f"{expected.name}: {', '.join(found)}" if nearest else ""


def _list_names(names: set[str | None]) -> str:
    return ", ".join(sorted(filter(None, names))) or "none"


@overload
def evaluator(function: Callable[..., Any], *, name: str | None = None) -> Callable[[EvalItem], Any]: ...
@overload
def evaluator(
    function: None = None, *, name: str | None = None
) -> Callable[[Callable[..., Any]], Callable[[EvalItem], Any]]: ...
def evaluator(function: Callable[..., Any] | None = None, *, name: str | None = None) -> Any:
    """Convert a sync or async function to a check.

    Args:
        function: The function. Its parameters are passed by name: `query`, `response`, `expected_output` (`""` if
            unset), `expected_tool_calls` (`[]` if unset), `conversation`, `tools`, `context`. It returns a bool; a
            score, which passes if it is at least 0.5; a dict with `score` (and optionally `threshold`, `passed` and
            `reason`) or with `passed`; or a `CheckResult`.
        name: The name of the check; by default the name of the function.

    Raises:
        TypeError: A required parameter has another name. Also raised by the check if the function returns another type.

    Example:
        >>> @evaluator
        ... def is_brief(response: str) -> float:
        ...     return 1 / (1 + len(response) / 100)
        >>> is_brief(EvalItem([Message("user", "Hi"), Message("assistant", "Hello!")])).passed
        True
    """
    if function is None:
        return lambda decorated: evaluator(decorated, name=name)
    label = str(name or getattr(function, "__name__", type(function).__name__))
    wanted = _parameter_names(function, label)

    def check(item: EvalItem) -> CheckResult | Awaitable[CheckResult]:
        value = function(**{parameter: _VALUES[parameter](item) for parameter in wanted})
        if inspect.isawaitable(value) and not isinstance(value, CheckResult):
            return _await_result(value, label)
        return _as_result(value, label)

    check.__name__ = check.__qualname__ = label
    check.__doc__ = function.__doc__
    return check


_VALUES: dict[str, Callable[[EvalItem], Any]] = {
    "query": lambda item: item.query,
    "response": lambda item: item.response,
    "expected_output": lambda item: item.expected_output or "",
    "expected_tool_calls": lambda item: item.expected_tool_calls or [],
    "conversation": lambda item: item.conversation,
    "tools": lambda item: item.tools,
    "context": lambda item: item.context,
}


def _parameter_names(function: Callable[..., Any], label: str) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    named = [one for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    unknown = [one.name for one in named if one.default is one.empty and one.name not in _VALUES]
    if unknown:
        msg = f"{label} has the unknown parameters {', '.join(unknown)}. Expected: {', '.join(_VALUES)}."
        raise TypeError(msg)
    return [one.name for one in named if one.name in _VALUES]


async def _await_result(value: Awaitable[Any], label: str) -> CheckResult:
    return _as_result(await value, label)


def _as_result(value: Any, label: str) -> CheckResult:
    if isinstance(value, CheckResult):
        return value
    if isinstance(value, Mapping) and "score" in value:
        score, threshold = _number(value["score"], label), _number(value.get("threshold", _PASSES_FROM), label)
        passed = bool(value.get("passed", score >= threshold))
        return CheckResult(
            passed, str(value.get("reason") or f"score {score:g}, threshold {threshold:g}"), label, score
        )
    if isinstance(value, Mapping) and "passed" in value:
        return CheckResult(bool(value["passed"]), str(value.get("reason") or _word(value["passed"])), label)
    if hasattr(value, "dtype"):  # a NumPy scalar
        value = value.item()
    if isinstance(value, bool):
        return CheckResult(value, _word(value), label)
    score = _number(value, label)
    return CheckResult(score >= _PASSES_FROM, f"score {score:g}", label, score)


def _number(value: Any, label: str) -> float:
    if isinstance(value, numbers.Real):
        return float(value)
    msg = (
        f"{label} returned {masked_repr(value)}. Expected a bool, a number, a dict with a numeric 'score' or with "
        "'passed', or a CheckResult."
    )
    raise TypeError(msg)


def _word(passed: object) -> str:
    return "passed" if passed else "failed"

"""The protocol of evaluators, and `LocalEvaluator`, which runs checks in this process."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import groupby
from typing import Any, Protocol, runtime_checkable

from agentbench._display import call_view
from agentbench._limits import require_limit
from agentbench._secrets import masked_repr
from agentbench.evaluation.checks import CheckResult, EvalCheck
from agentbench.evaluation.items import EvalItem
from agentbench.evaluation.results import EvalItemResult, EvalResults, EvalScoreResult
from agentbench.exceptions import EvalNotPassedError, MissingExtraError


@runtime_checkable
class Evaluator(Protocol):
    """Scores items, in this process or with a service.

    Attributes:
        name: The name of the evaluator in results.

    Example:
        from agentbench import LocalEvaluator, evaluate_agent, tool_called_check

        evaluator = LocalEvaluator(tool_called_check("search"))
        results = await evaluate_agent(agent=agent, queries=["Hello"], evaluators=evaluator)
    """

    name: str

    async def evaluate(self, items: Sequence[EvalItem], *, eval_name: str = ...) -> EvalResults:
        """Score the items.

        Args:
            items: The items.
            eval_name: The name of this evaluation.
        """
        ...


class LocalEvaluator:
    """Scores items with checks that run in this process.

    An item passes if all checks pass. If a check raises, the item counts as an error.

    Args:
        checks: Sync or async functions that return a `CheckResult`. `evaluator` converts other functions.
        name: The name of the evaluator in results.
        threshold: The share of the items that must pass in `run_and_check`, from 0 to 1.
        max_concurrency: The maximum number of items that are scored concurrently.
        progress: Whether to show a progress bar; by default only in notebooks.

    Raises:
        ValueError: There are no checks, or the threshold is not between 0 and 1.
        TypeError: A check is not callable.

    Example:
        >>> evaluator = LocalEvaluator(keyword_check("paris"), threshold=0.9)
        >>> item = EvalItem([Message("user", "Capital of France?"), Message("assistant", "Paris")])
        >>> (await evaluator.run_and_check([item])).passed
        1
    """

    def __init__(
        self,
        *checks: EvalCheck,
        name: str = "Local",
        threshold: float = 1.0,
        max_concurrency: int = 16,
        progress: bool | None = None,
    ) -> None:
        if not checks:
            msg = (
                "LocalEvaluator has no checks, so everything would pass. Pass at least one, such as keyword_check(...)."
            )
            raise ValueError(msg)
        candidates: tuple[object, ...] = checks
        if wrong := [check for check in candidates if not callable(check)]:
            msg = f"{wrong[0]!r} is neither a check, a function of an EvalItem, nor an evaluator."
            raise TypeError(msg)
        if not 0 <= threshold <= 1:
            msg = f"threshold is {threshold!r}; expected the share of items that must pass, from 0 to 1."
            raise ValueError(msg)
        self.checks, self.name, self.threshold = checks, name, threshold
        require_limit("max_concurrency", max_concurrency, least=1)
        self.max_concurrency, self.progress = max_concurrency, progress

    async def evaluate(self, items: Iterable[EvalItem], *, eval_name: str = "Local Eval") -> EvalResults:
        """Run all checks on all items.

        Args:
            items: The items.
            eval_name: The name of this evaluation.

        Returns:
            The results, with the items in order. The id of an item is its index.
        """
        labels = [getattr(check, "__name__", type(check).__name__) for check in self.checks]
        places = asyncio.Semaphore(self.max_concurrency)

        async def score(item: EvalItem) -> tuple[list[CheckResult], list[tuple[str, Exception]]]:
            if item.error is not None:
                advance()
                return [], [("response", item.error)]
            async with places:
                outcomes = await asyncio.gather(*(_run(check, item) for check in self.checks), return_exceptions=True)
            errors = []
            for label, outcome in zip(labels, outcomes, strict=True):
                if isinstance(outcome, Exception):
                    errors.append((label, outcome))
                elif isinstance(outcome, BaseException):
                    raise outcome
            advance()
            return [outcome for outcome in outcomes if isinstance(outcome, CheckResult)], errors

        items = list(items)
        with progress_bar(f"{eval_name}: checks", len(items), self.progress) as advance:
            scores = [asyncio.ensure_future(score(item)) for item in items]
            try:
                scored = await asyncio.gather(*scores)
            finally:
                for each in scores:
                    each.cancel()
        counts = {"passed": 0, "failed": 0, "errored": 0}
        per_check: dict[str, dict[str, int]] = {}
        results = []
        for index, (item, (checked, errors)) in enumerate(zip(items, scored, strict=True)):
            for name, outcome in [
                *((check.check_name, "passed" if check.passed else "failed") for check in checked),
                *((label, "errored") for label, _ in errors),
            ]:
                per_check.setdefault(name, dict.fromkeys(counts, 0))[outcome] += 1
            result = _item_result(str(index), item, checked, errors)
            counts["passed" if result.is_passed else "failed" if result.is_failed else "errored"] += 1
            results.append(result)
        return EvalResults(
            provider=self.name,
            eval_id="local",
            run_id=eval_name,
            result_counts=counts,
            per_evaluator=per_check,
            items=results,
        )

    async def run_and_check(
        self,
        items: Iterable[EvalItem],
        *,
        eval_name: str = "Local Eval",
        threshold: float | None = None,
        msg: str | None = None,
    ) -> EvalResults:
        """Run all checks and raise an error unless enough items pass.

        Args:
            items: The items.
            eval_name: The name of this evaluation.
            threshold: The share of the items that must pass, instead of the evaluator's threshold.
            msg: A text that replaces the first part of the error message.

        Raises:
            EvalNotPassedError: Too few items passed, an item is an error, or there are no items. Its attribute
                `results` contains the results.
        """
        results = await self.evaluate(items, eval_name=eval_name)
        needed = self.threshold if threshold is None else threshold
        if results.errored or not results.total or results.passed < needed * results.total:
            reason = (
                f"{msg or results.describe_failure()} Required: at least one item, {needed:.0%} passed, and no errors."
            )
            raise EvalNotPassedError(reason, results=results)
        return results

    def __repr__(self) -> str:
        names = ", ".join(getattr(check, "__name__", type(check).__name__) for check in self.checks)
        return f"LocalEvaluator({names}, name={self.name!r}, threshold={self.threshold:g})"


async def _run(check: EvalCheck, item: EvalItem) -> CheckResult:
    returned: object = check(item)
    result: object = await returned if inspect.isawaitable(returned) else returned
    if not isinstance(result, CheckResult):
        msg = f"The check returned {masked_repr(result)}, not a CheckResult. Decorate the function with @evaluator."
        raise TypeError(msg)
    return result


def _item_result(
    item_id: str, item: EvalItem, checked: list[CheckResult], errors: list[tuple[str, Exception]]
) -> EvalItemResult:
    reasons = [f"{check.check_name}: {check.reason}" for check in checked if not check.passed]
    texts = [f"{label}: {error}" for label, error in errors]
    codes = [getattr(error, "error_type", type(error).__name__) for _, error in errors]
    return EvalItemResult(
        item_id,
        "error" if errors else "fail" if reasons else "pass",
        [
            EvalScoreResult(
                check.check_name,
                float(check.passed) if check.score is None else check.score,
                check.passed,
                {"reason": check.reason},
                check.dimensions,
            )
            for check in checked
        ],
        error_code=codes[0] if codes else None,
        error_message="; ".join([*texts, *reasons]) or None,
        input_text=item.query,
        output_text=item.response,
        metadata=None if item.expected_output is None else {"expected_output": item.expected_output},
        conversation=item.conversation,
    )


def as_evaluators(candidates: Any, progress: bool | None) -> list[Evaluator]:
    """Return evaluators. Adjacent checks become one `LocalEvaluator`."""
    if not isinstance(candidates, (list, tuple)):
        candidates = [candidates]
    if not candidates:
        msg = "evaluators is empty. Pass a check or an evaluator."
        raise ValueError(msg)
    chosen: list[Evaluator] = []
    for are_evaluators, group in groupby(candidates, key=lambda candidate: isinstance(candidate, Evaluator)):
        members = list(group)
        chosen += members if are_evaluators else [LocalEvaluator(*members, progress=progress)]
    return chosen


async def score_items(items: Sequence[EvalItem], evaluators: Sequence[Evaluator], eval_name: str) -> list[EvalResults]:
    """Score the items with all evaluators concurrently."""
    names = [eval_name if len(evaluators) == 1 else f"{eval_name} ({each.name})" for each in evaluators]
    scores = [each.evaluate(items, eval_name=name) for each, name in zip(evaluators, names, strict=True)]
    return list(await asyncio.gather(*scores))


def progress_bar(name: str, total: int, progress: bool | None) -> AbstractContextManager[Callable[[], None]]:
    """Show how many of `total` items have ended, by default only in notebooks; call the result for each of them."""
    if progress or (progress is None and "ipykernel" in sys.modules):
        try:
            bar: Any = call_view("agentbench.notebook.progress_bar.progress:item_progress", name, total)
        except MissingExtraError:
            pass
        else:
            return bar  # type: ignore[no-any-return]
    return nullcontext(lambda: None)

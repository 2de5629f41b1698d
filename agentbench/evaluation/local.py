"""Evaluators: what every one of them is, and the one that runs checks in this process."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Protocol, runtime_checkable

from agentbench._limits import require_limit
from agentbench._secrets import masked_repr
from agentbench.evaluation.checks import CheckResult, EvalCheck
from agentbench.evaluation.items import EvalItem
from agentbench.evaluation.map_items import map_items
from agentbench.evaluation.results import EvalItemResult, EvalResults, EvalScoreResult
from agentbench.evaluation.resume_file import Path, ResumeFile, digest
from agentbench.exceptions import EvalNotPassedError


@runtime_checkable
class Evaluator(Protocol):
    """What scores items, in this process or by a service.

    Attributes:
        name: Its name in results.

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
            eval_name: Name of this evaluation.
        """
        ...


class LocalEvaluator:
    """Scores items by checks that run in this process. An item passes if all checks do; one that raises is an error.

    Args:
        checks: Functions that return a `CheckResult`, also async; `evaluator` makes them of plain functions.
        name: Its name in results.
        threshold: Share of the items that must pass in `run_and_check`, from 0 to 1.
        max_concurrency: Most items that are scored at once.
        progress: Whether there is a progress bar; by default in notebooks.

    Raises:
        ValueError: The checks are empty, or the threshold is not between 0 and 1.
        TypeError: A check cannot be called.

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
            msg = "LocalEvaluator has no check, so that everything would pass. Give at least one: keyword_check(...)."
            raise ValueError(msg)
        given: tuple[object, ...] = checks
        if wrong := [check for check in given if not callable(check)]:
            msg = f"{wrong[0]!r} is not a check; expected a function of an EvalItem."
            raise TypeError(msg)
        if not 0 <= threshold <= 1:
            msg = f"threshold is {threshold!r}; expected the share of items that must pass, from 0 to 1."
            raise ValueError(msg)
        self.checks, self.name, self.threshold = checks, name, threshold
        require_limit("max_concurrency", max_concurrency, least=1)
        self.max_concurrency, self.progress = max_concurrency, progress

    async def evaluate(
        self, items: Iterable[EvalItem], *, eval_name: str = "Local Eval", resume_file: Path | None = None
    ) -> EvalResults:
        """Run all checks on all items.

        Args:
            items: The items.
            eval_name: Name of this evaluation.
            resume_file: A file that gets each score as it is there. Items that have scores in it, by checks of the same
                names and arguments, are not scored again; errors are. Delete it after a check has changed.

        Returns:
            The results: items in order, with the index of each as its id.
        """
        stored = ResumeFile(resume_file)
        labels = [getattr(check, "__name__", type(check).__name__) for check in self.checks]
        identities = [getattr(check, "__qualname__", type(check).__qualname__) for check in self.checks]

        async def score(item: EvalItem) -> tuple[list[CheckResult], list[tuple[str, Exception]]]:
            if item.error is not None:
                return [], [("response", item.error)]
            key = "" if resume_file is None else digest("scores", self.name, identities, _content(item))
            if known := stored.get(key):
                return [CheckResult(**each) for each in known], []
            found = await asyncio.gather(*(_run(check, item) for check in self.checks), return_exceptions=True)
            checked = [each for each in found if isinstance(each, CheckResult)]
            errors = []
            for label, each in zip(labels, found, strict=True):
                if isinstance(each, Exception):
                    errors.append((label, each))
                elif isinstance(each, BaseException):
                    raise each
            if not errors:
                stored.put(key, [asdict(each) for each in checked])
            return checked, errors

        items = list(items)
        scored = await map_items(
            score, items, limit=self.max_concurrency, name=f"{eval_name}: checks", progress=self.progress
        )
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
        resume_file: Path | None = None,
    ) -> EvalResults:
        """Run all checks, and raise unless enough items pass.

        Args:
            items: The items.
            eval_name: Name of this evaluation.
            threshold: Share of the items that must pass, instead of the one of the evaluator.
            msg: Instead of the first part of the error's message.
            resume_file: See `evaluate`.

        Raises:
            EvalNotPassedError: Too few passed, an item was an error, or there are none; it has the `results`.
        """
        results = await self.evaluate(items, eval_name=eval_name, resume_file=resume_file)
        needed = self.threshold if threshold is None else threshold
        if results.errored or not results.total or results.passed < needed * results.total:
            reason = f"{msg or results.describe_failure()} Required: {needed:.0%} of at least one item, and no error."
            raise EvalNotPassedError(reason, results=results)
        return results

    def __repr__(self) -> str:
        names = ", ".join(getattr(check, "__name__", type(check).__name__) for check in self.checks)
        return f"LocalEvaluator({names}, name={self.name!r}, threshold={self.threshold:g})"


async def _run(check: EvalCheck, item: EvalItem) -> CheckResult:
    found = check(item)
    result: object = await found if inspect.isawaitable(found) else found
    if not isinstance(result, CheckResult):
        msg = f"It returned {masked_repr(result)}, not a CheckResult. Decorate a plain function with @evaluator."
        raise TypeError(msg)
    return result


def _item_result(
    item_id: str, item: EvalItem, checked: list[CheckResult], errors: list[tuple[str, Exception]]
) -> EvalItemResult:
    reasons = [f"{check.check_name}: {check.reason}" for check in checked if not check.passed]
    texts = [f"{label}: {error}" for label, error in errors]
    return EvalItemResult(
        item_id,
        "error" if errors else "fail" if reasons else "pass",
        [
            EvalScoreResult(
                check.check_name,
                float(check.passed) if check.score is None else check.score,
                check.passed,
                {"reason": check.reason},
            )
            for check in checked
        ],
        error_code=type(errors[0][1]).__name__ if errors else None,
        error_message="; ".join([*texts, *reasons]) or None,
        input_text=item.query,
        output_text=item.response,
        metadata=None if item.expected_output is None else {"expected_output": item.expected_output},
        conversation=item.conversation,
    )


def _content(item: EvalItem) -> list[Any]:
    """Return the key that identifies an item."""
    calls = [asdict(each) for each in item.expected_tool_calls or ()]
    return [[each.to_dict() for each in item.conversation], item.expected_output, calls, item.context]

"""Scoring of items with several evaluators."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from agentbench.evaluation.checks import EvalCheck
from agentbench.evaluation.items import EvalItem
from agentbench.evaluation.local import Evaluator, LocalEvaluator
from agentbench.evaluation.results import EvalResults
from agentbench.evaluation.resume_file import Path


def as_evaluators(candidates: Any, progress: bool | None) -> list[Evaluator]:
    """Return evaluators. Adjacent checks become one `LocalEvaluator`."""
    chosen: list[Evaluator] = []
    checks: list[EvalCheck] = []
    for candidate in candidates if isinstance(candidates, (list, tuple)) else [candidates]:
        if isinstance(candidate, Evaluator):
            chosen += [LocalEvaluator(*checks, progress=progress)] if checks else []
            chosen.append(candidate)
            checks = []
        elif callable(candidate):
            checks.append(candidate)
        else:
            msg = f"{candidate!r} is not an evaluator; expected an object with name and evaluate(), or a check."
            raise TypeError(msg)
    chosen += [LocalEvaluator(*checks, progress=progress)] if checks else []
    if not chosen:
        msg = "evaluators is empty. Pass a check or an evaluator."
        raise ValueError(msg)
    return chosen


async def score_items(
    items: Sequence[EvalItem], evaluators: Sequence[Evaluator], eval_name: str, resume_file: Path | None
) -> list[EvalResults]:
    """Score the items with all evaluators concurrently."""

    def score(evaluator: Evaluator) -> Any:
        name = eval_name if len(evaluators) == 1 else f"{eval_name} ({evaluator.name})"
        if isinstance(evaluator, LocalEvaluator):
            return evaluator.evaluate(items, eval_name=name, resume_file=resume_file)
        return evaluator.evaluate(items, eval_name=name)

    return list(await asyncio.gather(*map(score, evaluators)))

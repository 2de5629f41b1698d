"""Evaluators at work on items."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from agentbench.evaluation.checks import EvalCheck
from agentbench.evaluation.items import EvalItem
from agentbench.evaluation.local import Evaluator, LocalEvaluator
from agentbench.evaluation.results import EvalResults
from agentbench.evaluation.resume_file import Path


def as_evaluators(given: Any, progress: bool | None) -> list[Evaluator]:
    """Return evaluators; checks beside each other become one."""
    chosen: list[Evaluator] = []
    checks: list[EvalCheck] = []
    for each in given if isinstance(given, (list, tuple)) else [given]:
        if isinstance(each, Evaluator):
            chosen += [LocalEvaluator(*checks, progress=progress)] if checks else []
            chosen.append(each)
            checks = []
        elif callable(each):
            checks.append(each)
        else:
            msg = f"{each!r} is not an evaluator; expected an object with name and evaluate(), or a check."
            raise TypeError(msg)
    chosen += [LocalEvaluator(*checks, progress=progress)] if checks else []
    if not chosen:
        msg = "evaluators is empty; give a check or an evaluator."
        raise ValueError(msg)
    return chosen


async def score_items(
    items: Sequence[EvalItem], evaluators: Sequence[Evaluator], eval_name: str, resume_file: Path | None
) -> list[EvalResults]:
    """Let all evaluators score the items, at once."""

    def score(each: Evaluator) -> Any:
        name = eval_name if len(evaluators) == 1 else f"{eval_name} ({each.name})"
        if isinstance(each, LocalEvaluator):
            return each.evaluate(items, eval_name=name, resume_file=resume_file)
        return each.evaluate(items, eval_name=name)

    return list(await asyncio.gather(*map(score, evaluators)))

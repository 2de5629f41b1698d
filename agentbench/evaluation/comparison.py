"""Two evaluations of the same items: what became better, what became worse."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal

from agentbench._display import Displayable, call_view, drawn_by
from agentbench.evaluation.results import EvalItemResult, EvalResults

Change = Literal["fixed", "broken", "same", "added", "removed"]


@dataclass(frozen=True)
class ItemChange:
    """One item in two evaluations.

    Attributes:
        before: Its result in the first; `None` if it is not there.
        after: Its result in the second; `None` if it is not there.

    Example:
        from agentbench.evaluation import compare_evaluations

        for item_change in compare_evaluations(before, after).changes:
            print(item_change.change)
    """

    before: EvalItemResult | None
    after: EvalItemResult | None

    @property
    def change(self) -> Change:
        """Whether it was `fixed` or `broken`, is the `same`, or was `added` or `removed`."""
        if self.before is None:
            return "added"
        if self.after is None:
            return "removed"
        if self.before.is_passed == self.after.is_passed:
            return "same"
        return "fixed" if self.after.is_passed else "broken"


@drawn_by("agentbench.notebook.cards.evaluation:comparison_bundle")
class EvalComparison(Displayable):
    """Two evaluations side by side, as `compare_evaluations` returns them. A cell displays the items that changed.

    Attributes:
        before: The first evaluation.
        after: The second one.
        changes: Each item in both.

    Example:
        >>> comparison = compare_evaluations(before, after)
        >>> [change.after.item_id for change in comparison.broken]
        []
    """

    def __init__(self, before: EvalResults, after: EvalResults, changes: list[ItemChange]) -> None:
        self.before, self.after, self.changes = before, after, changes

    @property
    def fixed(self) -> list[ItemChange]:
        """Items that pass now and did not before."""
        return [each for each in self.changes if each.change == "fixed"]

    @property
    def broken(self) -> list[ItemChange]:
        """Items that passed before and do not now."""
        return [each for each in self.changes if each.change == "broken"]

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row for each item: `query`, `change`, then status, response and scores, before and after."""
        return [_row(each) for each in self.changes]

    def to_frame(self) -> Any:
        """Return the rows as a DataFrame; without pandas as a list of dictionaries."""
        return call_view("agentbench.notebook.frames.evaluations:comparison_frame", self)

    def __repr__(self) -> str:
        counts = Counter(each.change for each in self.changes)
        return f"EvalComparison({', '.join(f'{number} {change}' for change, number in sorted(counts.items()))})"


def compare_evaluations(before: EvalResults, after: EvalResults) -> EvalComparison:
    """Compare two evaluations item by item.

    Items belong together that have the same query; of several with one query, the first to the first and so on.

    Args:
        before: The earlier evaluation.
        after: The later one.

    Example:
        >>> comparison = compare_evaluations(before, after)
        >>> assert not comparison.broken
    """
    earlier, later = _by_query(before), _by_query(after)
    keys = [*later, *(key for key in earlier if key not in later)]
    return EvalComparison(before, after, [ItemChange(earlier.get(key), later.get(key)) for key in keys])


def _by_query(results: EvalResults) -> dict[tuple[Any, ...], EvalItemResult]:
    seen: Counter[tuple[str, str | None]] = Counter()
    found = {}
    for part, each in [("", results), *results.sub_results.items()]:
        for item in each.items:
            seen[part, item.input_text] += 1
            found[part, item.input_text, seen[part, item.input_text]] = item
    return found


def _row(each: ItemChange) -> dict[str, Any]:
    sides = {"before": each.before, "after": each.after}
    row: dict[str, Any] = {"query": (each.after or each.before).input_text, "change": each.change}  # type: ignore[union-attr]
    for field in ("status", "output_text"):
        name = "response" if field == "output_text" else field
        row |= {f"{name} {side}": getattr(item, field, None) for side, item in sides.items()}
    scores = {side: {score.name: score.score for score in item.scores} if item else {} for side, item in sides.items()}
    for name in dict.fromkeys([*scores["before"], *scores["after"]]):
        row |= {f"{name} {side}": found.get(name) for side, found in scores.items()}
    return row

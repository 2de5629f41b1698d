"""Comparison of two evaluations of the same items."""

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
        before: The result in the first evaluation; `None` if the item is missing there.
        after: The result in the second evaluation; `None` if the item is missing there.

    Example:
        from agentbench.evaluation import compare_evaluations

        for item_change in compare_evaluations(before, after).changes:
            print(item_change.change)
    """

    before: EvalItemResult | None
    after: EvalItemResult | None

    @property
    def change(self) -> Change:
        """The kind of the change: `fixed`, `broken`, `same`, `added` or `removed`."""
        if self.before is None:
            return "added"
        if self.after is None:
            return "removed"
        if self.before.is_passed == self.after.is_passed:
            return "same"
        return "fixed" if self.after.is_passed else "broken"


@drawn_by("agentbench.notebook.cards.evaluation:comparison_bundle")
class EvalComparison(Displayable):
    """The result of `compare_evaluations`. A notebook cell displays the items that changed.

    Attributes:
        before: The first evaluation.
        after: The second evaluation.
        changes: All items of both evaluations.

    Example:
        >>> comparison = compare_evaluations(before, after)
        >>> [change.after.item_id for change in comparison.broken]
        []
    """

    def __init__(self, before: EvalResults, after: EvalResults, changes: list[ItemChange]) -> None:
        self.before, self.after, self.changes = before, after, changes

    @property
    def fixed(self) -> list[ItemChange]:
        """The items that failed before and pass now."""
        return [item for item in self.changes if item.change == "fixed"]

    @property
    def broken(self) -> list[ItemChange]:
        """The items that passed before and fail now."""
        return [item for item in self.changes if item.change == "broken"]

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row for each item: `query`, `change`, then status, response and scores before and after."""
        return [_row(item) for item in self.changes]

    def to_frame(self) -> Any:
        """Return the rows as a DataFrame, or as a list of dictionaries if pandas is not installed."""
        return call_view("agentbench.notebook.frames.state_graph:comparison_frame", self)

    def __repr__(self) -> str:
        counts = Counter(item.change for item in self.changes)
        return f"EvalComparison({', '.join(f'{number} {change}' for change, number in sorted(counts.items()))})"


def compare_evaluations(before: EvalResults, after: EvalResults) -> EvalComparison:
    """Compare two evaluations item by item.

    Items with the same query are matched. If several items have the same query, they are matched in order.

    Args:
        before: The earlier evaluation.
        after: The later evaluation.

    Example:
        >>> comparison = compare_evaluations(before, after)
        >>> assert not comparison.broken
    """
    earlier, later = _by_query(before), _by_query(after)
    keys = [*later, *(key for key in earlier if key not in later)]
    return EvalComparison(before, after, [ItemChange(earlier.get(key), later.get(key)) for key in keys])


def _by_query(results: EvalResults) -> dict[tuple[Any, ...], EvalItemResult]:
    seen: Counter[tuple[str, str | None]] = Counter()
    by_query = {}
    for part, part_results in [("", results), *results.sub_results.items()]:
        for item in part_results.items:
            seen[part, item.input_text] += 1
            by_query[part, item.input_text, seen[part, item.input_text]] = item
    return by_query


def _row(item_change: ItemChange) -> dict[str, Any]:
    sides = {"before": item_change.before, "after": item_change.after}
    some = item_change.after or item_change.before
    row: dict[str, Any] = {"query": some.input_text, "change": item_change.change}  # type: ignore[union-attr]
    for name, field in (("status", "status"), ("response", "output_text")):
        row |= {f"{name} {side}": getattr(item, field, None) for side, item in sides.items()}
    scores = {side: {score.name: score.score for score in item.scores} if item else {} for side, item in sides.items()}
    for name in dict.fromkeys([*scores["before"], *scores["after"]]):
        row |= {f"{name} {side}": by_name.get(name) for side, by_name in scores.items()}
    return row

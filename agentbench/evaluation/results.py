"""Results of an evaluation, for each item and in total."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agentbench._display import Displayable, call_view, drawn_by
from agentbench.exceptions import EvalNotPassedError
from agentbench.messages.message import Message

_ERRORS = frozenset({"error", "errored"})
_NAMED = 5


@dataclass
class RubricScore:
    """The score of one dimension of a rubric, such as the clarity of an answer.

    Args:
        dimension: The name of the dimension.
        score: The score.
        reason: The reason, for people.

    Raises:
        TypeError: The score is not a number.

    Example:
        from agentbench import CheckResult, RubricScore

        dimensions = [RubricScore("clarity", 0.9), RubricScore("tone", 0.4, "It is rude.")]
        result = CheckResult(False, "rude", "style", 0.65, dimensions)
    """

    dimension: str
    score: float
    reason: str | None = None

    def __post_init__(self) -> None:
        """Check that the score is a number."""
        _require_number("score", self.score)


@dataclass
class EvalScoreResult:
    """The result of one check for one item.

    Attributes:
        name: The name of the check.
        score: The score; 1 or 0 if the check does not measure one.
        passed: Whether the item passes.
        sample: Details of the result; local checks store `{"reason": ...}`.
        dimensions: The scores of the single dimensions, if the check uses a rubric.

    Example:
        from agentbench import EvalScoreResult

        score = EvalScoreResult("is_polite", 1.0, passed=True)
    """

    name: str
    score: float
    passed: bool | None = None
    sample: dict[str, Any] | None = None
    dimensions: list[RubricScore] = field(default_factory=list)


@drawn_by("agentbench.notebook.cards.evaluation:item_bundle")
@dataclass
class EvalItemResult(Displayable):
    """The result of an evaluation for one item. A notebook cell displays the scores and the conversation.

    Attributes:
        item_id: The index of the item, or the id from a service.
        status: The status: `pass`, `fail`, `error` or `errored`.
        scores: The scores of all checks.
        error_code: The type of the error.
        error_message: The text of the error, or the reasons of failed checks.
        response_id: The id of the response.
        input_text: The query.
        output_text: The response.
        token_usage: The numbers of tokens by kind.
        metadata: Other information about the item.
        conversation: The messages that were scored.

    Example:
        for item in results.items:
            print(item.item_id, item.status, [score.name for score in item.scores if not score.passed])
    """

    item_id: str
    status: str
    scores: list[EvalScoreResult] = field(default_factory=list)
    error_code: str | None = None
    error_message: str | None = None
    response_id: str | None = None
    input_text: str | None = None
    output_text: str | None = None
    token_usage: dict[str, int] | None = None
    metadata: dict[str, Any] | None = None
    conversation: list[Message] | None = field(default=None, repr=False)

    @property
    def is_error(self) -> bool:
        """Whether the item could not be scored."""
        return self.status in _ERRORS

    @property
    def is_passed(self) -> bool:
        """Whether all checks passed."""
        return self.status == "pass"

    @property
    def is_failed(self) -> bool:
        """Whether a check failed."""
        return self.status == "fail"


@drawn_by("agentbench.notebook.cards.evaluation:results_bundle")
class EvalResults(Displayable):
    """The results of an evaluation. A notebook cell displays them as a table, with failed items first.

    Args:
        provider: The name of the evaluator or service.
        eval_id: The id of the evaluation.
        run_id: The name or id of this run of the evaluation.
        status: The status; `completed` if everything was evaluated.
        result_counts: The numbers of items by outcome: `passed`, `failed`, `errored`.
        report_url: The address of the report of a service.
        error: The reason why the evaluation itself failed.
        per_evaluator: The same counts for each check.
        items: The result of each item.
        sub_results: The results of parts, such as the agents of a workflow, by name.

    Example:
        >>> results = EvalResults(provider="Local", result_counts={"passed": 2, "failed": 1, "errored": 0})
        >>> results.passed, results.total, results.all_passed
        (2, 3, False)
    """

    def __init__(  # noqa: PLR0913 - a record: one parameter per field
        self,
        *,
        provider: str,
        eval_id: str = "",
        run_id: str = "",
        status: str = "completed",
        result_counts: dict[str, int] | None = None,
        report_url: str | None = None,
        error: str | None = None,
        per_evaluator: dict[str, dict[str, int]] | None = None,
        items: list[EvalItemResult] | None = None,
        sub_results: dict[str, EvalResults] | None = None,
    ) -> None:
        self.provider, self.eval_id, self.run_id, self.status = provider, eval_id, run_id, status
        self.result_counts, self.report_url, self.error = result_counts, report_url, error
        self.per_evaluator = per_evaluator or {}
        self.items = items or []
        self.sub_results = sub_results or {}

    @property
    def passed(self) -> int:
        """The number of items that passed."""
        return (self.result_counts or {}).get("passed", 0)

    @property
    def failed(self) -> int:
        """The number of items that failed."""
        return (self.result_counts or {}).get("failed", 0)

    @property
    def errored(self) -> int:
        """The number of items that could not be scored."""
        return (self.result_counts or {}).get("errored", 0)

    @property
    def total(self) -> int:
        """The number of items that were scored: passed and failed."""
        return self.passed + self.failed

    @property
    def all_passed(self) -> bool:
        """Whether the evaluation completed and every item passed, including all parts. False if there are no items."""
        own = self.total > 0 and not self.failed and not self.errored
        if self.sub_results and self.result_counts is None:
            own = True
        return self.status == "completed" and own and all(part.all_passed for part in self.sub_results.values())

    def raise_for_status(self, msg: str | None = None) -> None:
        """Raise an error unless all items passed.

        Args:
            msg: A text that replaces the first part of the message, which contains the name of the run and its counts.

        Raises:
            EvalNotPassedError: An item failed or was not scored. Its attribute `results` contains these results.
        """
        if not self.all_passed:
            raise EvalNotPassedError(self.describe_failure(msg), results=self)

    def assert_no_failed_items(self) -> None:
        """Raise an error if a check failed for an item, also of a part. Items that could not be scored are ignored.

        Raises:
            EvalNotPassedError: An item failed. Its attribute `results` contains these results.

        Example:
            results.assert_no_failed_items()
        """
        failed = [name for name, item in self._all_items() if item.is_failed]
        if failed:
            self._refuse(f"failed items: {_first(failed)}")

    def assert_score_at_least(self, minimum: float, name: str | None = None) -> None:
        """Raise an error if a score is too low, also in a part.

        Args:
            minimum: The lowest score that is accepted for an item.
            name: The name of the check; by default all checks.

        Raises:
            EvalNotPassedError: A score is too low, or there is none. Its attribute `results` contains these results.
            TypeError: The minimum is not a number.

        Example:
            results.assert_score_at_least(0.7, "relevance")
        """
        scores = [(item, score.score) for item, score in self._all_scores() if name is None or score.name == name]
        self._refuse_low(scores, minimum, "score" if name is None else f"score of {name!r}")

    def assert_dimension_score_at_least(self, dimension: str, minimum: float) -> None:
        """Raise an error if the score of a dimension of a rubric is too low, also in a part.

        Args:
            dimension: The name of the dimension.
            minimum: The lowest score that is accepted for an item.

        Raises:
            EvalNotPassedError: A score is too low, or there is none. Its attribute `results` contains these results.
            TypeError: The minimum is not a number.

        Example:
            results.assert_dimension_score_at_least("clarity", 0.7)
        """
        scores = [
            (item, one.score)
            for item, score in self._all_scores()
            for one in score.dimensions
            if one.dimension == dimension
        ]
        self._refuse_low(scores, minimum, f"score of the dimension {dimension!r}")

    def _refuse_low(self, scores: list[tuple[str, float]], minimum: float, what: str) -> None:
        _require_number("minimum", minimum)
        low = [f"{item} ({score:g})" for item, score in scores if not score >= minimum]  # NaN is too low
        if not scores:
            self._refuse(f"there is no {what}")
        elif low:
            self._refuse(f"{what} below {minimum:g}: {_first(low)}")

    def _refuse(self, problem: str) -> None:
        msg = f"Evaluation {self.run_id or self.eval_id or self.provider!r} did not pass: {problem}."
        raise EvalNotPassedError(msg, results=self)

    def _all_scores(self) -> Iterator[tuple[str, EvalScoreResult]]:
        return ((name, score) for name, item in self._all_items() for score in item.scores)

    def _all_items(self) -> Iterator[tuple[str, EvalItemResult]]:
        """Yield the items, also of parts, with their ids, which contain the names of the parts."""
        yield from ((item.item_id, item) for item in self.items)
        for part, results in self.sub_results.items():
            yield from ((f"{part}/{name}", item) for name, item in results._all_items())  # noqa: SLF001 - the same class

    def describe_failure(self, msg: str | None = None) -> str:
        """Describe the failure in one line: counts, and the names of failed parts and items without their contents."""
        parts = [msg or f"Evaluation {self.run_id or self.eval_id or self.provider!r} did not pass: {self._counts()}"]
        if self.status != "completed":
            parts.append(f"status: {self.status}")
        if self.error:
            parts.append(f"error: {self.error}")
        parts += [
            f"{outcome}: {_first(names)}"
            for outcome, names in (
                ("failing parts", [name for name, part in self.sub_results.items() if not part.all_passed]),
                ("failed items", [item.item_id for item in self.items if item.is_failed]),
                ("errored items", [item.item_id for item in self.items if item.is_error]),
            )
            if names
        ]
        if self.report_url:
            parts.append(f"report: {self.report_url}")
        return "; ".join(parts) + "."

    def _counts(self) -> str:
        return f"{self.passed:,} passed, {self.failed:,} failed, {self.errored:,} errored"

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row for each item: `item`, `status`, `query`, `response`, the scores, `error`.

        The score of a check has the name of the check, and that of a dimension of its rubric a name such as
        `style: clarity`. If several have the same name, ` (2)` and so on is appended. With parts, there is also a
        column `part`.
        """
        if self.sub_results:
            own = [{"part": "", **row} for row in self._own_rows()]
            return own + [
                {**row, "part": "/".join(filter(None, (name, row.get("part", ""))))}
                for name, part in self.sub_results.items()
                for row in part.to_rows()
            ]
        return self._own_rows()

    def _own_rows(self) -> list[dict[str, Any]]:
        rows = []
        for item in self.items:
            row: dict[str, Any] = {
                "item": item.item_id, "status": item.status, "query": item.input_text, "response": item.output_text,
            }  # fmt: skip
            seen: dict[str, int] = {}
            for name, score in _named_scores(item):
                seen[name] = number = seen.get(name, 0) + 1
                row[name if number == 1 else f"{name} ({number})"] = score
            rows.append({**row, "error": item.error_message})
        return rows

    def to_frame(self) -> Any:
        """Return the rows as a DataFrame with numeric scores, or as a list of dictionaries without pandas."""
        return call_view("agentbench.notebook.frames.state_graph:results_frame", self)

    def __repr__(self) -> str:
        run = f", {self.run_id!r}" if self.run_id else ""
        status = "" if self.status == "completed" else f", {self.status}"
        parts = f", {len(self.sub_results)} parts" if self.sub_results else ""
        return f"EvalResults({self.provider!r}{run}, {self._counts()}{status}{parts})"


def _named_scores(item: EvalItemResult) -> Iterator[tuple[str, float]]:
    for score in item.scores:
        yield score.name, score.score
        yield from ((f"{score.name}: {one.dimension}", one.score) for one in score.dimensions)


def _first(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _require_number(name: str, value: object) -> None:
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        message = f"{name} is {value!r}; expected a number."
        raise TypeError(message)

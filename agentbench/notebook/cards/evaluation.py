"""Evaluations as tables: items that did not pass come first, with their conversation to unfold."""

from __future__ import annotations

from typing import Any

from agentbench._text.escape import esc
from agentbench._text.phrases import count_text
from agentbench.evaluation.comparison import EvalComparison, ItemChange
from agentbench.evaluation.results import EvalItemResult, EvalResults
from agentbench.notebook.cards.conversation.views import transcript
from agentbench.notebook.look.html import Markup, Page, Table, element

_ROWS = 20
_TRANSCRIPTS = 10
_TEXT = 160


def results_bundle(results: EvalResults) -> dict[str, Any]:
    """Return an evaluation by media type: its counts, a row for each check, and the items."""
    parts = [(name, _share(part)) for name, part in results.sub_results.items()]
    checks = [
        (name, _share_text(*map(counts.get, ("passed", "failed", "errored"))), _mean(results, name))
        for name, counts in results.per_evaluator.items()
    ]
    tables = [Table("Checks", ("check", "items", "score"), checks), Table("Parts", ("part", "items"), parts)]
    notes = [results.error or "", "" if results.status == "completed" else results.status, results.report_url or ""]
    facts = [results.provider, _share(results), *filter(None, notes)]
    state, look = ("passed", "done") if results.all_passed else ("not passed", "failed")
    items = sorted(results.items, key=lambda item: (item.is_passed, item.is_failed))

    def page(*, unfold: bool) -> Page:
        return Page(results.run_id or "Evaluation", state, look, facts, [*tables, _items(items, unfold=unfold)])

    return {"text/plain": page(unfold=False).text(), "text/html": page(unfold=True).html()}


def item_bundle(item: EvalItemResult) -> dict[str, Any]:
    """Return one item by media type: its scores, then the conversation."""
    words = {None: "", True: "passed", False: "failed"}
    rows = [
        row
        for score in item.scores
        for row in [
            (score.name, f"{score.score:g}", words[score.passed], (score.sample or {}).get("reason", "")),
            *((f"{score.name}: {one.dimension}", f"{one.score:g}", "", one.reason or "") for one in score.dimensions),
        ]
    ]
    facts = [f"{item.error_code}: {item.error_message}"] if item.is_error else []
    facts += [f"expected: {_expected_output(item)}"] if _expected_output(item) else []
    page = Page(
        f"Item {item.item_id}",
        item.status,
        "done" if item.status == "pass" else "failed",
        facts,
        [Table("Scores", ("check", "score", "outcome", "reason"), rows)],
    )
    talk = transcript(item.conversation or [])
    return {"text/plain": f"{page.text()}\n{talk.text}", "text/html": page.html() + talk.html}


def comparison_bundle(comparison: EvalComparison) -> dict[str, Any]:
    """Return two evaluations side by side by media type: counts, and the items that changed."""
    changed = sorted(
        (each for each in comparison.changes if each.change != "same"), key=lambda each: each.change != "broken"
    )
    broken = len(comparison.broken)
    sides = [("before", _share(comparison.before)), ("after", _share(comparison.after))]
    return Page(
        "Comparison of evaluations",
        f"{broken} broken" if broken else "nothing broken",
        "failed" if broken else "done",
        [f"{len(comparison.fixed)} fixed", f"{len(comparison.changes) - len(changed)} the same"],
        [
            Table("Evaluations", ("", "items"), sides),
            Table("Changed items", ("change", "query", "before", "after"), [_change_row(each) for each in changed]),
        ],
    ).bundle()


def _items(items: list[EvalItemResult], *, unfold: bool) -> Table:
    has_expected = any(_expected_output(item) for item in items)
    rows = []
    for place, item in enumerate(items[:_ROWS]):
        response: Any = item.output_text or ""
        if unfold and not item.is_passed and item.conversation and place < _TRANSCRIPTS:
            summary = element("summary", Markup(esc(response, limit=_TEXT)) if response else "no response")
            response = element("details", summary, Markup(transcript(item.conversation).html))
        expected = [_expected_output(item)] if has_expected else []
        rows.append((item.item_id, item.status, item.input_text or "", response, *expected, item.error_message or ""))
    head = ("item", "status", "query", "response", *(["expected"] if has_expected else []), "why")
    if len(items) > _ROWS:
        more = f"{len(items) - _ROWS:,} more, in items and to_frame()"
        rows.append(("…", "", more, *[""] * (len(head) - 3)))
    return Table("Items", head, rows, limit=_TEXT if unfold else None)


def _expected_output(item: EvalItemResult) -> str:
    return str((item.metadata or {}).get("expected_output", ""))


def _share(results: EvalResults) -> str:
    return _share_text(results.passed, results.failed, results.errored)


def _share_text(passed: int | None, failed: int | None, errored: int | None) -> str:
    passed, failed, errored = passed or 0, failed or 0, errored or 0
    errors = f", {count_text(errored, 'error')}" if errored else ""
    return f"{passed:,} of {count_text(passed + failed + errored, 'item')} passed{errors}"


def _mean(results: EvalResults, check: str) -> str:
    scores = [score.score for item in results.items for score in item.scores if score.name == check]
    return f"mean {sum(scores) / len(scores):.3g}" if scores else ""


def _change_row(each: ItemChange) -> tuple[str, ...]:
    known = each.after or each.before
    sides = (
        "" if item is None else f"{item.status}: {item.output_text or item.error_message or ''}"
        for item in (each.before, each.after)
    )
    return each.change, str(known.input_text if known else ""), *sides

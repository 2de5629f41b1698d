"""The static displays of a batch, its rows, and the comparison of two batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agentbench.batch.comparison import compare_rows
from agentbench.batch.rows import BatchRow, RowError, RowStatus
from agentbench.notebook.batches.cards import batch_bundle
from tests.notebook.attacks import ATTACKS
from tests.notebook.test_hostile_text import check_bundle
from tests.parts.batches import FakeBatch, many_rows


def text(shown: Any) -> list[str]:
    return str(shown._repr_mimebundle_()["text/plain"]).splitlines()


def test_a_batch_shows_counts_errors_and_its_latest_rows_and_no_times_when_outputs_are_compared():
    batch = FakeBatch(many_rows(40), rate=3.5, remaining_s=9.0, state="running", budget={"tokens": (5580, 9000)})
    lines = batch_bundle(batch)["text/plain"].splitlines()
    assert lines[0] == (
        "Batch reviews: running, 40 of 40 inputs, 35 finished, 4 failed, 1 waiting, 5,580 of 9,000 tokens, cost 0.04"
    )
    assert lines[1:6] == ["errors", "  TimeoutError  2", "  ValueError    2", "latest 10 rows", lines[5]]
    assert lines[8].split(maxsplit=2) == ["row-00033", "failed", "ValueError: no answer for 33"]
    assert len(lines) == 15


def test_a_row_shows_its_input_its_error_and_the_end_of_the_traceback():
    assert text(many_rows(4)[3]) == [
        "Row row-00003: failed, position 3, 1 attempt",
        "  input             {'text': 'review 3', 'stars': 3, 'api_key': •••}",
        "  error             TimeoutError: no answer for 3",
        "  raised by         check, superstep 1",
        "  path              read > (check, rate)",
        "  tokens            103 read, 20 written",
        "  cost              0.001",
        "  run               run-3",
        "traceback",
        "  Traceback: TimeoutError",
    ]


def test_a_comparison_shows_the_most_serious_differences_first():
    rows = many_rows(100)
    other = [replace(row, output="another") if row.position < 60 and row.output else row for row in rows]
    other[3] = replace(rows[4], key="row-00003", position=3)
    lines = text(compare_rows(rows, other))
    assert lines[0] == "Comparison of batches: new errors, 1 new error, 52 changed, 47 same"
    assert lines[2].split(maxsplit=3)[:3] == ["row-00003", "new", "error"]
    assert lines[-1].split(maxsplit=3) == ["…", "3", "more", "in .changed and .frame()"]
    frame = compare_rows(rows, other).frame()
    assert frame["verdict"].value_counts().to_dict() == {"changed": 52, "same": 47, "new error": 1}


def test_hostile_text_is_inert_and_secrets_are_masked():
    for attack in ATTACKS:
        error = RowError(attack, f"{attack} api_key=sk-planted", attack, f"{attack}\npassword=sk-planted")
        row = BatchRow(
            attack, 0, {attack: attack, "token": "sk-planted"}, RowStatus.FAILED, [attack], error, path=attack
        )
        other = replace(row, output=None, path=f"{attack} > x")
        progress: dict[str, Any] = {"budget": {attack: (1.0, 2.0)}, "reason": attack}
        batch = FakeBatch([row], name=attack, **progress)
        for bundle in (
            row._repr_mimebundle_(),
            batch_bundle(batch),
            compare_rows([row], [other])._repr_mimebundle_(),
        ):
            check_bundle(bundle)
            assert "sk-planted" not in str(bundle)


def test_an_unknown_number_of_inputs_is_said():
    bundle = batch_bundle(FakeBatch(many_rows(2), total=None))
    assert bundle["text/plain"].startswith("Batch reviews: done, 2 inputs of a number not known yet, 2 finished")

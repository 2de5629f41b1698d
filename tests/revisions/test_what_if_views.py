"""A what-if in a cell: the summary, the frame and the tree of paths; hostile texts and secrets in them."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench.batch import BatchRow, RowError, RowStatus
from agentbench.revisions import WhatIf
from agentbench.revisions.what_if.results import WhatIfSummary
from tests.notebook.attacks import ATTACKS
from tests.notebook.test_hostile_text import check_bundle, check_svg, check_text

pytest.importorskip("pandas")
SECRET = "correct-horse-battery-staple"


def result_of(outputs: dict[str, list[Any]], path: str = "judge > write", notes: list[str] | None = None) -> WhatIf:
    """Return a what-if with these outputs by variant; an exception is a failure."""
    rows = {}
    for variant, values in outputs.items():
        for number, value in enumerate(values, 1):
            error = RowError(type(value).__name__, str(value)) if isinstance(value, Exception) else None
            status = RowStatus.FAILED if error else RowStatus.FINISHED
            output = None if error else value
            key = f"{variant}/{number}"
            row = BatchRow(key, 0, None, status, output, error, path=path, supersteps=2, tokens_in=3, cost=0.5)
            rows[variant, number] = row
    batch: Any = None
    return WhatIf(rows, 1, 5, batch, notes or [])


COINS = {
    "as it was": ["yes"] * 9 + ["no"],
    "other model": ["no"] * 5,
    "same": ["yes"] * 5,
}


def test_the_summary_says_what_changed_and_how_much_the_run_varies_by_itself() -> None:
    result = result_of(COINS)
    assert str(result.summary()).splitlines() == [
        "as it was: 1 of 10 differ from its most typical outcome",
        "other model: 5 of 5 differ; effect, p = 0.002; output: here no, there yes",
        "same: 0 of 5 differ; no effect found, p = 0.67",
    ]
    plain = str(result._repr_mimebundle_()["text/plain"])
    assert plain.splitlines()[0] == "What if: 1 effect, 20 runs, from superstep 1"
    assert "effect, p = 0.002" in plain
    assert repr(result) == "WhatIf(20 branches of 3 variants from superstep 1)"
    assert repr(result.summary()) == "WhatIfSummary(1 of 2 variants had an effect)"


def test_the_frame_has_a_row_for_each_branch() -> None:
    frame = result_of({"as it was": ["yes", OSError("down")], "x": ["no"]}).frame()
    columns = "variant repeat status output path supersteps tokens cost seconds divergence error"
    assert list(frame.columns) == columns.split()
    assert frame["output"].tolist() == ["yes", None, "no"]
    assert frame["error"].tolist()[1] == "OSError: down"
    assert frame["divergence"].tolist()[2] == "output: here no, there yes"
    assert frame.groupby("variant", observed=True)["tokens"].sum().to_dict() == {"as it was": 6, "x": 3}


def test_the_plot_is_a_tree_of_paths_with_counts() -> None:
    result = result_of({"as it was": ["yes", "yes"], "x": [OSError("down")]})
    other = result_of({"y": ["no"]}, path="judge > ask > write")
    plot = WhatIf({**result._rows, **other._rows}, 1, 1, result.batch).plot()
    assert plot.text.splitlines() == [
        "3 paths of 4 runs from superstep 1",
        "judge  (as it was 2, x 1, y 1)",
        "  write  (as it was 2, x 1)",
        "    = finished  (as it was 2)",
        "    = failed  (x 1)",
        "  ask  (y 1)",
        "  write  (y 1)",
        "  = finished  (y 1)",
    ]
    check_svg(plot.svg)
    assert plot.frame["runs"].tolist() == [2, 1, 1]


def test_texts_of_models_and_names_of_variants_do_nothing_in_any_view() -> None:
    for attack in ATTACKS:
        result = result_of({"as it was": ["fine"], attack: [attack, OSError(attack)]}, attack, [attack])
        check_bundle(result._repr_mimebundle_())
        check_bundle(result.summary()._repr_mimebundle_())
        check_text(str(result.summary()))
        check_svg(result.plot().svg)
        check_text(result.plot().text)


def test_secrets_are_masked_in_every_view() -> None:
    outputs: dict[str, list[Any]] = {
        "as it was": ["fine"],
        f"api_key={SECRET}": [{"api_key": SECRET}, OSError(f"token={SECRET}")],
    }
    result = result_of(outputs, notes=[f"stopped because of password={SECRET}"])
    summary: WhatIfSummary = result.summary()
    shown = [result._repr_mimebundle_(), summary._repr_mimebundle_(), str(summary)]
    plot = result.plot()
    shown += [plot.svg, plot.text, plot.frame.to_csv(), result.frame().to_csv()]
    assert [each for each in shown if SECRET in str(each)] == []
    named = result_of({"as it was": ["fine"], "a": [{"api_key": SECRET}, OSError(f"token={SECRET}")]})
    assert SECRET not in repr(named.rows)

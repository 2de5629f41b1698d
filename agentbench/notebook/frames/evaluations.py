"""Evaluations and comparisons as data frames; without pandas as lists of dictionaries."""

from importlib.util import find_spec
from typing import Any

from agentbench.evaluation.comparison import EvalComparison
from agentbench.evaluation.results import EvalResults
from agentbench.notebook.frames.columns import build_frame
from agentbench.notebook.history.sources import Chosen

_KINDS = {"part": "category", "item": "string", "status": "category", "change": "category"}
_TEXTS = frozenset({"query", "response", "error"})


def results_frame(results: EvalResults) -> Any:
    """Tabulate the items of an evaluation.

    Shapes:
        Columns `item` string, `status` category, `query`, `response` string, one Float64 column for each check, `error`
        string; with parts first `part` category.
    """
    return _frame("evaluation", results.to_rows())


def comparison_frame(comparison: EvalComparison) -> Any:
    """Tabulate two evaluations item by item.

    Shapes:
        Columns `query` string, `change` category; then `status`, `response` and each check, twice: their names
        end with ` before` and ` after`.
    """
    return _frame("comparison", comparison.to_rows())


def _frame(name: str, rows: list[dict[str, Any]]) -> Any:
    if find_spec("pandas") is None:
        return rows
    names = dict.fromkeys(column for row in rows for column in row)
    if "error" in names:
        names = dict.fromkeys([*(column for column in names if column != "error"), "error"])
    columns: Any = {column: (_kind(column), [row.get(column) for row in rows]) for column in names}
    return build_frame(name, columns, chosen=Chosen(), full=True)


def _kind(column: str) -> str:
    plain = column.removesuffix(" before").removesuffix(" after")
    return _KINDS.get(plain) or ("string" if plain in _TEXTS else "Float64")

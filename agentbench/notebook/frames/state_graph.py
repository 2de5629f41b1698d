"""Threads and calls of state graphs as data frames; without pandas as lists of dictionaries."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from agentbench._secrets import mask_secrets
from agentbench.evaluation.comparison import EvalComparison
from agentbench.evaluation.results import EvalResults
from agentbench.notebook.frames.columns import Column, build_frame
from agentbench.notebook.history.sources import Chosen
from agentbench.stategraph.results import GraphResult, messages_of, token_usage
from agentbench.stategraph.snapshots import StateSnapshot
from agentbench.stategraph.threads.history import StateHistory
from agentbench.stategraph.threads.thread_call import flat_config


def history_frame(history: StateHistory, fields: Sequence[str], full: bool = False) -> Any:
    """Tabulate the checkpoints of a thread, oldest first, with some fields of the state.

    Shapes:
        Columns `checkpoint_id`, `parent_id` string, `created` datetime64[ns, UTC], `source`, `status` category, `step`
        int64, `writers`, `next`, `changed` object (lists of names), `tokens` int64 (of the conversation so far),
        `duration_ms` Float64, `thread_id` category; then one object column for each field. Empty ones are
        omitted and ids other than `checkpoint_id` shortened, unless `full`.
    """
    rows = [_of_snapshot(snapshot, history.thread_id, fields) for snapshot in reversed(history)]
    kinds: dict[str, Any] = {
        "checkpoint_id": "string", "parent_id": "string", "created": "time", "source": "category",
        "status": "category", "step": "int64", "writers": "object", "next": "object", "changed": "object",
        "tokens": "int64", "duration_ms": "Float64", "thread_id": "category", **dict.fromkeys(fields, "object"),
    }  # fmt: skip
    return _table("history", rows, kinds, full=full)


def result_frame(result: GraphResult[Any]) -> Any:
    """Tabulate the tasks of a call, one row each, in the order of supersteps and tasks.

    Shapes:
        Columns `step`, `order` int64, `node` category, `task_id` string, `changed` object (list of fields).
    """
    kinds: dict[str, Any] = {
        "step": "int64", "order": "int64", "node": "category", "task_id": "string", "changed": "object",
    }  # fmt: skip
    return _table("tasks", [dict(zip(kinds, task, strict=True)) for task in result.tasks], kinds, full=True)


def _of_snapshot(snapshot: StateSnapshot[Any], thread_id: Any, fields: Sequence[str]) -> dict[str, Any]:
    values: Any = snapshot.values
    stored = values if isinstance(values, Mapping) else values.__dict__
    found, duration_s = snapshot.metadata, snapshot.metadata.get("duration_s")
    return {
        "checkpoint_id": flat_config(snapshot.config)["checkpoint_id"],
        "parent_id": flat_config(snapshot.parent_config).get("checkpoint_id"),
        "created": snapshot.created_at,
        "source": found["source"],
        "status": snapshot.status and snapshot.status.value,
        "step": snapshot.step,
        "writers": list(found.get("writers", ())),
        "next": list(snapshot.next),
        "changed": list(found.get("changed", ())),
        "tokens": token_usage(messages_of(values))["total_tokens"],
        "duration_ms": None if duration_s is None else duration_s * 1000,
        "thread_id": str(thread_id),
        **{name: mask_secrets(stored.get(name), key=name) for name in fields},
    }


def _table(name: str, rows: Sequence[Mapping[str, Any]], kinds: Mapping[str, Any], *, full: bool) -> Any:
    if find_spec("pandas") is None:
        return rows
    columns: dict[str, Column] = {column: (kind, [row[column] for row in rows]) for column, kind in kinds.items()}
    return build_frame(name, columns, key="checkpoint_id", chosen=Chosen(), full=full)


_KINDS = {"part": "category", "item": "string", "status": "category", "change": "category"}
_TEXTS = frozenset({"query", "response", "error"})


def results_frame(results: EvalResults) -> Any:
    """Tabulate the items of an evaluation.

    Shapes:
        Columns `item` string, `status` category, `query`, `response` string, one Float64 column for each check
        and each dimension of a rubric, `error` string; with parts first `part` category.
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

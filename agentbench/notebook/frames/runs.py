"""Runs and their requests to people, as data frames."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentbench.checkpoints.info import CheckpointInfo
from agentbench.notebook.forms.questions import request_kind
from agentbench.notebook.frames.columns import Kind, build_frame
from agentbench.notebook.frames.usage import Prices, known_prices
from agentbench.notebook.history.requests import requests_of
from agentbench.notebook.history.run_history import RunHistory
from agentbench.notebook.history.sources import (
    Chosen,
    Since,
    read_infos,
    read_runs,
    time_ns,
)
from agentbench.notebook.history.usage import calls_of, sum_usages
from agentbench.notebook.runtime.prices import Price
from agentbench.notebook.text.redact import mask_secrets

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["requests_frame", "runs_frame"]


def requests_frame(
    source: Any,
    *,
    workflow_name: str | None = None,
    run_id: str | None = None,
    since: Since | None = None,
    limit: int | None = None,
) -> "pd.DataFrame":
    """Tabulate the requests that runs made to people, one row each, in the order in which they were made.

    Args:
        source: A storage, a run, a result, or a list of those.
        workflow_name: Only this chain.
        run_id: Only requests of this run.
        since: Only from this superstep (a number) or this time (a datetime, ISO 8601 text) on.
        limit: At most so many rows, the last ones.

    Shapes:
        Index `request_id` string; columns `kind` category (`approval`, `choice`, `text`, `form`), `executor` category,
        `superstep` int64, `asked`, `answered` datetime64[ns, UTC], `wait_s` float64, `answer` object, secrets masked,
        `checkpoint_id` string, `run_id` category. Answers and their times, in the run itself or in one that went on
        from it, are read from checkpoints, and so is the last checkpoint in which the request waits: without
        checkpoints they are NaT, NaN and NA. `answer` is None while a request waits, and NA if it was answered and no
        checkpoint has the answer: only checkpoints store answers.

    Units: `wait_s` is in seconds.

    Example:
        requests_frame(storage)["wait_s"].max()
    """
    chosen = Chosen(workflow_name, run_id, since, limit)
    requests = requests_of(source, workflow_name=workflow_name, run_id=run_id)
    rows = chosen.last([each for each in requests if chosen.includes(each.superstep, each.asked_ns)])
    return build_frame(
        "requests",
        {
            "request_id": ("string", [each.request.request_id for each in rows]),
            "kind": ("category", [request_kind(each.request.data, each.request.response_type) for each in rows]),
            "executor": ("category", [each.request.source_executor_id for each in rows]),
            "superstep": ("int64", [each.superstep for each in rows]),
            "asked": ("time", [each.asked_ns for each in rows]),
            "answered": ("time", [each.answered_ns for each in rows]),
            "wait_s": ("float64", [each.wait_s for each in rows]),
            "answer": ("object", [mask_secrets(each.answer) for each in rows]),
            "checkpoint_id": ("string", [each.checkpoint_id for each in rows]),
            "run_id": ("category", [each.run_id for each in rows]),
        },
        index=["request_id"],
        chosen=chosen,
    )


def runs_frame(
    source: Any,
    *,
    workflow_name: str | None = None,
    run_id: str | None = None,
    prices: Prices | None = None,
    since: Since | None = None,
    limit: int | None = None,
) -> "pd.DataFrame":
    """Tabulate runs, one row each, in the order in which they are met.

    Args:
        source: A storage, a run, a result, or a list of those. For a run that is known from checkpoints alone, the
            status is that of the last checkpoint, and NA where messages wait in it: a storage does not know whether
            the run is still at work, has failed, which leaves no checkpoint, or broke off. Pass the run to know, and
            for its error.
        workflow_name: Only runs of this chain.
        run_id: Only this run.
        prices: What a million tokens cost, by model name; see `usage_frame`.
        since: Only runs that came as far as this superstep (a number), or started at this time (a datetime, ISO 8601
            text) or later.
        limit: At most so many rows, the last ones.

    Shapes:
        Index `run_id` string; columns `status` category, `started` datetime64[ns, UTC], `duration_s` float64,
        `supersteps`, `checkpoints` int64, `tokens_in`, `tokens_out`, `tokens_cached` Int64, `cost` Float64,
        `forked_from`, `error` string. Tokens are NA where no model was called, or the run is known from checkpoints
        alone; `cost` is NA unless it is known of every call. `forked_from` is the checkpoint that was forked.

    Units: `duration_s` is in seconds, from the first to the last event or checkpoint of the run; `cost` in the currency
        of the prices.

    Raises:
        ValueError: `prices` has another form.

    Example:
        runs_frame(storage, prices={"gpt-4o": (2.5, 10)}).sort_values("cost")
    """
    chosen = Chosen(workflow_name, run_id, since, limit)
    known = known_prices(prices)
    infos = read_infos(source, chosen)
    written: dict[str | None, list[CheckpointInfo]] = {}
    for info in infos.rows:
        if info.run_id is not None:  # no run wrote a fork
            written.setdefault(info.run_id, []).append(info)
    found, listed = [], set()
    for run in read_runs(source, chosen):
        if run.run_id is None or run.run_id not in listed:  # a run and its result are one
            listed.add(run.run_id)
            found.append(_row(run, written.pop(run.run_id, []), infos.by_id, known))
    found += [
        _row(RunHistory(each, status=_status_of(own[-1])), own, infos.by_id, known) for each, own in written.items()
    ]
    rows = chosen.last([row for row in found if chosen.includes(row["supersteps"], row["started"])])
    return build_frame(
        "runs",
        {name: (kind, [row[name] for row in rows]) for name, kind in _KINDS.items()},
        index=["run_id"],
        chosen=chosen,
    )


_KINDS: dict[str, Kind] = {
    "run_id": "string",
    "status": "category",
    "started": "time",
    "duration_s": "float64",
    "supersteps": "int64",
    "checkpoints": "int64",
    "tokens_in": "Int64",
    "tokens_out": "Int64",
    "tokens_cached": "Int64",
    "cost": "Float64",
    "forked_from": "string",
    "error": "string",
}


def _row(
    run: RunHistory, own: Sequence[CheckpointInfo], by_id: Mapping[str, CheckpointInfo], prices: Mapping[str, Price]
) -> dict[str, Any]:
    """One row, from the events of a run where it has any, else from its checkpoints."""
    times = [event.time_ns for event in run.events if event.time_ns is not None] or [time_ns(i.timestamp) for i in own]
    started, ended = (times[0], times[-1]) if times else (None, None)
    used = sum_usages(call.used for call in calls_of(run, prices))
    return {
        "run_id": run.run_id,
        "status": run.status,
        "started": started,
        "duration_s": float("nan") if started is None or ended is None else (ended - started) / 1e9,
        "supersteps": max((*(info.iteration for info in own), *run.numbers), default=0),
        "checkpoints": len(own),
        "tokens_in": used.tokens_in,
        "tokens_out": used.tokens_out,
        "tokens_cached": used.tokens_cached,
        "cost": used.cost,
        "forked_from": _origin(own, by_id),
        "error": run.error,
    }


def _status_of(last: CheckpointInfo) -> str | None:
    """Return the state of a run, read from its last checkpoint; `None` where messages wait in it."""
    if last.source == "error":
        return "FAILED"
    if last.source == "stop":
        return "CANCELLED"
    if last.n_messages:
        return None
    return "IDLE_WITH_PENDING_REQUESTS" if last.n_requests else "IDLE"


def _origin(own: Sequence[CheckpointInfo], by_id: Mapping[str, CheckpointInfo]) -> str | None:
    """The checkpoint that a run was forked from: its first one goes on from the fork, which names the original."""
    if not own:
        return None
    before = by_id.get(own[0].previous_checkpoint_id or "")
    fork = own[0] if before is None or before.run_id is not None else before
    return fork.forked_from

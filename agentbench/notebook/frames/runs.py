"""Runs as data frames: events, executors, model calls, requests to people."""

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentbench._secrets import mask_secrets
from agentbench._text.redact import line_preview
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.messages.prices import Price, read_prices
from agentbench.notebook.forms.questions import request_kind
from agentbench.notebook.frames.columns import Column, Kind, build_frame
from agentbench.notebook.history.requests import calls_with_waits, requests_of
from agentbench.notebook.history.run_history import Event, RunHistory, unwrap_event
from agentbench.notebook.history.sources import Chosen, Name, Since, read_infos, read_runs, time_ns
from agentbench.notebook.history.usage import calls_of, sum_usages
from agentbench.notebook.runtime import settings

if TYPE_CHECKING:
    import pandas as pd

Prices = Mapping[str, Price | tuple[float, float] | tuple[float, float, float]]
"""By model name: a `Price`, or two or three numbers."""

_NAN = float("nan")


def events_frame(
    source: Any, *, run_id: Name = None, since: Since = None, limit: int | None = None, full: bool = False
) -> "pd.DataFrame":
    """Tabulate the events of runs, one row each, in emission order.

    Args:
        source: A run, a result, a list of events, or a list of those.
        run_id: Only this run.
        since: Only from this superstep (a number) or this time (a datetime, ISO 8601 text) on.
        limit: Maximum number of rows, the last ones.
        full: Include empty columns, and whole ids instead of their first 8 characters.

    Shapes:
        Index `seq` int64; columns `time` datetime64[ns, UTC], `superstep` Int64, `type`, `executor` category,
        `duration_ms` float64, `attempt` Int64 (from 1, for executors with retries or on workers), `worker` category
        (its address), `span_id`, `parent_span_id` string, `preview` string of at most 120 characters, secrets masked,
        `run_id` category. In runs that were not observed, `seq` and `superstep` follow the order of the events; times
        and attempts are missing. Events of a sub-workflow have `outer/inner` as executor, and the superstep of the
        outer run.

    Units: `duration_ms` is the duration of the call or superstep that ended with the event, in milliseconds.

    Example:
        events_frame(run).query("type == 'executor_failed'")
    """
    chosen = Chosen(None, run_id, since, limit)
    rows: list[tuple[Event, int, int, str | None]] = []
    for run in read_runs(source, chosen, events_wanted=True):
        rows += zip(run.events, run.numbers, itertools.count(1), itertools.repeat(run.run_id))
    if since is not None:
        rows = [row for row in rows if chosen.includes(row[1], row[0].time_ns)]
    rows = chosen.last(rows)
    events = [unwrap_event(event) for event, _, _, _ in rows]
    return build_frame(
        "events",
        {
            "seq": ("int64", [place if (seq := event.seq) is None else seq for event, _, place, _ in rows]),
            "time": ("time", [event.time_ns for event in events]),
            "superstep": ("Int64", [superstep for _, superstep, _, _ in rows]),
            "type": ("category", [event.type for event in events]),
            "executor": ("category", [event.source_id for event in events]),
            "duration_ms": ("float64", [_scale(event.duration_s, 1e3) for event in events]),
            "attempt": ("Int64", [event.attempt for event in events]),
            "worker": ("category", [event.worker for event in events]),
            "span_id": ("string", [event.span_id for event in events]),
            "parent_span_id": ("string", [event.parent_span_id for event in events]),
            "preview": ("string", [_preview(event) for event in events]),
            "run_id": ("category", [run_id for _, _, _, run_id in rows]),
        },
        index=["seq"],
        chosen=chosen,
        full=full,
    )


def timeline_frame(
    source: Any, *, run_id: Name = None, since: Since = None, limit: int | None = None, full: bool = False
) -> "pd.DataFrame":
    """Tabulate the calls of executors, one row per executor and superstep, in plan order.

    Args:
        source: A run, a result, a list of events, or a list of those.
        run_id: Only this run.
        since: Only from this superstep (a number) or this time (a datetime, ISO 8601 text) on.
        limit: Maximum number of rows, the last ones.
        full: Include empty columns, and whole ids instead of their first 8 characters.

    Shapes:
        Index (`superstep` int64, `executor` string); columns `start`, `end` datetime64[ns, UTC], `duration_ms` float64,
        `status` category (`completed`, `failed`, `waiting`, `running`, `cancelled`, `bypassed`), `wait_ms` float64,
        `messages_in`, `messages_out` int64, `worker` string (addresses), `run_id` category. Times are NaT in runs that
        were not observed.

    Units: milliseconds. `duration_ms` is from the first call to the last end; `wait_ms` is the time from the
    requests of the executor to their responses, NaN without requests or if the time of the response is unknown.

    Example:
        timeline_frame(run).groupby("executor")["duration_ms"].sum()
    """
    chosen = Chosen(None, run_id, since, limit)
    rows = chosen.last(
        [
            (run.run_id, call)
            for run in read_runs(source, chosen, events_wanted=True)
            for call in calls_with_waits(run)
            if chosen.includes(call.superstep, call.start_ns)
        ]
    )
    calls = [call for _, call in rows]
    return build_frame(
        "timeline",
        {
            "superstep": ("int64", [call.superstep for call in calls]),
            "executor": ("string", [call.executor for call in calls]),
            "start": ("time", [call.start_ns for call in calls]),
            "end": ("time", [call.end_ns for call in calls]),
            "duration_ms": ("float64", [_scale(call.duration_ns, 1e-6) for call in calls]),
            "status": ("category", [call.status for call in calls]),
            "wait_ms": ("float64", [_scale(call.wait_ns, 1e-6) for call in calls]),
            "messages_in": ("int64", [call.messages_in for call in calls]),
            "messages_out": ("int64", [call.messages_out for call in calls]),
            "worker": ("string", [", ".join(call.workers) or None for call in calls]),
            "run_id": ("category", [run for run, _ in rows]),
        },
        index=["superstep", "executor"],
        chosen=chosen,
        full=full,
    )


def usage_frame(
    source: Any,
    *,
    prices: Prices | None = None,
    run_id: Name = None,
    since: Since = None,
    limit: int | None = None,
    full: bool = False,
) -> "pd.DataFrame":
    """Tabulate the model calls, one row per `model_usage` event, in the order in which they ended.

    Args:
        source: A run, a result, a list of events, or a list of those.
        prices: Prices per million tokens, by model name: `{"model": Price(input=2.0, output=8.0)}`, or numbers
            `(2.0, 8.0)`. They override those of `configure(prices=...)`; there are no built-in prices.
        run_id: Only this run.
        since: Only from this superstep (a number) or this time (a datetime, ISO 8601 text) on.
        limit: Maximum number of rows, the last ones.
        full: Include empty columns, and whole ids instead of their first 8 characters.

    Shapes:
        Index (`superstep` int64, `executor` string, `call` int64), where `call` is the call's number within executor
        and superstep, from 1; columns `model` category, `tokens_in`, `tokens_out`, `tokens_cached` Int64, `cost`
        Float64, `latency_ms` float64, `run_id` category. `tokens_cached` is a part of `tokens_in`. Counts that the
        client does not report are NA, and so is `cost` if no price is known.

    Units: `cost` in the currency of the prices, or as reported by the event; `latency_ms` in milliseconds.

    Raises:
        ValueError: `prices` has the wrong format.

    Example:
        usage_frame(run, prices={"gpt-4o": (2.5, 10)})["cost"].sum()
    """
    chosen = Chosen(None, run_id, since, limit)
    price_table = known_prices(prices)
    rows = chosen.last(
        [
            (run.run_id, call)
            for run in read_runs(source, chosen, events_wanted=True)
            for call in calls_of(run, price_table)
            if chosen.includes(call.superstep, call.at_ns)
        ]
    )
    calls = [call for _, call in rows]
    return build_frame(
        "usage",
        {
            "superstep": ("int64", [call.superstep for call in calls]),
            "executor": ("string", [call.executor for call in calls]),
            "call": ("int64", [call.call for call in calls]),
            "model": ("category", [call.model for call in calls]),
            "tokens_in": ("Int64", [call.used.tokens_in for call in calls]),
            "tokens_out": ("Int64", [call.used.tokens_out for call in calls]),
            "tokens_cached": ("Int64", [call.used.tokens_cached for call in calls]),
            "cost": ("Float64", [call.used.cost for call in calls]),
            "latency_ms": ("float64", [_scale(call.latency_ms) for call in calls]),
            "run_id": ("category", [each for each, _ in rows]),
        },
        index=["superstep", "executor", "call"],
        chosen=chosen,
        full=full,
    )


def requests_frame(
    source: Any,
    *,
    workflow_name: Name = None,
    run_id: Name = None,
    since: Since = None,
    limit: int | None = None,
    full: bool = False,
) -> "pd.DataFrame":
    """Tabulate the requests of runs to people, one row each, in order.

    Args:
        source: A storage, a run, a result, or a list of those.
        workflow_name: Only this chain.
        run_id: Only requests of this run.
        since: Only from this superstep (a number) or this time (a datetime, ISO 8601 text) on.
        limit: Maximum number of rows, the last ones.
        full: Include empty columns, and whole ids instead of their first 8 characters.

    Shapes:
        Index `request_id` string; columns `kind` category (`approval`, `choice`, `text`, `message`, `form`), `executor`
        category, `superstep` int64, `asked`, `answered` datetime64[ns, UTC], `wait_s` float64, `answer` object, secrets
        masked, `checkpoint_id` string, `run_id` category. Answers and their times, from the run itself or from a run
        resumed from it, are read from checkpoints, and so is the last checkpoint in which the request is open: without
        checkpoints they are NaT, NaN and NA. `answer` is None for an open request, `withdrawn` if it was withdrawn, and
        NA if it was answered but no checkpoint stores the answer.

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
        full=full,
    )


def runs_frame(
    source: Any,
    *,
    workflow_name: Name = None,
    run_id: Name = None,
    prices: Prices | None = None,
    since: Since = None,
    limit: int | None = None,
    full: bool = False,
) -> "pd.DataFrame":
    """Tabulate runs, one row each, in the order of the sources.

    Args:
        source: A storage, a run, a result, or a list of those. If only checkpoints of a run are available, its status
            is that of the last checkpoint, and NA if messages are queued in it, because a storage cannot tell whether
            the run is still running, has failed (which saves no checkpoint) or was interrupted. Pass the run for its
            status and its error.
        workflow_name: Only runs of this chain.
        run_id: Only this run.
        prices: Prices per million tokens, by model name; see `usage_frame`.
        since: Only runs that reached this superstep (a number), or started at this time (a datetime, ISO 8601
            text) or later.
        limit: Maximum number of rows, the last ones.
        full: Include empty columns, and whole ids instead of their first 8 characters.

    Shapes:
        Index `run_id` string; columns `status` category, `started` datetime64[ns, UTC], `duration_s` float64,
        `supersteps`, `checkpoints` int64, `tokens_in`, `tokens_out`, `tokens_cached` Int64, `cost` Float64,
        `forked_from`, `error` string. `supersteps` includes that of the start executors, number 0. Tokens are NA
        if no model was called or only checkpoints are available; `cost` is NA unless it is known for every
        call. `forked_from` is the checkpoint that was forked.

    Units: `duration_s` is in seconds, from the first to the last event or checkpoint of the run; `cost` in the currency
        of the prices.

    Raises:
        ValueError: `prices` has another form.

    Example:
        runs_frame(storage, prices={"gpt-4o": (2.5, 10)}).sort_values("cost")
    """
    chosen = Chosen(workflow_name, run_id, since, limit)
    price_table = known_prices(prices)
    infos = read_infos(source, chosen)
    written: dict[str | None, list[CheckpointInfo]] = {}
    for info in infos.rows:
        if info.run_id is not None:  # a fork has no run
            written.setdefault(info.run_id, []).append(info)
    runs_with_infos, listed = [], set()
    for run in read_runs(source, chosen):
        if run.run_id is None or run.run_id not in listed:  # a run and its result are the same run
            listed.add(run.run_id)
            runs_with_infos.append((run, written.pop(run.run_id, [])))
    runs_with_infos += [(RunHistory(run_infos, status=status_of(own[-1])), own) for run_infos, own in written.items()]
    rows = []
    for run, own in runs_with_infos:
        times = [event.time_ns for event in run.events if event.time_ns is not None]
        times = times or [at for info in own if (at := time_ns(info.timestamp)) is not None]
        numbers = {call.superstep for call in run.calls} or {info.iteration for info in own}
        if chosen.includes(max(numbers, default=0), times[0] if times else None):
            used = sum_usages(call.used for call in calls_of(run, price_table))
            row = {
                "run_id": run.run_id,
                "status": run.status,
                "started": times[0] if times else None,
                "duration_s": (times[-1] - times[0]) / 1e9 if times else _NAN,
                "supersteps": len(numbers),
                "checkpoints": len(own),
                "tokens_in": used.tokens_in,
                "tokens_out": used.tokens_out,
                "tokens_cached": used.tokens_cached,
                "cost": used.cost,
                "forked_from": _origin(own, infos.by_id),
                "error": run.error,
            }
            rows.append(row)
    rows = chosen.last(rows)
    columns: dict[str, Column] = {name: (kind, [row[name] for row in rows]) for name, kind in _KINDS.items()}
    return build_frame("runs", columns, index=["run_id"], chosen=chosen, full=full)


_KINDS: dict[str, Kind] = {
    "run_id": "string",
    "status": "category",
    "started": "time",
    "duration_s": "float64",
    **dict.fromkeys(("supersteps", "checkpoints"), "int64"),
    **dict.fromkeys(("tokens_in", "tokens_out", "tokens_cached"), "Int64"),
    "cost": "Float64",
    "forked_from": "string",
    "error": "string",
}


def status_of(last: CheckpointInfo) -> str | None:
    """Return the status of a run from its last checkpoint; `None` if messages are queued in it."""
    if last.source == "error":
        return "FAILED"
    if last.source == "stop":
        return "CANCELLED"
    if last.n_messages:
        return None
    return "IDLE_WITH_PENDING_REQUESTS" if last.n_requests else "IDLE"


def _origin(own: Sequence[CheckpointInfo], by_id: Mapping[str, CheckpointInfo]) -> str | None:
    """Return the checkpoint that a run was forked from: the parent of its first one is the fork, which names it."""
    if not own:
        return None
    before = by_id.get(own[0].previous_checkpoint_id or "")
    fork = own[0] if before is None or before.run_id is not None else before
    return fork.forked_from


def known_prices(prices: Prices | None) -> dict[str, Price]:
    """Return the prices of `configure`, overridden by the validated `prices`."""
    return {**settings.current().prices, **read_prices(prices)}


def _scale(number: float | None, factor: float = 1.0) -> float:
    return _NAN if number is None else number * factor


def _preview(event: Event) -> str:
    if event.details is not None:
        return line_preview(f"{event.details.error_type}: {event.details.message}")
    if event.state is not None:
        return str(event.state)
    if event.data is None or event.type in ("superstep_started", "superstep_completed"):
        return ""
    return line_preview(getattr(event.data, "checkpoint_id", event.data))

"""What happened in runs, as data frames."""

import itertools
from typing import TYPE_CHECKING, Any

from agentbench.notebook.frames.columns import build_frame
from agentbench.notebook.history.requests import calls_with_waits
from agentbench.notebook.history.run_history import Event
from agentbench.notebook.history.sources import Chosen, Since, read_runs
from agentbench.notebook.text.redact import line_preview

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["events_frame", "timeline_frame"]

_NAN = float("nan")


def events_frame(
    source: Any, *, run_id: str | None = None, since: Since | None = None, limit: int | None = None
) -> "pd.DataFrame":
    """Tabulate the events of runs, one row each, in the order in which they were emitted.

    Args:
        source: A run, a result, a list of events, or a list of those.
        run_id: Only this run.
        since: Only from this superstep (a number) or this time (a datetime, ISO 8601 text) on.
        limit: At most so many rows, the last ones.

    Shapes:
        Index `seq` int64; columns `time` datetime64[ns, UTC], `superstep` Int64, `type`, `executor` category,
        `duration_ms` float64, `attempt` Int64 (from 1, of calls of an executor with retries), `span_id`,
        `parent_span_id` string, `preview` string of at most 120 characters, secrets masked, `run_id` category. In runs
        that were not observed `seq` and `superstep` follow the order of the events, times and attempts are missing.

    Units: `duration_ms` is the duration of the call or superstep that ended with the event, in milliseconds.

    Example:
        events_frame(run).query("type == 'executor_failed'")
    """
    chosen = Chosen(None, run_id, since, limit)
    runs = read_runs(source, chosen, events_wanted=True)
    rows: list[tuple[Event, int, int, str | None]] = []
    for run in runs:
        rows += zip(run.events, run.numbers, itertools.count(1), itertools.repeat(run.run_id))
    if since is not None:
        rows = [row for row in rows if chosen.includes(row[1], row[0].time_ns)]
    rows = chosen.last(rows)
    events = [event for event, _, _, _ in rows]
    return build_frame(
        "events",
        {
            "seq": ("int64", [place if (seq := event.seq) is None else seq for event, _, place, _ in rows]),
            "time": ("time", [event.time_ns for event in events]),
            "superstep": ("Int64", [superstep for _, superstep, _, _ in rows]),
            "type": ("category", [event.type for event in events]),
            "executor": ("category", [event.source_id for event in events]),
            "duration_ms": ("float64", [_ms(event.duration_s) for event in events]),
            "attempt": ("Int64", [event.attempt for event in events]),
            "span_id": ("string", [event.span_id for event in events]),
            "parent_span_id": ("string", [event.parent_span_id for event in events]),
            "preview": ("string", [_preview(event) for event in events]),
            "run_id": ("category", [run_id for _, _, _, run_id in rows]),
        },
        index=["seq"],
        chosen=chosen,
    )


def timeline_frame(
    source: Any, *, run_id: str | None = None, since: Since | None = None, limit: int | None = None
) -> "pd.DataFrame":
    """Tabulate what each executor did in each superstep, one row per executor and superstep, in plan order.

    Args:
        source: A run, a result, a list of events, or a list of those.
        run_id: Only this run.
        since: Only from this superstep (a number) or this time (a datetime, ISO 8601 text) on.
        limit: At most so many rows, the last ones.

    Shapes:
        Index (`superstep` int64, `executor` string); columns `start`, `end` datetime64[ns, UTC], `duration_ms` float64,
        `status` category (`completed`, `failed`, `waiting`, `running`, `cancelled`, `bypassed`), `wait_ms` float64,
        `messages_in`, `messages_out` int64, `run_id` category. Times are NaT in runs that were not observed.

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
            "duration_ms": ("float64", [_ms_of_ns(call.duration_ns) for call in calls]),
            "status": ("category", [call.status for call in calls]),
            "wait_ms": ("float64", [_ms_of_ns(call.wait_ns) for call in calls]),
            "messages_in": ("int64", [call.messages_in for call in calls]),
            "messages_out": ("int64", [call.messages_out for call in calls]),
            "run_id": ("category", [run for run, _ in rows]),
        },
        index=["superstep", "executor"],
        chosen=chosen,
    )


def _ms(duration_s: float | None) -> float:
    return _NAN if duration_s is None else duration_s * 1000


def _ms_of_ns(duration_ns: int | None) -> float:
    return _NAN if duration_ns is None else duration_ns / 1e6


def _preview(event: Event) -> str:
    if event.details is not None:
        return line_preview(f"{event.details.error_type}: {event.details.message}")
    if event.state is not None:
        return str(event.state)
    if event.type == "checkpoint_saved":
        return line_preview(getattr(event.data, "checkpoint_id", event.data))
    if event.data is None or event.type in ("superstep_started", "superstep_completed"):
        return ""
    return line_preview(event.data)

"""Calls of models as a data frame."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentbench.notebook.frames.columns import build_frame
from agentbench.notebook.history.sources import Chosen, Since, read_runs
from agentbench.notebook.history.usage import calls_of
from agentbench.notebook.runtime import settings
from agentbench.notebook.runtime.prices import Price, read_prices

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Prices", "known_prices", "usage_frame"]

#: By model name: a `Price`, or two or three numbers for one.
Prices = Mapping[str, Price | tuple[float, float] | tuple[float, float, float]]


def usage_frame(
    source: Any,
    *,
    prices: Prices | None = None,
    run_id: str | None = None,
    since: Since | None = None,
    limit: int | None = None,
) -> "pd.DataFrame":
    """Tabulate the calls of models, one row per `model_usage` event, in the order in which they ended.

    Args:
        source: A run, a result, a list of events, or a list of those.
        prices: What a million tokens cost, by model name: `{"model": Price(input=2.0, output=8.0)}`, or numbers
            `(2.0, 8.0)`. They come before those of `configure(prices=...)`; there are no others.
        run_id: Only this run.
        since: Only from this superstep (a number) or this time (a datetime, ISO 8601 text) on.
        limit: At most so many rows, the last ones.

    Shapes:
        Index (`superstep` int64, `executor` string, `call` int64), `call` being the number of the call within executor
        and superstep, from 1; columns `model` category, `tokens_in`, `tokens_out`, `tokens_cached` Int64, `cost`
        Float64, `latency_ms` float64, `run_id` category. `tokens_cached` is a part of `tokens_in`. Counts that the
        client does not report are NA, and so is `cost` where no price is known.

    Units: `cost` in the currency of the prices, or as reported by the event; `latency_ms` in milliseconds.

    Raises:
        ValueError: `prices` has another form.

    Example:
        usage_frame(run, prices={"gpt-4o": (2.5, 10)})["cost"].sum()
    """
    chosen = Chosen(None, run_id, since, limit)
    known = known_prices(prices)
    rows = chosen.last(
        [
            (run.run_id, call)
            for run in read_runs(source, chosen, events_wanted=True)
            for call in calls_of(run, known)
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
            "latency_ms": ("float64", [_NAN if call.latency_ms is None else call.latency_ms for call in calls]),
            "run_id": ("category", [each for each, _ in rows]),
        },
        index=["superstep", "executor", "call"],
        chosen=chosen,
    )


_NAN = float("nan")


def known_prices(prices: Prices | None) -> dict[str, Price]:
    """Return the prices of `configure`, overridden by those passed.

    Raises:
        ValueError: They have another form.
    """
    return {**settings.current().prices, **read_prices(prices)}

"""Pure: the usage of model calls, read from the `model_usage` events of a run, and sums of it."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from agentbench.messages.prices import Price, cost_of
from agentbench.notebook.history.run_history import RunHistory, unwrap_event
from agentbench.workflows.events.events import WorkflowEvent

K = TypeVar("K", bound=Hashable)

# Clients use different names for the same count; the first existing name is used.
_IN = ("input_token_count", "input_tokens", "prompt_tokens")
_OUT = ("output_token_count", "output_tokens", "completion_tokens")
_ALL = ("total_token_count", "total_tokens")
_CACHED = ("cache_read_input_token_count", "cached_token_count", "cached_input_tokens", "cached_tokens")
_INFINITE = float("inf")


@dataclass(frozen=True)
class Usage:
    """Tokens and cost of calls; tokens are `None` if no call counted them, the cost if one is unknown."""

    calls: int = 0
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_cached: int | None = None
    """The part of `tokens_in` from the provider's cache."""
    cost: float | None = None


@dataclass(frozen=True)
class CallUsage:
    """One `model_usage` event: the number of the call in its executor and superstep, from 1, and its usage."""

    superstep: int
    executor: str
    call: int
    model: str | None
    used: Usage
    latency_ms: float | None
    at_ns: int | None


def calls_of(run: RunHistory, prices: Mapping[str, Price]) -> list[CallUsage]:
    """Return the model calls in the order in which they ended."""
    calls: list[CallUsage] = []
    for step in run.supersteps:
        numbers: Counter[str] = Counter()
        for event in step.usages:
            executor = event.source_id or "?"
            numbers[executor] += 1
            what = (model_of(event), usage_of(event, prices), latency_of(event), event.time_ns)
            calls.append(CallUsage(step.number, executor, numbers[executor], *what))
    return calls


def usage_of(event: WorkflowEvent[Any], prices: Mapping[str, Price]) -> Usage:
    """Return the tokens and cost of a `model_usage` event.

    Its data is a mapping or an object with `model`; the counts, under `usage_details` or `usage` or directly; and
    `latency_ms`, or `latency_s` or `latency` in seconds. A `cost` in the data overrides a price.
    """
    usage = _counts_in(event.data)
    tokens_in, tokens_out, cached = (_count(usage, names) for names in (_IN, _OUT, _CACHED))
    stated = _number(_part(event.data, "cost"))
    cost = cost_of(model_of(event), tokens_in, tokens_out, cached, prices) if stated is None else stated
    return Usage(1, tokens_in, tokens_out, cached, cost)


def tokens_of(event: WorkflowEvent[Any]) -> int:
    """Return the tokens of a `model_usage` event, also of a sub-workflow; 0 for other events."""
    event = unwrap_event(event)
    if event.type != "model_usage":
        return 0
    usage = _counts_in(event.data)
    return _count(usage, _ALL) or (_count(usage, _IN) or 0) + (_count(usage, _OUT) or 0)


def sum_usages(usages: Iterable[Usage]) -> Usage:
    """Return the sum of usages."""
    used = list(usages)
    return Usage(
        sum(each.calls for each in used),
        _sum(each.tokens_in for each in used),
        _sum(each.tokens_out for each in used),
        _sum(each.tokens_cached for each in used),
        None if any(each.cost is None for each in used) or not used else sum(each.cost or 0.0 for each in used),
    )


def group_usages(calls: Iterable[CallUsage], key: Callable[[CallUsage], K]) -> dict[K, Usage]:
    """Return the sums of calls by key, in the order in which keys first occur."""
    groups: defaultdict[K, list[Usage]] = defaultdict(list)
    for call in calls:
        groups[key(call)].append(call.used)
    return {each: sum_usages(used) for each, used in groups.items()}


def model_of(event: WorkflowEvent[Any]) -> str | None:
    """Return the name of the model of a `model_usage` event."""
    model = _part(event.data, "model")
    return None if model is None else str(model)


def _counts_in(data: Any) -> Any:
    return next((counts for counts in (_part(data, "usage_details"), _part(data, "usage")) if counts is not None), data)


def latency_of(event: WorkflowEvent[Any]) -> float | None:
    """Return the milliseconds of a call from its `model_usage` event."""
    stated = _number(_part(event.data, "latency_ms"))
    if stated is not None:
        return stated
    seconds = [_number(_part(event.data, "latency_s")), _number(_part(event.data, "latency")), event.duration_s]
    return next((1000 * each for each in seconds if each is not None), None)


def _part(data: Any, name: str) -> Any:
    if type(data) is dict or isinstance(data, Mapping):
        return data.get(name)
    return getattr(data, name, None)


def _count(usage: Any, names: Iterable[str]) -> int | None:
    counts = (_number(_part(usage, name)) for name in names)
    return next((int(count) for count in counts if count is not None), None)


def _number(value: object) -> float | None:
    """Return a number that can be a count, a cost or a time."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if 0 <= value < _INFINITE else None


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None

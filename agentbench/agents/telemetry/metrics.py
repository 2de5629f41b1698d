"""The three histograms of models and tools; imported only when telemetry is set up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from opentelemetry.metrics import Histogram

from agentbench.agents.telemetry.attributes import metric_attributes
from agentbench.observability import DURATION_BUCKETS, TOKEN_BUCKETS, get_meter, is_measuring

TOKENS: Final = "gen_ai.client.token.usage"
MODEL_SECONDS: Final = "gen_ai.client.operation.duration"
TOOL_SECONDS: Final = "agentbench.function.invocation.duration"

_HISTOGRAMS = {
    TOKENS: ("tokens", "Tokens that calls of models read and wrote", TOKEN_BUCKETS),
    MODEL_SECONDS: ("s", "Time that calls of models took", DURATION_BUCKETS),
    TOOL_SECONDS: ("s", "Time that calls of tools took", DURATION_BUCKETS),
}
_cache: dict[str, tuple[object, Histogram]] = {}


def record_model_call(attributes: Mapping[str, Any], seconds: float) -> None:
    """Count a call of a model, by the attributes of its span."""
    if not is_measuring():
        return
    few = metric_attributes(attributes)
    _histogram(MODEL_SECONDS).record(seconds, few)
    for direction in ("input", "output"):
        tokens = attributes.get(f"gen_ai.usage.{direction}_tokens")
        if tokens is not None:
            _histogram(TOKENS).record(tokens, {**few, "gen_ai.token.type": direction})


def record_tool_call(attributes: Mapping[str, Any], seconds: float) -> None:
    """Count a call of a tool, by the attributes of its span."""
    if is_measuring():
        _histogram(TOOL_SECONDS).record(seconds, metric_attributes(attributes))


def _histogram(name: str) -> Histogram:
    """The histogram of the meter in use; a second one of the same name would make the SDK warn."""
    meter = get_meter()
    owner, histogram = _cache.get(name, (None, None))
    if histogram is not None and owner is meter:
        return histogram
    unit, description, buckets = _HISTOGRAMS[name]
    histogram = meter.create_histogram(
        name, unit=unit, description=description, explicit_bucket_boundaries_advisory=buckets
    )
    _cache[name] = meter, histogram
    return histogram

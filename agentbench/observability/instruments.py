"""The library's tracer and meter, its errors on spans, and how it names itself."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final, cast

from agentbench._extras import require
from agentbench.observability.switches import OBSERVABILITY_SETTINGS
from agentbench.settings import read_flag

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter
    from opentelemetry.trace import Span, Tracer

SCOPE: Final = "agentbench"

TOKEN_BUCKETS: Final = tuple(4**power for power in range(14))
"""Bounds of the histograms of tokens: 1, 4, 16 … 67108864."""
DURATION_BUCKETS: Final = tuple(round(0.01 * 2**power, 2) for power in range(14))
"""Bounds of the histograms of seconds: 0.01, 0.02, 0.04 … 81.92."""

_cache: dict[str, tuple[Any, Any]] = {}


def get_tracer() -> Tracer:
    """Return the library's tracer, for spans of your own beside ours.

    Raises:
        MissingExtraError: The OpenTelemetry API is not installed.

    Example:
        ```python
        from agentbench.observability import get_tracer

        with get_tracer().start_as_current_span("prepare the input"):
            ...
        ```
    """
    api = require("opentelemetry.trace", extra="otel", purpose="trace runs")
    return cast("Tracer", _cached(api.get_tracer_provider(), "get_tracer"))


def get_meter() -> Meter:
    """Return the library's meter, for metrics of your own beside ours.

    Raises:
        MissingExtraError: The OpenTelemetry API is not installed.

    Example:
        ```python
        from agentbench.observability import get_meter

        get_meter().create_counter("questions").add(1)
        ```
    """
    api = require("opentelemetry.metrics", extra="otel", purpose="measure runs")
    return cast("Meter", _cached(api.get_meter_provider(), "get_meter"))


def user_agent() -> str | None:
    """Return how our clients name themselves, or `None` where `AGENTBENCH_USER_AGENT_DISABLED` is `true` or `1`."""
    if read_flag(os.environ.get("AGENTBENCH_USER_AGENT_DISABLED", "")):
        return None
    return f"{SCOPE}-python/{_version()}"


def mark_failed(span: Span, error: BaseException) -> None:
    """Mark a span as failed. The text of an error may be content, so it is set only where contents are allowed."""
    from opentelemetry.trace import StatusCode  # there is a span

    kind = type(error).__name__
    span.set_attribute("error.type", kind)
    if OBSERVABILITY_SETTINGS.SENSITIVE_DATA_ENABLED:
        span.record_exception(error)
    else:
        span.add_event("exception", {"exception.type": f"{type(error).__module__}.{kind}"})
    span.set_status(StatusCode.ERROR, error_text(error))


def error_text(error: BaseException) -> str:
    """Return the text of an error where contents are allowed on spans, else only the name of its class."""
    return str(error) if OBSERVABILITY_SETTINGS.SENSITIVE_DATA_ENABLED else type(error).__name__


def _cached(provider: Any, getter: str) -> Any:
    """The provider's tracer or meter, made once: making one costs more than a span."""
    entry = _cache.get(getter)
    if entry is None or entry[0] is not provider:
        entry = _cache[getter] = provider, getattr(provider, getter)(SCOPE, _version())
    return entry[1]


def _version() -> str:
    # Not imported: the library never imports its own front door. It is there, as this module is inside of it.
    return str(sys.modules["agentbench"].__version__)

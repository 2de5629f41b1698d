"""The tracer and the meter of the library, and its errors on spans."""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from agentbench._extras import require
from agentbench._secrets import mask_text
from agentbench.observability.switches import OBSERVABILITY_SETTINGS

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter
    from opentelemetry.trace import Span, Tracer

SCOPE: Final = "agentbench"
# Not imported: the library never imports its own front door. It is there, as this module is inside of it.
VERSION: Final = str(sys.modules["agentbench"].__version__)

TOKEN_BUCKETS: Final = tuple(4**power for power in range(14))
"""Bounds of the histograms of tokens: 1, 4, 16 … 67108864."""
DURATION_BUCKETS: Final = tuple(round(0.01 * 2**power, 2) for power in range(14))
"""Bounds of the histograms of seconds: 0.01, 0.02, 0.04 … 81.92."""

_cache: dict[str, tuple[Any, Any]] = {}


def get_tracer(
    instrumenting_module_name: str = SCOPE,
    instrumenting_library_version: str | None = VERSION,
    schema_url: str | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> Tracer:
    """Return a tracer of the installed provider, by default the library's own, for spans of your own beside ours.

    Args:
        instrumenting_module_name: Who makes the spans.
        instrumenting_library_version: In which version.
        schema_url: Of the conventions that the spans follow.
        attributes: Of all its spans; left out where the installed OpenTelemetry knows none.

    Raises:
        MissingExtraError: The OpenTelemetry API is not installed.

    Example:
        from agentbench.observability import get_tracer

        with get_tracer().start_as_current_span("prepare the input"):
            ...
    """
    provider = require("opentelemetry.trace", extra="otel", purpose="trace runs").get_tracer_provider()
    scope = (instrumenting_module_name, instrumenting_library_version, schema_url)
    return cast("Tracer", _instrument(provider, "get_tracer", scope, attributes))


def get_meter(
    name: str = SCOPE,
    version: str | None = VERSION,
    schema_url: str | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> Meter:
    """Return a meter of the installed provider, by default the library's own, for metrics of your own beside ours.

    Args:
        name: Who measures.
        version: In which version.
        schema_url: Of the conventions that the metrics follow.
        attributes: Of all its metrics; left out where the installed OpenTelemetry knows none.

    Raises:
        MissingExtraError: The OpenTelemetry API is not installed.

    Example:
        from agentbench.observability import get_meter

        get_meter().create_counter("questions").add(1)
    """
    provider = require("opentelemetry.metrics", extra="otel", purpose="measure runs").get_meter_provider()
    return cast("Meter", _instrument(provider, "get_meter", (name, version, schema_url), attributes))


def mark_failed(span: Span, error: BaseException) -> None:
    """Mark a span as failed. The text of an error may be content, so it is set only where contents are allowed."""
    from opentelemetry.trace import StatusCode  # there is a span

    from agentbench.observability.attribute_names import OtelAttr  # noqa: PLC0415 - there is telemetry

    kind = type(error).__name__
    span.set_attribute(OtelAttr.ERROR_TYPE, kind)
    if OBSERVABILITY_SETTINGS.SENSITIVE_DATA_ENABLED:
        text = "".join(traceback.format_exception(error))
        masked = {"exception.message": mask_text(str(error)), "exception.stacktrace": mask_text(text)}
        span.record_exception(error, attributes=masked)
    else:
        span.add_event("exception", {"exception.type": f"{type(error).__module__}.{kind}"})
    span.set_status(StatusCode.ERROR, error_text(error))


def error_text(error: BaseException) -> str:
    """Return the text of an error where contents are allowed on spans, else only the name of its class."""
    return mask_text(str(error)) if OBSERVABILITY_SETTINGS.SENSITIVE_DATA_ENABLED else type(error).__name__


def _instrument(
    provider: Any, getter: str, scope: tuple[str, str | None, str | None], attributes: Mapping[str, Any] | None
) -> Any:
    """The provider's tracer or meter; the library's own is made once: making one costs more than a span."""
    get = getattr(provider, getter)
    if attributes is not None and "attributes" in inspect.signature(get).parameters:
        return get(*scope, attributes=attributes)
    if scope != (SCOPE, VERSION, None):
        return get(*scope)
    entry = _cache.get(getter)
    if entry is None or entry[0] is not provider:
        entry = _cache[getter] = provider, get(*scope)
    return entry[1]

"""The tracer and the meter of the library, and the marking of failed spans."""

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
# Read from sys.modules, because modules of the library never import the root package.
VERSION: Final = str(sys.modules["agentbench"].__version__)

TOKEN_BUCKETS: Final = tuple(4**power for power in range(14))
"""The bucket boundaries of token histograms: 1, 4, 16 … 67108864."""
DURATION_BUCKETS: Final = tuple(round(0.01 * 2**power, 2) for power in range(14))
"""The bucket boundaries of duration histograms in seconds: 0.01, 0.02, 0.04 … 81.92."""

_cache: dict[str, tuple[Any, Any]] = {}


def get_tracer(
    instrumenting_module_name: str = SCOPE,
    instrumenting_library_version: str | None = VERSION,
    schema_url: str | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> Tracer:
    """Return a tracer of the installed provider, for your own spans next to those of the library.

    Args:
        instrumenting_module_name: The name of the code that creates the spans; by default the library's.
        instrumenting_library_version: The version of that code.
        schema_url: The address of the conventions that the spans follow.
        attributes: Attributes of all spans of the tracer; ignored if the installed OpenTelemetry does not support them.

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
    """Return a meter of the installed provider, for your own metrics next to those of the library.

    Args:
        name: The name of the code that measures; by default the library's.
        version: The version of that code.
        schema_url: The address of the conventions that the metrics follow.
        attributes: Attributes of all metrics of the meter; ignored if the installed OpenTelemetry does not support
            them.

    Raises:
        MissingExtraError: The OpenTelemetry API is not installed.

    Example:
        from agentbench.observability import get_meter

        get_meter().create_counter("questions").add(1)
    """
    provider = require("opentelemetry.metrics", extra="otel", purpose="measure runs").get_meter_provider()
    return cast("Meter", _instrument(provider, "get_meter", (name, version, schema_url), attributes))


def mark_failed(span: Span, error: BaseException) -> None:
    """Mark a span as failed. Error texts may contain sensitive data, so they are added only if that is allowed."""
    from opentelemetry.trace import StatusCode  # the API is installed if there is a span

    from agentbench.observability.attribute_names import OtelAttr  # noqa: PLC0415 - needed only with telemetry

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
    """Return the text of an error if sensitive data is allowed in spans, otherwise only the name of its class."""
    return mask_text(str(error)) if OBSERVABILITY_SETTINGS.SENSITIVE_DATA_ENABLED else type(error).__name__


def _instrument(
    provider: Any, getter: str, scope: tuple[str, str | None, str | None], attributes: Mapping[str, Any] | None
) -> Any:
    """Return a tracer or meter. The library's own is cached, because creating one costs more than a span."""
    get = getattr(provider, getter)
    if attributes is not None and "attributes" in inspect.signature(get).parameters:
        return get(*scope, attributes=attributes)
    if scope != (SCOPE, VERSION, None):
        return get(*scope)
    entry = _cache.get(getter)
    if entry is None or entry[0] is not provider:
        entry = _cache[getter] = provider, get(*scope)
    return entry[1]

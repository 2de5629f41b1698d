"""Setup of OpenTelemetry in one call, with a resource and views for the metrics of this library."""

from __future__ import annotations

import importlib
import logging
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypedDict
from urllib.parse import unquote

from agentbench._extras import require
from agentbench.exceptions import MissingExtraError
from agentbench.observability.instruments import SCOPE
from agentbench.observability.switches import OBSERVABILITY_SETTINGS, enable_instrumentation
from agentbench.settings import SecretString, load_settings

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.view import View
    from opentelemetry.sdk.resources import Resource

logger = logging.getLogger("agentbench")

Signal = Literal["traces", "metrics", "logs"]

SIGNALS: Final[tuple[Signal, ...]] = ("traces", "metrics", "logs")
_GRPC: Final = "grpc"
_HTTP: Final = "http/protobuf"
_PACKAGES: Final = {_GRPC: "opentelemetry-exporter-otlp-proto-grpc", _HTTP: "opentelemetry-exporter-otlp-proto-http"}
_EXPORTERS: Final[dict[Signal, tuple[str, str]]] = {
    "traces": ("trace_exporter", "OTLPSpanExporter"),
    "metrics": ("metric_exporter", "OTLPMetricExporter"),
    "logs": ("_log_exporter", "OTLPLogExporter"),
}


class OtlpSettings(TypedDict, total=False):
    """The variables `OTEL_EXPORTER_OTLP_...`, or those of one signal, such as `OTEL_EXPORTER_OTLP_TRACES_...`."""

    endpoint: str | None
    protocol: str | None
    headers: SecretString | None


class OtlpTarget(NamedTuple):
    """An endpoint for one signal. Its headers may contain credentials, so their values are secret."""

    signal: Signal
    protocol: str
    endpoint: str
    headers: Mapping[str, SecretString]


class _SetUpSettings(TypedDict, total=False):
    enable_sensitive_data: bool | None
    enable_console_exporters: bool | None
    vs_code_extension_port: int | None


class _ServiceSettings(TypedDict, total=False):
    service_name: str | None
    service_version: str | None


_configured: list[Any] = []
"""The providers that were set up here. A notebook cell that runs twice must not export everything twice."""


def configure_otel_providers(
    *,
    enable_sensitive_data: bool | None = None,
    enable_console_exporters: bool | None = None,
    exporters: Sequence[Any] | None = None,
    views: Sequence[Any] | None = None,
    vs_code_extension_port: int | None = None,
    env_file_path: str | os.PathLike[str] | None = None,
    env_file_encoding: str | None = None,
) -> None:
    """Install providers for spans, metrics and log records, and enable telemetry.

    Telemetry is exported to the `exporters`, to the endpoints in the variables `OTEL_EXPORTER_OTLP_...`, to the
    extension of an editor and to the console, if these are requested. Without any exporter, no provider is installed.
    Providers that are already installed are kept: an existing tracer provider gets the span exporters, and an existing
    meter provider is not changed.

    Args:
        enable_sensitive_data: Whether spans may contain the contents of messages; by default the value of
            `ENABLE_SENSITIVE_DATA`.
        enable_console_exporters: Whether to print everything; by default the value of `ENABLE_CONSOLE_EXPORTERS`.
        exporters: Exporters of the SDK for spans, metrics or log records.
        views: Views of metrics; see `create_metric_views`.
        vs_code_extension_port: The local port on which the extension of an editor listens; by default the value of
            `VS_CODE_EXTENSION_PORT`.
        env_file_path: A file with these variables; see `load_settings`.
        env_file_encoding: The encoding of that file.

    Raises:
        MissingExtraError: The OpenTelemetry SDK, or the package of a requested exporter, is not installed.
        TypeError: An exporter is not for spans, metrics or log records.
        ValueError: A variable has an invalid value.

    Example:
        from agentbench.observability import configure_otel_providers

        configure_otel_providers(enable_console_exporters=True)
    """
    file = {"env_file_path": env_file_path, "env_file_encoding": env_file_encoding}
    settings = load_settings(
        _SetUpSettings,
        **file,  # type: ignore[arg-type]
        enable_sensitive_data=enable_sensitive_data,
        enable_console_exporters=enable_console_exporters,
        vs_code_extension_port=vs_code_extension_port,
    )
    enable_instrumentation(enable_sensitive_data=bool(settings["enable_sensitive_data"]))
    if OBSERVABILITY_SETTINGS.is_user_disabled:
        return
    if _configured:
        logger.info("configure_otel_providers() was already called; providers and exporters are not changed.")
        return
    targets = read_otlp_targets(**file)  # type: ignore[arg-type]
    if isinstance(port := settings["vs_code_extension_port"], int):
        targets += [OtlpTarget(signal, _GRPC, f"http://localhost:{port}", {}) for signal in SIGNALS]
    printing = console_exporters() if settings["enable_console_exporters"] else ()
    by_signal = sort_exporters([*(exporters or ()), *map(make_otlp_exporter, targets), *printing])
    if not any(by_signal.values()):
        if not OBSERVABILITY_SETTINGS.is_setup:
            logger.warning(
                "configure_otel_providers() found no exporters, so nothing is recorded. Pass exporters=[...] or "
                "enable_console_exporters=True, or set OTEL_EXPORTER_OTLP_ENDPOINT."
            )
        return
    resource = create_resource(**file)  # type: ignore[arg-type]
    _configured.append(_install_traces(resource, by_signal["traces"]))
    _configured.append(_install_metrics(resource, by_signal["metrics"], views or ()))
    _configured.append(_install_logs(resource, by_signal["logs"]))


def read_otlp_targets(
    *, env_file_path: str | os.PathLike[str] | None = None, env_file_encoding: str | None = None
) -> list[OtlpTarget]:
    """Return a target for each signal with an endpoint. The variables of a signal override the general ones."""
    file = {"env_file_path": env_file_path, "env_file_encoding": env_file_encoding}
    shared = load_settings(OtlpSettings, env_prefix="OTEL_EXPORTER_OTLP_", **file)  # type: ignore[arg-type]
    targets = []
    for signal in SIGNALS:
        own = load_settings(OtlpSettings, env_prefix=f"OTEL_EXPORTER_OTLP_{signal.upper()}_", **file)  # type: ignore[arg-type]
        endpoint = own["endpoint"] or shared["endpoint"]
        if not endpoint:
            continue
        protocol = own["protocol"] or shared["protocol"] or _GRPC
        if protocol not in _PACKAGES:
            problem = f"OTEL_EXPORTER_OTLP_PROTOCOL is {protocol!r}. Expected {' or '.join(map(repr, _PACKAGES))}."
            raise ValueError(problem)
        if not own["endpoint"] and protocol == _HTTP:
            endpoint = f"{endpoint.rstrip('/')}/v1/{signal}"
        targets.append(
            OtlpTarget(signal, protocol, endpoint, {**_headers(shared["headers"]), **_headers(own["headers"])})
        )
    return targets


def _headers(text: str | None) -> dict[str, SecretString]:
    """Parse headers of the form `name=value,other=value`, in which names and values are percent-encoded."""
    headers = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        name, equals, value = part.partition("=")
        if not equals or not name.strip():
            problem = "OTEL_EXPORTER_OTLP_HEADERS is invalid. Expected `name=value` pairs, separated by commas."
            raise ValueError(problem)
        headers[unquote(name.strip()).lower()] = SecretString(unquote(value.strip()))
    return headers


def make_otlp_exporter(target: OtlpTarget) -> Any:
    """Create an exporter for a target."""
    part, name = _EXPORTERS[target.signal]
    package = _PACKAGES[target.protocol]
    module = f"{package.replace('-', '.')}.{part}"
    try:
        exporter = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):
            raise
        raise MissingExtraError(
            "otel", package, purpose=f"send {target.signal} to an OTLP endpoint", command=f"pip install {package}"
        ) from None
    headers = {header: str(value) for header, value in target.headers.items()}
    secured = {"insecure": not target.endpoint.startswith("https")} if target.protocol == _GRPC else {}
    return exporter(endpoint=target.endpoint, headers=headers or None, **secured)


def console_exporters() -> list[Any]:
    """Create exporters that print to the console."""
    traces, metrics, logs = _export_modules()
    printing_logs = getattr(logs, "ConsoleLogRecordExporter", None) or logs.ConsoleLogExporter
    return [traces.ConsoleSpanExporter(), metrics.ConsoleMetricExporter(), printing_logs()]


def sort_exporters(exporters: Iterable[Any]) -> dict[Signal, list[Any]]:
    """Group exporters by the signal that they export."""
    traces, metrics, logs = _export_modules()
    kinds: dict[Signal, type] = {
        "traces": traces.SpanExporter,
        "metrics": metrics.MetricExporter,
        "logs": getattr(logs, "LogRecordExporter", None) or logs.LogExporter,
    }
    by_signal: dict[Signal, list[Any]] = {signal: [] for signal in SIGNALS}
    for exporter in exporters:
        signal = next((signal for signal, kind in kinds.items() if isinstance(exporter, kind)), None)
        if signal is None:
            problem = (
                f"{type(exporter).__name__} does not export spans, metrics or log records. "
                "Expected a SpanExporter, a MetricExporter or a LogRecordExporter of the OpenTelemetry SDK."
            )
            raise TypeError(problem)
        by_signal[signal].append(exporter)
    return by_signal


def _export_modules() -> list[Any]:
    return [_part(f"opentelemetry.sdk.{part}.export") for part in ("trace", "metrics", "_logs")]


def _install_traces(resource: Any, exporters: Sequence[Any]) -> Any:
    api, sdk = _part("opentelemetry.trace"), _part("opentelemetry.sdk.trace")
    export = _part("opentelemetry.sdk.trace.export")
    provider = api.get_tracer_provider()
    if not hasattr(provider, "add_span_processor"):
        provider = sdk.TracerProvider(resource=resource)
        api.set_tracer_provider(provider)
    for exporter in exporters:
        provider.add_span_processor(export.BatchSpanProcessor(exporter))
    return provider


def _install_metrics(resource: Any, exporters: Sequence[Any], views: Sequence[Any]) -> Any:
    api, sdk = _part("opentelemetry.metrics"), _part("opentelemetry.sdk.metrics")
    export = _part("opentelemetry.sdk.metrics.export")
    provider = api.get_meter_provider()
    if isinstance(provider, sdk.MeterProvider):
        if exporters:
            logger.warning(
                "A meter provider is already installed and cannot get more exporters; those for metrics get no data."
            )
        return provider
    readers = [export.PeriodicExportingMetricReader(exporter) for exporter in exporters]
    provider = sdk.MeterProvider(metric_readers=readers, resource=resource, views=views)
    api.set_meter_provider(provider)
    return provider


def _install_logs(resource: Any, exporters: Sequence[Any]) -> Any:
    if not exporters:
        return None
    sdk, export = _part("opentelemetry.sdk._logs"), _part("opentelemetry.sdk._logs.export")
    provider = sdk.LoggerProvider(resource=resource)
    for exporter in exporters:
        provider.add_log_record_processor(export.BatchLogRecordProcessor(exporter))
    with warnings.catch_warnings():
        # Newer SDKs recommend a separate package for this handler, which does not exist for older SDKs.
        warnings.simplefilter("ignore", DeprecationWarning)
        handler = sdk.LoggingHandler(logger_provider=provider)
    # The provider flushes itself at exit. The handler would need to start a thread, which is impossible by then.
    handler.flush = lambda: None
    logging.getLogger(SCOPE).addHandler(handler)
    return provider


def _part(module: str) -> Any:
    return require(module, extra="otel", purpose="set up telemetry")


def create_resource(
    service_name: str | None = None,
    service_version: str | None = None,
    env_file_path: str | os.PathLike[str] | None = None,
    env_file_encoding: str | None = None,
    **attributes: Any,
) -> Resource:
    """Create the resource that describes this program in telemetry.

    Args:
        service_name: The name of the program; by default the value of `OTEL_SERVICE_NAME`, otherwise `service.name` in
            `OTEL_RESOURCE_ATTRIBUTES`, otherwise `agentbench`.
        service_version: The version of the program; by default the value of `OTEL_SERVICE_VERSION`, if it is set.
        env_file_path: A file with these variables; see `load_settings`.
        env_file_encoding: The encoding of that file.
        **attributes: Other attributes of the resource.

    Raises:
        MissingExtraError: The OpenTelemetry SDK is not installed.

    Example:
        from agentbench.observability import create_resource

        resource = create_resource("orders", team="shop", **{"deployment.environment": "test"})
        print(resource.attributes["deployment.environment"])  # test
    """
    sdk = require("opentelemetry.sdk.resources", extra="otel", purpose="describe the program in telemetry")
    settings = load_settings(
        _ServiceSettings,
        env_prefix="OTEL_",
        env_file_path=env_file_path,
        env_file_encoding=env_file_encoding,
        service_name=service_name,
        service_version=service_version,
    )
    named = {"service.name": settings["service_name"], "service.version": settings["service_version"]}
    resource: Resource = sdk.Resource.create({**attributes, **{name: value for name, value in named.items() if value}})
    if str(resource.attributes.get("service.name", "")).startswith("unknown_service"):
        resource = resource.merge(sdk.Resource({"service.name": SCOPE}))
    return resource


def create_metric_views() -> list[View]:
    """Create views that keep the metrics of this library and of generative models, and drop all others.

    Raises:
        MissingExtraError: The OpenTelemetry SDK is not installed.

    Example:
        from agentbench.observability import configure_otel_providers, create_metric_views

        configure_otel_providers(enable_console_exporters=True, views=create_metric_views())
    """
    sdk = require("opentelemetry.sdk.metrics.view", extra="otel", purpose="choose metrics")
    return [
        sdk.View(instrument_name=f"{SCOPE}*"),
        sdk.View(instrument_name="gen_ai*"),
        sdk.View(instrument_name="*", aggregation=sdk.DropAggregation()),
    ]

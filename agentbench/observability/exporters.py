"""The targets of spans, metrics and log records by the OTLP variables, and their exporters."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypedDict
from urllib.parse import unquote

from agentbench._extras import require
from agentbench.exceptions import MissingExtraError
from agentbench.settings import SecretString, load_settings

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
    """The variables `OTEL_EXPORTER_OTLP_...`."""

    endpoint: str | None
    traces_endpoint: str | None
    metrics_endpoint: str | None
    logs_endpoint: str | None
    protocol: str | None
    traces_protocol: str | None
    metrics_protocol: str | None
    logs_protocol: str | None
    headers: SecretString | None
    traces_headers: SecretString | None
    metrics_headers: SecretString | None
    logs_headers: SecretString | None


class OtlpTarget(NamedTuple):
    """An endpoint for one kind of telemetry; its headers may hold credentials, so their values are secret."""

    signal: Signal
    protocol: str
    endpoint: str
    headers: Mapping[str, SecretString]


def read_otlp_targets(
    *, env_file_path: str | os.PathLike[str] | None = None, env_file_encoding: str | None = None
) -> list[OtlpTarget]:
    """Return a target for each kind of telemetry with an endpoint; the variables of a kind win over those of all."""
    settings: Mapping[str, Any] = load_settings(
        OtlpSettings,
        env_prefix="OTEL_EXPORTER_OTLP_",
        env_file_path=env_file_path,
        env_file_encoding=env_file_encoding,
    )
    targets = []
    for signal in SIGNALS:
        own, shared = settings.get(f"{signal}_endpoint"), settings.get("endpoint")
        if not own and not shared:
            continue
        protocol = settings.get(f"{signal}_protocol") or settings.get("protocol") or _GRPC
        if protocol not in _PACKAGES:
            problem = f"OTEL_EXPORTER_OTLP_PROTOCOL is {protocol!r}. Expected {' or '.join(map(repr, _PACKAGES))}."
            raise ValueError(problem)
        endpoint = own or (f"{shared.rstrip('/')}/v1/{signal}" if shared and protocol == _HTTP else shared)
        headers = {**_headers(settings.get("headers")), **_headers(settings.get(f"{signal}_headers"))}
        targets.append(OtlpTarget(signal, protocol, str(endpoint), headers))
    return targets


def local_targets(port: int) -> list[OtlpTarget]:
    """Return targets for all kinds on this machine, where an editor's extension listens."""
    return [OtlpTarget(signal, _GRPC, f"http://localhost:{port}", {}) for signal in SIGNALS]


def _headers(text: str | None) -> dict[str, SecretString]:
    """`name=value,other=value`, both percent-encoded."""
    headers = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        name, equals, value = part.partition("=")
        if not equals or not name.strip():
            problem = "OTEL_EXPORTER_OTLP_HEADERS cannot be read. Expected `name=value`, several of them with commas."
            raise ValueError(problem)
        headers[unquote(name.strip()).lower()] = SecretString(unquote(value.strip()))
    return headers


def make_otlp_exporter(target: OtlpTarget) -> Any:
    """Return an exporter to a target."""
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
    """Return exporters that print."""
    traces, metrics, logs = _export_modules()
    printing_logs = getattr(logs, "ConsoleLogRecordExporter", None) or logs.ConsoleLogExporter
    return [traces.ConsoleSpanExporter(), metrics.ConsoleMetricExporter(), printing_logs()]


def sort_exporters(exporters: Iterable[Any]) -> dict[Signal, list[Any]]:
    """Return exporters by the kind of telemetry that they export."""
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
                f"{type(exporter).__name__} exports neither spans, metrics nor log records. "
                "Expected a SpanExporter, a MetricExporter or a LogRecordExporter of the OpenTelemetry SDK."
            )
            raise TypeError(problem)
        by_signal[signal].append(exporter)
    return by_signal


def _export_modules() -> list[Any]:
    modules = (f"opentelemetry.sdk.{part}.export" for part in ("trace", "metrics", "_logs"))
    return [require(module, extra="otel", purpose="export telemetry") for module in modules]

"""An SDK that keeps spans and metrics in memory stands in for the process-wide one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from agentbench.observability import OBSERVABILITY_SETTINGS

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


class Spans:
    """The finished spans, in the order in which they began."""

    def __init__(self, exporter: InMemorySpanExporter, begun: list[int]) -> None:
        self._exporter = exporter
        self._begun = begun  # ids: a clock may give two spans one time

    def all(self) -> list[Any]:
        return sorted(
            self._exporter.get_finished_spans(), key=lambda span: self._begun.index(span.get_span_context().span_id)
        )

    def names(self) -> list[str]:
        return [span.name for span in self.all()]

    def one(self, start: str) -> Any:
        (found,) = [span for span in self.all() if span.name.startswith(start)]
        return found

    def tree(self) -> list[tuple[str, str | None]]:
        """Each span's name with that of its parent."""
        names = {span.context.span_id: span.name for span in self.all()}
        return [(span.name, names.get(span.parent.span_id) if span.parent else None) for span in self.all()]

    def text(self) -> str:
        """All that any span says."""
        return "\n".join(span.to_json() for span in self.all())


class Points:
    """What the metrics counted."""

    def __init__(self, reader: InMemoryMetricReader) -> None:
        self._reader = reader

    def of(self, name: str) -> list[Any]:
        return [point for metric in self._metrics() if metric.name == name for point in metric.data.data_points]

    def names(self) -> list[str]:
        return sorted(metric.name for metric in self._metrics())

    def units(self) -> dict[str, str]:
        return {metric.name: metric.unit for metric in self._metrics()}

    def text(self) -> str:
        return "\n".join(f"{metric.name} {metric.data}" for metric in self._metrics())

    def _metrics(self) -> Iterator[Any]:
        data = self._reader.get_metrics_data()
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                yield from scope.metrics


@pytest.fixture(autouse=True)
def switches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Telemetry as in a fresh process: on, without contents."""
    monkeypatch.setattr(OBSERVABILITY_SETTINGS, "ENABLED", True)
    monkeypatch.setattr(OBSERVABILITY_SETTINGS, "SENSITIVE_DATA_ENABLED", False)
    monkeypatch.setattr(OBSERVABILITY_SETTINGS, "is_user_disabled", False)


@pytest.fixture
def sensitive(monkeypatch: pytest.MonkeyPatch, switches: None) -> None:
    """Contents are allowed."""
    monkeypatch.setattr(OBSERVABILITY_SETTINGS, "SENSITIVE_DATA_ENABLED", True)


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Spans:
    pytest.importorskip("opentelemetry.sdk.trace", reason="the OpenTelemetry SDK is not installed")
    from opentelemetry import trace
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    begun: list[int] = []

    class Beginnings(SpanProcessor):
        def on_start(self, span: Any, parent_context: Any = None) -> None:
            begun.append(span.get_span_context().span_id)

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(Beginnings())
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    return Spans(exporter, begun)


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> Points:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    monkeypatch.setattr("opentelemetry.metrics._internal._METER_PROVIDER", MeterProvider([reader]))
    return Points(reader)

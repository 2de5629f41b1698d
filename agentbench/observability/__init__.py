"""OpenTelemetry behind one boolean: free while it is off or no SDK is installed.

A program that has set up OpenTelemetry already needs nothing of this: spans and metrics go to the installed providers.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from agentbench._arguments import name_arguments
from agentbench.observability.instruments import DURATION_BUCKETS, TOKEN_BUCKETS, get_meter, get_tracer
from agentbench.observability.switches import (
    OBSERVABILITY_SETTINGS,
    ObservabilitySettings,
    disable_instrumentation,
    enable_instrumentation,
    enable_sensitive_telemetry,
    is_measuring,
    is_tracing,
)

if TYPE_CHECKING:
    from agentbench.observability.attribute_names import OtelAttr
    from agentbench.observability.providers import configure_otel_providers, create_metric_views, create_resource

__all__ = [
    "DURATION_BUCKETS",
    "OBSERVABILITY_SETTINGS",
    "TOKEN_BUCKETS",
    "AgentTelemetryLayer",
    "ChatTelemetryLayer",
    "EmbeddingTelemetryLayer",
    "ObservabilitySettings",
    "OtelAttr",
    "configure_otel_providers",
    "create_metric_views",
    "create_resource",
    "disable_instrumentation",
    "enable_instrumentation",
    "enable_sensitive_telemetry",
    "get_meter",
    "get_tracer",
    "is_measuring",
    "is_tracing",
]

# Imported at first use: setting up is rare, and the mixins belong to the layer of agents, which is above this one.
_MODULES = {
    "AgentTelemetryLayer": "agentbench.agents.telemetry.layers",
    "ChatTelemetryLayer": "agentbench.agents.telemetry.layers",
    "EmbeddingTelemetryLayer": "agentbench.agents.telemetry.layers",
    "OtelAttr": "agentbench.observability.attribute_names",
    "configure_otel_providers": "agentbench.observability.providers",
    "create_metric_views": "agentbench.observability.providers",
    "create_resource": "agentbench.observability.providers",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        problem = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(problem)
    value = globals()[name] = name_arguments(getattr(importlib.import_module(_MODULES[name]), name))
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

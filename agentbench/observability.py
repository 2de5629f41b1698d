"""OpenTelemetry behind one boolean: free while it is off or no SDK is installed."""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING, Any

from agentbench._extras import require

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter
    from opentelemetry.trace import Tracer

__all__ = [
    "OBSERVABILITY_SETTINGS",
    "ObservabilitySettings",
    "disable_instrumentation",
    "enable_instrumentation",
    "enable_sensitive_telemetry",
    "get_meter",
    "get_tracer",
    "is_tracing",
]

logger = logging.getLogger("agentbench")

_SCOPE = "agentbench"
_TRUE = frozenset({"1", "true", "yes", "on"})


def _flag(name: str, *, default: bool) -> bool:
    text = os.environ.get(name)
    return default if text is None else text.strip().lower() in _TRUE


class ObservabilitySettings:
    """The switches of telemetry.

    Attributes:
        ENABLED: instrumentation is wanted; on by default, and without effect until an SDK provider is installed.
        SENSITIVE_DATA_ENABLED: contents of messages may appear in spans.
        WORKFLOW_DEFINITION_ENABLED: the span of a build carries the whole graph as JSON.
        is_user_disabled: switched off for good by `disable_instrumentation()`.
    """

    __slots__ = ("ENABLED", "SENSITIVE_DATA_ENABLED", "WORKFLOW_DEFINITION_ENABLED", "is_user_disabled")

    def __init__(self) -> None:
        self.ENABLED = _flag("ENABLE_INSTRUMENTATION", default=True)
        self.SENSITIVE_DATA_ENABLED = _flag("ENABLE_SENSITIVE_DATA", default=False)
        self.WORKFLOW_DEFINITION_ENABLED = _flag("ENABLE_WORKFLOW_DEFINITION", default=True)
        self.is_user_disabled = False

    @property
    def is_setup(self) -> bool:
        """An SDK tracer provider is installed."""
        return _provider_installed()

    def __repr__(self) -> str:
        return (
            f"ObservabilitySettings(ENABLED={self.ENABLED}, SENSITIVE_DATA_ENABLED={self.SENSITIVE_DATA_ENABLED}, "
            f"is_setup={self.is_setup}, is_user_disabled={self.is_user_disabled})"
        )


OBSERVABILITY_SETTINGS = ObservabilitySettings()


def is_tracing() -> bool:
    """Whether spans are to be made: instrumentation is on and an SDK provider is there to take them."""
    return OBSERVABILITY_SETTINGS.ENABLED and _provider_installed()


def _provider_installed() -> bool:
    # Whoever installs a provider has imported the API; without it there is nothing to ask.
    api = sys.modules.get("opentelemetry.trace")
    if api is None:
        return False
    provider = api.get_tracer_provider()
    return not isinstance(provider, (api.ProxyTracerProvider, api.NoOpTracerProvider))


def enable_instrumentation(*, enable_sensitive_data: bool | None = None, force: bool = False) -> None:
    """Switch telemetry on.

    Args:
        enable_sensitive_data: allow contents of messages in spans; None reads `ENABLE_SENSITIVE_DATA` again.
        force: also after `disable_instrumentation()`.
    """
    settings = OBSERVABILITY_SETTINGS
    if settings.is_user_disabled and not force:
        logger.info("Telemetry was disabled by disable_instrumentation(); it stays off. Use force=True to enable it.")
        return
    settings.is_user_disabled = False
    settings.ENABLED = True
    settings.SENSITIVE_DATA_ENABLED = (
        _flag("ENABLE_SENSITIVE_DATA", default=False) if enable_sensitive_data is None else enable_sensitive_data
    )


def enable_sensitive_telemetry(*, force: bool = False) -> None:
    """Switch telemetry on, contents of messages included."""
    enable_instrumentation(enable_sensitive_data=True, force=force)


def disable_instrumentation() -> None:
    """Switch telemetry off for good: later enables are ignored unless forced."""
    OBSERVABILITY_SETTINGS.ENABLED = False
    OBSERVABILITY_SETTINGS.is_user_disabled = True


def get_tracer() -> Tracer:
    """The library's tracer.

    Raises:
        MissingExtraError: the OpenTelemetry API is not installed.
    """
    api: Any = require("opentelemetry.trace", extra="otel", purpose="trace runs")
    tracer: Tracer = api.get_tracer(_SCOPE)
    return tracer


def get_meter() -> Meter:
    """The library's meter.

    Raises:
        MissingExtraError: the OpenTelemetry API is not installed.
    """
    api: Any = require("opentelemetry.metrics", extra="otel", purpose="measure runs")
    meter: Meter = api.get_meter(_SCOPE)
    return meter

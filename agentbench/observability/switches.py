"""The switches of telemetry, and the one boolean that is checked before everything."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType

from agentbench.settings import read_flag

logger = logging.getLogger("agentbench")


def _flag(name: str, *, default: bool) -> bool:
    text = os.environ.get(name)
    if text is None:
        return default
    flag = read_flag(text)
    if flag is None:
        logger.warning("%s is %r, which switches nothing on. Expected true or false.", name, text)
    return bool(flag)


@dataclass(slots=True)
class ObservabilitySettings:
    """The switches of telemetry, first read from the environment. Use the instance `OBSERVABILITY_SETTINGS`.

    Attributes:
        ENABLED: Instrumentation is on, as by default; it has no effect until an SDK provider is installed.
        SENSITIVE_DATA_ENABLED: Contents of messages may appear in spans.
        WORKFLOW_DEFINITION_ENABLED: The span of a build has the whole graph as JSON.
        is_user_disabled: Switched off for good by `disable_instrumentation()`.

    Example:
        from agentbench.observability import OBSERVABILITY_SETTINGS

        print(OBSERVABILITY_SETTINGS.ENABLED, OBSERVABILITY_SETTINGS.SENSITIVE_DATA_ENABLED)
    """

    ENABLED: bool = field(default_factory=partial(_flag, "ENABLE_INSTRUMENTATION", default=True))
    SENSITIVE_DATA_ENABLED: bool = field(default_factory=partial(_flag, "ENABLE_SENSITIVE_DATA", default=False))
    WORKFLOW_DEFINITION_ENABLED: bool = field(
        default_factory=partial(_flag, "ENABLE_WORKFLOW_DEFINITION", default=True)
    )
    is_user_disabled: bool = False

    @property
    def is_setup(self) -> bool:
        """Whether an SDK provider is installed."""
        return _provider_installed()


OBSERVABILITY_SETTINGS = ObservabilitySettings()


def is_tracing() -> bool:
    """Return whether spans are made: instrumentation is on, and an SDK provider of spans or metrics is installed.

    Example:
        from agentbench.observability import is_tracing

        if not is_tracing():
            print("Install an OpenTelemetry SDK and a provider to get spans.")
    """
    return OBSERVABILITY_SETTINGS.ENABLED and _provider_installed()


def is_measuring() -> bool:
    """Return whether metrics are made: instrumentation is on, and an SDK meter provider is installed.

    Example:
        from agentbench.observability import is_measuring

        if not is_measuring():
            print("Install an OpenTelemetry SDK and a meter provider to get metrics.")
    """
    return OBSERVABILITY_SETTINGS.ENABLED and _takes_metrics()


def _provider_installed() -> bool:
    return _takes_spans() or _takes_metrics()


def _takes_spans() -> bool:
    # Code that installs a provider has imported the API.
    api = sys.modules.get("opentelemetry.trace")
    return api is not None and _is_of_an_sdk(api, "_TRACER_PROVIDER", api.get_tracer_provider)


def _takes_metrics() -> bool:
    api = sys.modules.get("opentelemetry.metrics._internal")
    return api is not None and _is_of_an_sdk(api, "_METER_PROVIDER", api.get_meter_provider)


_UNKNOWN = object()
_LOADED_BY_NAME = any(f"OTEL_PYTHON_{kind}_PROVIDER" in os.environ for kind in ("TRACER", "METER"))


def _is_of_an_sdk(api: ModuleType, name: str, getter: Callable[[], object]) -> bool:
    # Every run checks this several times, and the getter reads the environment each time until one is installed.
    provider = _UNKNOWN if _LOADED_BY_NAME else getattr(api, name, _UNKNOWN)
    if provider is None:
        return False
    if provider is _UNKNOWN:
        provider = getter()
    # The API's own providers do nothing; they are there where none is installed.
    return not type(provider).__module__.startswith(("opentelemetry.trace", "opentelemetry.metrics"))


def enable_instrumentation(*, enable_sensitive_data: bool | None = None, force: bool = False) -> None:
    """Switch telemetry on.

    Args:
        enable_sensitive_data: Allow contents of messages in spans; `None` reads `ENABLE_SENSITIVE_DATA` again.
        force: Also after `disable_instrumentation()`.

    Example:
        from agentbench.observability import disable_instrumentation, enable_instrumentation

        disable_instrumentation()
        enable_instrumentation(force=True)
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
    """Switch telemetry on, contents of messages included; as `enable_instrumentation(enable_sensitive_data=True)`.

    Example:
        from agentbench.observability import enable_sensitive_telemetry

        enable_sensitive_telemetry()
    """
    enable_instrumentation(enable_sensitive_data=True, force=force)


def disable_instrumentation() -> None:
    """Switch telemetry off for good: later enables are ignored unless forced.

    Example:
        from agentbench.observability import disable_instrumentation

        disable_instrumentation()
    """
    OBSERVABILITY_SETTINGS.ENABLED = False
    OBSERVABILITY_SETTINGS.is_user_disabled = True

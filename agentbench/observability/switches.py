"""The switches of telemetry, and the functions that check whether it is active."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType

logger = logging.getLogger("agentbench")


def _flag(name: str, *, default: bool) -> bool:
    text = os.environ.get(name)
    if text is None:
        return default
    from agentbench.settings import read_flag  # noqa: PLC0415 - most environments set none of these variables

    flag = read_flag(text)
    if flag is None:
        logger.warning("%s is %r, which counts as false. Expected true or false.", name, text)
    return bool(flag)


@dataclass(slots=True)
class ObservabilitySettings:
    """The switches of telemetry, initially read from the environment. Use the instance `OBSERVABILITY_SETTINGS`.

    Attributes:
        ENABLED: Whether instrumentation is on, as by default. It has no effect until an SDK provider is installed.
        SENSITIVE_DATA_ENABLED: Whether spans may contain the contents of messages.
        WORKFLOW_DEFINITION_ENABLED: Whether the span of a build contains the whole graph as JSON.
        is_user_disabled: Whether `disable_instrumentation()` has disabled telemetry.

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
    """Return whether spans are created: instrumentation is on, and an SDK provider for spans or metrics is installed.

    Example:
        from agentbench.observability import is_tracing

        if not is_tracing():
            print("Install an OpenTelemetry SDK and a provider to get spans.")
    """
    return OBSERVABILITY_SETTINGS.ENABLED and _provider_installed()


def is_measuring() -> bool:
    """Return whether metrics are recorded: instrumentation is on, and an SDK meter provider is installed.

    Example:
        from agentbench.observability import is_measuring

        if not is_measuring():
            print("Install an OpenTelemetry SDK and a meter provider to get metrics.")
    """
    return OBSERVABILITY_SETTINGS.ENABLED and _takes_metrics()


def _provider_installed() -> bool:
    return _takes_spans() or _takes_metrics()


def _takes_spans() -> bool:
    # The API has been imported if a provider is installed.
    api = sys.modules.get("opentelemetry.trace")
    return api is not None and _is_of_an_sdk(api, "_TRACER_PROVIDER", api.get_tracer_provider)


def _takes_metrics() -> bool:
    api = sys.modules.get("opentelemetry.metrics._internal")
    return api is not None and _is_of_an_sdk(api, "_METER_PROVIDER", api.get_meter_provider)


_UNKNOWN = object()
_LOADED_BY_NAME = any(f"OTEL_PYTHON_{kind}_PROVIDER" in os.environ for kind in ("TRACER", "METER"))


def _is_of_an_sdk(api: ModuleType, name: str, getter: Callable[[], object]) -> bool:
    # Every run checks this several times, and until a provider is installed the getter reads the environment each time.
    provider = _UNKNOWN if _LOADED_BY_NAME else getattr(api, name, _UNKNOWN)
    if provider is None:
        return False
    if provider is _UNKNOWN:
        provider = getter()
    # The API's own providers do nothing; they are the default if no SDK provider is installed.
    return not type(provider).__module__.startswith(("opentelemetry.trace", "opentelemetry.metrics"))


def enable_instrumentation(*, enable_sensitive_data: bool | None = None, force: bool = False) -> None:
    """Enable telemetry.

    Args:
        enable_sensitive_data: Whether spans may contain the contents of messages; `None` reads `ENABLE_SENSITIVE_DATA`
            again.
        force: Whether to enable telemetry even after `disable_instrumentation()`.

    Example:
        from agentbench.observability import disable_instrumentation, enable_instrumentation

        disable_instrumentation()
        enable_instrumentation(force=True)
    """
    settings = OBSERVABILITY_SETTINGS
    if settings.is_user_disabled and not force:
        logger.info("Telemetry stays off because of disable_instrumentation(). Use force=True to enable it.")
        return
    settings.is_user_disabled = False
    settings.ENABLED = True
    settings.SENSITIVE_DATA_ENABLED = (
        _flag("ENABLE_SENSITIVE_DATA", default=False) if enable_sensitive_data is None else enable_sensitive_data
    )


def enable_sensitive_telemetry(*, force: bool = False) -> None:
    """Enable telemetry with the contents of messages, like `enable_instrumentation(enable_sensitive_data=True)`.

    Example:
        from agentbench.observability import enable_sensitive_telemetry

        enable_sensitive_telemetry()
    """
    enable_instrumentation(enable_sensitive_data=True, force=force)


def disable_instrumentation() -> None:
    """Disable telemetry. Later calls that enable it are ignored unless they use `force=True`.

    Example:
        from agentbench.observability import disable_instrumentation

        disable_instrumentation()
    """
    OBSERVABILITY_SETTINGS.ENABLED = False
    OBSERVABILITY_SETTINGS.is_user_disabled = True

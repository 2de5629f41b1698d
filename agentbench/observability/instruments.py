"""The library's tracer and meter, and how it names itself."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final, cast

from agentbench._extras import require
from agentbench.settings import read_flag

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter
    from opentelemetry.trace import Tracer

SCOPE: Final = "agentbench"

TOKEN_BUCKETS: Final = tuple(4**power for power in range(14))
"""Bounds of the histograms of tokens: 1, 4, 16 … 67108864."""
DURATION_BUCKETS: Final = tuple(round(0.01 * 2**power, 2) for power in range(14))
"""Bounds of the histograms of seconds: 0.01, 0.02, 0.04 … 81.92."""

_made: dict[str, tuple[Any, Any]] = {}


def get_tracer() -> Tracer:
    """The library's tracer.

    Raises:
        MissingExtraError: the OpenTelemetry API is not installed.
    """
    api = require("opentelemetry.trace", extra="otel", purpose="trace runs")
    return cast("Tracer", _made_by(api.get_tracer_provider(), "get_tracer"))


def get_meter() -> Meter:
    """The library's meter.

    Raises:
        MissingExtraError: the OpenTelemetry API is not installed.
    """
    api = require("opentelemetry.metrics", extra="otel", purpose="measure runs")
    return cast("Meter", _made_by(api.get_meter_provider(), "get_meter"))


def user_agent() -> str | None:
    """How clients of ours name themselves to services: `agentbench-python/<version>`.

    Returns:
        The text; None where `AGENTBENCH_USER_AGENT_DISABLED` is `true` or `1`.
    """
    if read_flag(os.environ.get("AGENTBENCH_USER_AGENT_DISABLED", "")):
        return None
    return f"{SCOPE}-python/{_version()}"


def _made_by(provider: Any, getter: str) -> Any:
    """The provider's tracer or meter, made once: making one costs more than a span."""
    kept = _made.get(getter)
    if kept is None or kept[0] is not provider:
        kept = _made[getter] = provider, getattr(provider, getter)(SCOPE, _version())
    return kept[1]


def _version() -> str:
    # Not imported: the library never imports its own front door. It is there, as this module is inside of it.
    return str(sys.modules["agentbench"].__version__)

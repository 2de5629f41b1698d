"""What a span tells of an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentbench.observability.switches import OBSERVABILITY_SETTINGS

if TYPE_CHECKING:
    from opentelemetry.trace import Span

__all__ = ["mark_failed", "told"]


def mark_failed(span: Span, error: BaseException) -> None:
    """Mark a span as failed. What an error says may be content, so that is kept only where contents are."""
    from opentelemetry.trace import StatusCode

    kind = type(error).__name__
    span.set_attribute("error.type", kind)
    if OBSERVABILITY_SETTINGS.SENSITIVE_DATA_ENABLED:
        span.record_exception(error)
    else:
        span.add_event("exception", {"exception.type": f"{type(error).__module__}.{kind}"})
    span.set_status(StatusCode.ERROR, told(error))


def told(error: BaseException) -> str:
    """What may be told of an error: its words where contents may be, else only its class."""
    return str(error) if OBSERVABILITY_SETTINGS.SENSITIVE_DATA_ENABLED else type(error).__name__

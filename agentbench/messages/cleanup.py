"""Run all cleanup functions of a stream, even if one of them fails."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

_log = logging.getLogger("agentbench")


async def clean_up(calls: Iterable[Callable[[], Any]]) -> BaseException | None:
    """Call sync and async functions; return the first failure, or the last cancellation, and log the others."""
    failure: BaseException | None = None
    for call in calls:
        try:
            result = call()
            if hasattr(result, "__await__"):
                await result
        except BaseException as error:  # noqa: BLE001 - returned, or logged
            other: BaseException | None = error
            if failure is None or not isinstance(error, Exception):
                failure, other = error, failure
            if other is not None:
                log_failure(other)
    return failure


def clean_up_now(calls: Iterable[Callable[[], Any]]) -> None:
    """Call functions when nothing can be awaited any more: async ones run up to their first wait."""
    for call in calls:
        try:
            result = call()
            if hasattr(result, "__await__"):
                steps = result.__await__()
                with suppress(StopIteration):
                    next(steps)
                    getattr(steps, "close", int)()
                    _log.warning(
                        "Stopped a cleanup hook of an abandoned stream: it has to wait, but its event loop has ended."
                    )
        except Exception as error:  # noqa: BLE001 - all of them are called, and there is no caller to catch it
            log_failure(error)


def log_or_raise(failure: BaseException | None) -> None:
    """Log a failure, because another error is being raised; raise a cancellation."""
    if isinstance(failure, Exception):
        log_failure(failure)
    elif failure is not None:
        raise failure


def log_failure(error: BaseException) -> None:
    """Log a failed cleanup. Its text may contain parts of the conversation, so only DEBUG shows more than its class."""
    _log.error("Closing a stream or one of its cleanup hooks failed: %s.", type(error).__name__)
    _log.debug("Closing a stream or one of its cleanup hooks failed.", exc_info=error)

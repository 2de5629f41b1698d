"""Calling everything that cleans up after a stream, whatever fails on the way."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

_log = logging.getLogger("agentbench")


async def clean_up(calls: Iterable[Callable[[], Any]]) -> BaseException | None:
    """Call functions, also async ones, in turn.

    Returns:
        The first failure, but rather a cancellation than that; the others are logged.
    """
    told: BaseException | None = None
    for call in calls:
        try:
            found = call()
            if hasattr(found, "__await__"):
                await found
        except BaseException as error:  # noqa: BLE001, PERF203 - returned, or logged
            is_told = told is None or not isinstance(error, Exception)
            told, other = (error, told) if is_told else (told, error)
            if other is not None:
                log_failure(other)
    return told


def let_go(calls: Iterable[Callable[[], Any]]) -> None:
    """Call functions where nothing can be awaited any more: each goes as far as it comes without waiting."""
    for call in calls:
        try:
            found = call()
            if hasattr(found, "__await__"):
                _drive(found)
        except Exception as error:  # noqa: BLE001, PERF203 - all of them are called, and nobody could catch it here
            log_failure(error)


def log_or_raise(failure: BaseException | None) -> None:
    """Log what failed where another error is to be told; but a cancellation is raised."""
    if isinstance(failure, Exception):
        log_failure(failure)
    elif failure is not None:
        raise failure


def log_failure(error: BaseException) -> None:
    """Log what failed. It may tell what was said, so all but its class is for DEBUG."""
    _log.error("Closing a stream or one of its cleanup hooks failed: %s.", type(error).__name__)
    _log.debug("Closing a stream or one of its cleanup hooks failed.", exc_info=error)


def _drive(awaitable: Awaitable[Any]) -> None:
    steps = awaitable.__await__()
    try:
        next(steps)
    except StopIteration:
        return
    close = getattr(steps, "close", None)
    if callable(close):
        close()
    _log.warning("A cleanup hook of an abandoned stream wants to wait, which is not possible there; it was cut off.")

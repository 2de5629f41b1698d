"""Storages are read on the engine thread; one whose client belongs to another event loop says so itself."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from agentbench._bridge import run_sync
from agentbench.exceptions import NestedLoopError

__all__ = ["run_on_engine"]

T = TypeVar("T")

_COMPLAINTS = ("attached to a different loop", "bound to a different event loop", "Event loop is closed")


def run_on_engine(work: Coroutine[Any, Any, T], *storages: object) -> T:
    """Run a coroutine that reads storages on the engine thread, and wait for its result.

    Raises:
        NestedLoopError: A client in one of them belongs to another loop.
        Exception: What the coroutine raises.
    """
    try:
        return run_sync(work)
    except Exception as error:
        if not storages or not _is_about_loops(error):
            raise
        reason = (
            "it uses a client, which belongs to one event loop, and frames are read on another. Await the checkpoints "
            "first and pass them to the frame: checkpoints_frame(await storage.list_checkpoints(workflow_name=...))"
        )
        call = f"{type(storages[0]).__name__}.list_checkpoints"
        raise NestedLoopError(call, reason) from error


def _is_about_loops(error: BaseException) -> bool:
    """Whether an error says that something belongs to another loop."""
    cause: BaseException | None = error
    while cause is not None:
        if any(words in str(cause) for words in _COMPLAINTS):
            return True
        cause = cause.__cause__
    return False

"""Storages of others whose clients belong to an event loop: read on another loop, they would lose their connections."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Iterator, Mapping, Sequence, Set
from typing import Any, TypeVar

from agentbench._bridge import run_sync
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.checkpoints.parts.content_storage import ContentAddressedStorage
from agentbench.exceptions import NestedLoopError

__all__ = ["run_on_engine"]

T = TypeVar("T")

_MOST_PARTS = 2_000
_CLIENTS = ("aio", "asyncpg", "motor")
_COMPLAINTS = ("attached to a different loop", "bound to a different event loop", "Event loop is closed")


def run_on_engine(work: Coroutine[Any, Any, T], *storages: object) -> T:
    """Run a coroutine that reads storages on the engine thread, and wait for its result.

    Raises:
        NestedLoopError: One of them belongs to another loop.
        Exception: What the coroutine raises.
    """
    try:
        for storage in storages:
            _require_readable_here(storage)
    except NestedLoopError:
        work.close()  # never begun
        raise
    try:
        return run_sync(work)
    except Exception as error:
        if not storages or not _is_about_loops(error):
            raise
        raise _loop_error(storages[0], "it uses a client") from error


def _require_readable_here(storage: object) -> None:
    """Raise for a storage that belongs to the caller's loop, before its connections come to the wrong one.

    Built-in storages belong to no loop. The attributes of others are searched for something that belongs to the running
    loop, or for an asynchronous client, which belongs to the first loop that uses it.

    Raises:
        NestedLoopError: There is a running loop, and the storage depends on it.
    """
    if isinstance(storage, (ContentAddressedStorage, InMemoryCheckpointStorage)):
        return
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return  # no cell or coroutine could have used the client, or could use it meanwhile
    client = next((part for part in _parts(storage) if _belongs(part, loop)), None)
    if client is not None:
        raise _loop_error(storage, f"it holds a {type(client).__module__}.{type(client).__qualname__}")


def _is_about_loops(error: BaseException) -> bool:
    """Whether an error says that something belongs to another loop."""
    cause: BaseException | None = error
    while cause is not None:
        if any(words in str(cause) for words in _COMPLAINTS):
            return True
        cause = cause.__cause__
    return False


def _loop_error(storage: object, found: str) -> NestedLoopError:
    """The error for a storage that can be read on its own loop only; `found` is the evidence."""
    reason = (
        f"{found}, which belongs to one event loop, and frames are read on another. Await the checkpoints first and "
        "pass them to the frame: checkpoints_frame(await storage.list_checkpoints(workflow_name=...))"
    )
    return NestedLoopError(f"{type(storage).__name__}.list_checkpoints", reason)


def _belongs(part: object, loop: asyncio.AbstractEventLoop) -> bool:
    package, *rest = type(part).__module__.split(".")
    if package == "asyncio":  # a lock belongs to no loop until a task has to wait for it
        return part is loop or getattr(part, "_loop", None) is loop
    return package.startswith(_CLIENTS) or any(name == "asyncio" or name.endswith("_async") for name in rest)


def _parts(value: object) -> Iterator[object]:
    """A value and the objects in it, the nearest first; at most 2,000 of them."""
    waiting: deque[object] = deque([value])
    passed: set[int] = set()
    while waiting and len(passed) < _MOST_PARTS:
        part = waiting.popleft()
        if id(part) in passed or isinstance(part, (str, bytes, int, float, type, type(None))):
            continue
        passed.add(id(part))
        yield part
        waiting.extend(_inside(part))


def _inside(part: Any) -> Iterator[object]:
    if isinstance(part, Mapping):
        yield from list(part.values())
    elif isinstance(part, (Sequence, Set, deque)):
        yield from list(part)
    else:
        yield from list(getattr(part, "__dict__", {}).values())

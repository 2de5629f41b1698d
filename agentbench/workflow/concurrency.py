"""Run coroutines side by side and leave none behind."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

_EAGER = sys.version_info >= (3, 12)


async def run_all(coroutines: Sequence[Coroutine[Any, Any, T]], *, cancel_on_error: bool = True) -> list[T]:
    """Await all, concurrently; results in the order given.

    The first exception by completion time is raised, after every sibling has ended: with `cancel_on_error` siblings
    are cancelled, else they run on. When the caller is cancelled, all are cancelled and awaited first.
    """
    if len(coroutines) == 1:
        return [await coroutines[0]]
    return await _Group(coroutines, cancel_on_error=cancel_on_error).run()


class _Group:
    """Tasks with one waiter; lighter than a gather, and with the rules above."""

    __slots__ = ("_cancel_on_error", "_error", "_left", "_tasks", "_waiter")

    def __init__(self, coroutines: Sequence[Coroutine[Any, Any, Any]], *, cancel_on_error: bool) -> None:
        loop = asyncio.get_running_loop()
        self._cancel_on_error = cancel_on_error
        self._error: BaseException | None = None
        self._left = len(coroutines)
        self._waiter: asyncio.Future[None] = loop.create_future()
        if _EAGER:
            # Started in place: what does not suspend never becomes work for the loop. Context as for any task.
            self._tasks = [asyncio.Task(c, loop=loop, eager_start=True) for c in coroutines]  # type: ignore[call-arg,unused-ignore]
        else:
            self._tasks = [loop.create_task(c) for c in coroutines]
        for task in self._tasks:
            if task.done():
                self._ended(task)
            else:
                task.add_done_callback(self._ended)

    async def run(self) -> list[Any]:
        try:
            if self._left:
                await self._waiter
        except asyncio.CancelledError:
            await self._cancel()
            raise
        if self._error is not None:
            await self._cancel()
            raise self._error
        return [task.result() for task in self._tasks]

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._left -= 1
        failed = task.cancelled() or task.exception() is not None
        if failed and self._error is None:
            self._error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if (not self._left or (failed and self._cancel_on_error)) and not self._waiter.done():
            self._waiter.set_result(None)

    async def _cancel(self) -> None:
        open_tasks = [t for t in self._tasks if not t.done()]
        for task in open_tasks:
            task.cancel()
        while open_tasks:
            # A second cancellation of the caller must not leave tasks behind either.
            try:
                await asyncio.wait(open_tasks)
            except asyncio.CancelledError:
                continue
            open_tasks = [t for t in open_tasks if not t.done()]

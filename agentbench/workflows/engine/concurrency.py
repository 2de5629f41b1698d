"""Runs coroutines concurrently and leaves none behind."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

# From Python 3.12 on, tasks start eagerly: a coroutine that does not suspend never becomes work for the loop.
_new_task: Callable[..., asyncio.Task[None]] = asyncio.Task
if sys.version_info >= (3, 12):
    _new_task = partial(asyncio.Task, eager_start=True)


async def run_all(function: Callable[[ItemT], Coroutine[Any, Any, ResultT]], items: Sequence[ItemT]) -> list[ResultT]:
    """Await `function(item)` for all items concurrently; raise the first exception after all have ended."""
    if len(items) == 1:
        return [await function(items[0])]
    return await _Group(function, len(items)).run(items)


class _Group:
    """Tasks that count down when they end. Lighter than callbacks, which the loop schedules one by one."""

    __slots__ = ("_error", "_function", "_left", "_loop", "_results", "_tasks", "_waiter")

    def __init__(self, function: Callable[[Any], Coroutine[Any, Any, Any]], size: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._function = function
        self._tasks: list[asyncio.Task[None]] = []
        self._results: list[Any] = [None] * size
        self._left = size
        self._error: BaseException | None = None
        self._waiter: asyncio.Future[None] = self._loop.create_future()

    async def run(self, items: Sequence[Any]) -> list[Any]:
        try:
            for index, item in enumerate(items):
                self._tasks.append(_new_task(self._member(index, item), loop=self._loop))
            if self._left:
                await self._waiter
            if self._error is not None:
                raise self._error
        except GeneratorExit:  # the loop has ended, so nothing can be awaited
            raise
        except BaseException:
            await self._cancel()
            raise
        return self._results

    async def _member(self, index: int, item: Any) -> None:
        try:
            self._results[index] = await self._function(item)
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 - `run` raises it
            if self._error is None:
                self._error = error
        self._left -= 1
        if (not self._left or self._error is not None) and not self._waiter.done():
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

"""Concurrent processing of items, with a limit and a progress bar."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from agentbench._display import call_view
from agentbench._limits import require_limit
from agentbench.exceptions import MissingExtraError

_T = TypeVar("_T")
_R = TypeVar("_R")


async def map_items(
    function: Callable[[_T], Awaitable[_R]], items: Sequence[_T], *, limit: int, name: str, progress: bool | None
) -> list[_R]:
    """Await a function of each item and return the results in order. The first error cancels the others.

    Args:
        function: Called with each item.
        items: The items.
        limit: The maximum number of concurrent calls.
        name: The name of the progress bar.
        progress: Whether to show a progress bar; by default only in notebooks.

    Raises:
        ValueError: The limit is below 1.
    """
    require_limit("max_concurrency", limit, least=1)
    results: dict[int, _R] = {}
    waiting = enumerate(items)

    async def work(advance: Callable[[], None]) -> None:
        for index, item in waiting:
            results[index] = await function(item)
            advance()

    with _bar(name, len(items), progress) as advance:
        workers = [asyncio.ensure_future(work(advance)) for _ in range(min(limit, len(items)))]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
    return [results[index] for index in range(len(items))]


def _bar(name: str, total: int, progress: bool | None) -> AbstractContextManager[Callable[[], None]]:
    if progress or (progress is None and "ipykernel" in sys.modules):
        try:
            bar: Any = call_view("agentbench.notebook.progress_bar.items:item_progress", name, total)
        except MissingExtraError:
            pass
        else:
            return bar  # type: ignore[no-any-return]
    return nullcontext(lambda: None)

"""Writes the rows of runs that have ended, those that end at the same time together, also while a database restarts."""

from __future__ import annotations

import asyncio

from agentbench.batch.store.database import patiently
from agentbench.batch.store.store import BatchStore, Ending


class RowWriter:
    """Writes rows on one event loop, one transaction at a time."""

    def __init__(self, store: BatchStore) -> None:
        self._store = store
        self._endings: list[tuple[Ending, asyncio.Future[bool]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def write(self, ending: Ending) -> bool:
        """Write a row, and return whether this process still owned it."""
        written: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._endings.append((ending, written))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.ensure_future(self._write_all())
        return await written

    async def _write_all(self) -> None:
        while self._endings:
            group, self._endings = self._endings, []
            endings = [ending for ending, _ in group]
            try:
                await self._remove_chains(endings)
                ours = await patiently(lambda endings=endings: self._store.database.soon(self._store.end, endings))  # type: ignore[misc]
            except Exception as error:  # noqa: BLE001 - raised where the rows are awaited
                for _, written in group:
                    if not written.done():
                        written.set_exception(error)
                continue
            for (_, written), is_ours in zip(group, ours, strict=True):
                if not written.done():
                    written.set_result(is_ours)

    async def _remove_chains(self, endings: list[Ending]) -> None:
        """Remove checkpoints in memory; in a database, the transaction of the rows does that."""
        if self._store.database.into is None:
            for ending in endings:
                if ending.chain_to_remove is not None:
                    await self._store.database.storage.delete_chain(ending.chain_to_remove)

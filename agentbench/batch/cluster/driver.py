"""Drives a batch on a Dask cluster: sends chunks of keys to workers, which run the inputs and write the rows."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from agentbench._extras import require
from agentbench._workers import run_in_thread
from agentbench.batch.cluster.pickling import check_workers, require_client, require_importable
from agentbench.batch.cluster.worker import DefinitionPlugin, prepare_batch, run_chunk, stop_batch
from agentbench.batch.driving.driver import Driver, DriveRules
from agentbench.batch.driving.tally import EndedRow
from agentbench.batch.inputs import InputReader
from agentbench.batch.store.owner import this_machine
from agentbench.batch.store.store import BatchStore
from agentbench.exceptions import BatchError

if TYPE_CHECKING:
    from agentbench.batch.cluster.definition import Definition

_AHEAD: Final = 2
"""Chunks per worker: one runs, the next one waits there."""
_CHUNK_S: Final = 0.5
"""How long a worker should take for a chunk."""
_RUNS_PER_WORKER: Final = 16
"""How many inputs a chunk has at least if the workers find out how many runs they can take."""
_STOP_S: Final = 10.0
"""How long a stopped batch waits for its chunks."""
_MOST_PER_CHUNK: Final = 1000


class ClusterDriver(Driver[str]):
    """Runs the inputs on the workers of a Dask cluster."""

    def __init__(
        self,
        store: BatchStore,
        reader: InputReader,
        rules: DriveRules,
        on_ended: Callable[[EndedRow], None],
        client: Any,
        definition: Definition,
    ) -> None:
        super().__init__(store, reader, rules, on_ended)
        self._client, self._definition = client, definition
        self._most_workers = min(definition.rules.executor_limits.values(), default=1 << 30)
        self._workers: list[str] = []
        self._in_flight: dict[str, list[str]] = {}
        self._futures: dict[str, Any] = {}
        self._counting: set[asyncio.Task[None]] = set()
        self._per_second = 0.0
        self._look_again_at = 0.0
        self.local: LocalCluster | None = None
        """The processes that this batch has started."""

    async def drive(self, skipped: int | None = None) -> None:
        """Run the batch on the cluster until no row is open, or until it stops."""
        require_client(self._client)
        await run_in_thread(check_workers, self._client)
        if self.store.database.is_local:
            await run_in_thread(self._require_this_machine)
        plugin = _as_worker_plugin(self._definition)
        await run_in_thread(self._client.register_plugin, plugin, name=plugin.name)
        try:
            await run_in_thread(self._client.run, prepare_batch, self._definition.id)
            await super().drive(skipped)
        finally:
            with suppress(Exception):  # the cluster is gone, and what was on it too
                await run_in_thread(self._client.unregister_worker_plugin, plugin.name)
            if self.local is not None:
                await run_in_thread(self.local.close)

    def _require_this_machine(self) -> None:
        here = this_machine()
        for address, machine in self._client.run(this_machine).items():
            if machine.split(":")[0] != here.split(":")[0]:
                msg = (
                    f"Worker {address} is on another machine, which cannot use the file {self.store.database.place!r}. "
                    "Pass into= the URL of a PostgreSQL server that all workers reach."
                )
                raise BatchError(msg)

    # ---- the parts of a driver ---------------------------------------------------------------------------------------

    async def register(self, inputs: Sequence[tuple[str, int, Any]]) -> list[str]:
        """Add inputs to the batch, and return the keys of those that have not ended."""
        await self._look_for_workers()
        return await run_in_thread(self._register, inputs)

    def _register(self, inputs: Sequence[tuple[str, int, Any]]) -> list[str]:
        require_importable([type(value) for _, _, value in inputs], "an input")
        self.store.register(inputs, claim=False)
        return self.store.runnable([key for key, nth, _ in inputs if not nth])

    async def take_free(self, count: int) -> list[str]:
        """Return open rows that no process runs and that are not on their way to a worker."""
        await self._look_for_workers()
        sent = {key for keys in self._in_flight.values() for key in keys}
        free = await run_in_thread(self.store.free_keys, count + len(sent))
        return [key for key in free if key not in sent][:count]

    @property
    def concurrency(self) -> int:
        """How many runs may be in progress now."""
        return self._definition.rules.concurrency or _RUNS_PER_WORKER * max(len(self._workers), 1)

    def _share(self) -> int:
        return max(1, math.ceil(self.concurrency / max(len(self._workers), 1)))

    def _chunk_size(self) -> int:
        return min(max(self._share(), int(self._per_second * _CHUNK_S)), _MOST_PER_CHUNK)

    async def _look_for_workers(self) -> None:
        """Ask the scheduler for its workers, at most once per second."""
        now = self._loop.time()
        if now >= self._look_again_at:
            self._look_again_at = now + 1.0
            info = await run_in_thread(self._client.scheduler_info, n_workers=-1)
            self._workers = list(info["workers"])[: self._most_workers]

    def room(self) -> int:
        """Return how many further inputs may be sent to workers now."""
        free_chunks = _AHEAD * max(len(self._workers), 1) - len(self._in_flight)
        return max(free_chunks, 0) * self._chunk_size()

    def start(self, items: Sequence[str]) -> None:
        """Send inputs to workers, in chunks."""
        size = self._chunk_size()
        for begin in range(0, len(items), size):
            keys = list(items[begin : begin + size])
            task = f"agentbench-chunk-{uuid.uuid4().hex}"
            only = {"workers": self._workers} if self._most_workers < (1 << 30) and self._workers else {}
            future = self._client.submit(
                run_chunk,
                self._definition.id,
                keys,
                max(len(self._workers), 1),
                key=task,
                pure=False,
                **only,
            )
            self._in_flight[task], self._futures[task] = keys, future
            future.add_done_callback(self._on_done)

    def _on_done(self, future: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._end_chunk, future)

    def _end_chunk(self, future: Any) -> None:
        keys = self._in_flight.pop(future.key, None)
        self._futures.pop(future.key, None)
        if keys is None:
            return
        if future.status == "finished":
            task = asyncio.ensure_future(self._count_chunk(future, keys))
            self._counting.add(task)
            task.add_done_callback(self._counting.discard)
            return
        if future.status == "error":
            error = future.exception(timeout=5)
            if not _is_lost_worker(error):
                self.error = self.error or (error if isinstance(error, Exception) else RuntimeError(str(error)))
        self._end_keys(keys, [])

    async def _count_chunk(self, future: Any, keys: list[str]) -> None:
        rows, seconds = [], 0.0
        with suppress(Exception, asyncio.CancelledError):  # it was lost with its worker; the rows are in the database
            rows, seconds = await run_in_thread(future.result)
        if rows and seconds:
            rate = len(rows) / seconds
            self._per_second = rate if not self._per_second else 0.5 * (self._per_second + rate)
        self._end_keys(keys, rows)

    def _end_keys(self, keys: list[str], rows: list[EndedRow]) -> None:
        ended = {row.key: row for row in rows}
        for key in keys:  # those without a row are found again as free ones, or another driver has them
            self.ended(ended.get(key))

    async def give_back(self, items: Sequence[str]) -> None:
        """Nothing to do: rows that were not sent are not claimed."""

    async def stop_running(self) -> None:
        """End the runs on all workers, and wait for their chunks."""
        with suppress(Exception):  # workers or the scheduler are gone
            await run_in_thread(self._client.run, stop_batch, self._definition.id, wait=True)
        deadline = self._loop.time() + _STOP_S
        while self._in_flight and (left := deadline - self._loop.time()) > 0:
            self._changed.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), left)
        for future in self._futures.values():
            with suppress(Exception):
                future.cancel()


def _is_lost_worker(error: object) -> bool:
    return type(error).__name__ in ("KilledWorker", "CancelledError", "FutureCancelledError")


def _as_worker_plugin(definition: Definition) -> Any:
    """Return the plugin of a definition as a class of `distributed`, which is imported only here."""
    distributed: Any = require("distributed", extra="dask", purpose="run a batch on a cluster")
    plugin_class = type(
        "AgentbenchPlugin", (DefinitionPlugin, distributed.WorkerPlugin), {"__reduce__": _reduce_plugin}
    )
    plugin: Any = plugin_class(definition)
    return plugin


def _reduce_plugin(plugin: Any) -> Any:
    return _as_worker_plugin, (plugin._definition,)  # noqa: SLF001 - its own module


class LocalCluster:
    """Processes on this machine, one per core, which are started at first use and end with the batch."""

    def __init__(self) -> None:
        self._client: Any = None

    async def start(self) -> Any:
        """Start the processes, unless they run, and return a client of them."""
        if self._client is None:
            self._client = await run_in_thread(_start_processes)
        return self._client

    def close(self) -> None:
        """End the processes."""
        client, self._client = self._client, None
        if client is not None:
            cluster = client.cluster
            client.close()
            cluster.close()


def _start_processes() -> Any:
    distributed: Any = require("distributed", extra="dask", purpose="run a batch in several processes")
    try:
        cluster = distributed.LocalCluster(
            n_workers=os.cpu_count() or 1,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.ERROR,
        )
    except RuntimeError as error:
        msg = (
            "The processes could not be started; their own errors are printed above. In a script, the call of "
            "run_many() has to be under `if __name__ == '__main__':`, because each process runs the script again."
        )
        raise BatchError(msg, error) from error
    return distributed.Client(cluster)

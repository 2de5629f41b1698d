"""What runs on a worker: chunks of inputs, in this process's event loop, which write their own rows."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from agentbench._bridge import run_sync
from agentbench._workers import run_in_thread
from agentbench.batch.cluster.pickling import unloadable, unpickled
from agentbench.batch.driving.tally import EndedRow, count_ending, count_row
from agentbench.batch.driving.writer import RowWriter
from agentbench.batch.rows import RowStatus
from agentbench.batch.running.run_one import RowRunner
from agentbench.batch.running.targets import make_target
from agentbench.batch.store.database import BatchDatabase, patiently
from agentbench.batch.store.store import BatchStore, Claim
from agentbench.exceptions import AgentFrameworkException

if TYPE_CHECKING:
    from agentbench.batch.cluster.definition import Definition

_definitions: Final[dict[str, Definition]] = {}
_batches: Final[dict[str, WorkerBatch]] = {}
_lock: Final = threading.Lock()


class WorkerBatch:
    """A batch on this worker: its workflow, its rows, and its runs in progress."""

    def __init__(self, definition: Definition) -> None:
        try:
            made = unpickled(definition.payload)
        except AgentFrameworkException:
            raise
        except Exception as error:
            what = "the workflow"
            raise unloadable(what, error) from error
        target = make_target(made, definition.name, definition.run_kwargs)
        self.store = BatchStore(BatchDatabase(definition.into), target.batch_name, definition.opened)
        self._target, self._definition = target, definition
        self._writer = RowWriter(self.store)
        self._runner: RowRunner | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run_chunk(self, keys: Sequence[str], workers: int) -> list[EndedRow]:
        """Run inputs on one of this number of workers; return what became of them, without those that others run."""
        definition = self._definition
        if self._runner is None:
            self._loop = asyncio.get_running_loop()
            self._runner = RowRunner(self._target, self.store, definition.rules)
        self._runner.divide_limits(workers)
        if definition.rules.concurrency is not None:
            self._runner.slots.fixed = max(1, math.ceil(definition.rules.concurrency / workers))
        claims = await patiently(lambda: run_in_thread(self.store.claim, keys))
        if len(claims) < len(keys):  # perhaps their owner was a worker that was lost
            await patiently(lambda: run_in_thread(self.store.owner.expire_others))
            left = set(keys) - {claim.key for claim in claims}
            claims += await patiently(lambda: run_in_thread(self.store.claim, left))
        tasks = [asyncio.ensure_future(self._run(claim, self._runner)) for claim in claims]
        self._tasks.update(tasks)
        ended = [row for row in await asyncio.gather(*tasks) if row is not None]
        self._tasks.difference_update(tasks)
        known = {row.key for row in ended}
        others = [key for key in keys if key not in known]
        if others:  # a repeated task finds the rows that it has written before
            rows = await patiently(lambda: run_in_thread(self.store.rows, keys=others, with_values=False))
            ended += [count_row(row) for row in rows if row.status is not RowStatus.OPEN]
        return ended

    async def _run(self, claim: Claim, runner: RowRunner) -> EndedRow | None:
        is_begun = False
        try:
            place = await runner.slots.begin()
            try:
                is_begun = True
                ending = await runner.run(claim)
            finally:
                runner.slots.end(place)
        except asyncio.CancelledError:
            status = RowStatus.CANCELLED if is_begun else RowStatus.OPEN
            await run_in_thread(self.store.release, [claim], status, begun=is_begun)
            return None
        except Exception:
            await run_in_thread(self.store.release, [claim])
            raise
        return count_ending(ending) if ending is not None and await self._writer.write(ending) else None

    def stop(self) -> None:
        """End the runs in progress at their last checkpoints. From any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(lambda: [task.cancel() for task in self._tasks])

    def close(self) -> None:
        """Give up what is left of this batch on this worker."""
        self.stop()
        self.store.close()


class DefinitionPlugin:
    """Brings a definition to each worker of a cluster, also to those that come later, and takes it away at the end."""

    def __init__(self, definition: Definition) -> None:
        self._definition = definition
        self.name = f"agentbench-{definition.id}"

    def setup(self, worker: Any) -> None:
        """Remember the definition; called on each worker."""
        _definitions[self._definition.id] = self._definition

    def teardown(self, worker: Any) -> None:
        """Forget the definition, and close its database."""
        _definitions.pop(self._definition.id, None)
        with _lock:
            batch = _batches.pop(self._definition.id, None)
        if batch is not None:
            batch.close()


def prepare_batch(definition_id: str) -> None:
    """Load the workflow of a batch on this worker, so that what is wrong with it is known before anything runs."""
    with _lock:
        if definition_id not in _batches:
            _batches[definition_id] = WorkerBatch(_definitions[definition_id])


def run_chunk(definition_id: str, keys: Sequence[str], workers: int) -> tuple[list[EndedRow], float]:
    """Run inputs of a batch on this worker; return what became of them, and the seconds that it took."""
    began = time.perf_counter()
    prepare_batch(definition_id)
    ended = run_sync(_batches[definition_id].run_chunk(keys, workers))
    return ended, time.perf_counter() - began


def stop_batch(definition_id: str) -> None:
    """End the runs of a batch on this worker at their last checkpoints."""
    batch = _batches.get(definition_id)
    if batch is not None:
        batch.stop()

"""Drives a batch: reads inputs, starts runs while there is room and budget, and writes rows as they end."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from agentbench._workers import run_in_thread
from agentbench.batch.driving.tally import EndedRow, Tally, count_ending
from agentbench.batch.driving.writer import RowWriter
from agentbench.batch.inputs import InputReader
from agentbench.batch.rows import RowStatus
from agentbench.batch.running.run_one import RowRunner
from agentbench.batch.store.database import patiently
from agentbench.batch.store.store import BatchStore, Claim
from agentbench.exceptions import BatchInputError, BatchStoppedError, UnstorableValueError
from agentbench.messages.usage import Budget

ItemT = TypeVar("ItemT")
_LOOK_AGAIN_S: Final = 1.0
"""How often a driver that has nothing to do looks whether another one has left rows behind."""
_LEAST_ENDED: Final = 20
"""A fraction of failed rows is judged as if at least this many had ended."""


@dataclass
class DriveRules:
    """When a batch stops early.

    Attributes:
        budget: What it may use.
        on_error: `keep`, `stop`, or the fraction of failed rows at which it stops.
    """

    budget: Budget | None = None
    on_error: str | float = "keep"


class Driver(Generic[ItemT]):
    """The loop that all backends share. An item is what a backend starts: a claimed row, or the key of one.

    Attributes:
        tally: The numbers of this call.
        reason: Why the batch stops early, for a person; empty otherwise.
        error: The error that ends the batch, if there is one.
    """

    def __init__(
        self, store: BatchStore, reader: InputReader, rules: DriveRules, on_ended: Callable[[EndedRow], None]
    ) -> None:
        self.store, self.reader, self.rules = store, reader, rules
        self.tally = Tally(rules.budget)
        self.reason = ""
        self.error: Exception | None = None
        self.is_cancelled = False
        self._on_ended = on_ended
        self._ready: deque[ItemT] = deque()
        self._changed = asyncio.Event()
        self._lock = threading.Lock()
        self._is_woken = self._is_ending = False
        self._loop = asyncio.get_running_loop()

    # ---- what a backend does -----------------------------------------------------------------------------------------

    async def register(self, inputs: Sequence[tuple[str, int, Any]]) -> list[ItemT]:
        """Add inputs to the batch, and return those to start."""
        raise NotImplementedError

    async def take_free(self, count: int) -> list[ItemT]:
        """Return open rows that no process runs, to be started here."""
        raise NotImplementedError

    @property
    def concurrency(self) -> int:
        """How many runs may be in progress now."""
        raise NotImplementedError

    @property
    def rejected(self) -> int:
        """How many calls of models were rejected so far, as far as this process knows."""
        return 0

    def room(self) -> int:
        """Return how many further items may be started now."""
        raise NotImplementedError

    def start(self, items: Sequence[ItemT]) -> None:
        """Start items; each counts as running until `ended` is called for its row."""
        raise NotImplementedError

    async def give_back(self, items: Sequence[ItemT]) -> None:
        """Give up items that were not started."""
        raise NotImplementedError

    async def stop_running(self) -> None:
        """End the running items, which can be continued, and wait for them."""
        raise NotImplementedError

    # ---- the loop ----------------------------------------------------------------------------------------------------

    async def drive(self, skipped: int | None = None) -> None:
        """Run the batch until no row is open, or until it stops; `skipped` rows had ended before its first driver."""
        await run_in_thread(self.tally.load, self.store)
        had_ended = sum(self.tally.counts.values()) - self.tally.counts[RowStatus.OPEN]
        self.tally.skipped = had_ended if skipped is None else skipped
        try:
            while not self.is_cancelled:
                self._changed.clear()
                self._is_woken = False
                if self.tally.is_stale:
                    await patiently(lambda: run_in_thread(self.tally.load, self.store))
                self._check_rules()
                if not self.reason and self.error is None:
                    await self._start_some()
                if self.tally.running or (self._ready and not self.reason and self.error is None):
                    await self._changed.wait()
                elif self.reason or self.error is not None or not await self._wait_for_others():
                    with self._lock:
                        self._is_ending = not self._is_woken
                    if self._is_ending:
                        break
        finally:
            self._is_ending = True
            await self._finish()
        if self.error is not None:
            raise self.error

    async def _start_some(self) -> None:
        while (room := self.room()) > 0 and not self.is_cancelled:
            if not self._ready and not await self._fill(room):
                return
            items = [self._ready.popleft() for _ in range(min(room, len(self._ready)))]
            self.tally.running += len(items)
            self.start(items)
            self._check_rules()
            if self.reason:
                return

    async def _fill(self, room: int) -> bool:
        """Get more items: further inputs, or at their end open rows that nobody runs; return whether there are any."""
        while not self.reader.is_exhausted and not self._ready:
            try:
                inputs = self.reader.take(max(room, self.concurrency))
            except BatchInputError as error:
                self.error = error
                return False
            try:
                items = await patiently(lambda inputs=inputs: self.register(inputs))  # type: ignore[misc]
            except UnstorableValueError as error:
                self.error = self.reader.explain(inputs) or error
                return False
            self._ready += items
        if not self._ready and self.reader.is_exhausted:
            self._ready += await patiently(lambda: self.take_free(max(room, self.concurrency)))
        return bool(self._ready)

    async def _wait_for_others(self) -> bool:
        """Wait if other processes run rows of the batch, and return whether to look again."""
        busy = await patiently(lambda: run_in_thread(self.store.busy))
        if not busy:
            return False
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), _LOOK_AGAIN_S)
        await run_in_thread(self.tally.load, self.store)
        return True

    async def _finish(self) -> None:
        ready, self._ready = list(self._ready), deque()
        with suppress(Exception):  # their claims end with this process
            await self.give_back(ready)
        if self.tally.running:
            await self.stop_running()
        with suppress(Exception):
            await run_in_thread(self.tally.load, self.store)
            if self.reader.is_exhausted and not self.tally.counts[RowStatus.OPEN]:
                self.reason = ""  # the budget was enough for all inputs

    def _check_rules(self) -> None:
        tally, on_error = self.tally, self.rules.on_error
        for name, (used, limit) in tally.used().items():
            if used >= limit and not self.reason:
                self.reason = f"The budget of {limit:,g} {name} is used up: {used:,g}."
        if tally.without_price and not self.reason:
            key = tally.without_price
            self.reason = f"The budget limits the cost, but prices= has no price for the model that row {key!r} used."
        failed = tally.failed_here
        if self.error is not None or not failed or on_error == "keep":
            return
        if on_error == "stop":
            limit, what = 1, "on_error='stop'"
        else:
            ended = max(tally.ended_here, _LEAST_ENDED)
            limit, what = float(on_error) * ended, f"on_error={on_error:g}"
        if failed >= limit:
            key = self._last_failed
            msg = f"The batch stopped because of {failed} failed rows ({what}), lastly {key!r}. See batch.failed."
            self.error = BatchStoppedError(msg, failed=failed, key=key)

    _last_failed = ""

    # ---- from any thread ---------------------------------------------------------------------------------------------

    def cancel(self) -> None:
        """Stop the batch; its running rows can be continued."""
        self.is_cancelled = True
        self.wake()
        with self._lock:
            self._is_ending = True

    def wake(self) -> bool:
        """Let the driver look whether there is something to do; False if it is ending, and does not look any more."""
        with self._lock:
            self._is_woken = True
            if self._is_ending:
                return False
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._changed.set)
        return True

    def ended(self, row: EndedRow | None) -> None:
        """Count an item that has ended; None if its row belongs to another process."""
        self.tally.running -= 1
        if row is not None:
            self.tally.add(row)
            if row.status is RowStatus.FAILED:
                self._last_failed = row.key
            self._on_ended(row)
        self._changed.set()


class LocalDriver(Driver[Claim]):
    """Runs all inputs on one event loop of this process."""

    def __init__(
        self,
        store: BatchStore,
        reader: InputReader,
        rules: DriveRules,
        on_ended: Callable[[EndedRow], None],
        runner: RowRunner,
    ) -> None:
        super().__init__(store, reader, rules, on_ended)
        self._runner = runner
        self._tasks: set[asyncio.Task[None]] = set()
        self._writer = RowWriter(store)

    async def register(self, inputs: Sequence[tuple[str, int, Any]]) -> list[Claim]:
        """Add inputs to the batch, and claim those to start."""
        return await self.store.database.soon(self.store.register, inputs, claim=True)

    async def take_free(self, count: int) -> list[Claim]:
        """Claim open rows that no process runs."""
        keys = await run_in_thread(self.store.free_keys, count)
        return await run_in_thread(self.store.claim, keys) if keys else []

    @property
    def concurrency(self) -> int:
        """How many runs may be in progress now."""
        return self._runner.slots.limit

    @property
    def rejected(self) -> int:
        """How many calls of models were rejected."""
        return self._runner.limiter.rejected

    def room(self) -> int:
        """Return how many further runs may begin now."""
        return self.concurrency - self.tally.running

    def start(self, items: Sequence[Claim]) -> None:
        """Start the runs of claimed rows."""
        for item in items:
            task = asyncio.ensure_future(self._run(item))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self, claim: Claim) -> None:
        row: EndedRow | None = None
        place = await self._runner.slots.begin()
        try:
            ending = await self._runner.run(claim)
            if ending is not None and await self._writer.write(ending):
                row = count_ending(ending)
        except asyncio.CancelledError:
            status = RowStatus.CANCELLED if self.is_cancelled else RowStatus.OPEN
            await self._release(claim, status)
            raise
        except BaseException as error:  # noqa: BLE001 - such as a full disk: the batch ends, and its rows can be continued
            self.error = self.error or (error if isinstance(error, Exception) else RuntimeError(repr(error)))
            await self._release(claim, RowStatus.OPEN)
        finally:
            self._runner.slots.end(place)
            self.ended(row)

    async def _release(self, claim: Claim, status: RowStatus) -> None:
        with suppress(Exception):  # the claim ends with this process
            await run_in_thread(self.store.release, [claim], status)

    async def give_back(self, items: Sequence[Claim]) -> None:
        """Give up claims that were not started."""
        if items:
            await run_in_thread(self.store.release, items, begun=False)

    async def stop_running(self) -> None:
        """End the running runs at their last checkpoints, and wait for them."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

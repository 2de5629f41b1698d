"""Counts the rows of a batch while it runs, so that its progress can be shown at any time at no cost."""

from __future__ import annotations

import heapq
import time
from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentbench.batch.rows import BatchProgress, BatchRow, RowStatus
from agentbench.messages.usage import Budget

if TYPE_CHECKING:
    from agentbench.batch.store.store import BatchStore, Ending

_WINDOW_S: Final = 60.0
_SLOWEST: Final = 5
_LOAD_EVERY_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class EndedRow:
    """What a driver needs to know of a row that has ended, in this process or another."""

    key: str
    status: RowStatus
    seconds: float
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None
    error_type: str = ""


def count_ending(ending: Ending) -> EndedRow:
    """Return what a driver counts of a run that has ended: of what its row used, only what is new."""
    fields, claim = ending.fields, ending.claim
    known_in, known_out = claim.tokens
    tokens_in = (fields["tokens_in"] or 0) - (known_in or 0)
    tokens_out = (fields["tokens_out"] or 0) - (known_out or 0)
    cost = None if fields["cost"] is None else fields["cost"] - (claim.cost or 0.0)
    name = "" if fields["error"] is None else fields["error"].type
    return EndedRow(claim.key, ending.status, fields["seconds"], tokens_in, tokens_out, cost, name)


def count_row(row: BatchRow) -> EndedRow:
    """Return what a driver counts of a stored row."""
    name = "" if row.error is None else row.error.type
    tokens_in, tokens_out = row.tokens_in or 0, row.tokens_out or 0
    return EndedRow(row.key, row.status, row.seconds or 0.0, tokens_in, tokens_out, row.cost, name)


class Tally:
    """The numbers of one call of a batch. It is written on the loop of the driver, and read from any thread."""

    def __init__(self, budget: Budget | None) -> None:
        self._budget = budget or Budget()
        self.began = time.monotonic()
        self.counts: Counter[RowStatus] = Counter()
        self.skipped = 0
        self.ended_here = 0
        self.failed_here = 0
        self.running = 0
        self.tokens_in = self.tokens_out = 0
        self.cost: float | None = None
        self.without_price = ""
        """The key of a row that used a model without a price, if the budget limits the cost."""
        self.errors: Counter[str] = Counter()
        self._slowest: list[tuple[float, str]] = []
        self._recent: deque[float] = deque(maxlen=2000)
        self._load_again_at = 0.0

    def load(self, store: BatchStore) -> None:
        """Read the numbers of all rows from the database."""
        began = time.monotonic()
        totals = store.totals()
        self.counts = Counter({status: found[0] for status, found in totals.items()})
        self.tokens_in = sum(found[1] for found in totals.values())
        self.tokens_out = sum(found[2] for found in totals.values())
        costs = [found[3] for found in totals.values() if found[3] is not None]
        self.cost = sum(costs) if costs else None
        self.errors = Counter(dict(store.errors()))
        now = time.monotonic()
        self._load_again_at = now + max(_LOAD_EVERY_S, 20 * (now - began))

    @property
    def is_stale(self) -> bool:
        """Whether it is time to read the numbers again, because other processes write rows too."""
        return time.monotonic() > self._load_again_at

    def add(self, row: EndedRow) -> None:
        """Count a row that has ended."""
        now = time.monotonic()
        self.counts[row.status] += 1
        self.ended_here += 1
        self.tokens_in += row.tokens_in
        self.tokens_out += row.tokens_out
        if row.cost is None and row.tokens_in + row.tokens_out and self._budget.cost is not None:
            self.without_price = row.key
        if row.cost is not None:
            self.cost = (self.cost or 0.0) + row.cost
        if row.status is RowStatus.FAILED:
            self.failed_here += 1
            self.errors[row.error_type] += 1
        self._recent.append(now)
        push = heapq.heappush if len(self._slowest) < _SLOWEST else heapq.heappushpop
        push(self._slowest, (row.seconds, row.key))

    def used(self) -> dict[str, tuple[float, float]]:
        """Return the limits of the budget with what was used of each."""
        return self._budget.usage(
            tokens=self.tokens_in + self.tokens_out,
            cost=self.cost or 0.0,
            seconds=time.monotonic() - self.began,
            failures=self.failed_here,
        )

    def rate(self) -> float:
        """Return the number of rows that ended per second, lately."""
        now = time.monotonic()
        recent = [at for at in list(self._recent) if now - at < _WINDOW_S]
        if not recent:
            return 0.0
        return len(recent) / max(now - max(recent[0], self.began), 0.001) if len(recent) > 1 else 0.0

    def progress(self, total: int | None, **more: object) -> BatchProgress:
        """Return a snapshot; `total` is the number of rows if it is known, `more` are fields that the batch knows."""
        counts = {status.value: self.counts[status] for status in RowStatus}
        ended = sum(counts.values()) - counts["open"]
        if total is not None:
            total = max(total, ended + self.running)  # earlier calls may have had other inputs
        counts["open"] = left = self.running if total is None else total - ended
        rate = self.rate()
        slowest = [(key, seconds) for seconds, key in sorted(self._slowest, reverse=True)]
        return BatchProgress(
            counts=counts,
            total=total,
            running=self.running,
            skipped=self.skipped,
            rate=rate,
            remaining_s=left / rate if rate and total is not None else None,
            elapsed_s=time.monotonic() - self.began,
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
            cost=self.cost,
            budget=self.used(),
            errors=self.errors.most_common(20),
            slowest=slowest,
            **more,  # type: ignore[arg-type]
        )

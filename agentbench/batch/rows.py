"""What a batch knows of each input: its row, and the traffic of its run along the graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from agentbench._display import Displayable, drawn_by
from agentbench._secrets import mask_text, masked_fields


class RowStatus(StrEnum):
    """The state of one input of a batch.

    `open` is an input that has not ended: it has not begun, is running, or was interrupted. `waiting` asks a person.

    Example:
        from agentbench.batch import RowStatus

        slow = [row for row in batch.rows(status=RowStatus.FINISHED) if row.seconds > 60]
    """

    OPEN = "open"
    FINISHED = "finished"
    FAILED = "failed"
    WAITING = "waiting"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class RowError:
    """An error of a run as text, because errors of users and libraries often cannot be copied between processes.

    Attributes:
        type: The name of its class.
        message: Its text.
        location: The executor that raised it and the superstep, such as `classify, superstep 3`.
        traceback: The traceback as text.

    Example:
        for row in batch.failed:
            print(row.key, row.error.type, row.error.location)
    """

    type: str
    message: str
    location: str = ""
    traceback: str = ""

    def __str__(self) -> str:
        return mask_text(f"{self.type}: {self.message}" if self.message else self.type)

    def __repr__(self) -> str:
        return f"RowError({self.type!r}, {mask_text(self.message)!r}, {self.location!r})"


@drawn_by("agentbench.notebook.batches.cards:row_bundle")
@dataclass(frozen=True, slots=True)
class BatchRow(Displayable):
    """One input of a batch, and what became of it.

    Attributes:
        key: The name of the input within the batch.
        position: Its place among the inputs, counted from 0.
        input: The input.
        status: The state of the row.
        output: The output of the run: the only one, or a list of several.
        error: The error that made the run fail.
        attempts: How often the run was begun or continued after an error or an interruption.
        supersteps: Number of supersteps of the run.
        path: The executors that ran, superstep by superstep: `read > (check, rate) > write`.
        tokens_in: Tokens that models read; None if no model counted them.
        tokens_out: Tokens that models wrote; None if no model counted them.
        cost: Cost of the models in the currency of the prices; None if it is unknown.
        started: Unix time in seconds at which the run first began.
        seconds: Duration of the run over all attempts, in seconds.
        queued_seconds: Seconds between the registration of the input and the start of its run.
        run_id: The id in the run's checkpoints.
        checkpoint_id: The last checkpoint of the run, if it is kept.
        graph_hash: Hash of the graph and the code that ran.
        worker: The process that ran it: host name and process id.
        duplicate_of: For a repeated input, the position of the input that was run.

    Example:
        from agentbench.batch import run_many

        async for row in run_many(workflow, ["to be", "or not"]):
            print(row.key, row.status, row.output)
    """

    key: str
    position: int
    input: Any
    status: RowStatus = RowStatus.OPEN
    output: Any = None
    error: RowError | None = None
    attempts: int = 0
    supersteps: int = 0
    path: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: float | None = None
    started: float | None = None
    seconds: float | None = None
    queued_seconds: float | None = None
    run_id: str | None = None
    checkpoint_id: str | None = None
    graph_hash: str | None = None
    worker: str | None = None
    duplicate_of: int | None = None

    __repr__ = masked_fields


@dataclass(slots=True)
class Traffic:
    """What passed one node, or one edge, of the graph during a run.

    Attributes:
        key: The key of the row.
        source: The id of the executor; for an edge, its source (`Workflow` for the input of the run).
        target: For an edge, its target; empty for a node.
        calls: How often the executor was called.
        seconds: The time spent in it, in seconds.
        tokens: Tokens that its models read and wrote.
        cost: Cost of its models in the currency of the prices; 0 if it is unknown.
        failures: Calls that raised.
        messages: For an edge, the messages delivered along it.

    Example:
        slow = max((each for each in batch.traffic() if not each.target), key=lambda each: each.seconds)
    """

    key: str
    source: str
    target: str = ""
    calls: int = 0
    seconds: float = 0.0
    tokens: int = 0
    cost: float = 0.0
    failures: int = 0
    messages: int = 0


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """A snapshot of a batch, small and cheap: what its live display shows.

    Attributes:
        name: The name of the batch.
        counts: Number of rows by status; `open` includes the running ones.
        running: Number of runs in progress, in all processes of this driver.
        total: Number of different inputs, if it is known: that of a list, or once all inputs were read.
        duplicates: Number of inputs that equal an earlier one.
        skipped: Rows that had ended before this call.
        rate: Rows that ended per second, over the last minute.
        remaining_s: Estimated seconds until the last row has ended; None if it cannot be estimated.
        elapsed_s: Seconds since this call began.
        tokens_in: Tokens that models read, over all rows.
        tokens_out: Tokens that models wrote, over all rows.
        cost: Cost of all rows in the currency of the prices; None if it is unknown.
        budget: The limits and how much of each was used, such as `{"tokens": (1200, 50000)}`.
        concurrency: How many runs may be in progress now.
        rejected: Model calls that a service rejected because it was busy.
        errors: Classes of errors with their counts, the most frequent first; at most 20.
        slowest: Keys and seconds of the slowest runs of this call, the slowest first; at most 5.
        state: `ready`, `running`, `done`, `cancelled` or `stopped`.
        reason: Why it stopped, for a person; empty otherwise.

    Example:
        progress = batch.progress
        print(progress.counts["finished"], "of", progress.total)
    """

    name: str
    counts: dict[str, int]
    running: int = 0
    total: int | None = None
    duplicates: int = 0
    skipped: int = 0
    rate: float = 0.0
    remaining_s: float | None = None
    elapsed_s: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None
    budget: dict[str, tuple[float, float]] = field(default_factory=dict)
    concurrency: int = 0
    rejected: int = 0
    errors: list[tuple[str, int]] = field(default_factory=list)
    slowest: list[tuple[str, float]] = field(default_factory=list)
    state: str = "ready"
    reason: str = ""

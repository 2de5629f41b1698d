"""Options of a built workflow, of one run, and of one executor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from agentbench._clock import Clock, IdSource
from agentbench._display import shorten
from agentbench._limits import require_limit, require_seconds
from agentbench._secrets import masked_fields

if TYPE_CHECKING:
    from agentbench.workflows.executors.recorder import RunRecorder

TypeCheckMode = Literal["off", "warn", "error"]
PlacementName = Literal["workers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowSettings:
    """How a built workflow behaves; see the arguments of `WorkflowBuilder`."""

    strict_context: bool = True
    check_types: TypeCheckMode = "off"
    report_drops: bool = False
    copy_messages: bool = False
    strict_checkpoints: bool = False
    save_input: bool = False
    checkpoint_run_kwargs: bool = False
    max_messages: int = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of one run, for `workflow.run(..., options=)`, `workflow.start` and the like.

    Attributes:
        chain: Replaces the workflow's name as the grouping key of this run's checkpoints.
        max_iterations: Replaces the workflow's limit; counts supersteps since the last outside input. 0 runs only the
            start executors.
        observe: Emit observation events and stamps; None uses the default of the caller or the process.
        max_messages: Replaces the workflow's limit on the messages that one superstep may queue for the next.
        clock: The source of times; None uses the process-wide one.
        ids: The source of ids; None uses the process-wide one.
        metadata: Merged into the metadata of every checkpoint of the run.
        keep_events: False retains only outputs, requests, warnings and status changes, for very long runs.
        strict_checkpoints: Fail the run if a checkpoint cannot be saved; None uses the workflow's setting.
        timeout: Seconds allowed for an executor without its own timeout.
        record: True keeps the model requests and answers of a started run, and the answers of people, in memory and
            next to its chain, masked as in cassettes, for `WorkflowRun.redo`. A `ModelRecording` also answers from what
            it contains. None records nothing, except in steppers, which record models that are not offline.
        record_limit: The size in bytes at which a run stops recording, with a warning.
        save_input: Save a checkpoint before superstep 0, with the input queued and the iteration -1; a run from it
            begins with the start executors.
        workers: A `dask.distributed.Client`, on whose workers executors with `placement = "workers"` run, or another
            `Placement`. None runs them here.
        check_head: With True, each checkpoint of the run is saved only if no other run has saved to its chain since
            the previous one; otherwise the run ends with `WorkflowBusyError`. A number is the `seq` of the chain's
            newest checkpoint as the caller knows it, so anything saved since then counts too. With None, only the
            first checkpoint of a run that continues from one (by a resume, a response or further input) is checked,
            and only against checkpoints with a common ancestor; if the storage outlasts the process, a request can
            also be answered only once. With False, both runs become branches of one chain.

    Raises:
        TypeError: A limit is not a number, or `workers` is something else.
        ValueError: A limit is negative, or a timeout 0.
        PlacementError: The client is closed, or belongs to an event loop.

    Example:
        >>> options = RunOptions(chain="customer-7", max_iterations=20, metadata={"user": "Ann"})
        >>> result = await workflow.run("hello", options=options, checkpoint_storage=storage)
    """

    chain: str | None = None
    max_iterations: int | None = None
    max_messages: int | None = None
    observe: bool | None = None
    clock: Clock | None = None
    ids: IdSource | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    keep_events: bool = True
    strict_checkpoints: bool | None = None
    check_head: bool | int | None = None
    timeout: float | None = None
    record: bool | RunRecorder | None = None
    record_limit: int = 50_000_000
    save_input: bool = False
    workers: Any = None

    __repr__ = masked_fields

    def __post_init__(self) -> None:
        """Check the limits and the workers."""
        require_limit("max_iterations", self.max_iterations, none="that of the workflow")
        require_limit("max_messages", self.max_messages, none="that of the workflow")
        require_limit("record_limit", self.record_limit)
        if self.record is not None and not isinstance(self.record, bool) and not hasattr(self.record, "around"):
            msg = f"record is {shorten(self.record)}; expected True, False, None or a ModelRecording."
            raise TypeError(msg)
        require_seconds("timeout", self.timeout, none="no limit")
        if self.workers is not None:
            from agentbench.workflows.executors.placement import placement_of  # noqa: PLC0415 - most runs have none

            placement_of(self.workers)


RetryAfter: TypeAlias = Callable[[Exception, int], float | None]


@dataclass(frozen=True, slots=True)
class ExecutorPolicy:
    """Limits of an executor that the engine enforces, so that its handlers need not.

    A retry calls the handler again with the same input. Messages, outputs and requests of the failed attempt are
    dropped, but its writes to shared state are not (write at the end of a handler that may be retried).

    Attributes:
        timeout: Seconds allowed for one attempt; None for no limit.
        retries: Attempts after the first one.
        max_concurrency: Maximum number of concurrent deliveries in one superstep; None for no limit.
        retry_after: Returns the seconds to wait after an error of the attempt with this number, from 1, or None to
            raise the error at once; by default the next attempt begins at once.

    Raises:
        TypeError: A limit is not a number.
        ValueError: A limit can never be met, such as a timeout of 0.

    Example:
        >>> class Fetch(Executor):
        ...     policy = ExecutorPolicy(timeout=30, retries=2)
        ...
        ...     @handler
        ...     async def fetch(self, url: str, ctx: WorkflowContext[bytes]) -> None: ...
        >>> patient = Fetch("fetch", timeout=120)  # one limit for one executor
    """

    timeout: float | None = None
    retries: int = 0
    max_concurrency: int | None = None
    retry_after: RetryAfter | None = None

    def __post_init__(self) -> None:
        """Check the limits."""
        require_seconds("timeout", self.timeout, none="no limit")
        require_limit("retries", self.retries)
        require_limit("max_concurrency", self.max_concurrency, least=1, none="no limit")


NO_POLICY = ExecutorPolicy()
"""The policy of executors without one; a single object, so that it can be tested by identity."""

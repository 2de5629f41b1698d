"""What can be set: for a workflow when it is built, for one run, for one executor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agentbench._clock import Clock, IdSource

TypeCheckMode = Literal["off", "warn", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowSettings:
    """How a built workflow behaves; `WorkflowBuilder` fills it from its keywords.

    Attributes:
        strict_context: `ctx.send_message` and `ctx.yield_output` exist only where the handler declares them.
        check_types: what to do with a sent or yielded value that its declared types do not admit.
        report_drops: emit `message_dropped` in plain runs too.
        copy_messages: give each target of a message its own copy.
        strict_checkpoints: a checkpoint that cannot be saved fails the run.
        checkpoint_run_kwargs: write the run's keyword arguments (they may hold secrets) into checkpoints.
    """

    strict_context: bool = True
    check_types: TypeCheckMode = "off"
    report_drops: bool = False
    copy_messages: bool = False
    strict_checkpoints: bool = False
    checkpoint_run_kwargs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of one run.

    Attributes:
        chain: replaces the workflow's name as the grouping key of this run's checkpoints.
        max_iterations: replaces the workflow's limit; counts supersteps since the last outside input.
        observe: emit observation events and stamps; None takes the default of the caller or the process.
        clock: source of times; None takes the process-wide one.
        ids: source of ids; None takes the process-wide one.
        metadata: merged into the metadata of every checkpoint of the run.
        keep_events: False keeps only outputs, requests, warnings and status changes, for very long runs.
        strict_checkpoints: a checkpoint that cannot be saved fails the run; None takes the workflow's setting.
        check_head: the run ends with WorkflowBusyError when somebody else saves to its chain meanwhile; else both are
            branches of one chain.
    """

    chain: str | None = None
    max_iterations: int | None = None
    observe: bool | None = None
    clock: Clock | None = None
    ids: IdSource | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    keep_events: bool = True
    strict_checkpoints: bool | None = None
    check_head: bool = False

    def __post_init__(self) -> None:
        """Refuse a limit that is none."""
        require_limit("max_iterations", self.max_iterations)


def require_limit(name: str, limit: object, *, least: int = 0) -> None:
    """Check a count that may be left open.

    Raises:
        TypeError: it is neither an int nor None.
        ValueError: it is below `least`.
    """
    if limit is None:
        return
    if not isinstance(limit, int) or isinstance(limit, bool):
        msg = f"{name} is {limit!r}, a {type(limit).__name__}; expected a whole number, {least} or more."
        raise TypeError(msg)
    if limit < least:
        msg = f"{name} is {limit!r}; expected {least} or more."
        raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class ExecutorPolicy:
    """Limits that the engine keeps for an executor, so that its handlers need not.

    A retry starts the handler again with the same input: messages, outputs and requests of the failed attempt are
    dropped, its writes to shared state are not (write at the end of a handler that is retried).

    Attributes:
        timeout: seconds one attempt may take; None for no limit.
        retries: attempts after the first one.
        max_concurrency: deliveries of one superstep that may run at the same time; None for no limit.
    """

    timeout: float | None = None
    retries: int = 0
    max_concurrency: int | None = None

    def __post_init__(self) -> None:
        """Refuse limits that can never be met."""
        seconds: object = self.timeout
        if seconds is not None:
            if not isinstance(seconds, (int, float)):
                msg = f"timeout is {seconds!r}, a {type(seconds).__name__}; expected seconds, or None for no limit."
                raise TypeError(msg)
            if not seconds > 0:
                msg = f"timeout is {seconds!r}; expected seconds above 0, or None for no limit."
                raise ValueError(msg)
        require_limit("retries", self.retries)
        require_limit("max_concurrency", self.max_concurrency, least=1)


#: The policy of executors that have none; there is one, so that asking for it is an identity test.
NO_POLICY = ExecutorPolicy()

"""The hook at the end of a superstep, by which other kinds of graphs drive this engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from agentbench.workflows.events.events import WorkflowEvent
    from agentbench.workflows.executors.message import DeliveryView
    from agentbench.workflows.executors.options import RunOptions
    from agentbench.workflows.executors.state import State

FailurePolicy = Literal["cancel", "finish"]


@dataclass(frozen=True, slots=True)
class PauseReason:
    """Why a run paused: the text, its kind, and the error that a predicate raised, if any.

    The kind is `user`, `predicate`, `hook`, `error`, or in the middle of a superstep `inside` (see `WorkflowRun.step`)
    or `new_call` (see `WorkflowRun.redo`).

    Example:
        >>> BoundaryOutcome(pause=PauseReason("waits for the night", "hook"))
    """

    text: str
    kind: str = "predicate"
    error: BaseException | None = None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class SuperstepView:
    """The part of a run that a hook may read at a boundary.

    Attributes:
        superstep: number of the ending superstep; 0 for the start executors.
        chain: key that groups the run's checkpoints.
        run_id: id of the run.
        state: shared state, committed and pending; read only.
        deliveries: the deliveries of the superstep, in plan order, each with its result or error.
        stop_requested: a stop of the run was requested.
        pending_requests: open requests by id.
        options: the run's options.

    Example:
        def at_boundary(view):
            print(view.superstep, [delivery.target for delivery in view.deliveries])
    """

    superstep: int
    chain: str
    run_id: str
    state: State
    deliveries: Sequence[DeliveryView]
    stop_requested: bool
    pending_requests: Mapping[str, WorkflowEvent[Any]]
    options: RunOptions


@dataclass(frozen=True, slots=True)
class BoundaryCheckpoint:
    """How to mark the checkpoint of a boundary: its `source`, and further metadata.

    Example:
        from agentbench import BoundaryCheckpoint

        mark = BoundaryCheckpoint("loop", {"note": "after the first round"})
    """

    source: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryOutcome:
    """The changes that a hook requests, carried out in the order of the fields.

    Attributes:
        state_updates, state_deletes: staged into shared state; keys that start with `_graph:` are allowed.
        commit: False discards the writes of this superstep.
        messages: (executor id, data), delivered in the next superstep over the target's internal edge.
        closes: ids of open requests that no longer need a response.
        requests: `request_info` events, registered as open and emitted.
        outputs: (executor id or None, value), emitted as `output`.
        events: further events to emit.
        save: False skips the checkpoint.
        checkpoint: how to mark the checkpoint; None for the usual marks.
        pause: end here after the checkpoint (a handle pauses).
        error: raise this after the checkpoint, with the usual events of a failed run.

    Example:
        from agentbench import BoundaryOutcome

        outcome = BoundaryOutcome(state_updates={"topic": "owls"}, save=False)
    """

    state_updates: Mapping[str, Any] = field(default_factory=dict)
    state_deletes: Sequence[str] = ()
    commit: bool = True
    messages: Sequence[tuple[str, Any]] = ()
    closes: Sequence[str] = ()
    requests: Sequence[WorkflowEvent[Any]] = ()
    outputs: Sequence[tuple[str | None, Any]] = ()
    events: Sequence[WorkflowEvent[Any]] = ()
    save: bool = True
    checkpoint: BoundaryCheckpoint | None = None
    pause: PauseReason | None = None
    error: BaseException | None = None


@runtime_checkable
class BoundaryHook(Protocol):
    """Called once per superstep, after its handlers and before its writes are committed.

    All clones and runs of a workflow share a hook, so it stores its data in shared state. It may also define
    `async def on_delivery(self, delivery: DeliveryView, view: SuperstepView) -> Mapping[str, Any] | None`, called when
    a delivery has ended, successfully or not, while others of the superstep may still run. An error in it fails the
    superstep; its result is saved immediately, as values of shared state, in a checkpoint that lasts until the next
    one.
    It may also define `functions`, which maps names to functions whose code belongs to the graph, see `code_hashes`;
    `max_concurrency`, the number of deliveries that run at the same time, and `drives`: False if it
    only observes, in which case the workflow behaves as it does without a hook.

    Attributes:
        failure_policy: `"finish"` lets siblings of a failed delivery run to their end and passes the errors to
            `at_boundary`; `"cancel"` is the behaviour of plain workflows.
        reachability: False skips the builder's reachability check.

    Example:
        from agentbench import BoundaryOutcome

        class CountSupersteps:
            def at_boundary(self, view):
                return BoundaryOutcome(state_updates={"supersteps": view.superstep + 1})
    """

    failure_policy: FailurePolicy
    reachability: bool

    async def at_boundary(self, view: SuperstepView) -> BoundaryOutcome:
        """Decide how the run continues at this boundary."""

    async def on_responses(self, answers: Mapping[str, Any], view: SuperstepView) -> BoundaryOutcome:
        """Receive responses to requests that the hook registered."""

    def signature(self) -> dict[str, Any] | None:
        """Return the hook's part of the graph signature as JSON values, or None."""

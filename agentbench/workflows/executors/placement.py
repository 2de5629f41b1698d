"""Handlers that run elsewhere: what is sent there, what comes back, and the protocol of those who carry them out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

if TYPE_CHECKING:
    from agentbench.workflows.events.events import WorkflowEvent
    from agentbench.workflows.executors.executor import Executor
    from agentbench.workflows.executors.options import RunOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerCall:
    """One call of a handler of an executor, with everything that its context may read.

    Attributes:
        data: The message, or the response if there is a `request`.
        state: The shared state as of the start of the superstep.
        tools: What agents get in this run beside their own tools.
        observed: Whether lines that the handler prints and logs are wanted as events.

    Example:
        >>> call.sources, call.superstep
        (('split',), 2)
    """

    data: Any
    request: WorkflowEvent[Any] | None
    sources: tuple[str, ...]
    superstep: int
    order: int
    nth: int
    state: dict[str, Any]
    options: RunOptions
    streaming: bool
    strict_context: bool
    observed: bool
    workflow_name: str
    max_messages: int
    tools: Sequence[Any] = ()


@dataclass(slots=True)
class CallRecord:
    """What a handler did elsewhere, in order, to be applied to the run.

    Attributes:
        operations: The name of each operation, and its values: `send` (message, target), `yield` (output), `request`
            (data, response type, id), `event` (event), `set` (key, value), `delete` (key), and `wrote` (key) for a
            write whose writer is reported.
        returned: Name of the type of the result, unless it was None.
        error: What the handler raised.
        worker: The address of the worker on which it ran.
        attempts: How often it was started; more than once if workers were lost.

    Example:
        >>> CallRecord([("send", "hello", None), ("set", "greeted", True)])
    """

    operations: list[tuple[Any, ...]] = field(default_factory=list)
    returned: str | None = None
    error: Exception | None = None
    worker: str | None = None
    attempts: int = 1


@runtime_checkable
class Placement(Protocol):
    """Carries out the handlers of executors with `placement = "workers"`; the value of `RunOptions(workers=)`.

    `agentbench.batch.DaskPlacement` is the one for Dask, made from a `Client` that is passed instead. In one of your
    own, `record_call(executor, call)` of `agentbench.batch` calls the handler, where it is to run.

    Example:
        >>> class Here:
        ...     async def prepare(self, executors):
        ...         pass
        ...
        ...     async def call(self, executor, call):
        ...         return await record_call(executor, call)
        >>> result = await workflow.run("hello", options=RunOptions(workers=Here()))
    """

    async def prepare(self, executors: Sequence[Executor]) -> None:
        """Check, before a run begins, that its executors can run there."""

    async def call(self, executor: Executor, call: HandlerCall) -> CallRecord:
        """Call the handler and return what it did. If the caller is cancelled, end the handler."""


def placement_of(workers: Any) -> Placement:
    """Return the placement that `RunOptions(workers=)` names: itself, or the one for a Dask client."""
    if isinstance(workers, Placement):
        return workers
    # A higher layer, imported on use.
    return cast("Placement", import_module("agentbench.batch.cluster.placement").dask_placement(workers))

"""What a checkpoint holds for one executor, which a function of a migration receives and returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentbench._secrets import masked_repr
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.message import WorkflowMessage

Messages = dict[str, list[WorkflowMessage]]


@dataclass(slots=True, repr=False)
class ExecutorContent:
    """The part of a checkpoint that belongs to one executor; functions of `workflow.migrate` change it.

    A function receives a copy, and returns the content of one or several executors of the new graph: with several, the
    old executor is split. A returned message may be any value instead of a `WorkflowMessage`.

    Attributes:
        executor_id: The executor, by its id in the new graph if it is renamed; in a result: an executor of the new
            graph.
        state: Its own state, as `on_checkpoint_save` returned it.
        received: The queued messages to it, those that wait at its fan-in too.
        sent: The queued messages that it sent, except for those in `received` of an executor that has a function too.
        requests: Its open requests, by id.

    Example:
        >>> def split(old):
        ...     reader = ExecutorContent("reader", {"pages": old.state["pages"]}, received=old.received)
        ...     return [reader, ExecutorContent("writer", {"draft": old.state["draft"]}, sent=old.sent)]
        >>> migration = await workflow.migrate(checkpoint, functions={"author": split})
    """

    executor_id: str
    state: dict[str, Any] = field(default_factory=dict)
    received: list[Any] = field(default_factory=list)
    sent: list[Any] = field(default_factory=list)
    requests: dict[str, WorkflowEvent[Any]] = field(default_factory=dict)

    def __repr__(self) -> str:
        counts = f"received={len(self.received)}, sent={len(self.sent)}, requests={len(self.requests)}"
        return f"{type(self).__name__}({self.executor_id!r}, state={masked_repr(self.state)}, {counts})"


@dataclass(slots=True)
class Content:
    """What a run continues from, as in a checkpoint."""

    messages: Messages
    state: dict[str, Any]
    requests: dict[str, WorkflowEvent[Any]]


@dataclass(frozen=True, slots=True)
class Changes:
    """The arguments of a migration. `rename` and `settle` adapt what only a state graph stores.

    Names are those of executors of the old graph, or else those of fields of the shared state.
    """

    renamed: Mapping[str, str] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()
    functions: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    rename: Callable[[Content, Mapping[str, str], Mapping[str, str]], None] | None = None
    """Called with the content to change, and the new names of executors and fields."""
    settle: Callable[[Content, Mapping[str, str], str], None] | None = None
    """Called with the content to change, the new names of executors, and the id of the checkpoint."""
    ignored: frozenset[str] = frozenset()
    """Names that other checkpoints of the chain have, so that they do not count as mistakes."""

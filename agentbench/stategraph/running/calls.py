"""One call of a graph: its configuration, and what it has done so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentbench.messages.message import Message
from agentbench.workflows.executors.options import RunOptions


@dataclass(slots=True)
class CallRecord:
    """What a call has done so far: the state, the fields that it changed by whom, its messages and warnings.

    `is_watched` if it streams.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)
    changed: dict[str, list[str]] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    tasks: list[tuple[int, int, str, str, list[str]]] = field(default_factory=list)
    #: What tasks that are not finished have done, by the id of the task.
    done: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Where a graph in a node tells the graph around to go.
    parent_goto: list[Any] = field(default_factory=list)
    is_watched: bool = False
    n_supersteps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphOptions(RunOptions):
    """The options of a run of a graph: those of every run, the configuration of the call, and its record.

    `is_nested` if another graph or a workflow is around it; unless `is_named`, it is saved only where it does not
    complete.
    """

    config: Mapping[str, Any] = field(default_factory=dict)
    store: Any = None
    record: CallRecord = field(default_factory=CallRecord)
    is_nested: bool = False
    is_named: bool = True


class StateChanges(dict[str, Any]):
    """What a superstep changed, the data of `state_updated`: old, new and writers by field.

    Attributes:
        values_after: All fields after it.
        meta: The fields of `execution_meta` after it.
        messages: The messages that it added to the conversation.
        updates: What each node returned, None where that was nothing.
    """

    values_after: Mapping[str, Any]
    meta: Mapping[str, Any]
    messages: list[Message]
    updates: Mapping[str, Any]

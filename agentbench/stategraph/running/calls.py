"""One call of a graph: its configuration, and its results up to now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentbench.messages.message import Message
from agentbench.workflows.executors.options import RunOptions


@dataclass(slots=True)
class CallRecord:
    """The results of a call up to now: the state, the changed fields with their writers, messages and warnings.

    `is_watched` if the call streams.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)
    changed: dict[str, list[str]] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    tasks: list[tuple[int, int, str, str, list[str]]] = field(default_factory=list)
    done: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Results of unfinished tasks, by task id."""
    parent_goto: list[Any] = field(default_factory=list)
    """The targets to which a graph in a node sends the outer graph."""
    is_watched: bool = False
    n_supersteps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphOptions(RunOptions):
    """The options of a run of a graph: those of every run, the configuration of the call, and its record.

    `is_nested` if another graph or a workflow runs it; unless `is_named`, it is saved only if it does not
    complete.
    """

    config: Mapping[str, Any] = field(default_factory=dict)
    store: Any = None
    record: CallRecord = field(default_factory=CallRecord)
    is_nested: bool = False
    is_named: bool = True


class StateChanges(dict[str, Any]):
    """The changes of a superstep, the data of `state_updated`: old and new values and writers by field.

    Attributes:
        values_after: All fields afterwards.
        meta: The fields of `execution_meta` afterwards.
        messages: The messages added to the conversation.
        updates: The update of each node, None if it returned nothing.
    """

    values_after: Mapping[str, Any]
    meta: Mapping[str, Any]
    messages: list[Message]
    updates: Mapping[str, Any]

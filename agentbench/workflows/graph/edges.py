"""The edge vocabulary: the groups that take every message, and all the names of the neighbouring edge modules.

Groups are plain data and cheap to make: ids are generated when somebody reads them, and nothing is checked here that
needs the executors (see `agentbench.workflows.graph.validation`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from agentbench.workflows.executors.message import internal_source
from agentbench.workflows.graph.cases import Case, Default, SwitchCaseEdgeGroupCase, SwitchCaseEdgeGroupDefault
from agentbench.workflows.graph.edge import Edge, EdgeCondition
from agentbench.workflows.graph.edge_group import EdgeGroup, require_several
from agentbench.workflows.graph.selection import (
    FanOutEdgeGroup,
    SelectionFunction,
    SwitchCaseEdgeGroup,
    SwitchSelection,
)

__all__ = [
    "Case",
    "Default",
    "Edge",
    "EdgeCondition",
    "EdgeGroup",
    "FanInEdgeGroup",
    "FanInMode",
    "FanOutEdgeGroup",
    "InternalEdgeGroup",
    "ResolvedFanInMode",
    "SelectionFunction",
    "SingleEdgeGroup",
    "SwitchCaseEdgeGroup",
    "SwitchCaseEdgeGroupCase",
    "SwitchCaseEdgeGroupDefault",
    "SwitchSelection",
]

FanInMode = Literal["auto", "independent", "barrier"]
ResolvedFanInMode = Literal["independent", "barrier"]

_FAN_IN_MODES = ("auto", "independent", "barrier")


@EdgeGroup.register
class SingleEdgeGroup(EdgeGroup):
    """One edge, with or without a condition."""

    __slots__ = ()

    def __init__(
        self,
        source_id: str,
        target_id: str,
        condition: EdgeCondition | None = None,
        *,
        condition_name: str | None = None,
        id: str | None = None,  # noqa: A002 - published name
    ) -> None:
        self._edges = [Edge(source_id, target_id, condition, condition_name=condition_name)]
        self._id = id
        self.type = self.__class__.__name__


@EdgeGroup.register
class FanInEdgeGroup(EdgeGroup):
    """Several sources, one target: each message by itself, or all together once every source has sent.

    Args:
        source_ids: Two or more executors, each named once.
        target_id: Executor that receives.
        id: Name of the group.
        mode: `"independent"` hands on each message at once; `"barrier"` waits for all sources and delivers one list;
            `"auto"` takes the one that fits the declared types of the target.

    Attributes:
        mode: As given.
        prefers_barrier: What `"auto"` means when the target accepts both forms.
        resolved_mode: What applies: the forced mode, or the builder's decision for `"auto"`. `None` means that the
            declared types do not tell, so that the first message decides.

    Raises:
        ValueError: Fewer than two sources, one of them twice, or an unknown mode.
    """

    __slots__ = ("mode", "prefers_barrier", "resolved_mode")

    mode: FanInMode
    prefers_barrier: bool
    resolved_mode: ResolvedFanInMode | None

    def __init__(
        self,
        source_ids: Sequence[str],
        target_id: str,
        *,
        id: str | None = None,  # noqa: A002 - published name
        mode: FanInMode = "auto",
    ) -> None:
        require_several("FanInEdgeGroup", "source", source_ids, instead="SingleEdgeGroup(source_id, target_id)")
        self._edges = [Edge(source_id, target_id) for source_id in source_ids]
        self._id = id
        self.type = self.__class__.__name__
        self.prefers_barrier = False
        self._set_mode(mode)

    def _set_mode(self, mode: FanInMode) -> None:
        if mode not in _FAN_IN_MODES:
            msg = f"The fan-in mode {mode!r} does not exist. Use one of {', '.join(map(repr, _FAN_IN_MODES))}."
            raise ValueError(msg)
        self.mode = mode
        self.resolved_mode = None if mode == "auto" else mode

    @property
    def target_id(self) -> str:
        """The one executor that receives."""
        return self._edges[0].target_id

    def to_dict(self) -> dict[str, Any]:
        """Return the common keys, and `mode` unless it is `"auto"`."""
        data = EdgeGroup.to_dict(self)
        if self.mode != "auto":
            data["mode"] = self.mode
        return data

    def restore_fields(self, data: Mapping[str, Any]) -> None:
        """Fill the fields, undecided if the mode is `"auto"`."""
        EdgeGroup.restore_fields(self, data)
        self.prefers_barrier = False
        self._set_mode(data.get("mode", "auto"))


@EdgeGroup.register
class InternalEdgeGroup(EdgeGroup):
    """The edge `"internal:<id>" -> "<id>"` that every executor has; it brings answers and targeted messages."""

    __slots__ = ("executor_id",)

    executor_id: str

    def __init__(self, executor_id: str, *, id: str | None = None) -> None:  # noqa: A002 - published name
        if not executor_id:
            msg = f"InternalEdgeGroup needs the id of its executor; got {executor_id!r}."
            raise ValueError(msg)
        self.executor_id = executor_id
        self._edges = []
        self._id = id
        self.type = "InternalEdgeGroup"

    @property
    def edges(self) -> list[Edge]:
        """The one edge, made when first read: a build makes one group per executor, and few are looked at."""
        if not self._edges:
            self._edges = [Edge(internal_source(self.executor_id), self.executor_id)]
        return self._edges

    @property
    def source_executor_ids(self) -> list[str]:
        """`["internal:<id>"]`."""
        return [internal_source(self.executor_id)]

    @property
    def target_executor_ids(self) -> list[str]:
        """`["<id>"]`."""
        return [self.executor_id]

    def restore_fields(self, data: Mapping[str, Any]) -> None:
        """Fill the fields; the executor is the target of the one edge."""
        EdgeGroup.restore_fields(self, data)
        self.executor_id = self._edges[0].target_id

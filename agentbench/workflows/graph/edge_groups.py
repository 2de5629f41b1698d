"""Edge groups: the common base, and the kinds that carry every message.

Groups are plain data and cheap to create: ids are generated on first access, and checks that need the executors are
done elsewhere (see `agentbench.workflows.graph.validation`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from types import GenericAlias
from typing import Any, ClassVar, Literal, Self, SupportsIndex, TypeVar

from agentbench._clock import runtime_defaults
from agentbench._signatures import is_type_compatible
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.json_form import JsonForm
from agentbench.workflows.executors.message import internal_source
from agentbench.workflows.graph.edges import Edge, EdgeCondition

FanInMode = Literal["auto", "independent", "barrier"]
ResolvedFanInMode = Literal["independent", "barrier"]

_GroupClass = TypeVar("_GroupClass", bound="type[EdgeGroup]")


class EdgeGroup(JsonForm):
    """Edges that are routed together, and the registry of group kinds.

    Custom groups derive from `SingleEdgeGroup`, `FanOutEdgeGroup`, `FanInEdgeGroup` or `SwitchCaseEdgeGroup`.

    Args:
        edges: The edges, in order.
        id: The name of the group; by default `"<ClassName>/<unique id>"`, generated on first access.
        type: The recorded kind; by default the class name. `from_dict` uses it to find the class.

    Example:
        >>> @EdgeGroup.register
        ... class Urgent(SingleEdgeGroup):
        ...     pass
        >>> group = Urgent("intake", "clerk", lambda case: case.urgent)
        >>> type(EdgeGroup.from_dict(group.to_dict())) is Urgent
    """

    __slots__ = ("_edges", "_id", "type")

    _registry: ClassVar[dict[str, type[EdgeGroup]]] = {}

    def __init__(
        self,
        edges: Iterable[Edge] | None = None,
        *,
        id: str | None = None,  # noqa: A002 - published name
        type: str | None = None,  # noqa: A002 - published name
    ) -> None:
        self._edges = list(edges or ())
        self._id = id
        self.type = type or self.__class__.__name__

    @staticmethod
    def register(group_class: _GroupClass) -> _GroupClass:
        """Register a subclass, so that `from_dict` finds it by its class name. A class decorator."""
        EdgeGroup._registry[group_class.__name__] = group_class
        return group_class

    @property
    def id(self) -> str:
        """The name of the group."""
        if self._id is None:
            self._id = f"{self.__class__.__name__}/{runtime_defaults().ids.new_id('group')}"
        return self._id

    @property
    def edges(self) -> list[Edge]:
        """The edges, in order. Read only, because workflows share groups."""
        return self._edges

    @property
    def source_executor_ids(self) -> list[str]:
        """The ids of the senders, without repetition, in order of first appearance."""
        return list(dict.fromkeys([edge.source_id for edge in self.edges]))

    @property
    def target_executor_ids(self) -> list[str]:
        """The ids of the receivers, without repetition, in order of first appearance."""
        return list(dict.fromkeys([edge.target_id for edge in self.edges]))

    def to_dict(self) -> dict[str, Any]:
        """Return `id`, `type` and `edges`; subclasses add their own keys."""
        return {"id": self.id, "type": self.type, "edges": [edge.to_dict() for edge in self.edges]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild a group of the class named by `data["type"]`; an unknown type becomes a plain `EdgeGroup`."""
        group_class = EdgeGroup._registry.get(data.get("type", cls.__name__), EdgeGroup)
        group: Any = object.__new__(group_class)  # its constructor needs callables, which are not serialized
        group.restore_fields(data)
        return group  # type: ignore[no-any-return]  # the class is chosen by the data

    def restore_fields(self, data: Mapping[str, Any]) -> None:
        """Fill a bare instance from its dict form. Subclasses with additional fields extend this."""
        self._edges = [Edge.from_dict(edge) for edge in data.get("edges", ())]
        self._id = data.get("id")
        self.type = data.get("type") or self.__class__.__name__

    def clone(self, deep: bool = True) -> Self:
        """Return a copy with the same id and the same callables; `deep` copies the edges too."""
        fresh = copy.copy(self)
        fresh._edges = [copy.copy(edge) for edge in self.edges] if deep else list(self.edges)  # noqa: SLF001 - its own class
        return fresh

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        """Generate the id first, so that copies and pickles have the same one."""
        self._id = self.id
        return super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.source_executor_ids} -> {self.target_executor_ids})"


def require_several(group: str, role: str, ids: Sequence[str]) -> None:
    """Raise if there are fewer than two ids, a repeated one, or a text instead of a list."""
    if isinstance(ids, str):
        msg = f"{group} needs a list of {role} ids; got the text {ids!r}. Write [{ids!r}, ...]."
        raise TypeError(msg)
    if len(ids) < 2:
        msg = f"{group} needs at least two {role} ids; got {list(ids)}. Use SingleEdgeGroup for one."
        raise ValueError(msg)
    if len(set(ids)) != len(ids):
        twice = sorted({one for one in ids if list(ids).count(one) > 1})
        msg = f"{group} got the {role} ids {twice} more than once. Name each {role} once."
        raise ValueError(msg)


@EdgeGroup.register
class SingleEdgeGroup(EdgeGroup):
    """One edge, with or without a condition.

    Args:
        source_id: The sending executor.
        target_id: The receiving executor.
        condition: Called with the message data, may be async; a falsy result drops the message.
        condition_name: The recorded name of the condition; by default the callable's own.
        id: The name of the group.

    Raises:
        ValueError: An executor id is empty.
        TypeError: The condition is not callable.

    Example:
        >>> builder.add_edge_group(SingleEdgeGroup("reader", "archive", lambda mail: mail.is_spam))
    """

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
    """Several sources, one target: each message separately, or all together once every source has sent one.

    Args:
        source_ids: Two or more executors, each named once.
        target_id: The receiving executor.
        id: The name of the group.
        mode: `"independent"` delivers each message separately; `"barrier"` waits for all sources and delivers one list;
            `"auto"` chooses the mode that fits the declared types of the target.

    Attributes:
        prefers_barrier: The meaning of `"auto"` if the target accepts both forms.
        resolved_mode: The effective mode: forced, or decided by the builder; `None` if the first message decides.

    Raises:
        ValueError: There are fewer than two sources, one of them appears twice, or the mode is unknown.

    Example:
        >>> builder.add_edge_group(FanInEdgeGroup(["search", "database"], "report", mode="barrier"))
    """

    __slots__ = ("mode", "prefers_barrier", "resolved_mode")

    resolved_mode: ResolvedFanInMode | None

    def __init__(
        self,
        source_ids: Sequence[str],
        target_id: str,
        *,
        id: str | None = None,  # noqa: A002 - published name
        mode: FanInMode = "auto",
    ) -> None:
        require_several("FanInEdgeGroup", "source", source_ids)
        super().__init__([Edge(source_id, target_id) for source_id in source_ids], id=id)
        self._set_mode(mode)

    def _set_mode(self, mode: FanInMode) -> None:
        if mode not in ("auto", "independent", "barrier"):
            msg = f"The fan-in mode {mode!r} does not exist. Use one of 'auto', 'independent', 'barrier'."
            raise ValueError(msg)
        self.mode = mode
        self.prefers_barrier = False
        self.resolved_mode = None if mode == "auto" else mode

    @property
    def target_id(self) -> str:
        """The receiving executor."""
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
        self._set_mode(data.get("mode", "auto"))


@EdgeGroup.register
class InternalEdgeGroup(EdgeGroup):
    """The edge `"internal:<id>" -> "<id>"` that every executor has; it carries responses.

    Args:
        executor_id: The executor.
        id: The name of the group.

    Example:
        >>> groups = [SingleEdgeGroup("a", "b"), InternalEdgeGroup("a"), InternalEdgeGroup("b")]
    """

    __slots__ = ("executor_id",)

    def __init__(self, executor_id: str, *, id: str | None = None) -> None:  # noqa: A002 - published name
        self.executor_id = executor_id
        self._edges = []
        self._id = id
        self.type = "InternalEdgeGroup"

    @property
    def edges(self) -> list[Edge]:
        """The only edge, created on first access: a build creates one group per executor, and most are never read."""
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
        """Fill the fields; the executor is the target of the only edge."""
        EdgeGroup.restore_fields(self, data)
        self.executor_id = self._edges[0].target_id


# ---- types along edges


_Types = tuple[Any, ...]


def types_fit(outputs: _Types, inputs: _Types) -> bool:
    """Return whether a value of at least one sent type can be passed as one of the accepted types."""
    return any(is_type_compatible(output, accepted) for output in outputs for accepted in inputs)


def as_list_types(outputs: _Types) -> _Types:
    """Return the types in which a barrier delivers the sent types: `list[T]` for each of them."""
    return tuple([GenericAlias(list, (output,)) for output in outputs])


def resolve_fan_in_mode(group: FanInEdgeGroup, executors: Mapping[str, Executor]) -> ResolvedFanInMode | None:
    """Return the mode that fits the declared types, or `None` if the first message has to decide.

    If the target takes both messages and lists, or neither, the preference of the group decides.
    """
    if group.resolved_mode is not None:
        return group.resolved_mode
    target = executors.get(group.target_id)
    inputs = () if target is None else tuple(target.input_types)
    if not inputs:
        return None
    preferred: ResolvedFanInMode = "barrier" if group.prefers_barrier else "independent"
    if Any in inputs or object in inputs:
        return preferred
    sent = [tuple(executors[source].output_types) for source in group.source_executor_ids if source in executors]
    declared = [outputs for outputs in sent if outputs and Any not in outputs]
    if not declared:
        return None
    one_by_one = all(types_fit(outputs, inputs) for outputs in declared)
    together = all(types_fit(as_list_types(outputs), inputs) for outputs in declared)
    if one_by_one is together:
        return preferred
    return "independent" if one_by_one else "barrier"


def with_fan_in_mode(group: EdgeGroup, executors: Mapping[str, Executor]) -> EdgeGroup:
    """Return a group with its fan-in mode set, if the declared types decide it; the argument is not changed."""
    if not isinstance(group, FanInEdgeGroup) or group.resolved_mode is not None:
        return group
    mode = resolve_fan_in_mode(group, executors)
    if mode is None:
        return group
    decided = group.clone(deep=False)
    decided.resolved_mode = mode
    return decided

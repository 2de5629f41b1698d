"""What all edge groups share: their edges, an id made on demand, a dict form, and the registry of kinds."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, SupportsIndex, TypeVar

from agentbench._clock import runtime_defaults
from agentbench.workflows.graph.edge import Edge, JsonForm

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["EdgeGroup", "require_several"]

_GroupClass = TypeVar("_GroupClass", bound="type[EdgeGroup]")


class EdgeGroup(JsonForm):
    """Edges that are routed together, and the registry of the kinds of group.

    Args:
        edges: The edges, in order.
        id: Name of the group; by default `"<ClassName>/<unique id>"`, made when first read.
        type: Recorded kind; by default the class name. `from_dict` looks the class up by it.
    """

    __slots__ = ("_edges", "_id", "type")

    _registry: ClassVar[dict[str, type[EdgeGroup]]] = {}

    _edges: list[Edge]
    _id: str | None
    type: str

    def __init__(
        self,
        edges: Iterable[Edge] | None = None,
        *,
        id: str | None = None,  # noqa: A002 - published name
        type: str | None = None,  # noqa: A002 - published name
    ) -> None:
        self._edges = [] if edges is None else list(edges)
        self._id = id
        self.type = type or self.__class__.__name__

    @staticmethod
    def register(group_class: _GroupClass) -> _GroupClass:
        """Enter a subclass in the registry, so that `from_dict` finds it by its class name. A class decorator."""
        EdgeGroup._registry[group_class.__name__] = group_class
        return group_class

    @property
    def id(self) -> str:
        """Name of the group."""
        if self._id is None:
            self._id = f"{self.__class__.__name__}/{runtime_defaults().ids.new_id('group')}"
        return self._id

    @property
    def edges(self) -> list[Edge]:
        """The edges, in order. Read only: groups are shared between workflows."""
        return self._edges

    @property
    def source_executor_ids(self) -> list[str]:
        """Ids that messages come from, without repetition, in order of first appearance."""
        return list(dict.fromkeys([edge.source_id for edge in self.edges]))

    @property
    def target_executor_ids(self) -> list[str]:
        """Ids that messages go to, without repetition, in order of first appearance."""
        return list(dict.fromkeys([edge.target_id for edge in self.edges]))

    def to_dict(self) -> dict[str, Any]:
        """Return `id`, `type` and `edges`; subclasses add their own keys."""
        return {"id": self.id, "type": self.type, "edges": [edge.to_dict() for edge in self.edges]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild a group of the class that `data["type"]` names; an unknown type gives a plain `EdgeGroup`.

        The constructor of the subclass is not called: it would need callables that were never written.
        """
        group_class = EdgeGroup._registry.get(data.get("type", cls.__name__), EdgeGroup)
        group: Any = object.__new__(group_class)
        group.restore_fields(data)
        return group  # type: ignore[no-any-return]  # the class is chosen by the data

    def restore_fields(self, data: Mapping[str, Any]) -> None:
        """Fill a bare instance from its dict form. Subclasses with fields of their own extend this."""
        self._edges = [Edge.from_dict(edge) for edge in data.get("edges", ())]
        self._id = data.get("id")
        self.type = data.get("type") or self.__class__.__name__

    def clone(self, deep: bool = True) -> Self:
        """Return a copy with the same id and the same callables; `deep` copies the edges too."""
        fresh = copy.copy(self)
        fresh._edges = [copy.copy(edge) for edge in self.edges] if deep else list(self.edges)  # noqa: SLF001 - its own class
        return fresh

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        """Settle the id first, so that copies and pickles keep it."""
        self._id = self.id
        return super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.source_executor_ids} -> {self.target_executor_ids})"


def require_several(group: str, role: str, ids: Sequence[str], *, instead: str) -> None:
    """Refuse fewer than two ids, a repeated one, and a text in place of a list."""
    if isinstance(ids, str):
        msg = f"{group} needs a list of {role} ids; got the text {ids!r}. Write [{ids!r}, ...]."
        raise TypeError(msg)
    if len(ids) < 2:
        msg = f"{group} needs at least two {role} ids; got {list(ids)}. Use {instead} for one."
        raise ValueError(msg)
    if len(set(ids)) != len(ids):
        twice = list(dict.fromkeys([one for one in ids if list(ids).count(one) > 1]))
        msg = f"{group} got the {role} ids {twice} more than once. Name each {role} once."
        raise ValueError(msg)

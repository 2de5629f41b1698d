"""The tools of methods: one for each object that they are taken from."""

from __future__ import annotations

import weakref
from types import MethodType
from typing import TYPE_CHECKING, Any, cast

from agentbench.agents.tools.counters import Counters

if TYPE_CHECKING:
    from agentbench.agents.tools.function_tool import FunctionTool


class BoundTools:
    """The tools that the tool of a method was bound to, by owner.

    The same owner gives the same tool as long as somebody holds it, and the same counters as long as the owner lives.
    Owners that cannot be referred to weakly share the counters of the definition.
    """

    __slots__ = ("_counters", "_tools")

    def __init__(self) -> None:
        self._tools: weakref.WeakValueDictionary[int, FunctionTool] = weakref.WeakValueDictionary()
        self._counters: dict[int, tuple[weakref.ref[Any], Counters]] = {}

    def tool_of(self, owner: Any, definition: FunctionTool) -> FunctionTool:
        """Return the tool of a method, bound to its owner."""
        known = self._tools.get(id(owner))
        if known is not None:  # it holds its owner, so that nobody else can have this id
            return known
        method = MethodType(cast("Any", definition.func), owner)
        bound = self._tools[id(owner)] = definition.bound_to(method, self._counters_of(owner))
        return bound

    def _counters_of(self, owner: Any) -> Counters | None:
        ref = id(owner)
        known = self._counters.get(ref)
        if known is not None and known[0]() is owner:
            return known[1]
        try:
            alive = weakref.ref(owner, lambda _: self._counters.pop(ref, None))
        except TypeError:
            return None
        counters = Counters()
        self._counters[ref] = (alive, counters)
        return counters

    def __reduce__(self) -> tuple[type[BoundTools], tuple[()]]:
        return BoundTools, ()  # ids mean nothing elsewhere

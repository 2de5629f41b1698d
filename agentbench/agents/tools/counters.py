"""Count the calls of tools; tools of methods are counted separately for each object."""

from __future__ import annotations

import weakref
from threading import Lock
from types import MethodType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from agentbench.agents.tools.function_tool import FunctionTool


class Counters:
    """Numbers of started and failed calls of one tool. Use the lock when updating them."""

    __slots__ = ("exceptions", "invocations", "lock")

    def __init__(self, invocations: int = 0, exceptions: int = 0) -> None:
        self.lock = Lock()
        self.invocations, self.exceptions = invocations, exceptions

    def __reduce__(self) -> tuple[Any, ...]:
        return Counters, (self.invocations, self.exceptions)


class BoundTools:
    """The tools of a method by owner, each with counters; owners without weak references share counters."""

    __slots__ = ("_counters", "_tools")

    def __init__(self) -> None:
        self._tools: weakref.WeakValueDictionary[int, FunctionTool] = weakref.WeakValueDictionary()
        self._counters: dict[int, tuple[weakref.ref[Any], Counters]] = {}

    def tool_of(self, owner: Any, definition: FunctionTool) -> FunctionTool:
        """Return the tool of a method, bound to its owner."""
        known = self._tools.get(id(owner))
        if known is not None:  # the tool refers to its owner, so the owner's id() is not reused
            return known
        method = MethodType(cast("Any", definition.func), owner)
        bound = self._tools[id(owner)] = definition.bound_to(method, self._counters_of(owner))
        return bound

    def _counters_of(self, owner: Any) -> Counters | None:
        key = id(owner)
        entry = self._counters.get(key)
        if entry is not None and entry[0]() is owner:
            return entry[1]
        try:
            reference = weakref.ref(owner, lambda _: self._counters.pop(key, None))
        except TypeError:
            return None
        counters = Counters()
        self._counters[key] = (reference, counters)
        return counters

    def __reduce__(self) -> tuple[type[BoundTools], tuple[()]]:
        return BoundTools, ()  # id() values are meaningless in another process

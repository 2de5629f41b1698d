"""The nodes that a builder has seen so far: one per object, with ids that are unique."""

from __future__ import annotations

from typing import Any

from agentbench.workflows.builder.adapters import AgentMode, require_executor
from agentbench.workflows.executors.executor import Executor

__all__ = ["Nodes"]


class Nodes:
    """Executors by id, in the order of adding, and the objects that some of them stand for.

    Args:
        agent_mode: How agents work as nodes; handed to their adapter.
    """

    __slots__ = ("_adapted", "_agent_mode", "executors")

    def __init__(self, agent_mode: AgentMode) -> None:
        self.executors: dict[str, Executor] = {}
        self._adapted: dict[int, tuple[Any, Executor]] = {}
        self._agent_mode: AgentMode = agent_mode

    def add(self, obj: Any) -> Executor:
        """Return the node for an object, which is added if it is new.

        Raises:
            ValueError: Another node has its id.
            TypeError: It is no executor, and there is no adapter for it.
        """
        executor = obj if isinstance(obj, Executor) else self._adapt(obj)
        present = self.executors.setdefault(executor.id, executor)
        if present is not executor:
            msg = (
                f"Two nodes have the id {executor.id!r}: {present!r} and {executor!r}. Ids are unique in a workflow: "
                "give one of them another id (or name, if it is an agent)."
            )
            raise ValueError(msg)
        return executor

    def find(self, obj: Any) -> Executor:
        """Return the node for an object, like `add`, or the one that was added with this id.

        Raises:
            ValueError: No node has this id.
        """
        if not isinstance(obj, str):
            return self.add(obj)
        if obj not in self.executors:
            msg = f"No executor has the id {obj!r}; there are {list(self.executors)}. Add it with add_executor() first."
            raise ValueError(msg)
        return self.executors[obj]

    def id_of(self, obj: Any) -> str:
        """Return the id that an object has as a node, without adding it."""
        return obj.id if isinstance(obj, Executor) else self._adapt(obj).id

    def _adapt(self, obj: Any) -> Executor:
        known = self._adapted.get(id(obj))
        if known is None:
            # The object is kept, so that no other one can get its identity.
            known = self._adapted[id(obj)] = (obj, require_executor(obj, agent_mode=self._agent_mode))
        return known[1]

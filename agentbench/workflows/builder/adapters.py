"""How things that are no executors become nodes: each layer above registers how its own do.

The engine knows no agents. `agentbench.orchestrations` registers them, and whoever else has something that can stand
in a graph may do the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from agentbench.workflows.executors.executor import Executor

__all__ = ["AgentMode", "as_executor", "register_executor_adapter"]

AgentMode = Literal["respond", "turns"]
"""How an agent node works: answers each message at once, or gathers messages until it is given the turn."""

ExecutorFactory = Callable[..., Executor]


class _Adapter(NamedTuple):
    applies: Callable[[Any], bool]
    make: ExecutorFactory


_adapters: list[_Adapter] = []


def register_executor_adapter(predicate: Callable[[Any], bool], factory: ExecutorFactory) -> Callable[[], None]:
    """Teach the builder to take a further kind of object as a node.

    Args:
        predicate: Tells whether the factory is for this object. Asked in the reverse order of registration.
        factory: Called as `factory(obj, agent_mode="respond" | "turns")`, once per object and builder; returns the
            executor that stands for the object.

    Returns:
        A function that takes the registration back.
    """
    adapter = _Adapter(predicate, factory)
    _adapters.append(adapter)

    def unregister() -> None:
        if adapter in _adapters:
            _adapters.remove(adapter)

    return unregister


def as_executor(obj: Any, *, agent_mode: AgentMode = "respond") -> Executor | None:
    """Return the executor that stands for an object in a graph: itself if it is one, else what its adapter makes.

    Args:
        obj: An executor, an agent, a workflow, a compiled graph.
        agent_mode: Handed to the adapter.

    Returns:
        The executor, or `None` if no registered adapter takes the object.
    """
    if isinstance(obj, Executor):
        return obj
    for adapter in reversed(_adapters):
        if adapter.applies(obj):
            node: Executor = adapter.make(obj, agent_mode=agent_mode)
            return node
    return None


def require_executor(obj: Any, *, agent_mode: AgentMode = "respond") -> Executor:
    """Return what `as_executor` returns.

    Raises:
        TypeError: No adapter takes the object.
    """
    node = as_executor(obj, agent_mode=agent_mode)
    if node is not None:
        return node
    if isinstance(obj, type) and issubclass(obj, Executor):
        hint = f"It is a class: pass an instance, such as {obj.__name__}(id=...)."
    elif isinstance(obj, str):
        hint = "Pass the object itself; connect(), fan_out(), fan_in() and switch() also take the id of an added one."
    elif callable(obj) and hasattr(obj, "__name__"):
        hint = f"Make it a node with @executor, or FunctionExecutor({obj.__name__})."
    else:
        hint = "Derive its class from Executor, or teach the builder this kind with register_executor_adapter()."
    msg = f"{obj!r} is a {type(obj).__name__}, not a node. Expected an Executor, or something with an adapter. {hint}"
    raise TypeError(msg)

"""The errors of state graphs, by the name of another dialect's module."""

from agentbench.exceptions import (
    ConcurrentUpdateError,
    GraphCompileError,
    GraphError,
    GraphRecursionError,
    InvalidUpdateError,
    NodeError,
    NodeTimeoutError,
    ReducerError,
    StateValidationError,
    ThreadBusyError,
)

__all__ = [
    "ConcurrentUpdateError",
    "GraphCompileError",
    "GraphError",
    "GraphRecursionError",
    "InvalidUpdateError",
    "NodeError",
    "NodeTimeoutError",
    "ReducerError",
    "StateValidationError",
    "ThreadBusyError",
]

"""The errors of state graphs, under a compatible module name."""

from agentbench.exceptions import (
    ConcurrentUpdateError,
    GraphCompileError,
    GraphError,
    GraphRecursionError,
    GraphStopRequested,
    InvalidUpdateError,
    NodeError,
    NodeNotFoundError,
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
    "GraphStopRequested",
    "InvalidUpdateError",
    "NodeError",
    "NodeNotFoundError",
    "NodeTimeoutError",
    "ReducerError",
    "StateValidationError",
    "ThreadBusyError",
]

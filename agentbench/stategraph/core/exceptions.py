"""The errors of state graphs."""

from agentbench.exceptions import GraphError, GraphRecursionError, NodeError, NodeTimeoutError

__all__ = [
    "GraphError",
    "GraphRecursionError",
    "NodeError",
    "NodeTimeoutError",
]

"""The errors."""

from agentbench.exceptions import GraphError, GraphRecursionError, NodeError, NodeTimeoutError

__all__ = [
    "GraphError",
    "GraphRecursionError",
    "NodeError",
    "NodeTimeoutError",
]

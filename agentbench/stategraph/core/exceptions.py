"""The errors of state graphs and of their storages."""

from agentbench.stategraph import (
    GraphError,
    GraphRecursionError,
    GraphStopRequested,
    NodeError,
    NodeTimeoutError,
    ResourceNotFoundError,
    SchemaVersionError,
    SerializationError,
    StaleStateError,
    StorageError,
    TransientStorageError,
)

__all__ = [
    "GraphError",
    "GraphRecursionError",
    "GraphStopRequested",
    "NodeError",
    "NodeTimeoutError",
    "ResourceNotFoundError",
    "SchemaVersionError",
    "SerializationError",
    "StaleStateError",
    "StorageError",
    "TransientStorageError",
]

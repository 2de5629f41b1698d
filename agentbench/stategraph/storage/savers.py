"""Storages for threads under LangGraph's names: in memory, and in an SQLite file."""

from __future__ import annotations

import sqlite3
from os import PathLike, fspath
from typing import Self

from agentbench._workers import run_in_thread
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.checkpoints.sql import SQLCheckpointStorage


class InMemorySaver(InMemoryCheckpointStorage):
    """A storage in memory; `with` and `async with` return it. `MemorySaver` is another name for it.

    Example:
        >>> app = graph.compile(checkpointer=InMemorySaver())
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        """Keep the checkpoints: they end with the storage."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Keep the checkpoints, as `__exit__` does."""


class SqliteSaver(SQLCheckpointStorage):
    """A storage in an SQLite file, closed by `with` and `async with`. `AsyncSqliteSaver` is another name for it.

    Args:
        path: The path of the file, or an open connection to it, which is only asked for the path.

    Raises:
        MissingExtraError: SQLAlchemy is not installed.
        ValueError: The connection is one to a database in memory.

    Example:
        >>> with SqliteSaver.from_conn_string("threads.db") as saver:
        ...     app = graph.compile(checkpointer=saver)
        ...     app.invoke({"topic": "owls"}, {"configurable": {"thread_id": "1"}})
    """

    def __init__(self, path: str | PathLike[str] | sqlite3.Connection) -> None:
        if isinstance(path, sqlite3.Connection):
            path = path.execute("PRAGMA database_list").fetchone()[2] or ":memory:"
        super().__init__(fspath(path))

    @classmethod
    def from_conn_string(cls, conn_string: str) -> Self | InMemorySaver:
        """Return the storage in a file, for `with`, for `async with`, or for use without either.

        Args:
            conn_string: The path of the file; `":memory:"` returns an `InMemorySaver`.
        """
        return InMemorySaver() if conn_string == ":memory:" else cls(conn_string)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await run_in_thread(self.close)

"""The database of a batch: in memory, an SQLite file, or a PostgreSQL server."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from agentbench._display import shorten
from agentbench._extras import require
from agentbench._workers import run_in_thread
from agentbench.batch.store import tables
from agentbench.batch.store.tables import POSTGRESQL, SQLITE, Dialect
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.checkpoints.opening import is_sqlite_file
from agentbench.exceptions import BatchError

if TYPE_CHECKING:
    from agentbench.checkpoints.sql import SQLCheckpointStorage

T = TypeVar("T")
_AGAIN_S: Final = 0.5
_PATIENCE_S: Final = 300.0
Row = tuple[Any, ...]


class Sql:
    """A statement in the spelling of one driver."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    @staticmethod
    def arguments(values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the values as the driver takes them."""
        return values


class RunsStatements(Protocol):
    """A connection within a transaction."""

    def run(self, statement: Any, values: Mapping[str, Any]) -> int:
        """Run a statement, and return the number of changed rows."""

    def run_many(self, statement: Any, many: Iterable[Mapping[str, Any]]) -> None:
        """Run a statement once for each set of values."""

    def rows(self, statement: Any, **values: Any) -> list[Row]:
        """Run a statement and return its rows."""


class BatchDatabase:
    """Runs the statements of batches, in transactions; `storage` keeps checkpoints in the same place.

    Args:
        into: The path of an SQLite file or a URL, as for `SQLCheckpointStorage`; None keeps everything in memory.
        create: Whether to create the tables; otherwise they must exist.
    """

    def __init__(self, into: Any, *, create: bool = True) -> None:
        self.into = into
        self.storage: SQLCheckpointStorage | InMemoryCheckpointStorage
        self.remove_chain: Callable[[Any, str], None] = lambda session, chain: None
        self._database: Any
        if into is None:
            self.storage, self._database, self._dialect = InMemoryCheckpointStorage(), _Memory(), SQLITE
            self.is_local, self.place = True, "memory"
        else:
            require("sqlalchemy", extra="sql", purpose="keep a batch in a database")
            require_place(into)
            # Imported here, so that SQLAlchemy is imported only with the first such batch.
            storage: SQLCheckpointStorage = import_module("agentbench.checkpoints.sql").SQLCheckpointStorage(into)
            backend: Any = storage._ab_backend  # noqa: SLF001 - the tables of batches are in the same database
            self.remove_chain = backend.remove_chain
            self.storage, self._database = storage, backend.database
            self.is_local, self.place = backend.is_local, backend.place
            self._database.is_contended = True
            self._dialect = SQLITE if self.is_local else POSTGRESQL
        self._statement = lru_cache(maxsize=None)(self._made)
        try:
            self._ensure_tables(create=create)
        except OSError as error:
            msg = f"The database {self.place!r} cannot be used: {error}."
            raise type(error)(msg) from error

    def _ensure_tables(self, *, create: bool) -> None:
        try:
            versions = self.read(tables.VERSIONS)
        except Exception:  # there are none yet; any other reason is raised below
            if not create:
                raise
            try:
                self.change(self._create_tables)
            except Exception:  # another process may have created them in the meantime
                if not self.read(tables.VERSIONS):
                    raise
            versions = self.read(tables.VERSIONS)
        if versions != [(tables.SCHEMA_VERSION,)]:
            found = ", ".join(str(version) for (version,) in versions) or "none"
            msg = (
                f"The tables of batches in {self.place!r} have version {found}; expected {tables.SCHEMA_VERSION}. "
                "Another version of agentbench created them: use that version, or another database."
            )
            raise BatchError(msg)

    def _create_tables(self, session: RunsStatements) -> None:
        for statement in self._dialect.tables():
            session.run(Sql(statement), {})
        session.run(self.sql(tables.ADD_VERSION), {})

    @property
    def dialect(self) -> Dialect:
        """What differs between databases."""
        return self._dialect

    def sql(self, text: str) -> Sql:
        """Return a statement of `tables.py` in the spelling of the driver."""
        return self._statement(text)

    def _made(self, text: str) -> Sql:
        return Sql(self._dialect.statement(text))

    def read(self, text: str, **values: Any) -> list[Row]:
        """Run a statement that changes nothing, and return its rows."""
        rows: list[Row] = self._database.read(lambda session: session.rows(self._statement(text), **values))
        return rows

    def change(self, work: Callable[[RunsStatements], T], *, patient: bool = True) -> T:
        """Run one transaction. BlockingIOError: another process writes to the file, and this call is not `patient`."""
        result: T = self._database.change(work, patient=patient)
        return result

    async def soon(self, work: Callable[..., T], *args: Any, **options: Any) -> T:
        """Call a method of `BatchStore` with `patient=`: here if nobody else writes to the file, else in a thread."""
        if self.is_local:
            try:
                return work(*args, **options, patient=False)
            except BlockingIOError:
                pass  # another process writes
        return await run_in_thread(work, *args, **options, patient=True)

    def close(self) -> None:
        """Close the connections; what is kept in memory stays."""
        close = getattr(self.storage, "close", None)
        if close is not None:
            close()


async def patiently(work: Callable[[], Awaitable[T]]) -> T:
    """Await work with a database, again and again while it is out of reach."""
    ends = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return await work()
        except (ConnectionError, TimeoutError):
            if time.monotonic() > ends:
                raise
            await asyncio.sleep(_AGAIN_S)


def require_place(into: Any) -> Path | None:
    """Raise unless batches can be kept at a path or URL; return the path of a file, which need not exist yet.

    Raises:
        TypeError: It is neither a path nor a URL.
        ValueError: It is a folder, another kind of file, or a URL of something else.
    """
    session = import_module("agentbench.checkpoints.sql_storage.session")
    expected = "expected the path of an SQLite file, such as 'results.db', or the URL of a database"
    if not isinstance(into, (str, os.PathLike)) and not hasattr(into, "get_backend_name"):
        msg = f"into is {shorten(into)}; {expected}."
        raise TypeError(msg)
    try:
        file: Path | None = session.file_of(session.database_url(into))
    except ValueError as error:
        msg = f"into= is no place for a batch: {error} To keep the rows in memory, leave out into=."
        raise ValueError(msg) from error
    is_other = file is not None and file.exists() and (file.is_dir() or bool(file.stat().st_size))
    if file is not None and is_other and (file.is_dir() or not is_sqlite_file(str(file))):
        what = "a folder" if file.is_dir() else "not a database"
        msg = f"into is {str(into)!r}, which is {what}; {expected}."
        raise ValueError(msg)
    return file


class _Memory:
    """An SQLite database in memory, in one connection that all threads share."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._cursor = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None).cursor()

    def read(self, work: Callable[[_Memory], T]) -> T:
        with self._lock:
            return work(self)

    def change(self, work: Callable[[_Memory], T], *, patient: bool = True) -> T:
        with self._lock:
            self._cursor.execute("BEGIN")
            try:
                result = work(self)
            except BaseException:
                self._cursor.execute("ROLLBACK")
                raise
            self._cursor.execute("COMMIT")
            return result

    def run(self, statement: Sql, values: Mapping[str, Any]) -> int:
        return self._cursor.execute(statement.text, values).rowcount

    def run_many(self, statement: Sql, many: Iterable[Mapping[str, Any]]) -> None:
        self._cursor.executemany(statement.text, many)

    def rows(self, statement: Sql, **values: Any) -> list[Row]:
        return self._cursor.execute(statement.text, values).fetchall()

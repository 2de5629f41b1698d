"""An open connection to a database that has the tables, and the address of the database."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from sqlalchemy.engine import URL, Connection, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.schema import CreateIndex, CreateTable

from agentbench._extras import NO_CONNECTIONS, not_in_browser, require
from agentbench._files.private_file import open_private
from agentbench._secrets import is_secret_parameter
from agentbench.checkpoints.sql_storage.tables import SCHEMA_VERSION, Statement, Statements, records, schema, tables
from agentbench.exceptions import WorkflowCheckpointException

_HIDDEN: Final = "***"


def database_url(path_or_url: Any) -> URL:
    """Return the URL of a database; PostgreSQL is reached through `psycopg` unless the URL names another driver."""
    if isinstance(path_or_url, (str, os.PathLike)) and "://" not in os.fspath(path_or_url):
        url = URL.create("sqlite", database=os.path.abspath(path_or_url))  # the working directory may change
    else:
        url = _parse(path_or_url)
    if url.get_backend_name() == "sqlite":
        return _of_file(url)
    if url.get_backend_name() not in ("postgresql", "postgres"):
        msg = f"{display_text(url)!r} names the database {url.get_backend_name()!r}; expected sqlite or postgresql."
        raise ValueError(msg)
    not_in_browser("PostgreSQL servers", reason=NO_CONNECTIONS, instead="Use the path of an SQLite file.")
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    if url.drivername == "postgresql+psycopg":
        require("psycopg", extra="postgres", purpose="keep checkpoints in PostgreSQL")
    return url


def display_text(url: URL) -> str:
    """Return a URL as text without its secrets."""
    secret = {name: _HIDDEN for name in url.query if is_secret_parameter(name)}
    return url.update_query_dict(secret).render_as_string(hide_password=True)


def secrets_of(url: URL) -> list[str]:
    """Return the secrets in a URL, to check whether a text contains one."""
    secrets = [] if url.password is None else [str(url.password)]
    for name, value in url.query.items():
        if is_secret_parameter(name):
            secrets += [value] if isinstance(value, str) else value
    return [secret for secret in secrets if secret]


def file_of(url: URL) -> Path | None:
    """Return the file of an SQLite database that is addressed by a path, otherwise `None`."""
    if url.get_backend_name() != "sqlite" or url.database is None or url.database.startswith("file:"):
        return None
    return Path(url.database)


def _parse(target: Any) -> URL:
    if not isinstance(target, (str, URL)):
        msg = f"path_or_url is a {type(target).__name__}; expected a path, a URL as text, or a sqlalchemy.URL."
        raise TypeError(msg)
    try:
        return make_url(target)
    except (ArgumentError, ValueError):
        msg = (
            "path_or_url is not a URL that SQLAlchemy can read (it may contain a password, so it is not printed). "
            "Expected a path such as 'checkpoints.db', or a URL such as "
            "'postgresql://user:password@localhost:5432/database' with special characters in the password quoted (%40)."
        )
        raise ValueError(msg) from None


def _of_file(url: URL) -> URL:
    if not url.database or ":memory:" in url.database or url.query.get("mode") == "memory":
        msg = (
            f"{display_text(url)!r} is an in-memory database, which does not outlast the connection. Expected the path "
            "of a file; for checkpoints in memory use InMemoryCheckpointStorage()."
        )
        raise ValueError(msg)
    if file_of(url) is None:
        return url
    path = os.path.abspath(url.database)
    if path.startswith("/drive/"):
        not_in_browser(
            "SQLite files on the drive of the page",
            reason="that drive stores a file only when it is closed",
            instead="Use FileCheckpointStorage, or a database in /tmp, which is gone after a reload.",
        )
    return url.set(database=path)


def readable_url(url: URL, file: Path | None) -> URL:
    """Return the URL that opens an SQLite file; in a read-only folder, one that needs no further files."""
    if file is None or not file.exists() or os.access(file.parent, os.W_OK) or Path(f"{file}-wal").exists():
        return url
    return url.set(database=file.absolute().as_uri(), query={**url.query, "immutable": "1", "uri": "true"})


# ---- sessions


Row: TypeAlias = tuple[Any, ...]

_PAGE_BYTES: Final = 512
"""Small, because a save changes a few rows in each of five trees, and a changed page is written whole, twice."""
_LOG_BYTES: Final = 208 * 1024
"""SQLite moves its log into the database when the log has this size, and then waits for the disk three times."""
_SETTINGS: Final = (
    "synchronous=NORMAL",
    f"wal_autocheckpoint={_LOG_BYTES // _PAGE_BYTES}",
    f"journal_size_limit={4 * _LOG_BYTES}",  # limits the log left by long transactions and other readers
    "trusted_schema=OFF",  # functions named by a malicious file must not run
)

_PATIENCE_S: Final = 5.0
"""How long the exit of a program waits for work in a connection."""
_ABANDONED: Final[list[Connection]] = []
"""Connections that are never closed here: those of the parent of a forked process, and those to replaced files. Closing
one would remove the log of the database that others are using.
"""
_CREATING: Final = threading.Lock()
"""Closing a file releases all locks that the process has on it, including those of SQLite in other threads."""


class Session:
    """A connection in use, in autocommit mode. It bypasses SQLAlchemy, which takes longer than SQLite itself."""

    def __init__(self, connection: Connection, file: Path | None) -> None:
        self._connection = connection
        self._file = None if file is None else str(file)
        self._inode = None if self._file is None else _inode(self._file)
        self._pid = os.getpid()
        self._patience_s: float | None = None
        self.raw = cast("Any", connection.connection.dbapi_connection)
        self.cursor: Any = self.raw.cursor()
        self.generation = 0
        self.is_broken = False
        self.busy = threading.Lock()
        """Held while something runs: a program may exit, and so close this, while one of its threads is still working.
        """

    def run(self, statement: Statement, values: Mapping[str, Any]) -> int:
        """Run a statement that returns no rows, and return the number of changed rows."""
        cursor = self.cursor
        cursor.execute(statement.text, statement.arguments(values))
        changed: int = cursor.rowcount
        return changed

    def run_many(self, statement: Statement, many: Iterable[Mapping[str, Any]]) -> None:
        """Run a statement that returns no rows, once for each set of values."""
        if arguments := [statement.arguments(values) for values in many]:
            self.cursor.executemany(statement.text, arguments)

    def rows(self, statement: Statement, **values: Any) -> list[Row]:
        """Run a statement and return its rows."""
        self.cursor.execute(statement.text, statement.arguments(values))
        rows: list[Row] = self.cursor.fetchall()
        return rows

    def each_row(self, statement: Statement, **values: Any) -> Iterator[Row]:
        """Run a statement and yield its rows, without holding all of them in memory if the driver allows that."""
        with closing(self.raw.cursor()) as cursor:
            cursor.execute(statement.text, statement.arguments(values))
            yield from cursor

    def wait_at_most(self, patience_s: float) -> None:
        """Let SQLite wait this long for other programs, from now on."""
        if patience_s != self._patience_s:
            self.cursor.execute(f"PRAGMA busy_timeout={int(patience_s * 1000)}").fetchall()
            self._patience_s = patience_s

    def is_usable(self) -> bool:
        """Return whether this is still a connection of this process, to the file that is now at the database's path."""
        return not self.is_broken and self._pid == os.getpid() and not self._is_elsewhere()

    def close(self) -> None:
        """Close the connection, unless that would harm others."""
        if self._pid != os.getpid() or (self._is_elsewhere() and os.path.exists(cast("str", self._file))):
            _ABANDONED.append(self._connection)
        elif self.busy.acquire(timeout=_PATIENCE_S):
            self._connection.close()  # and stays busy, so that nothing runs in it any more

    def _is_elsewhere(self) -> bool:
        return self._file is not None and _inode(self._file) != self._inode


def _inode(file: str) -> tuple[int, int] | None:
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def create_file(file: Path) -> None:
    """Create a database file for its owner only (SQLite creates its other files alike), and the folders above it."""
    with _CREATING:
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            os.close(open_private(str(file), os.O_RDWR | os.O_CREAT))


def set_up_sqlite(cursor: Any, patience_s: float) -> None:
    """Choose how SQLite writes; at this point SQLite does not wait for another program by itself."""
    cursor.execute(f"PRAGMA page_size={_PAGE_BYTES}")  # has an effect only while the file is empty
    ends = time.monotonic() + patience_s
    while cursor.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        try:
            if cursor.execute("PRAGMA page_count").fetchone() == (0,):
                cursor.execute("PRAGMA synchronous=OFF")  # reset below: an empty file has nothing to lose
            cursor.execute("PRAGMA journal_mode=WAL").fetchall()
            break  # if such a log is impossible, another mode is as safe
        except Exception as error:
            if "readonly" in str(error):
                break
            if "locked" not in str(error) or time.monotonic() > ends:
                raise
            time.sleep(0.01)
    for setting in _SETTINGS:
        cursor.execute(f"PRAGMA {setting}").fetchall()


def ensure_tables(connection: Connection, session: Session, statements: Statements, begin: str) -> None:
    """Create missing tables, and read the generation with which the database was created."""
    driver: Any = connection.dialect.loaded_dbapi
    try:
        rows = session.rows(statements.schema)
    except driver.Error:  # any other cause raises again below
        if not connection.dialect.has_table(connection, schema.name):
            _create_tables(connection, session, statements, begin)
        rows = session.rows(statements.schema)
    if [version for version, _ in rows] == [1]:
        _move_contents(connection, session, begin)
        rows = session.rows(statements.schema)
    if [version for version, _ in rows] != [SCHEMA_VERSION]:
        versions = ", ".join(str(version) for version, _ in rows) or "none"
        place = display_text(connection.engine.url)
        message = (
            f"The tables in {place!r} have version {versions}; expected {SCHEMA_VERSION}. Another version of "
            "agentbench created them: use that version, or another database."
        )
        raise WorkflowCheckpointException(message)
    session.generation = rows[0][1]


def _move_contents(connection: Connection, session: Session, begin: str) -> None:
    """Move the contents of checkpoints, which version 1 stored in a separate table, to the records."""
    execute = session.cursor.execute
    kind = records.c.content.type.compile(connection.dialect)
    execute(begin)
    try:
        execute("UPDATE agentbench_schema SET version = 2 WHERE version = 1")
        if session.cursor.rowcount:  # no other process has done it in the meantime
            execute(f"ALTER TABLE agentbench_records ADD COLUMN content {kind}")
            execute(
                "UPDATE agentbench_records SET content = (SELECT t.content FROM agentbench_contents t "
                "WHERE t.record_id = agentbench_records.record_id)"
            )
            execute("DROP TABLE agentbench_contents")
        execute("COMMIT")
    except Exception:
        with suppress(Exception):
            execute("ROLLBACK")
        raise


def _create_tables(connection: Connection, session: Session, statements: Statements, begin: str) -> None:
    execute, dialect = session.cursor.execute, connection.dialect
    try:
        execute(begin)
        for table in tables.sorted_tables:
            execute(str(CreateTable(table).compile(dialect=dialect)))
            for index in table.indexes:
                execute(str(CreateIndex(index).compile(dialect=dialect)))
        session.run(statements.add_schema, {"version": SCHEMA_VERSION, "generation": secrets.randbits(52)})
        execute("COMMIT")
    except Exception:
        with suppress(Exception):
            execute("ROLLBACK")
        if not dialect.has_table(connection, schema.name):  # no other process has created them in the meantime
            raise

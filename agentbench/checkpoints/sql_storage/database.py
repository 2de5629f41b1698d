"""A database whose connection is opened on demand and replaced if it is lost; errors of its driver in plain words."""

from __future__ import annotations

import re
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from sqlalchemy import create_engine
from sqlalchemy.engine import URL, Engine
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from agentbench.checkpoints.sql_storage.session import (
    Session,
    create_file,
    display_text,
    ensure_tables,
    file_of,
    readable_url,
    secrets_of,
    set_up_sqlite,
)
from agentbench.checkpoints.sql_storage.tables import statements_of

_Meanings = tuple[tuple[str, type[Exception], str], ...]

_SQLITE: Final[_Meanings] = (
    (
        r"locked|busy",
        TimeoutError,
        "another program holds the database and did not release it in time. Close the program that has it open in a "
        "transaction (a database browser, a backup, a stopped process), or wait longer with "
        "'sqlite:///PATH?timeout=SECONDS'",
    ),
    (
        r"readonly|read-only|unable to open",
        PermissionError,
        "the database cannot be opened or written. Expected a file in a folder that this user can read and write: "
        "SQLite keeps two more files (-wal, -shm) beside it",
    ),
    (r"disk is full|IOERR_(WRITE|FSYNC|TRUNCATE)", OSError, "the disk is full or failing. Free space, or replace it"),
    (
        r"disk i/o error",
        OSError,
        "{files} cannot be read or written. They belong together: if one was deleted, moved or replaced while a "
        "program had the database open, close all programs that use it, which saves their data, and open it again. "
        "Otherwise the disk is failing",
    ),
    (
        r"not a database|malformed|encrypted|can't decode",
        OSError,
        "the file is damaged, or was never a database of checkpoints. Restore a copy, save the readable data with "
        "'sqlite3 PATH .recover', or use another path",
    ),
)
# Errors of connections that are lost or were rejected.
_POSTGRESQL: Final[_Meanings] = (
    (
        r"too many (clients|connections)|connection slots",
        ConnectionError,
        "the server accepts no more connections. Close some, or raise its max_connections",
    ),
    (
        r"authentication failed|no password supplied|pg_hba\.conf|role .* (does not exist|not permitted)",
        ConnectionError,
        "the server rejects this user or password. Grant access, or correct the URL",
    ),
    (r"database .* does not exist", ConnectionError, "the server has no such database. Create it, or correct the URL"),
    (r"", ConnectionError, "the server is unreachable, or the connection was lost. Start it, or correct the URL"),
)
_IN_DOUBT: Final = (
    "the connection was lost during the save, so it may have been stored or not. Check (list_checkpoint_ids) once the "
    "server is back, or save again"
)


def driver_error(
    error: Exception, is_sqlite: bool, secrets: list[str], *, file: Path | None, is_lost: bool, in_doubt: bool
) -> tuple[Exception, Exception | None]:
    """Return the error that explains a driver's error, and its cause: that error, unless it contains a secret.

    `file` is the file of an SQLite database.
    """
    original = getattr(error, "orig", None) or error
    reported = re.sub(r"\s+", " ", str(original)).strip() or type(original).__name__
    cause = None if any(secret in str(original) for secret in secrets) else original
    for secret in secrets:
        reported = reported.replace(secret, "***")
    if in_doubt:
        return ConnectionError(f"{_IN_DOUBT} ({reported})"), cause
    code = getattr(original, "sqlite_errorname", "")
    for pattern, kind, meaning in _SQLITE if is_sqlite else _POSTGRESQL if is_lost else ():
        if re.search(pattern, f"{reported} {code}", re.IGNORECASE):
            files = "the database" if file is None else f"{file.name}, {file.name}-wal and {file.name}-shm"
            return kind(f"{meaning.format(files=files)} ({reported})"), cause
    return RuntimeError(reported), cause


T = TypeVar("T")

_FIRST_PAUSE_S: Final = 0.0002
_LONGEST_PAUSE_S: Final = 0.01
_SHORT_PATIENCE_S: Final = 0.003
"""A write by another process usually ends sooner than a thread could take over the waiting."""
_PATIENCE_S: Final = 30.0
"""How long another program may hold an SQLite file before that is an error, unless the URL has `?timeout=SECONDS`."""


class Database:
    """A database with the tables of `tables.py`, which are created on first use; `place` is its URL without secrets."""

    def __init__(self, url: URL) -> None:
        self.place = display_text(url)
        self._secrets = secrets_of(url)
        self._file = file_of(url)
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self._patience_s = float(url.query.get("timeout", _PATIENCE_S))  # type: ignore[arg-type]  # once
        self._begin = "BEGIN IMMEDIATE" if self.is_sqlite else "BEGIN"
        self._engine = _engine(
            readable_url(url, self._file),
            {"check_same_thread": False, "timeout": self._patience_s} if self.is_sqlite else {},
        )
        self._driver: Any = self._engine.dialect.loaded_dbapi
        # The SQLite driver fails to decode what SQLite reports about a damaged file.
        self._errors: tuple[type[Exception], ...] = (self._driver.Error, SQLAlchemyError, UnicodeDecodeError)
        self.statements = statements_of(self._engine.dialect)
        self.is_contended = False
        """Whether several processes are expected to write to the SQLite file all the time."""
        self._session: Session | None = None
        self._closing: weakref.finalize[..., Database] | None = None

    def read(self, work: Callable[[Session], T]) -> T:
        """Run statements that change nothing."""
        return self._attempt(work, lambda: False)

    def change(self, work: Callable[[Session], T], *, patient: bool = True) -> T:
        """Run one transaction, which is not repeated once it commits; `patient`: wait for others that hold the file."""
        is_committing = False

        def transact(session: Session) -> T:
            nonlocal is_committing
            execute = session.cursor.execute
            self._begin_transaction(session, patient=patient)
            try:
                result = work(session)
                is_committing = True
                execute("COMMIT")
            except BaseException:
                self._roll_back(session)
                raise
            return result

        try:
            return self._attempt(transact, lambda: is_committing, patient=patient)
        except TimeoutError as error:
            if patient:
                raise
            raise BlockingIOError(str(error)) from error

    def _begin_transaction(self, session: Session, *, patient: bool) -> None:
        """Begin; a contended file is tried again after fractions of a millisecond, not after SQLite's long pauses."""
        patience_s = self._patience_s if patient else _SHORT_PATIENCE_S if self.is_contended else 0.0
        ends, pause_s = time.monotonic() + patience_s, _FIRST_PAUSE_S
        while True:
            try:
                session.cursor.execute(self._begin)
            except self._driver.OperationalError as error:
                is_busy = getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY")
                if not (is_busy and self.is_contended) or time.monotonic() >= ends:
                    raise
            else:
                return
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def close(self) -> None:
        """Close the connection; a later use opens another one."""
        session, self._session = self._session, None
        if self._closing is not None:
            self._closing.detach()
        if session is not None:
            with suppress(*self._errors):
                session.close()

    def _attempt(
        self,
        work: Callable[[Session], T],
        is_committing: Callable[[], bool],
        *,
        patient: bool = True,
        last: bool = False,
    ) -> T:
        try:
            session = self._open_session(patient=patient)
            with session.busy:
                if self.is_sqlite:
                    session.wait_at_most(self._patience_s if patient and not self.is_contended else 0.0)
                return work(session)
        except self._errors as error:
            is_lost = self._is_lost(error)
            if is_lost and self._session is not None:
                self._session.is_broken = True
            # Two processes may add the same row at the same time; on the second attempt it exists.
            again = is_lost or isinstance(error, self._driver.IntegrityError)
            if last or self._session is None or is_committing() or not again:
                in_doubt = is_lost and is_committing()
                made, cause = driver_error(
                    error, self.is_sqlite, self._secrets, file=self._file, is_lost=is_lost, in_doubt=in_doubt
                )
                raise made from cause
        return self._attempt(work, is_committing, patient=patient, last=True)

    def _open_session(self, *, patient: bool = True) -> Session:
        if self._session is not None and self._session.is_usable():
            return self._session
        if self.is_sqlite and not patient:
            message = "the database is not open, and other programs may hold it"
            raise TimeoutError(message)
        self.close()
        if self._file is not None:
            create_file(self._file)
        connection = self._engine.connect()
        try:
            session = Session(connection, self._file)
            if self.is_sqlite:
                set_up_sqlite(session.cursor, self._patience_s)
            ensure_tables(connection, session, self.statements, self._begin)
        except BaseException:
            connection.close()
            raise
        self._session = session
        self._closing = weakref.finalize(self, session.close)
        return session

    def _is_lost(self, error: Exception) -> bool:
        """Return whether there is no connection, or it was lost."""
        if self.is_sqlite:
            return False
        if self._session is None:
            return isinstance(error, OperationalError)
        return self._session.is_broken or self._engine.dialect.is_disconnect(
            error,  # type: ignore[arg-type]
            self._session.raw,
            self._session.cursor,
        )

    def _roll_back(self, session: Session) -> None:
        try:
            session.cursor.execute("ROLLBACK")
        except self._errors:  # lost, or already undone by SQLite because the disk is full
            session.is_broken = True


def _engine(url: URL, options: dict[str, Any]) -> Engine:
    return create_engine(
        url,
        poolclass=NullPool,
        pool_reset_on_return=None,
        isolation_level="AUTOCOMMIT",
        hide_parameters=True,
        connect_args=options,
    )

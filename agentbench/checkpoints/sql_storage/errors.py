"""Errors of databases, in words that say what to do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

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

"""What databases report, in words that say what to do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_Meanings = tuple[tuple[str, type[Exception], str], ...]

_SQLITE: Final[_Meanings] = (
    (
        r"locked|busy",
        TimeoutError,
        "another program holds the database, and did not let go of it in time. Close what has it open in a transaction "
        "of its own (a database browser, a backup, a stopped process), or wait longer with "
        "'sqlite:///PATH?timeout=SECONDS'",
    ),
    (
        r"readonly|read-only|unable to open",
        PermissionError,
        "the database cannot be opened or written. Expected a file in a folder that this user may read and write: "
        "SQLite keeps two more files (-wal, -shm) beside it",
    ),
    (r"disk is full|IOERR_(WRITE|FSYNC|TRUNCATE)", OSError, "the disk is full or failing. Make room, or mend it"),
    (
        r"disk i/o error",
        OSError,
        "{files} cannot be read or written. They belong together: if one was deleted, moved or replaced while a "
        "program had the database open, close all programs that use it, which saves what they hold, and open it again. "
        "Else the disk is failing",
    ),
    (
        r"not a database|malformed|encrypted|can't decode",
        OSError,
        "the file is damaged, or was never a database of checkpoints. Bring back a copy, save what can be read with "
        "'sqlite3 PATH .recover', or use another path",
    ),
)
# Of connections that are lost, or were refused.
_POSTGRESQL: Final[_Meanings] = (
    (
        r"too many (clients|connections)|connection slots",
        ConnectionError,
        "the server takes no more connections. Close some, or raise its max_connections",
    ),
    (
        r"authentication failed|no password supplied|pg_hba\.conf|role .* (does not exist|not permitted)",
        ConnectionError,
        "the server refuses this user or this password. Let the user in, or correct the URL",
    ),
    (r"database .* does not exist", ConnectionError, "the server has no such database. Create it, or correct the URL"),
    (r"", ConnectionError, "the server cannot be reached, or went away. Start it, or correct the URL"),
)
_IN_DOUBT: Final = (
    "the server went away while it stored this, and may have stored it or not. Check (list_checkpoint_ids) once it "
    "is back, or save again"
)


def driver_error(
    error: Exception, is_sqlite: bool, secrets: list[str], *, file: Path | None, is_lost: bool, in_doubt: bool
) -> tuple[Exception, Exception | None]:
    """Return the error that says what a driver's error means, and its cause: that error, unless it holds a secret.

    `file` is that of a database of SQLite.
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

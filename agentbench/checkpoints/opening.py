"""Opens a checkpoint storage by its address: a folder, an SQLite file, the URL of a database or of a Redis server."""

from __future__ import annotations

import os
import re
from typing import Any
from urllib.parse import unquote, urlsplit

from agentbench._extras import require
from agentbench.checkpoints.storage import CheckpointStorage
from agentbench.exceptions import MissingExtraError, WorkflowCheckpointException

_SQLITE_MAGIC = b"SQLite format 3\x00"
_SQLITE_SUFFIXES = (".db", ".sqlite", ".sqlite3")
_SCHEME = re.compile(r"([A-Za-z][\w+.-]*)://", re.ASCII)
_LIKE_URL = re.compile(r"\s*[A-Za-z][\w+.-]*:(?://|/?(?=[^/@]*@|[^/@]*:.*@))", re.ASCII | re.DOTALL)
_EXPECTED = (
    "Expected a folder, a SQLite file, or a URL such as sqlite:///runs.db, postgresql://user@host/name or "
    "redis://localhost:6379/0."
)


def open_storage(target: str | os.PathLike[str], *, create: bool = False) -> CheckpointStorage:
    """Open the checkpoint storage at an address.

    Args:
        target: A folder for `FileCheckpointStorage`, as a path or a `file://` URL; an SQLite file, as a path
            (recognized by its content, or by the suffix `.db`, `.sqlite` or `.sqlite3`); a `redis://`, `rediss://` or
            `unix://` URL; any other URL is passed to SQLAlchemy.
        create: Whether to create missing folders, files and tables, now or when the storage is first used.

    Raises:
        WorkflowCheckpointException: The address does not exist, or is not that of a storage.
        MissingExtraError: The package for this kind of storage is not installed.
        ValueError: The URL is malformed.

    Example:
        >>> storage = open_storage("checkpoints/")
        >>> latest = await storage.get_latest(workflow_name="report")
    """
    text = os.fspath(target)
    if not text:
        msg = f"The address of the checkpoints is empty. {_EXPECTED}"
        raise WorkflowCheckpointException(msg)
    scheme = _SCHEME.match(text)
    if scheme is None:
        return _open_path(text, create=create)
    name = scheme[1].lower()
    if name == "file":
        return _open_path(_path_of(text), create=create)
    if name in ("redis", "rediss", "unix"):
        return _redis(text)
    if name.partition("+")[0] == "sqlite":
        _require_database(text, create=create)
    return _sql(text, create=create)


def displayed_address(target: str | os.PathLike[str]) -> str:
    """Return an address, or a similar text, without possible secrets: before the host, and after the `?`."""
    text = os.fspath(target)
    resembles = _LIKE_URL.match(text)
    if resembles is None:
        return text
    return resembles[0] + re.sub(r".*@", "***@", text[resembles.end() :].partition("?")[0], flags=re.DOTALL)


def is_sqlite_file(path: str) -> bool:
    """Return whether a file is an SQLite database, or is empty and has a database's suffix."""
    try:
        with open(path, "rb") as file:
            start = file.read(len(_SQLITE_MAGIC))
    except OSError as error:
        msg = f"{path!r} cannot be read: {error.strerror}."
        raise WorkflowCheckpointException(msg, error) from error
    return start == _SQLITE_MAGIC or (not start and path.lower().endswith(_SQLITE_SUFFIXES))


def _path_of(url: str) -> str:
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        msg = f"{displayed_address(url)!r} is on another machine. Expected a folder on this machine: file:///folder."
        raise WorkflowCheckpointException(msg)
    path = unquote(parts.path)
    return path[1:] if re.match(r"/[A-Za-z]:", path) else path  # a Windows drive


def _open_path(path: str, *, create: bool) -> CheckpointStorage:
    if os.path.isdir(path):
        return _folder(path)
    if os.path.exists(path):
        if not is_sqlite_file(path):
            msg = f"{path!r} is neither a folder nor an SQLite file. {_EXPECTED}"
            raise WorkflowCheckpointException(msg)
        return _sql(path, create=create)
    if not create:
        raise _nothing_at(path)
    return _sql(path, create=True) if path.lower().endswith(_SQLITE_SUFFIXES) else _folder(path)


def _require_database(url: str, *, create: bool) -> None:
    path = url.partition("://")[2].partition("?")[0].removeprefix("/")
    if path in ("", ":memory:"):
        msg = f"{displayed_address(url)!r} is an in-memory database, which is empty. Name a file: sqlite:///runs.db."
        raise WorkflowCheckpointException(msg)
    if not create and not path.startswith("file:") and not os.path.exists(path):
        raise _nothing_at(displayed_address(url))


def _nothing_at(path: str) -> WorkflowCheckpointException:
    msg = f"{displayed_address(path)!r} does not exist, so it has no checkpoints. {_EXPECTED}"
    return WorkflowCheckpointException(msg)


# Each kind is imported on use: most programs need one, and two of them need additional packages.


def _folder(path: str) -> CheckpointStorage:
    from agentbench.checkpoints.file import FileCheckpointStorage  # noqa: PLC0415

    return FileCheckpointStorage(path)


def _sql(url_or_path: str, *, create: bool) -> CheckpointStorage:
    exc = require("sqlalchemy.exc", extra="sql", purpose="keep checkpoints in a database")
    from agentbench.checkpoints.sql import SQLCheckpointStorage  # noqa: PLC0415

    try:
        storage = SQLCheckpointStorage(url_or_path)
    except MissingExtraError:
        raise
    except (exc.ArgumentError, ImportError) as error:
        reason = str(error).rstrip(".")
        place = displayed_address(url_or_path)
        msg = f"{place!r} names no installed driver: {reason}. Install it, or correct the URL."
        raise WorkflowCheckpointException(msg, error) from error
    if not create and lacks_table(url_or_path, "agentbench_schema"):
        storage.close()
        msg = f"The database at {displayed_address(url_or_path)!r} has no checkpoints: none were ever saved there."
        raise WorkflowCheckpointException(msg)
    return storage


def lacks_table(url_or_path: Any, name: str) -> bool:
    """Return whether a database has no such table; `False` if that cannot be read, as the first use reports it."""
    from sqlalchemy import create_engine, inspect
    from sqlalchemy.exc import SQLAlchemyError
    from sqlalchemy.pool import NullPool

    from agentbench.checkpoints.sql_storage.session import database_url  # noqa: PLC0415

    engine = create_engine(database_url(url_or_path), poolclass=NullPool)
    try:
        return not inspect(engine).has_table(name)
    except SQLAlchemyError:
        return False
    finally:
        engine.dispose()


def _redis(url: str) -> CheckpointStorage:
    parts = urlsplit(url)
    if parts.scheme.lower() != "unix" and not re.fullmatch(r"/?[0-9]*", parts.path):
        msg = (
            f"{displayed_address(url)!r} names no database of a Redis server. Expected its number: redis://host:6379/0."
        )
        raise WorkflowCheckpointException(msg)
    from agentbench.checkpoints.redis import RedisCheckpointStorage  # noqa: PLC0415

    return RedisCheckpointStorage(url)

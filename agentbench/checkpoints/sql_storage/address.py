"""The address of a database: the URL for connecting, and the one for display."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from agentbench._extras import require
from agentbench._secrets import is_secret_parameter

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
    return url if file_of(url) is None else url.set(database=os.path.abspath(url.database))


def readable_url(url: URL, file: Path | None) -> URL:
    """Return the URL that opens an SQLite file; in a read-only folder, one that needs no further files."""
    if file is None or not file.exists() or os.access(file.parent, os.W_OK) or Path(f"{file}-wal").exists():
        return url
    return url.set(database=file.absolute().as_uri(), query={**url.query, "immutable": "1", "uri": "true"})

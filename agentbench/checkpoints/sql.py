"""A checkpoint storage in a database: a file, or a server.

Names and ids are UTF-8 in columns of bytes. Texts are JSON, also as bytes; longer ones are deflated after a byte 1 (see
`packed_text`). The tables are:

- `agentbench_schema`: the version of the tables, and the generation that chains begin with.
- `agentbench_chains`: the names of the chains, and their generations, raised when parts were removed.
- `agentbench_records`: a row per checkpoint: chain, position in the chain, id, run, the data that lists display, and
the rest of its data, with references to parts.
- `agentbench_parts`: by chain and part id the texts that the checkpoints of a chain share.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

from agentbench._extras import require
from agentbench.checkpoints.parts.content_storage import ContentAddressedStorage

if TYPE_CHECKING:
    from sqlalchemy import URL

    from agentbench.checkpoints.sql_storage.backend import SQLBackend


class SQLCheckpointStorage(ContentAddressedStorage):
    """A storage in an SQLite file, or in a database that a URL names.

    The file and its folders are created on first use, for their owner only; so are the tables, whose names begin with
    `agentbench_`. Several processes can use the same database. Saved data survives a killed process; after a power
    failure, an SQLite file may lack the last checkpoints. A lost connection, for example after a server restart, is
    replaced.

    Args:
        path_or_url: The path of an SQLite file, such as `checkpoints.db`; or a URL for SQLAlchemy, as text or as a
            `sqlalchemy.URL`. SQLite and PostgreSQL are tested: `sqlite:///checkpoints.db?timeout=60` (seconds to wait
            for other programs, 30 by default), `postgresql://user:password@localhost:5432/database`.
        keep_last: How many checkpoints of each chain to keep; `None` keeps all.

    Raises:
        MissingExtraError: SQLAlchemy is not installed, or psycopg for PostgreSQL.
        NotInBrowserError: The URL is one of PostgreSQL, and this Python runs in a browser.
        ValueError: The URL is invalid or that of an in-memory database; or `keep_last` is less than 1.
        TypeError: `path_or_url` is neither a path nor a URL.

    Example:
        >>> SQLCheckpointStorage("postgresql://me:secret@localhost/work")
        SQLCheckpointStorage('postgresql+psycopg://me:***@localhost/work')
    """

    def __init__(self, path_or_url: str | os.PathLike[str] | URL, *, keep_last: int | None = None) -> None:
        require("sqlalchemy", extra="sql", purpose="keep checkpoints in a database")
        # Imported here, so that SQLAlchemy is imported only with the first such storage.
        backend: SQLBackend = import_module("agentbench.checkpoints.sql_storage.backend").SQLBackend(path_or_url)
        super().__init__(backend, keep_last=keep_last)
        self._ab_text = f"{type(self).__name__}({backend.place!r})"

    def __repr__(self) -> str:
        return self._ab_text

"""Opens a batch that `run_many` has stored, without its workflow and without creating anything."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from agentbench._extras import require
from agentbench.batch.batch import Batch
from agentbench.batch.store.database import BatchDatabase, require_place
from agentbench.batch.store.store import BatchStore, batch_names
from agentbench.checkpoints.opening import displayed_address, lacks_table
from agentbench.exceptions import BatchNotFoundError

if TYPE_CHECKING:
    from sqlalchemy import URL


def open_batch(into: str | os.PathLike[str] | URL, name: str) -> Batch:
    """Open a batch to read its rows, to answer its questions, or to open failed rows again, without its workflow.

    To run it, call `run_many` with its workflow: that carries out what was answered or opened again here. A batch that
    another process is running can be opened too.

    Args:
        into: The database, as for `run_many`; it is not created.
        name: The name of the batch, by default that of its workflow.

    Returns:
        The batch.

    Raises:
        BatchNotFoundError: There is no such database, or no such batch in it; `names` lists those that exist.
        MissingExtraError: SQLAlchemy or psycopg is needed and not installed.

    Example:
        >>> batch = open_batch("answers.db", "review")
        >>> print(batch, batch.failed.inputs)
    """
    database = open_database(into)
    names = batch_names(database)
    if name not in names:
        database.close()
        there = ", ".join(map(repr, names)) or "none"
        msg = f"There is no batch {name!r} in {database.place!r}. Batches: {there}."
        raise BatchNotFoundError(msg, name=name, names=names)
    return Batch(BatchStore(database, name), None, None, None)


def open_database(into: str | os.PathLike[str] | URL) -> BatchDatabase:
    """Open a database that contains batches. BatchNotFoundError: it does not exist, or never contained any."""
    require("sqlalchemy", extra="sql", purpose="open a batch")
    file = require_place(into)
    place = displayed_address(into if isinstance(into, (str, os.PathLike)) else into.render_as_string())
    if file is not None and not file.exists():
        msg = f"{place!r} does not exist. Expected the file or URL that was passed to run_many() as into=."
        raise BatchNotFoundError(msg, name=place)
    if lacks_table(into, "agentbench_batches"):
        msg = f"{place!r} contains no batches. Expected the file or URL that was passed to run_many() as into=."
        raise BatchNotFoundError(msg, name=place)
    return BatchDatabase(into, create=False)

"""A checkpoint storage as its chains. Content is not read, nothing is created, and no server is contacted."""

from __future__ import annotations

import os
import re
from typing import Any

from agentbench._bridge import run_sync
from agentbench.checkpoints.access import head_of, list_workflow_names
from agentbench.checkpoints.file import FileCheckpointStorage
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.checkpoints.sql import SQLCheckpointStorage
from agentbench.notebook.look.html import Page, Table
from agentbench.notebook.text.phrases import count_text

__all__ = ["storage_bundle"]

_MOST_CHAINS = 20
_PATIENCE_S = 2.0
_SQLITE_HEADER = b"SQLite format 3\0"
#: The table with the schema version of the others.
_SCHEMA_TABLE = b"agentbench_schema"

Row = tuple[str, str, str]


def storage_bundle(storage: Any) -> dict[str, Any]:
    """A storage by its address, and where that costs nothing by its chains: their checkpoints, and when the last came.

    Never raises: what cannot be listed now is left out.
    """
    page = Page(repr(storage))
    try:
        if not _can_be_listed(storage):
            return page.bundle()
        names, rows = run_sync(_chains(storage), timeout=_PATIENCE_S)
    except Exception:  # noqa: BLE001 - a picture of a storage is no place to learn that it is locked or damaged
        return page.bundle()
    facts = [count_text(len(names), "chain"), *([f"the first {len(rows)}"] if len(names) > len(rows) else [])]
    table = Table("Chains", ("chain", "checkpoints", "last saved"), rows)
    return Page(page.title, facts=facts, tables=[table]).bundle()


async def _chains(storage: Any) -> tuple[list[str], list[Row]]:
    names = await list_workflow_names(storage)
    rows = []
    for name in names[:_MOST_CHAINS]:
        count = len(await storage.list_checkpoint_ids(workflow_name=name))
        head = await head_of(storage, name)
        rows.append((name, f"{count:,}", "" if head is None else head.timestamp))
    return names, rows


def _can_be_listed(storage: Any) -> bool:
    """Whether listing asks no server and leaves nothing behind."""
    if isinstance(storage, (InMemoryCheckpointStorage, FileCheckpointStorage)):
        return True
    if isinstance(storage, SQLCheckpointStorage):
        file = re.fullmatch(r"\w+\('sqlite:///([^?']+).*'\)", repr(storage))
        return file is not None and _holds_tables(file[1])
    return False


def _holds_tables(path: str) -> bool:
    """Whether a file is an SQLite database with the tables; read as it is, because opening a database may write."""
    for name in (path, f"{path}-wal"):
        if os.path.isfile(name):
            with open(name, "rb") as file:
                start = file.read(1 << 16)
            if name == path and not start.startswith(_SQLITE_HEADER):
                return False
            if _SCHEMA_TABLE in start:
                return True
    return False

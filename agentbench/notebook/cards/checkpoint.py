"""The displays of a checkpoint, of its info, and of a storage with its chains.

They create nothing, contact no server, and read no content of a storage.
"""

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from agentbench._bridge import run_sync
from agentbench._secrets import mask_secrets
from agentbench._text.phrases import count_text
from agentbench._text.redact import fields_of, line_preview
from agentbench.checkpoints.access import head_of, list_workflow_names
from agentbench.checkpoints.file import FileCheckpointStorage
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.checkpoints.sql import SQLCheckpointStorage
from agentbench.notebook.history.log import request_rows
from agentbench.notebook.look.html import Page, Table
from agentbench.workflows.persist.snapshot import EXECUTOR_STATE, FAN_IN_BUFFERS

_MOST_CHAINS = 20
_PATIENCE_S = 2.0
_SCHEMA_TABLE = "agentbench_schema"
"""The table with the schema version."""

Row = tuple[str, str, str]


def checkpoint_info_bundle(info: Any) -> dict[str, Any]:
    """Return the view of a checkpoint's info, without its content."""
    rows = [
        ("saved", info.timestamp),
        ("run", info.run_id),
        ("previous", info.previous_checkpoint_id),
        ("forked from", info.forked_from),
        ("executors", ", ".join(info.writers)),
        ("messages", info.n_messages),
        ("requests", info.n_requests),
        ("size", f"{info.size_bytes:,} bytes" if info.size_bytes else ""),
    ]
    table = Table("Checkpoint", ("field", "value"), [row for row in rows if row[1] not in (None, "")])
    facts = [str(info.checkpoint_id), f"chain {info.workflow_name}", f"superstep {info.iteration}"]
    return Page("CheckpointInfo", state=str(info.source), facts=facts, tables=[table]).bundle()


def checkpoint_bundle(checkpoint: Any) -> dict[str, Any]:
    """Return the view of a checkpoint: queued messages, open requests, state. Secrets are masked."""
    messages = [
        (source, getattr(message, "target_id", None) or "", line_preview(getattr(message, "data", message)))
        for source, waiting in checkpoint.messages.items()
        for message in waiting
    ]
    # The engine's own keys are in every checkpoint, mostly empty.
    engines = (EXECUTOR_STATE, FAN_IN_BUFFERS)
    state = [(key, value) for key, value in fields_of(checkpoint.state) if key not in engines or value]
    requests = request_rows(checkpoint.pending_request_info_events.values())
    tables = [
        Table("Messages", ("from", "to", "data"), messages),
        Table("Open requests", ("id", "executor", "question", "answer type"), requests),
        Table("State", ("key", "value"), [(key, line_preview(mask_secrets(value, key=key))) for key, value in state]),
    ]
    place = (f"chain {checkpoint.workflow_name}", f"superstep {checkpoint.iteration_count}")
    facts = [checkpoint.checkpoint_id, *place, checkpoint.timestamp]
    return Page("WorkflowCheckpoint", facts=facts, tables=tables).bundle()


def storage_bundle(storage: Any) -> dict[str, Any]:
    """Return the view of a storage: its address, and if it is cheap, its chains with their checkpoints.

    Never raises: a storage that cannot be listed shows only its address.
    """
    page = Page(repr(storage))
    try:
        if not _can_be_listed(storage):
            return page.bundle()
        names, rows = run_sync(_chains(storage), timeout=_PATIENCE_S)
    except Exception:  # noqa: BLE001 - a display must not raise because a storage is locked or damaged
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
    """Whether listing contacts no server and creates no file."""
    if isinstance(storage, (InMemoryCheckpointStorage, FileCheckpointStorage)):
        return True
    file = re.fullmatch(r"\w+\('sqlite:///([^?']+).*'\)", repr(storage))
    if file is None or not isinstance(storage, SQLCheckpointStorage):
        return False
    # Check whether the file is a database with the tables; read-only, because opening a storage may write.
    address = f"{Path(file[1]).absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=_PATIENCE_S)) as database:
        return bool(database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", [_SCHEMA_TABLE]).fetchone())

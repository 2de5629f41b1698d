"""The displays of a checkpoint and its info: facts, queued messages, open requests, state. Reads and saves nothing."""

from typing import Any

from agentbench._secrets import mask_secrets
from agentbench._text.redact import fields_of, line_preview
from agentbench.notebook.history.step_rows import request_rows
from agentbench.notebook.look.html import Page, Table
from agentbench.workflows.persist.snapshot import EXECUTOR_STATE, FAN_IN_BUFFERS


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

"""The input of a run, kept with the first checkpoint of its branch, so that people can go back to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentbench.checkpoints import metadata as keys
from agentbench.checkpoints.access import load_checkpoint
from agentbench.checkpoints.checkpoint import id_of
from agentbench.serialization.json_text import from_json, to_json
from agentbench.workflows.executors.state import StateMark

if TYPE_CHECKING:
    from agentbench.checkpoints.storage import CheckpointStorage


def stored_input(message: Any) -> str | None:
    """Return the text to store for an input, or None if it cannot be stored, for which no run should fail."""
    try:
        return to_json(message)
    except Exception:  # noqa: BLE001 - what converts a value may be user code
        return None


async def find_input(storage: CheckpointStorage, checkpoint_id: str) -> Any:
    """Return the input of the run that led to a checkpoint, or `StateMark.ABSENT` if no ancestor has one."""
    seen: set[str] = set()
    at: str | None = checkpoint_id
    while at is not None and at not in seen:  # a damaged storage may contain a cycle
        seen.add(at)
        checkpoint = await load_checkpoint(storage, id_of(at))
        stored = checkpoint.metadata.get(keys.INPUT)
        if isinstance(stored, str):
            return from_json(stored)
        at = checkpoint.previous_checkpoint_id
    return StateMark.ABSENT

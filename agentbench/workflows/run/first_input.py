"""The input of a run, kept with the first checkpoint of its branch, so that people can go back to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentbench.checkpoints import metadata as keys
from agentbench.checkpoints.access import list_infos, load_checkpoint
from agentbench.checkpoints.checkpoint import id_of
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.exceptions import WorkflowCheckpointException
from agentbench.serialization.json_text import from_json, to_json
from agentbench.workflows.executors.message import WORKFLOW_SOURCE
from agentbench.workflows.executors.state import StateMark

if TYPE_CHECKING:
    from agentbench.checkpoints.storage import CheckpointStorage


def stored_input(message: Any) -> str | None:
    """Return the text to store for an input, or None if it cannot be stored, for which no run should fail."""
    try:
        return to_json(message)
    except Exception:  # noqa: BLE001 - what converts a value may be user code
        return None


def read_input(metadata: Mapping[str, Any]) -> Any:
    """Return the input in the metadata of a checkpoint, or `StateMark.ABSENT` if there is none that can be read."""
    stored = metadata.get(keys.INPUT)
    if not isinstance(stored, str):
        return StateMark.ABSENT
    try:
        return from_json(stored)
    except Exception:  # noqa: BLE001 - what makes a value may be user code, or may be missing in this process
        return StateMark.ABSENT


async def find_input(storage: CheckpointStorage, checkpoint_id: str) -> Any:
    """Return the input of the run that led to a checkpoint, or `StateMark.ABSENT` if no ancestor has one."""
    chain: dict[str, CheckpointInfo] = {}
    seen: set[str] = set()
    at: str | None = checkpoint_id
    while at is not None and at not in seen:  # a damaged storage may contain a cycle
        seen.add(at)
        info = chain.get(at)
        if info is None or info.iteration < 0:
            try:
                checkpoint = await load_checkpoint(storage, id_of(at))
                chain = {
                    each.checkpoint_id: each
                    for each in await list_infos(storage, workflow_name=checkpoint.workflow_name)
                }
            except WorkflowCheckpointException:  # deleted, or damaged
                break
            info = CheckpointInfo.of(checkpoint)
            if info.iteration < 0 and (messages := checkpoint.messages.get(WORKFLOW_SOURCE)):
                return messages[0].data  # a fork may have edited it
        if (message := read_input(info.metadata)) is not StateMark.ABSENT:
            return message
        at = info.previous_checkpoint_id
    return StateMark.ABSENT

"""Whole checkpoints in the pickled format of agent-framework: written and read only with `codec="pickle"`."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import fields, replace
from typing import Any

from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.file_storage.loose_files import WholeRecord
from agentbench.checkpoints.metadata import GRAPH_SIGNATURE
from agentbench.checkpoints.parts.chain_memory import ChainMemory
from agentbench.checkpoints.parts.records import to_record
from agentbench.exceptions import UnstorableValueError, WorkflowCheckpointException
from agentbench.serialization.pickled import NameFinder, decode_found, encode_readable


class PickledFormat:
    """Converts checkpoints to whole records and back; `allowed_types` as in `decode_checkpoint_value`."""

    def __init__(self, allowed_types: Collection[str]) -> None:
        self._finder = NameFinder(allowed_types)

    def write(self, checkpoint: WorkflowCheckpoint) -> WholeRecord:
        """Convert a checkpoint to a record."""
        encoded = {name: encode_readable(value, self._finder, name) for name, value in checkpoint.to_dict().items()}
        return _describe(checkpoint, json.dumps(encoded, indent=2))

    def describe(self, text: str) -> WholeRecord:
        """Create a record from the text of a file; of pickled data only the metadata is read."""
        found = _fields(text)
        outline = {
            **_counts(found.get("messages", {}), found.get("pending_request_info_events", {})),
            "metadata": decode_found(found.get("metadata", {}), self._finder),
            "state": {},
        }
        return _describe(WorkflowCheckpoint.from_dict({**found, **outline}), text)

    def read(self, record: WholeRecord) -> WorkflowCheckpoint:
        """Convert a record back to the checkpoint."""
        try:
            decoded = {name: decode_found(value, self._finder) for name, value in _fields(record.content).items()}
            return WorkflowCheckpoint.from_dict(decoded)
        except WorkflowCheckpointException as error:
            message = f"Checkpoint {record.checkpoint_id!r} cannot be read: {error}"
            raise WorkflowCheckpointException(message, error) from error


def _describe(checkpoint: WorkflowCheckpoint, text: str) -> WholeRecord:
    """Return a record with the head that the checkpoint would have in the other format."""
    found = {key: value for key, value in checkpoint.metadata.items() if key != GRAPH_SIGNATURE}
    counts = _counts(checkpoint.messages, checkpoint.pending_request_info_events)
    outline = replace(checkpoint, state={}, metadata=found, **counts)
    try:
        record = to_record(outline, ChainMemory(0))[0]
    except UnstorableValueError:  # not needed for a list, and no reason to omit the checkpoint
        outline.metadata = {key: value for key, value in found.items() if isinstance(value, (str, int, float))}
        record = to_record(outline, ChainMemory(0))[0]
    values = {each.name: getattr(record, each.name) for each in fields(record)}
    return WholeRecord(**{**values, "content": text})


def _counts(messages: dict[str, list[Any]], requests: dict[str, Any]) -> dict[str, Any]:
    """Return as many placeholder messages and requests, without contents."""
    return {
        "messages": {name: [None] * len(queue) for name, queue in messages.items()},
        "pending_request_info_events": dict.fromkeys(requests),
    }


def _fields(text: str) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict):
        message = f"It is a {type(found).__name__}; expected the fields of a checkpoint."
        raise WorkflowCheckpointException(message)
    return found

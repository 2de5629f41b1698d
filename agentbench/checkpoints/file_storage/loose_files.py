"""Checkpoints in the pickled format, each as a whole in its file `<id>.json`."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

from agentbench._files.private_file import read_private, write_private
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.file_storage.folder import SUFFIX, UnreadableCheckpointError, file_name
from agentbench.checkpoints.metadata import GRAPH_SIGNATURE
from agentbench.checkpoints.parts.backend import CheckpointRecord
from agentbench.checkpoints.parts.parts import ChainMemory
from agentbench.checkpoints.parts.records import to_record
from agentbench.exceptions import UnstorableValueError, WorkflowCheckpointException
from agentbench.serialization.pickled import NameFinder, decode_found, encode_readable

_LARGEST = 64 << 20


@dataclass(frozen=True, slots=True)
class WholeRecord(CheckpointRecord):
    """A record whose content is a checkpoint in the pickled format, with no parts elsewhere."""


class LooseFile(NamedTuple):
    """The known facts about a file, without its content; files sort in the order of the chain."""

    seq: int
    timestamp: str
    saved: int
    checkpoint_id: str
    workflow_name: str
    run_id: str | None
    size: int
    mtime_ns: int


class LooseFiles:
    """The files `<id>.json` of a folder. Reading needs no lock."""

    def __init__(self, folder: str, pickled: PickledFormat | None) -> None:
        self.problems: dict[str, UnreadableCheckpointError] = {}
        self._folder = folder
        self._pickled = pickled
        self._files: dict[str, LooseFile] = {}

    def __contains__(self, checkpoint_id: str) -> bool:
        return checkpoint_id in self._files

    def scan(self, names: Collection[str], *, only_names: bool = False) -> None:
        """Read the new and changed files among these names; `only_names` skips known ones."""
        ids = {name.removesuffix(SUFFIX) for name in names}
        for known in (self._files, self.problems):
            for gone in known.keys() - ids:
                del known[gone]
        for checkpoint_id in ids - self._files.keys() if only_names else ids:
            if self._is_current(checkpoint_id):
                continue
            try:
                self._files[checkpoint_id] = self._read(checkpoint_id)[0]
                self.problems.pop(checkpoint_id, None)
            except FileNotFoundError:
                self._forget(checkpoint_id)
            except UnreadableCheckpointError as error:
                self._forget(checkpoint_id)
                self.problems[checkpoint_id] = error

    def chains(self) -> set[str]:
        """Return the names of all chains."""
        return {file.workflow_name for file in self._files.values()}

    def chain(self, workflow_name: str) -> list[LooseFile]:
        """Return the files of a chain in order."""
        return sorted([file for file in self._files.values() if file.workflow_name == workflow_name])

    def get(self, checkpoint_id: str) -> CheckpointRecord | None:
        """Return a checkpoint with its content; UnreadableCheckpointError if it is damaged or rejected."""
        try:
            content = self._read(checkpoint_id)[1]
        except FileNotFoundError:
            return None
        path = self._path(checkpoint_id)
        if self._pickled is None:
            reason = (
                "it is in the pickled format, and unpickling can run any code. If you trust the folder, open it with "
                'FileCheckpointStorage(path, codec="pickle")'
            )
            raise UnreadableCheckpointError(checkpoint_id, path, reason)
        try:
            return self._pickled.describe(content)
        except (WorkflowCheckpointException, TypeError, AttributeError, ValueError, RecursionError) as error:
            raise UnreadableCheckpointError(checkpoint_id, path, str(error).rstrip(".")) from error

    def write(self, record: WholeRecord, *, fsync: bool) -> None:
        """Write a whole checkpoint. On case-insensitive file systems, a different id is not overwritten."""
        path = self._path(record.checkpoint_id)
        if os.path.isdir(path):
            message = f"Checkpoint {record.checkpoint_id!r} cannot be saved: {path!r} is a folder. Remove it."
            raise WorkflowCheckpointException(message)
        with suppress(FileNotFoundError):
            try:
                self._read(record.checkpoint_id)
            except UnreadableCheckpointError as error:
                if error.holds is not None:
                    message = (
                        f"Checkpoint {record.checkpoint_id!r} cannot be saved: {path!r} contains the checkpoint "
                        f"{error.holds!r}. Expected ids that differ by more than upper and lower case."
                    )
                    raise WorkflowCheckpointException(message) from error
        write_private(path, record.content.encode(), fsync=fsync)
        self._files[record.checkpoint_id] = self._read(record.checkpoint_id)[0]

    def remove(self, workflow_name: str, checkpoint_id: str) -> bool:
        """Remove the file of a checkpoint of a chain, and return whether there was one."""
        file = self._files.get(checkpoint_id)
        return file is not None and file.workflow_name == workflow_name and self.discard(checkpoint_id)

    def discard(self, checkpoint_id: str) -> bool:
        """Remove a file whatever it contains, and return whether there was one."""
        self._forget(checkpoint_id)
        try:
            os.unlink(self._path(checkpoint_id))
        except FileNotFoundError:
            return False
        return True

    def _forget(self, checkpoint_id: str) -> None:
        self._files.pop(checkpoint_id, None)
        self.problems.pop(checkpoint_id, None)

    def _path(self, checkpoint_id: str) -> str:
        return os.path.join(self._folder, file_name(checkpoint_id))

    def _is_current(self, checkpoint_id: str) -> bool:
        file = self._files.get(checkpoint_id)
        if file is None:
            return False
        try:
            status = os.lstat(os.path.join(self._folder, checkpoint_id + SUFFIX))
        except FileNotFoundError:
            return False
        return (status.st_size, status.st_mtime_ns) == (file.size, file.mtime_ns)

    def _read(self, checkpoint_id: str) -> tuple[LooseFile, str]:
        """Read a file: its fields, and its content as text."""
        path = os.path.join(self._folder, checkpoint_id + SUFFIX)
        try:
            data, status = read_private(path, _LARGEST)
        except FileNotFoundError:
            raise
        except OSError as error:
            reason = f"{error.strerror or error}; expected a plain file that may be read"
            raise UnreadableCheckpointError(checkpoint_id, path, reason) from error
        try:
            fields, content = _read_fields(data), data.decode()
            file = LooseFile(
                fields["seq"],
                fields["time"],
                status.st_mtime_ns,
                fields["id"],
                fields["chain"],
                fields["run"],
                status.st_size,
                status.st_mtime_ns,
            )
        except (ValueError, KeyError, TypeError, RecursionError, MemoryError) as error:
            reason = f"it is damaged ({str(error).rstrip('.')}); restore it from a copy, or delete it"
            raise UnreadableCheckpointError(checkpoint_id, path, reason) from error
        if tuple(map(type, file[:6])) not in _FIELD_TYPES or file.seq < 0:
            raise UnreadableCheckpointError(checkpoint_id, path, "its fields have unexpected types")
        if file.checkpoint_id != checkpoint_id:
            reason = f"it contains the checkpoint {file.checkpoint_id!r}; expected a file named after its checkpoint"
            raise UnreadableCheckpointError(checkpoint_id, path, reason, holds=file.checkpoint_id)
        return file, content


_FIELD_TYPES = {(int, str, int, str, str, run_id) for run_id in (str, type(None))}


def _read_fields(data: bytes) -> dict[str, Any]:
    """Return the fields of a whole checkpoint, without unpickling; ValueError if it is not a checkpoint."""
    content = json.loads(data)
    if not isinstance(content, dict) or not {"checkpoint_id", "workflow_name", "state"} <= content.keys():
        message = "it is JSON, but not a checkpoint"
        raise ValueError(message)
    metadata = content.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    seq, run_id = metadata.get("seq"), metadata.get("run_id")
    return {
        "id": content["checkpoint_id"],
        "chain": content["workflow_name"],
        "seq": seq if type(seq) is int and seq > 0 else 0,
        "time": content.get("timestamp", ""),
        "run": run_id if isinstance(run_id, str) else None,
    }


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

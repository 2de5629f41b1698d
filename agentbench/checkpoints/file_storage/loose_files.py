"""Checkpoints in the pickled format, each as a whole in its file `<id>.json`."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from agentbench._files.private_file import read_private, write_private
from agentbench.checkpoints.file_storage.folder import SUFFIX, UnreadableCheckpointError, file_name
from agentbench.checkpoints.parts.backend import CheckpointRecord
from agentbench.exceptions import WorkflowCheckpointException

if TYPE_CHECKING:
    from agentbench.checkpoints.file_storage.pickled_format import PickledFormat

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

"""Checkpoints in separate files `<id>.json`: whole ones in the pickled format, and older ones.

Earlier versions wrote a manifest of four lines (checksum and fields, head, content, end) for each checkpoint, and the
parts of a chain to one file beside them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from agentbench._files.private_file import read_private, write_private
from agentbench.checkpoints.file_storage.names import SUFFIX, file_name, old_pack_name
from agentbench.checkpoints.file_storage.unreadable import UnreadableCheckpointError
from agentbench.checkpoints.parts.backend import CheckpointRecord
from agentbench.exceptions import WorkflowCheckpointException

if TYPE_CHECKING:
    from agentbench.checkpoints.file_storage.pickled_format import PickledFormat

_LARGEST = 64 << 20
_START = b'{"agentbench_checkpoint":'
_OPEN = _START + b'1,"sum":"'
_SUM_SIZE = 16
_SUM_END = len(_OPEN) + 2 * _SUM_SIZE
_HEAD, _CONTENT = '"head":', '"content":'


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
    head: str
    size: int
    mtime_ns: int
    is_whole: bool


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
        found = {name.removesuffix(SUFFIX) for name in names}
        for known in (self._files, self.problems):
            for gone in known.keys() - found:
                del known[gone]
        for checkpoint_id in found - self._files.keys() if only_names else found:
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

    def record(self, file: LooseFile) -> CheckpointRecord | None:
        """Return the data that lists need about a checkpoint; UnreadableCheckpointError if it is rejected."""
        return self.get(file.checkpoint_id) if file.is_whole else _record_of(file)

    def get(self, checkpoint_id: str) -> CheckpointRecord | None:
        """Return a checkpoint with its content; UnreadableCheckpointError if it is damaged or rejected."""
        try:
            file, content = self._read(checkpoint_id)
        except FileNotFoundError:
            return None
        if not file.is_whole:
            return _record_of(file, content)
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

    def parts(self, workflow_name: str) -> dict[str, str]:
        """Return the parts that an earlier version stored for a chain, by id."""
        try:
            data, _ = read_private(os.path.join(self._folder, old_pack_name(workflow_name)), 1 << 62)
        except FileNotFoundError:
            return {}
        return {line[:28]: line[29:] for line in data.decode(errors="replace").split("\n") if line[28:29] == " "}

    def remove_parts(self, workflow_name: str) -> None:
        """Remove the parts of an earlier version, which no file needs any more."""
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(self._folder, old_pack_name(workflow_name)))

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
        known = status.st_size, status.st_mtime_ns
        try:
            if data.startswith(_START):
                fields, head, content = _split_manifest(data)
                saved, is_whole = fields["saved"], False
            else:
                fields, head, content = _whole_fields(data), "", data.decode()
                saved, is_whole = status.st_mtime_ns, True
            file = LooseFile(
                fields["seq"],
                fields["time"],
                saved,
                fields["id"],
                fields["chain"],
                fields["run"],
                head,
                *known,
                is_whole,
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


def _record_of(file: LooseFile, content: str = "") -> CheckpointRecord:
    return CheckpointRecord(
        file.checkpoint_id, file.workflow_name, file.seq, file.timestamp, file.run_id, file.head, content
    )


def _split_manifest(data: bytes) -> tuple[dict[str, Any], str, str]:
    """Return the fields, the head and the content of a manifest of an earlier version; ValueError if it is damaged."""
    if not data.startswith(_OPEN):
        version = data[len(_START) : len(_START) + 20].partition(b",")[0].decode("ascii", "replace")
        message = f"it is of version {version}, expected 1: a newer version of agentbench may read it"
        raise ValueError(message)
    rest = data[_SUM_END + 2 :]
    if data[len(_OPEN) : _SUM_END] != blake2b(rest, digest_size=_SUM_SIZE).hexdigest().encode():
        message = "its checksum is wrong"
        raise ValueError(message)
    first, head, content, _ = rest.decode().split("\n")
    return json.loads(f"{{{first[:-1]}}}"), head[len(_HEAD) : -1], content[len(_CONTENT) : -1]


def _whole_fields(data: bytes) -> dict[str, Any]:
    """Return the fields of a whole checkpoint, without unpickling; ValueError if it is not a checkpoint."""
    found = json.loads(data)
    if not isinstance(found, dict) or not {"checkpoint_id", "workflow_name", "state"} <= found.keys():
        message = "it is JSON, but not a checkpoint"
        raise ValueError(message)
    metadata = found.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    seq, run_id = metadata.get("seq"), metadata.get("run_id")
    return {
        "id": found["checkpoint_id"],
        "chain": found["workflow_name"],
        "seq": seq if type(seq) is int and seq > 0 else 0,
        "time": found.get("timestamp", ""),
        "run": run_id if isinstance(run_id, str) else None,
    }

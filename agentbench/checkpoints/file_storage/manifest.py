"""The file of one checkpoint: a small JSON document that names its parts, with a sum over all of it.

The head and the content are texts of the codec, stored and returned unchanged. So the document has four lines, and
is never read as a whole: only the first line is, which is this module's own.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

from agentbench._files.private_file import read_private
from agentbench.checkpoints.file_storage.names import SUFFIX
from agentbench.checkpoints.parts.backend import CheckpointRecord
from agentbench.exceptions import WorkflowCheckpointException
from agentbench.serialization.writer import quote

LARGEST_MANIFEST = 64 << 20

_START = b'{"agentbench_checkpoint":'
_OPEN = _START + b'1,"sum":"'
_SUM_SIZE = 16
_FIELDS = ("id", "chain", "seq", "time", "saved", "run")
_HEAD, _CONTENT = '"head":', '"content":'


class ManifestEntry(NamedTuple):
    """What is known of a manifest without its texts: the file, and the fields of its record.

    Attributes:
        saved: Third sort key, after `seq` and `timestamp`: nanoseconds, rising in the folder.
        is_reference: Whether it is a whole checkpoint in the pickled format.
    """

    name: str
    size: int
    mtime_ns: int
    workflow_name: str
    seq: int
    timestamp: str
    saved: int
    run_id: str | None
    is_reference: bool = False

    @property
    def checkpoint_id(self) -> str:
        """The id, which the file is named after."""
        return self.name.removesuffix(SUFFIX)

    @property
    def order(self) -> tuple[int, str, int]:
        """Sort key along a chain."""
        return self[4:7]


@dataclass(frozen=True, slots=True)
class WholeRecord(CheckpointRecord):
    """A record whose content is a whole checkpoint in the pickled format, with no parts elsewhere."""


class UnreadableManifestError(WorkflowCheckpointException):
    """A file that should hold a checkpoint does not, or not one that can be read here.

    Attributes:
        path: The file.
        reason: What is wrong with it, as a clause about "it", and what to do about it.
        is_lost: Whether no program could read anything from it.
        holds: Id of the other checkpoint that it holds, if it holds one.
    """

    def __init__(self, path: str, reason: str, *, is_lost: bool = True, holds: str | None = None) -> None:
        self.path, self.reason, self.is_lost, self.holds = path, reason, is_lost, holds
        checkpoint_id = os.path.basename(path).removesuffix(SUFFIX)
        super().__init__(f"Checkpoint {checkpoint_id!r} cannot be read from {path!r}: {reason}.")


def write_manifest(record: CheckpointRecord, saved: int) -> bytes:
    """Return the content of a manifest."""
    run_id = "null" if record.run_id is None else quote(record.run_id)
    rest = (
        f'"id":{quote(record.checkpoint_id)},"chain":{quote(record.workflow_name)},"seq":{record.seq},'
        f'"time":{quote(record.timestamp)},"run":{run_id},"saved":{saved},\n'
        f'"head":{record.head},\n"content":{record.content}}}\n'
    ).encode()
    return b'%b%b",%b' % (_OPEN, _sum_of(rest), rest)


def read_manifest(path: str) -> tuple[ManifestEntry, CheckpointRecord]:
    """Return what a folder knows of a checkpoint, and its record; in the pickled format all of it is content."""
    try:
        data, status = read_private(path, LARGEST_MANIFEST)
    except FileNotFoundError:
        raise
    except OSError as error:
        reason = f"{error.strerror or error}; expected a plain file that may be read"
        raise UnreadableManifestError(path, reason, is_lost=False) from error
    file_name = os.path.basename(path)
    is_reference = not data.startswith(_START)
    if is_reference:
        fields, head, content = _reference_fields(path, data, status.st_mtime_ns), "", data.decode()
    else:
        fields, head, content = _split(path, data)
    try:
        checkpoint_id, chain, seq, timestamp, saved, run_id = [fields[name] for name in _FIELDS]
    except (KeyError, TypeError) as error:
        raise UnreadableManifestError(path, "fields are missing in its first line") from error
    texts = isinstance(chain, str) and isinstance(timestamp, str) and isinstance(run_id, (str, type(None)))
    if not texts or type(seq) is not int or seq < 0 or type(saved) is not int:
        raise UnreadableManifestError(path, "its fields are of other types than was expected")
    if f"{checkpoint_id}{SUFFIX}" != file_name:
        reason = f"it holds the checkpoint {checkpoint_id!r}; expected a file that is named after its checkpoint"
        raise UnreadableManifestError(path, reason, holds=str(checkpoint_id))
    entry = ManifestEntry(
        file_name, status.st_size, status.st_mtime_ns, chain, seq, timestamp, saved, run_id, is_reference
    )
    return entry, CheckpointRecord(checkpoint_id, chain, seq, timestamp, run_id, head, content)


def _split(path: str, data: bytes) -> tuple[Any, str, str]:
    """Check the sum, then part the lines."""
    body = len(_OPEN) + 2 * _SUM_SIZE + 2
    if not data.startswith(_OPEN):
        version = data[len(_START) : len(_START) + 20].partition(b",")[0].decode("ascii", "replace")
        reason = f"it is of version {version}, expected 1; a newer version of agentbench may read it"
        raise UnreadableManifestError(path, reason, is_lost=False)
    rest = data[body:]
    if data[len(_OPEN) : body - 2] != _sum_of(rest):
        reason = "it was changed or damaged after it was saved (its sum is wrong); restore it from a copy, or delete it"
        raise UnreadableManifestError(path, reason)
    try:
        first, head, content, _ = rest.decode().split("\n")
        return json.loads(f"{{{first[:-1]}}}"), head[len(_HEAD) : -1], content[len(_CONTENT) : -1]
    except (ValueError, RecursionError) as error:
        raise UnreadableManifestError(path, "its lines are not those of a checkpoint") from error


def _reference_fields(path: str, data: bytes, saved: int) -> dict[str, Any]:
    """Find the fields of a whole checkpoint in the pickled format, without unpickling anything."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError, MemoryError) as error:
        reason = "it is no JSON, or cut off; restore it from a copy, or delete it"
        raise UnreadableManifestError(path, reason) from error
    if not isinstance(found, dict) or not {"checkpoint_id", "workflow_name", "state"} <= found.keys():
        raise UnreadableManifestError(path, "it is JSON, but no checkpoint")
    metadata = found.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    seq, run_id = metadata.get("seq"), metadata.get("run_id")
    return {
        "id": found["checkpoint_id"],
        "chain": found["workflow_name"],
        "seq": seq if type(seq) is int and seq > 0 else 0,
        "time": found.get("timestamp", ""),
        "saved": saved,
        "run": run_id if isinstance(run_id, str) else None,
    }


def _sum_of(rest: bytes) -> bytes:
    return blake2b(rest, digest_size=_SUM_SIZE).hexdigest().encode()

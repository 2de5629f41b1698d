"""Converts checkpoints to records and parts, and back: which fields go where."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar
from zlib import crc32

from agentbench.checkpoints import metadata as keys
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.info import CheckpointInfo, checkpoint_order, writers_of
from agentbench.checkpoints.parts.backend import CheckpointRecord
from agentbench.checkpoints.parts.chain_memory import ChainMemory
from agentbench.checkpoints.parts.parts import Fetch, PartTexts
from agentbench.exceptions import WorkflowCheckpointException
from agentbench.serialization.reader import JsonReader
from agentbench.serialization.writer import TAG, JsonWriter, flat_text, quote_ascii

FORMAT: Final = 1
"""The format of heads and contents. A higher number was written by a later version."""

T = TypeVar("T")
Head: TypeAlias = dict[str, Any]
CONTENT = ("messages", "state", "pending_request_info_events")


class _HeadWriter(JsonWriter):
    """Writes heads, whose texts are mostly ids and times."""

    def __init__(self) -> None:
        super().__init__()
        self._methods[str] = quote_ascii


_WRITER = _HeadWriter()
_PLAIN: Final = frozenset({str, int, float, bool, type(None)})
_TEXT: Final = frozenset({str})
_SUMS = ',"sums":"'
"""The end of a head: checksums of the content, and of the head with the keys of its record."""
_SUMS_LENGTH = len(_SUMS) + 16 + len('"}')
_BEGINNING = f'{{"format":{FORMAT},"version":'
_log = logging.getLogger(__name__)


def to_record(checkpoint: WorkflowCheckpoint, memory: ChainMemory) -> tuple[CheckpointRecord, PartTexts]:
    """Cut a checkpoint. If `metadata["sizes"]` exists, the number of bytes is recorded there."""
    metadata, signature = checkpoint.metadata, None
    parts: PartTexts = {}
    content: dict[str, Any] = {
        "messages": checkpoint.messages,
        "state": checkpoint.state,
        "pending_request_info_events": checkpoint.pending_request_info_events,
    }
    if keys.GRAPH_SIGNATURE in metadata:
        metadata = metadata.copy()
        signature, parts = memory.make_part(metadata.pop(keys.GRAPH_SIGNATURE))
        content[keys.GRAPH_SIGNATURE] = signature
    text, cut_off = memory.cut(content)
    parts = {**parts, **cut_off} if parts else cut_off
    size = len(text) + sum(map(len, parts.values()))
    sizes = metadata.get(keys.SIZES)
    if isinstance(sizes, dict):
        sizes = {**sizes, "bytes": size}
        metadata = {**metadata, keys.SIZES: sizes}
        checkpoint.metadata[keys.SIZES] = sizes
    seq, timestamp = checkpoint_order(checkpoint)
    run_id = metadata.get(keys.RUN_ID)
    write, previous = _WRITER.write, checkpoint.previous_checkpoint_id
    # Written by hand, because encoding the same dictionary would take twice as long, at each superstep.
    head = (
        f'{_BEGINNING}{quote_ascii(checkpoint.version)},"timestamp":{quote_ascii(checkpoint.timestamp)},'
        f'"graph":{quote_ascii(checkpoint.graph_signature_hash)},'
        f'"previous":{"null" if previous is None else quote_ascii(previous)},'
        f'"iteration":{write(checkpoint.iteration_count)},"messages":{sum(map(len, checkpoint.messages.values()))},'
        f'"requests":{len(checkpoint.pending_request_info_events)},"bytes":{size},'
        f'"signature":{"null" if signature is None else quote_ascii(signature)},"metadata":{_metadata_text(metadata)}'
    )
    run_id = run_id if isinstance(run_id, str) else None
    checkpoint_id, chain, content_sum = checkpoint.checkpoint_id, checkpoint.workflow_name, _sum_of(text)
    head_sum = _sum_of(f"{head}{content_sum}\0{checkpoint_id}\0{chain}\0{seq}\0{timestamp}\0{run_id}")
    head = f'{head}{_SUMS}{content_sum}{head_sum}"}}'
    return CheckpointRecord(checkpoint_id, chain, seq, timestamp, run_id, head, text), parts


def _metadata_text(metadata: dict[str, Any]) -> str:
    """Write metadata, by the C encoder if there are only plain values, as there usually are."""
    if TAG not in metadata and _TEXT.issuperset(map(type, metadata)) and all(map(_is_plain, metadata.values())):
        return flat_text(metadata, sys.maxsize) or _WRITER.write(metadata)
    return _WRITER.write(metadata)


def _is_plain(value: Any) -> bool:
    cls = type(value)
    if cls is list:
        return _TEXT.issuperset(map(type, value))
    if cls is dict:
        return TAG not in value and _TEXT.issuperset(map(type, value)) and _PLAIN.issuperset(map(type, value.values()))
    return cls in _PLAIN


def to_info(record: CheckpointRecord) -> CheckpointInfo:
    """Describe a record; its content is not needed."""
    head = read_head(record)
    metadata = head["metadata"]
    return CheckpointInfo(
        record.workflow_name,
        record.checkpoint_id,
        head["iteration"],
        head["timestamp"],
        previous_checkpoint_id=head["previous"],
        seq=record.seq,
        source=metadata.get(keys.SOURCE, "step"),
        run_id=record.run_id,
        graph_signature_hash=head["graph"],
        n_messages=head["messages"],
        n_requests=head["requests"],
        size_bytes=head["bytes"],
        writers=writers_of(metadata),
        forked_from=metadata.get(keys.FORKED_FROM),
        metadata=metadata,
    )


def to_checkpoint(record: CheckpointRecord, memory: ChainMemory, fetch: Fetch) -> WorkflowCheckpoint:
    """Rebuild a checkpoint."""
    return WorkflowCheckpoint(
        record.workflow_name,
        checkpoint_id=record.checkpoint_id,
        metadata=read_metadata(record, partial(memory.join_part, fetch=fetch)),
        **plain_fields(record),
        **content_of(record, memory, fetch),
    )


def plain_fields(record: CheckpointRecord) -> dict[str, Any]:
    """Read the fields of a checkpoint that are in its head, except for the metadata."""
    head = read_head(record)
    return {
        "graph_signature_hash": head["graph"],
        "previous_checkpoint_id": head["previous"],
        "timestamp": head["timestamp"],
        "iteration_count": head["iteration"],
        "version": head["version"],
    }


def read_metadata(record: CheckpointRecord, read_part: Callable[[str], Any]) -> dict[str, Any]:
    """Read the metadata of a checkpoint; `read_part` reads the graph signature by its id."""
    head = read_head(record)
    metadata: dict[str, Any] = head["metadata"]
    if head["signature"] is not None:
        with _naming(record):
            metadata[keys.GRAPH_SIGNATURE] = read_part(head["signature"])
    return metadata


def looks_whole(record: CheckpointRecord) -> bool:
    """Return whether a head is intact, judged without reading all of it; log a warning if not."""
    head = record.head
    if not head or (head.startswith(_BEGINNING) and head.endswith("}") and _has_right_sum(record)):
        return True
    return bool(readable(read_head, [record]))


def readable(read: Callable[[CheckpointRecord], T], records: Iterable[CheckpointRecord]) -> list[T]:
    """Read records one by one, leaving out unreadable ones with a logged warning."""

    def read_or_warn(record: CheckpointRecord) -> T | None:
        try:
            return read(record)
        except WorkflowCheckpointException as error:
            _log.warning("Left out of a list: %s", error)
            return None

    return [result for record in records if (result := read_or_warn(record)) is not None]


def content_of(record: CheckpointRecord, memory: ChainMemory, fetch: Fetch) -> dict[str, Any]:
    """Read the data that the head of a record omits."""
    if _sums(record)[:8] != _sum_of(record.content):
        raise damage_error(record.checkpoint_id, _WRONG_SUM)
    with _naming(record):
        content = memory.join(record.content, fetch)
    if not isinstance(content, dict) or not all(isinstance(content.get(name), dict) for name in CONTENT):
        raise damage_error(record.checkpoint_id, f"Its content lacks one of {', '.join(CONTENT)}.")
    return {name: content[name] for name in CONTENT}


@contextmanager
def _naming(record: CheckpointRecord) -> Iterator[None]:
    """Name the checkpoint in the error about an unreadable part."""
    try:
        yield
    except WorkflowCheckpointException as error:
        raise damage_error(record.checkpoint_id, str(error), error) from error


def read_head(record: CheckpointRecord) -> Head:
    """Read the head of a record."""
    try:
        # User metadata may contain any value; usually it is plain, and JSON alone is several times as fast.
        head = JsonReader().read(record.head) if TAG in record.head else json.loads(record.head)
    except (ValueError, RecursionError, WorkflowCheckpointException) as error:
        raise damage_error(record.checkpoint_id, f"Its head is not JSON: {str(error).rstrip('.')}.", error) from error
    if not isinstance(head, dict) or type(head.get("format")) is not int:
        raise damage_error(record.checkpoint_id, "Its head is not one that this library wrote.")
    if head["format"] > FORMAT:
        reason = f"It has format {head['format']}, this version reads up to {FORMAT}: a newer version wrote it."
        raise damage_error(record.checkpoint_id, reason)
    unusable = [name for name, kinds in _HEAD_TYPES.items() if name not in head or type(head[name]) not in kinds]
    if unusable:
        raise damage_error(record.checkpoint_id, f"Its head has no usable {', '.join(unusable)}.")
    if not _has_right_sum(record):
        raise damage_error(record.checkpoint_id, _WRONG_SUM)
    return head


def _sums(record: CheckpointRecord) -> str:
    end = record.head[-_SUMS_LENGTH:]
    return end[len(_SUMS) : -2] if end.startswith(_SUMS) else ""


def _has_right_sum(record: CheckpointRecord) -> bool:
    sums = _sums(record)
    names = f"{record.checkpoint_id}\0{record.workflow_name}\0{record.seq}\0{record.timestamp}\0{record.run_id}"
    return sums[8:] == _sum_of(f"{record.head[:-_SUMS_LENGTH]}{sums[:8]}\0{names}")


def _sum_of(text: str) -> str:
    return f"{crc32(text.encode('utf-8', 'surrogatepass')):08x}"


def damage_error(checkpoint_id: str, reason: str, error: BaseException | None = None) -> WorkflowCheckpointException:
    """Return the error for a checkpoint that exists but cannot be read."""
    return WorkflowCheckpointException(f"Checkpoint {checkpoint_id!r} cannot be read. {reason}", error)


_WRONG_SUM = "It was damaged after it was saved: its checksum is wrong. Delete it, or restore it from a copy."
_HEAD_TYPES: Final[dict[str, tuple[type, ...]]] = {
    **dict.fromkeys(("version", "timestamp", "graph"), (str,)),
    **dict.fromkeys(("iteration", "messages", "requests", "bytes"), (int,)),
    **dict.fromkeys(("previous", "signature"), (str, type(None))),
    "metadata": (dict,),
}

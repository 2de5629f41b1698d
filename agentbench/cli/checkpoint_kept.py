"""Checkpoints with instances of classes that are not known here: kept as they were stored, to be written so again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from copy import copy
from operator import attrgetter
from typing import Any

from agentbench.checkpoints.checkpoint import CheckpointID, WorkflowCheckpoint
from agentbench.checkpoints.parts.content_storage import ContentAddressedStorage
from agentbench.checkpoints.parts.parts import PartTexts, _all_parts, _PartReader
from agentbench.checkpoints.parts.records import CONTENT, plain_fields, read_metadata
from agentbench.checkpoints.storage import CheckpointStorage
from agentbench.cli.checkpoint_access import unknown_class
from agentbench.exceptions import CheckpointNotFoundError, UnknownStoredTypeError, WorkflowCheckpointException
from agentbench.serialization.class_types import CLASS_DECODERS
from agentbench.serialization.registry import StateType, store_as, type_of_tag
from agentbench.serialization.writer import JsonWriter

_OF_CLASSES = (*CLASS_DECODERS, "registered", "type")
_OF_ENGINE = ("workflow_message", "workflow_event")
"""What these hold may be of an unknown class, and not what they expect."""


class Kept:
    """What was stored of a value that cannot be made here; equal to what was stored alike.

    Args:
        content: The inner value of its tag.

    Attributes:
        content: As given.
    """

    def __init__(self, content: Any) -> None:
        self.content = content

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and hash(self) == hash(other) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    @functools.cached_property
    def _text(self) -> str:
        return JsonWriter().write(self.content)


async def load_kept(storage: CheckpointStorage, checkpoint_id: CheckpointID) -> WorkflowCheckpoint:
    """Load a checkpoint to be written elsewhere: its classes need not be known.

    Raises:
        CheckpointNotFoundError: The id is unknown.
        WorkflowCheckpointException: It cannot be read for another reason.
    """
    try:
        return await storage.load(checkpoint_id)
    except WorkflowCheckpointException as error:
        if unknown_class(error) is None or not isinstance(storage, ContentAddressedStorage):
            raise
    failure = f"Checkpoint {checkpoint_id!r} was not loaded from"
    return await storage._run(failure, _read, storage, checkpoint_id)  # noqa: SLF001 - the storage's way to its backend


def _read(storage: ContentAddressedStorage, checkpoint_id: CheckpointID) -> WorkflowCheckpoint:
    backend = storage._backend  # noqa: SLF001 - as above
    record = backend.get(checkpoint_id)
    if record is None:  # removed meanwhile
        raise CheckpointNotFoundError(checkpoint_id)
    fetch = functools.partial(backend.parts, record.workflow_name)
    content = _KeepingReader(_all_parts(record.content, fetch)).read(record.content)
    return WorkflowCheckpoint(
        record.workflow_name,
        checkpoint_id=checkpoint_id,
        metadata=read_metadata(record, fetch),
        **plain_fields(record),
        **{name: content[name] for name in CONTENT},
    )


class _KeepingReader(_PartReader):
    """Reads what it can, and keeps the rest."""

    def __init__(self, texts: PartTexts) -> None:
        super().__init__(texts)
        for tag in _OF_CLASSES:
            self.decoders[tag] = functools.partial(_decoded_or_kept, tag, self.decoders[tag], UnknownStoredTypeError)
        for tag in _OF_ENGINE:
            kind = type_of_tag(tag)
            if kind is not None:
                self.decoders[tag] = functools.partial(_decoded_or_kept, tag, kind.decode, Exception)


def _decoded_or_kept(tag: str, decode: Callable[[Any], Any], unknown: type[Exception], found: Any) -> Any:
    try:
        return decode(copy(found))  # which may take out of it what it has read
    except unknown:
        return _kept_under(tag)(found)


@functools.cache
def _kept_under(tag: str) -> type[Kept]:
    kind = type("Kept", (Kept,), {})
    store_as(StateType(kind, tag, attrgetter("content"), kind))
    return kind

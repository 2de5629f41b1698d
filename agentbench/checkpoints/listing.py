"""The checkpoints of one chain as a list: each is read when somebody looks into it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

from agentbench.checkpoints.checkpoint import CheckpointID, WorkflowCheckpoint
from agentbench.checkpoints.parts.backend import CheckpointRecord, StorageBackend
from agentbench.checkpoints.parts.records import CONTENT, plain_fields, read_metadata
from agentbench.exceptions import CheckpointNotFoundError, WorkflowCheckpointException

T = TypeVar("T")
_log = logging.getLogger(__name__)


class Listing:
    """What the checkpoints of one list are read from, by whatever thread asks.

    Args:
        chain: The chain that was listed.
        backend: Where it is.
        load: Reads one checkpoint whole; to be called through `ask`.
        ask: `ask(failure, function, *args)` calls a function where the backend may be used, and waits for it; an error
            becomes one that begins with `failure`.
    """

    __slots__ = ("_ask", "_backend", "_chain", "_heads", "_load")

    def __init__(
        self,
        chain: str,
        backend: StorageBackend,
        *,
        load: Callable[[CheckpointID], WorkflowCheckpoint],
        ask: Callable[..., Any],
    ) -> None:
        self._chain, self._backend = chain, backend
        self._load, self._ask = load, ask
        #: Of all checkpoints, once one was asked for that the list came without.
        self._heads: dict[CheckpointID, CheckpointRecord] | None = None

    def checkpoint(self, record: CheckpointRecord) -> WorkflowCheckpoint:
        """A checkpoint that is read when somebody looks into it."""
        known = {"workflow_name": record.workflow_name, "checkpoint_id": record.checkpoint_id}
        return WorkflowCheckpoint.read_later(known, partial(self._read, record))

    def _read(self, record: CheckpointRecord, name: str) -> Mapping[str, Any]:
        failure = f"Checkpoint {record.checkpoint_id!r} was not loaded from"
        if name in CONTENT:
            found = self._ask(failure, self._load, record.checkpoint_id)
            return {each: getattr(found, each) for each in CONTENT}
        if not record.head:
            record = self._with_head(record.checkpoint_id, failure)
        fields = plain_fields(record)
        if name == "metadata":
            parts = partial(self._ask, failure, self._backend.parts, self._chain)
            return fields | {"metadata": read_metadata(record, parts)}
        return fields

    def _with_head(self, checkpoint_id: CheckpointID, failure: str) -> CheckpointRecord:
        if self._heads is None:
            heads: list[CheckpointRecord] = self._ask(failure, self._backend.heads, self._chain)
            self._heads = {each.checkpoint_id: each for each in heads}
        if checkpoint_id not in self._heads:
            raise CheckpointNotFoundError(checkpoint_id)
        return self._heads[checkpoint_id]


def readable(read: Callable[[CheckpointRecord], T], records: Iterable[CheckpointRecord]) -> list[T]:
    """Read records one by one; what cannot be read is left out, with a warning in the log."""
    return [found for record in records if (found := _or_warn(read, record)) is not None]


def _or_warn(read: Callable[[CheckpointRecord], T], record: CheckpointRecord) -> T | None:
    try:
        return read(record)
    except WorkflowCheckpointException as error:
        _log.warning("Left out of a list: %s", error)
        return None

"""The interface of a medium that stores checkpoints after they have been cut into texts.

A backend does not know workflows, codecs or event loops: it stores and finds records and parts, which are texts.
`ContentAddressedStorage` builds a checkpoint storage from it. All methods block; the storage calls them one at a time,
mostly on its own thread.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class CheckpointRecord:
    """A checkpoint in stored form, sorted by `seq`, then `timestamp`; `head` is JSON of the data that lists display."""

    checkpoint_id: str
    workflow_name: str
    seq: int
    timestamp: str
    run_id: str | None
    head: str
    content: str = ""


class StalePartsError(Exception):
    """Parts of the chain were removed since the writer last looked. The writer starts over; no storage raises this."""


class StorageBackend(Protocol):
    """Stores records and, per chain, parts. Ids of parts are 28 characters of A-Z, a-z, 0-9, `-` and `_`."""

    @property
    def is_local(self) -> bool:
        """Whether a small `put` only writes local files: no server, and usually no waiting for the disk."""

    def generation(self, workflow_name: str) -> int:
        """Return a number that changes whenever parts of the chain may have been removed, by any process."""

    def put(
        self,
        record: CheckpointRecord,
        parts: Mapping[str, str],
        *,
        generation: int,
        expected_seq: int | None = None,
        patient: bool = True,
    ) -> None:
        """Store a record and its new parts, all or nothing, visible to others in one step.

        Raises BlockingIOError if others are writing and it is not `patient`, StalePartsError in another `generation`,
        WorkflowBusyError if the newest record does not have the `expected_seq` (0: there is none).
        """

    def put_chain(self, records: Sequence[CheckpointRecord], parts: Mapping[str, str], *, generation: int) -> None:
        """Store the records of a new chain with their parts, all or nothing, visible to others in one step.

        Raises StalePartsError in another `generation`, WorkflowBusyError if the chain has records, and another error if
        a record with one of the ids exists.
        """

    def get(self, checkpoint_id: str) -> CheckpointRecord | None:
        """Return a record with its content."""

    def latest(self, workflow_name: str) -> CheckpointRecord | None:
        """Return the last record of a chain with its content, by one indexed read."""

    def heads(
        self, workflow_name: str, *, run_id: str | None = None, before: str | None = None, limit: int | None = None
    ) -> list[CheckpointRecord]:
        """List readable records of a chain without content, oldest first; an unknown `before` is an error."""

    def outlines(self, workflow_name: str) -> list[CheckpointRecord]:
        """List the records of a chain like `heads`, but with empty texts if heads are expensive to read."""

    def ids(self, workflow_name: str) -> list[str]:
        """List the ids of a chain in order, oldest first."""

    def parts(self, workflow_name: str, ids: Collection[str]) -> dict[str, str]:
        """Return parts of a chain by id; missing ones are left out."""

    def chains(self, prefix: str = "") -> list[str]:
        """List the names of all chains that hold a record, sorted by code point."""

    def delete(self, workflow_name: str, ids: Sequence[str], *, sweep: bool) -> int:
        """Remove records of a chain and return their number; `sweep` also removes unneeded parts: a new generation."""

    def close(self) -> None:
        """Close files and connections; a later call opens them again."""

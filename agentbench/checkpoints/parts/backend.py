"""What a place for checkpoints must be able to do, once checkpoints have been cut into texts.

A backend knows nothing of workflows, codecs and event loops: it stores records and parts, which are texts, and finds
them again. `ContentAddressedStorage` builds a checkpoint storage from it. All methods block; the storage calls them one
at a time, most of them on a thread of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class CheckpointRecord:
    """A checkpoint as it is stored, sorted by `seq`, then `timestamp`; `head` is JSON of what lists show."""

    checkpoint_id: str
    workflow_name: str
    seq: int
    timestamp: str
    run_id: str | None
    head: str
    content: str = ""


class StalePartsError(Exception):
    """Parts of the chain were removed since the writer last looked; it starts afresh, and no storage raises this."""


class StorageBackend(Protocol):
    """Keeps records and, per chain, parts. Ids of parts are 28 characters of A-Z, a-z, 0-9, `-` and `_`."""

    @property
    def is_local(self) -> bool:
        """Whether a small `put` only writes to files of this machine: asks no server, waits for no disk as a rule."""

    def generation(self, workflow_name: str) -> int:
        """Return a number that changes whenever parts of the chain may have been removed, by whomever."""

    def put(
        self,
        record: CheckpointRecord,
        parts: Mapping[str, str],
        *,
        generation: int,
        expected_seq: int | None = None,
        patient: bool = True,
    ) -> None:
        """Keep a record and the new parts that it refers to, all or nothing, visible to others in one step.

        Raises BlockingIOError where others write and it is not `patient`, StalePartsError in another `generation`,
        WorkflowBusyError where the newest record has not the `expected_seq` (0: there is none).
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
        """List the records of a chain as `heads` does; where heads are dear to read, without those: empty texts."""

    def ids(self, workflow_name: str) -> list[str]:
        """List the ids of a chain in order, oldest first."""

    def parts(self, workflow_name: str, ids: Collection[str]) -> dict[str, str]:
        """Return parts of a chain by id; those that are not there are left out."""

    def chains(self, prefix: str = "") -> list[str]:
        """List the names of all chains that hold a record, sorted by code point."""

    def delete(self, workflow_name: str, ids: Sequence[str], *, sweep: bool) -> int:
        """Remove records of a chain, return how many were there; `sweep` removes unneeded parts: a new generation."""

    def close(self) -> None:
        """Let go of files and connections; a later call opens them again."""

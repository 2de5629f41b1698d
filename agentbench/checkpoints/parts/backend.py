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
    """A checkpoint as it is stored; ids and names may be any text.

    Attributes:
        seq: First sort key along a chain, 0 or more.
        timestamp: Second sort key, in a form that compares as text. What is still equal stays in the order of saving.
        head: JSON on one line: all that a list shows, the metadata included.
        content: JSON on one line with references to parts: what the head leaves out. Empty where only heads are
            listed.
    """

    checkpoint_id: str
    workflow_name: str
    seq: int
    timestamp: str
    run_id: str | None
    head: str
    content: str = ""


class StalePartsError(Exception):
    """Parts of the chain were removed since the writer last looked, perhaps some that it relies on: it starts afresh.

    Never leaves a storage.
    """


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

        Parts that are there already are left alone: a part of the same id has the same text. A record of the same id is
        replaced, also one of another chain.

        Args:
            record: With content.
            parts: Texts on one line each, by id.
            generation: What `generation` returned when the writer last started afresh.
            expected_seq: Only if the newest record of the chain has this `seq` (0: there is none).
            patient: Wait for others that are writing. Only local backends get `False`.

        Raises:
            BlockingIOError: Others are writing, and it was not to wait for them; nothing was changed.
            StalePartsError: The chain has another generation by now.
            WorkflowBusyError: The chain ends elsewhere (see `checkpoints.storage.require_head`).
        """

    def get(self, checkpoint_id: str) -> CheckpointRecord | None:
        """Return a record with its content."""

    def latest(self, workflow_name: str) -> CheckpointRecord | None:
        """Return the last record of a chain with its content, by one indexed read."""

    def heads(
        self, workflow_name: str, *, run_id: str | None = None, before: str | None = None, limit: int | None = None
    ) -> list[CheckpointRecord]:
        """List records of a chain without content, in order, oldest first; those that cannot be read are left out.

        Only those of a run; only those that come before the record of an id; only the last so many, 0 or more.

        Raises:
            CheckpointNotFoundError: The chain holds no record `before`.
        """

    def outlines(self, workflow_name: str) -> list[CheckpointRecord]:
        """List the records of a chain as `heads` does; where heads are dear to read, without those: empty texts."""

    def ids(self, workflow_name: str) -> list[str]:
        """List the ids of a chain in order, oldest first."""

    def parts(self, workflow_name: str, ids: Collection[str]) -> dict[str, str]:
        """Return parts of a chain by id; those that are not there are left out."""

    def chains(self, prefix: str = "") -> list[str]:
        """List the names of all chains that hold a record, sorted by code point."""

    def delete(self, workflow_name: str, ids: Sequence[str], *, sweep: bool) -> int:
        """Remove records of a chain, and return how many were there; unknown ids are passed over.

        With `sweep` also all parts that no record of the chain needs any more (`parts.live_parts`); that changes the
        generation.
        """

    def close(self) -> None:
        """Let go of files and connections; a later call opens them again."""

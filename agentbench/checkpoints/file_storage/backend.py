"""Checkpoints in a folder: one journal per chain, and separate files in other formats."""

from __future__ import annotations

import logging
import os
import time
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

from agentbench._files.private_file import sync_folder
from agentbench.checkpoints.file_storage.folder import (
    JOURNAL_SUFFIX,
    SUFFIX,
    CheckpointFolder,
    UnreadableCheckpointError,
    file_name,
    journal_name,
)
from agentbench.checkpoints.file_storage.journal import Journal, JournalEntry, new_generation
from agentbench.checkpoints.file_storage.loose_files import LooseFile, LooseFiles, WholeRecord
from agentbench.checkpoints.parts.backend import CheckpointRecord, StalePartsError
from agentbench.checkpoints.parts.joining import live_parts
from agentbench.checkpoints.storage import require_head
from agentbench.exceptions import CheckpointNotFoundError

if TYPE_CHECKING:
    from agentbench.checkpoints.file_storage.pickled_format import PickledFormat

Entry: TypeAlias = JournalEntry | LooseFile

_log = logging.getLogger(__name__)

_LOCK = ".agentbench.lock"
_OPEN_JOURNALS = 64
_SETTLED_NS = 1_000_000_000
"""A folder that was changed more recently than this may change again without a new time stamp."""


class FileBackend:
    """Stores records in files of a folder; any number of processes of one machine may use it at the same time."""

    def __init__(self, folder: str, *, fsync: bool = False, pickled: PickledFormat | None = None) -> None:
        self._folder = CheckpointFolder(folder, _LOCK, fsync=fsync)
        self._fsync = fsync
        self._pickled = pickled
        self._begin()

    def _begin(self) -> None:
        self._loose = LooseFiles(self._folder.path, self._pickled)
        self._journals: dict[str, Journal] = {}
        self._holders: dict[str, Journal] = {}
        self._open: OrderedDict[str, Journal] = OrderedDict()
        self._drawn: dict[str, int] = {}
        self._has_followed = False
        self._stamp = 0
        self._is_settled = False
        self._names: list[str] = []
        self._loose_names: list[str] = []

    def __repr__(self) -> str:
        return f"FileBackend({self._folder.path!r})"

    @property
    def is_local(self) -> bool:
        """Whether a small `put` does not wait for the disk."""
        return not self._fsync

    # ---- writing ---------------------------------------------------------------------------------

    def generation(self, workflow_name: str) -> int:
        """Return the generation of the chain's journal; for a chain without one, the generation it will get.

        It is 0 if the first line is damaged, which the next `put` repairs.
        """
        self._folder.require()
        journal = self._journal(workflow_name)
        journal.follow()
        if not journal.exists:
            return self._drawn.setdefault(workflow_name, new_generation())
        return journal.generation or 0

    def put(
        self,
        record: CheckpointRecord,
        parts: Mapping[str, str],
        *,
        generation: int,
        expected_seq: int | None = None,
        patient: bool = True,
    ) -> None:
        """See `StorageBackend.put`."""
        file_name(record.checkpoint_id)  # raises for ids that cannot be file names
        chain = record.workflow_name
        if not self._has_followed:  # an id that is saved again leaves its previous chain
            if not patient:  # reading all chains may take long
                raise BlockingIOError
            self._follow()
        with self._folder.writing(patient=patient):
            journal = self._journal(chain)
            journal.follow()
            if not isinstance(record, WholeRecord) and journal.exists:
                _require_generation(journal, generation)
            if expected_seq is not None:
                entries = self._entries(chain, is_locked=True)
                require_head(chain, entries[-1].seq if entries else 0, expected_seq)
            if isinstance(record, WholeRecord):
                self._loose.write(record, fsync=self._fsync)
                if record.checkpoint_id in self._holders:
                    self._remove_from(self._holders[record.checkpoint_id], record.checkpoint_id)
            else:
                if not journal.exists:
                    if self._drawn.pop(chain, None) != generation:
                        raise StalePartsError
                    self._create(journal, generation)
                other = self._holders.get(record.checkpoint_id)
                journal.append(record, parts)
                if other is not None and other is not journal:
                    self._remove_from(other, record.checkpoint_id)
                    self._holders[record.checkpoint_id] = journal

    def put_chain(self, records: Sequence[CheckpointRecord], parts: Mapping[str, str], *, generation: int) -> None:
        """See `StorageBackend.put_chain`: a complete file, renamed into place."""
        chain = records[0].workflow_name
        for record in records:
            file_name(record.checkpoint_id)
        with self._folder.writing():
            self._follow()
            entries = self._entries(chain, is_locked=True)
            require_head(chain, entries[-1].seq if entries else 0, 0)
            journal = self._journal(chain)
            if journal.exists:
                _require_generation(journal, generation)
            elif self._drawn.pop(chain, None) != generation:
                raise StalePartsError
            for record in records:
                if record.checkpoint_id in self._holders or self._loose.get(record.checkpoint_id) is not None:
                    message = f"there is a checkpoint {record.checkpoint_id!r} already"
                    raise FileExistsError(message)
            journal.rewrite(generation, added=records, parts=parts)

    def _create(self, journal: Journal, generation: int) -> None:
        """Create a chain's file, and take note of it without listing the folder again."""
        is_listed = os.stat(self._folder.path).st_mtime_ns == self._stamp
        journal.rewrite(generation)
        if is_listed:
            self._stamp, self._is_settled = os.stat(self._folder.path).st_mtime_ns, False
            self._names.append(os.path.basename(journal.path))

    def _remove_from(self, journal: Journal, checkpoint_id: str) -> None:
        journal.follow()
        journal.remove([checkpoint_id])

    def delete(self, workflow_name: str, ids: Sequence[str], *, sweep: bool) -> int:
        """See `StorageBackend.delete`."""
        with self._folder.writing():
            journal = self._journal(workflow_name)
            journal.follow()
            removed = journal.remove(ids) + sum([self._loose.remove(workflow_name, each) for each in ids])
            if sweep:
                self._sweep(journal)
            if self._fsync:
                sync_folder(self._folder.path)
            return removed

    def discard(self, checkpoint_id: str) -> bool:
        """Remove an unreadable checkpoint, and return whether there was one."""
        with self._folder.writing():
            self._follow()
            journal = self._holders.get(checkpoint_id)
            return self._loose.discard(checkpoint_id) if journal is None else journal.remove([checkpoint_id]) > 0

    def _sweep(self, journal: Journal) -> None:
        """Rewrite the journal with the parts that its checkpoints need; remove it if it is empty."""
        contents = []
        for entry in list(journal.entries):
            with suppress(UnreadableCheckpointError):
                record = journal.get(entry.checkpoint_id)
                contents.append("" if record is None else record.content)
        if journal.entries or journal.problems:
            journal.rewrite(new_generation(), live_parts(contents, journal.parts))
        else:
            journal.unlink()
        self._drawn.pop(journal.workflow_name, None)

    # ---- reading ---------------------------------------------------------------------------------

    def get(self, checkpoint_id: str) -> CheckpointRecord | None:
        """See `StorageBackend.get`."""
        file_name(checkpoint_id)
        for refresh in (self._follow_holder, self._follow):
            refresh(checkpoint_id)
            if checkpoint_id in self._holders:
                return self._holders[checkpoint_id].get(checkpoint_id)
        return self._loose.get(checkpoint_id)

    def latest(self, workflow_name: str) -> CheckpointRecord | None:
        """See `StorageBackend.latest`; UnreadableCheckpointError if the newest is damaged, not the one before it."""
        journal, record = self._journal(workflow_name), None
        while record is None and (entries := self._entries(workflow_name)):
            holder = self._loose if isinstance(entries[-1], LooseFile) else journal
            record = holder.get(entries[-1].checkpoint_id)
        damage = journal.newest_damage()
        if damage is not None and not isinstance(record, WholeRecord):
            raise damage
        _warn([*journal.problems.values(), *self._loose.problems.values()])
        return record

    def heads(
        self, workflow_name: str, *, run_id: str | None = None, before: str | None = None, limit: int | None = None
    ) -> list[CheckpointRecord]:
        """See `StorageBackend.heads`. Unreadable checkpoints are left out with a logged warning."""
        entries = self._entries(workflow_name)
        if before is not None:
            places = [place for place, entry in enumerate(entries) if entry.checkpoint_id == before]
            if not places:
                raise CheckpointNotFoundError(before)
            entries = entries[: places[0]]
        if run_id is not None:
            entries = [entry for entry in entries if entry.run_id == run_id]
        if limit is not None:
            entries = entries[max(0, len(entries) - limit) :]
        journal = self._journal(workflow_name)
        in_journal = journal.records([entry for entry in entries if isinstance(entry, JournalEntry)])
        by_id = {record.checkpoint_id: record for record in in_journal}
        records, problems = [], [*journal.problems.values(), *self._loose.problems.values()]
        for entry in entries:
            try:
                record = by_id.get(entry.checkpoint_id) or self._loose.get(entry.checkpoint_id)
            except UnreadableCheckpointError as error:
                problems.append(error)
                continue
            if record is not None:
                records.append(record)
        _warn(problems)
        return records

    def outlines(self, workflow_name: str) -> list[CheckpointRecord]:
        """See `StorageBackend.outlines`."""
        return self.heads(workflow_name)

    def ids(self, workflow_name: str) -> list[str]:
        """See `StorageBackend.ids`."""
        return [entry.checkpoint_id for entry in self._entries(workflow_name, only_names=True)]

    def parts(self, workflow_name: str, ids: Collection[str]) -> dict[str, str]:
        """See `StorageBackend.parts`."""
        return self._journal(workflow_name).parts(ids)

    def chains(self, prefix: str = "") -> list[str]:
        """See `StorageBackend.chains`."""
        self._follow()
        names = {name for name, journal in self._journals.items() if journal.entries} | self._loose.chains()
        return sorted(name for name in names if name.startswith(prefix))

    def close(self) -> None:
        """See `StorageBackend.close`."""
        for journal in self._journals.values():
            journal.close()
        self._begin()
        self._folder.lock.close()

    def _entries(self, workflow_name: str, *, only_names: bool = False, is_locked: bool = False) -> Sequence[Entry]:
        """Return the entries of a chain, in order."""
        self._scan(only_names=only_names, is_locked=is_locked)
        journal = self._journal(workflow_name)
        journal.follow()
        loose = self._loose.chain(workflow_name)
        if not loose:
            return journal.entries
        both: list[Entry] = [*loose, *journal.entries]
        by_id = {entry.checkpoint_id: entry for entry in both}
        # A stable sort: checkpoints that were saved earlier stay first.
        return sorted(by_id.values(), key=lambda entry: (entry.seq, entry.timestamp))

    def _scan(self, *, only_names: bool = False, is_locked: bool = False) -> None:
        """Look for files, and read the separate ones that are new or have changed.

        While the folder `is_locked`, only programs that ignore the lock may add a file without a new time stamp.
        """
        try:
            stamp = os.stat(self._folder.path).st_mtime_ns
            if stamp != self._stamp or not (self._is_settled or is_locked):
                self._names = os.listdir(self._folder.path)
                self._loose_names = [name for name in self._names if name.endswith(SUFFIX)]
                self._stamp, self._is_settled = stamp, time.time_ns() - stamp > _SETTLED_NS
        except OSError:
            self._folder.require()
            raise
        self._loose.scan(self._loose_names, only_names=only_names)

    def _follow_holder(self, checkpoint_id: str) -> None:
        if checkpoint_id in self._holders:
            self._journal(self._holders[checkpoint_id].workflow_name).follow()

    def _follow(self, _: object = None) -> None:
        """Read the changes by other processes to any chain."""
        self._scan()
        file_names = {os.path.basename(journal.path) for journal in self._journals.values()}
        for name in self._names:
            if name.endswith(JOURNAL_SUFFIX) and name not in file_names:
                workflow_name = Journal.read_name(self._folder.path_of(name))
                if workflow_name is not None and journal_name(workflow_name) == name:
                    self._journal(workflow_name)
                else:
                    message = "Left out: %r, whose first line has no chain name. Restore it, or list its chain by name."
                    _log.warning(message, self._folder.path_of(name))
        for workflow_name in self._journals:
            self._follow_or_warn(workflow_name)
        self._has_followed = True

    def _follow_or_warn(self, workflow_name: str) -> None:
        try:
            self._journal(workflow_name).follow()
        except (OSError, UnreadableCheckpointError) as error:  # does not concern the other chains
            _log.warning("Left out: chain %r, because it cannot be read: %s", workflow_name, error)

    def _journal(self, workflow_name: str) -> Journal:
        journal = self._journals.get(workflow_name)
        if journal is None:
            path = self._folder.path_of(journal_name(workflow_name))
            journal = self._journals[workflow_name] = Journal(path, workflow_name, self._holders, fsync=self._fsync)
        self._open[workflow_name] = journal
        self._open.move_to_end(workflow_name)
        if len(self._open) > _OPEN_JOURNALS:
            self._open.popitem(last=False)[1].release()
        return journal


def _require_generation(journal: Journal, generation: int) -> None:
    if journal.generation != generation:
        if journal.generation is None:  # its first line is damaged
            journal.rewrite(new_generation())
        raise StalePartsError


def _warn(problems: Sequence[UnreadableCheckpointError]) -> None:
    if problems:
        named = " ".join(str(problem) for problem in problems[:3])
        more = f" And {len(problems) - 3} more." if len(problems) > 3 else ""
        _log.warning("Left out of a list: %s%s", named, more)

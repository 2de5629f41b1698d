"""Checkpoints in a folder: a manifest each, a pack of parts per chain, a log of what there is."""

from __future__ import annotations

import logging
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from agentbench._files.private_file import sync_folder, write_private
from agentbench.checkpoints.file_storage.folder import CheckpointFolder
from agentbench.checkpoints.file_storage.index import FolderIndex
from agentbench.checkpoints.file_storage.manifest import (
    LARGEST_MANIFEST,
    ManifestEntry,
    UnreadableManifestError,
    WholeRecord,
    read_manifest,
    write_manifest,
)
from agentbench.checkpoints.file_storage.names import SUFFIX, manifest_name, pack_name
from agentbench.checkpoints.file_storage.pack import PartsPack, new_generation
from agentbench.checkpoints.parts.backend import CheckpointRecord, StalePartsError
from agentbench.checkpoints.parts.parts import live_parts
from agentbench.checkpoints.storage import require_head
from agentbench.exceptions import CheckpointNotFoundError, WorkflowCheckpointException

if TYPE_CHECKING:
    from agentbench.checkpoints.file_storage.pickled_format import PickledFormat

_log = logging.getLogger(__name__)

_INDEX, _LOCK = ".agentbench.index", ".agentbench.lock"
_SUFFIX_LENGTH = len(SUFFIX)
_OPEN_PACKS = 32
_WORTH_KEEPING = 32
"""After how many manifests that had to be read the log is written anew, for the next reader."""


class FileBackend:
    """Stores records as files of a folder; any number of processes of one machine may use it at the same time.

    Writing takes the lock of the folder and costs the same however much the folder holds. Reading takes no lock.
    With `fsync` what is saved has reached the disk when `put` returns; without `pickled` whole records are refused.
    """

    def __init__(self, folder: str, *, fsync: bool = False, pickled: PickledFormat | None = None) -> None:
        self._folder = CheckpointFolder(folder, _LOCK, fsync=fsync)
        self._fsync = fsync
        self._pickled = pickled
        self._index = FolderIndex(folder, self._folder.path_of(_INDEX))
        self._packs: OrderedDict[str, PartsPack] = OrderedDict()
        self._drawn: dict[str, int] = {}
        self._trusts_log = False

    @property
    def is_local(self) -> bool:
        """Whether a small `put` waits for no disk."""
        return not self._fsync

    # --------------------------------------------------------------------------------------------------------- writing

    def generation(self, workflow_name: str) -> int:
        """Return the generation of the chain's pack; for a chain without a pack, the one that its pack will have.

        A writer calls this first. So the folder is read here, and `put` has little left to do.
        """
        try:
            self._index.follow()
        except OSError:
            self._folder.require()
            raise
        pack = self._pack(workflow_name)
        pack.follow()
        if not pack.is_there:
            return self._drawn.setdefault(workflow_name, new_generation())
        if pack.generation is None:  # its first line is damaged
            with self._folder.writing():
                pack.follow()
                if pack.generation is None:
                    pack.start_over(new_generation())
        return pack.generation or 0

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
        name = manifest_name(record.checkpoint_id)
        with self._folder.writing(patient=patient):
            index, chain = self._index, record.workflow_name
            index.follow()
            pack = self._pack(chain)
            pack.follow()
            is_whole = isinstance(record, WholeRecord)
            if not is_whole and pack.generation != generation and not self._begin(pack, chain, generation):
                raise StalePartsError
            if expected_seq is not None:
                require_head(chain, self._head_seq(chain), expected_seq)
            path = self._folder.path_of(name)
            # Ids may differ where names of files do not; most names are new.
            if name not in index.entries and os.access(path, os.F_OK):
                _refuse_another(path, record.checkpoint_id)
            saved = index.next_saved(time.time_ns())
            manifest = record.content.encode() if is_whole else write_manifest(record, saved)
            if len(manifest) > LARGEST_MANIFEST:
                message = (
                    f"Checkpoint {record.checkpoint_id!r} takes {len(manifest):,} bytes in one piece; expected at most "
                    f"{LARGEST_MANIFEST:,}. Keep less in its state."
                )
                raise WorkflowCheckpointException(message)
            pack.append(parts)
            status = write_private(path, manifest, fsync=self._fsync)
            changed = status.st_mtime_ns
            known = (name, status.st_size, changed, chain, record.seq, record.timestamp)
            index.add(ManifestEntry(*known, changed if is_whole else saved, record.run_id, is_whole))
            if not is_whole:
                index.heads[name] = record.head

    @contextmanager
    def trusting_log(self) -> Iterator[None]:
        """Do without a look at the whole folder meanwhile: `ids` knows only what was saved and removed like this."""
        self._trusts_log = True
        try:
            yield
        finally:
            self._trusts_log = False

    def delete(self, workflow_name: str, ids: Sequence[str], *, sweep: bool) -> int:
        """See `StorageBackend.delete`."""
        names = [manifest_name(each) for each in ids]
        with self._folder.writing():
            self._index.follow()
            removed = self._unlink(workflow_name, names)
            if sweep:
                self._sweep(workflow_name)
            return removed

    def discard(self, checkpoint_id: str) -> bool:
        """Remove the file of a checkpoint, also a damaged one, and return whether there was one."""
        name = manifest_name(checkpoint_id)
        with self._folder.writing():
            self._index.follow()
            try:
                os.unlink(self._folder.path_of(name))
            except FileNotFoundError:
                return False
            self._index.remove([name])
            return True

    def _begin(self, pack: PartsPack, workflow_name: str, generation: int) -> bool:
        """Start the pack of a chain that has none, if the writer knew that there was none."""
        if pack.is_there or self._drawn.get(workflow_name) != generation:
            return False
        pack.start_over(generation)
        del self._drawn[workflow_name]
        return True

    def _head_seq(self, workflow_name: str) -> int:
        """The newest number of a chain; one call shows whether the newest file still exists."""
        entries = self._index.chain(workflow_name)
        if entries and not os.path.lexists(self._folder.path_of(entries[-1].name)):
            self._index.scan()
            entries = self._index.chain(workflow_name)
        return entries[-1].seq if entries else 0

    def _unlink(self, workflow_name: str, names: Iterable[str]) -> int:
        gone = []
        try:
            for name in names:
                if name not in self._index.entries:
                    self._index.look_again(name)
                entry = self._index.entries.get(name)
                if entry is None or entry.workflow_name != workflow_name:
                    continue
                with suppress(FileNotFoundError):
                    os.unlink(self._folder.path_of(name))
                    gone.append(name)
        finally:
            if gone:
                self._index.remove(gone)
        if gone and self._fsync:
            sync_folder(self._folder.path)
        return len(gone)

    def _sweep(self, workflow_name: str) -> None:
        """Write the pack anew with what the chain still needs; with everything while that cannot be known.

        The pack of an empty chain is removed.
        """
        pack = self._pack(workflow_name)
        pack.follow()
        self._drawn.pop(workflow_name, None)
        if not pack.is_there:
            return
        self._index.scan(only_names=self._trusts_log)
        contents: list[str] = []
        for entry in self._index.chain(workflow_name):
            try:
                found, record = read_manifest(self._folder.path_of(entry.name))
            except FileNotFoundError:
                continue
            except UnreadableManifestError as error:
                self._index.problems[entry.name] = error
                continue
            if not found.is_reference:
                contents.append(record.content)
        if not all(problem.is_lost for problem in self._index.problems.values()):
            pack.start_over(new_generation())
        elif self._index.chain(workflow_name):
            pack.start_over(new_generation(), live_parts(contents, pack.fetch))
        else:
            pack.remove()

    # --------------------------------------------------------------------------------------------------------- reading

    def get(self, checkpoint_id: str) -> CheckpointRecord | None:
        """See `StorageBackend.get`."""
        path = self._folder.path_of(manifest_name(checkpoint_id))
        try:
            entry, record = read_manifest(path)
        except FileNotFoundError:
            self._folder.require()
            return None
        return self._describe(path, record) if entry.is_reference else record

    def latest(self, workflow_name: str) -> CheckpointRecord | None:
        """See `StorageBackend.latest`. Files that were changed by hand are noticed by lists."""
        self._scan(only_names=True)
        while entries := self._index.chain(workflow_name):
            path = self._folder.path_of(entries[-1].name)
            found, record = None, None
            with suppress(FileNotFoundError, UnreadableManifestError):  # read again below
                found, record = read_manifest(path)
            if record is not None and found == entries[-1]:
                if found.is_reference:
                    record = self._describe(path, record)
                else:
                    self._index.heads[found.name] = record.head
                break
            self._index.look_again(entries[-1].name)
        else:
            record = None
        _warn(list(self._index.problems.values()))
        return record

    def heads(
        self, workflow_name: str, *, run_id: str | None = None, before: str | None = None, limit: int | None = None
    ) -> list[CheckpointRecord]:
        """See `StorageBackend.heads`. What cannot be read is left out with a warning in the log.

        With a limit, files that were changed by hand are noticed if they were among the last ones before.
        """

        def choose() -> list[ManifestEntry]:
            self._scan(only_names=limit is not None)
            entries = self._index.chain(workflow_name)
            if before is not None:
                ids = [entry.checkpoint_id for entry in entries]
                if before not in ids:
                    raise CheckpointNotFoundError(before)
                entries = entries[: ids.index(before)]
            if run_id is not None:
                entries = [entry for entry in entries if entry.run_id == run_id]
            return entries if limit is None else entries[max(0, len(entries) - limit) :]

        def read(entry: ManifestEntry) -> CheckpointRecord | None:
            return self._head(entry) if limit is None or self._index.is_current(entry) else None

        return self._list(choose, read)

    def outlines(self, workflow_name: str) -> list[CheckpointRecord]:
        """See `StorageBackend.outlines`: known without a look into files that are as they were when they were read."""

        def choose() -> list[ManifestEntry]:
            self._scan()
            return self._index.chain(workflow_name)

        def read(entry: ManifestEntry) -> CheckpointRecord | None:
            if entry.is_reference:
                return self._head(entry)
            name, _, _, chain, seq, timestamp, _, run_id, _ = entry
            return CheckpointRecord(name[:-_SUFFIX_LENGTH], chain, seq, timestamp, run_id, "")

        return self._list(choose, read)

    def _list(
        self,
        choose: Callable[[], Iterable[ManifestEntry]],
        read: Callable[[ManifestEntry], CheckpointRecord | None],
    ) -> list[CheckpointRecord]:
        """Read entries, from the start again where one has changed; those that cannot be read are left out."""
        records, problems = [], []
        for entry in choose():
            try:
                record = read(entry)
            except UnreadableManifestError as error:
                problems.append(error)
                continue
            if record is None:  # changed since the listing, or the log was wrong
                self._index.look_again(entry.name)
                return self._list(choose, read)
            records.append(record)
        _warn([*self._index.problems.values(), *problems])
        return records

    def ids(self, workflow_name: str) -> list[str]:
        """See `StorageBackend.ids`."""
        if self._trusts_log:
            self._index.follow()
        else:
            self._scan()
        return [entry.checkpoint_id for entry in self._index.chain(workflow_name)]

    def parts(self, workflow_name: str, ids: Collection[str]) -> dict[str, str]:
        """See `StorageBackend.parts`."""
        return self._pack(workflow_name).fetch(ids)

    def chains(self, prefix: str = "") -> list[str]:
        """See `StorageBackend.chains`."""
        self._scan()
        return sorted(name for name in self._index.chains if name.startswith(prefix))

    def close(self) -> None:
        """See `StorageBackend.close`."""
        for pack in self._packs.values():
            pack.close()
        self._packs.clear()
        self._index.log.close()
        self._index = FolderIndex(self._folder.path, self._index.path)
        self._folder.lock.close()

    def _head(self, entry: ManifestEntry) -> CheckpointRecord | None:
        """Return a record without content, or `None` where the file is another one by now."""
        head = self._index.heads.get(entry.name)
        if isinstance(head, CheckpointRecord):
            return head
        if head is not None:
            return self._keep_head(entry, head)
        path = self._folder.path_of(entry.name)
        try:
            found, record = read_manifest(path)
        except FileNotFoundError:
            return None
        if found != entry:
            return None
        if entry.is_reference:
            return self._describe(path, record)
        return self._keep_head(entry, record.head)

    def _keep_head(self, entry: ManifestEntry, head: str) -> CheckpointRecord:
        """Make the record that lists show, once."""
        record = CheckpointRecord(
            entry.checkpoint_id, entry.workflow_name, entry.seq, entry.timestamp, entry.run_id, head
        )
        self._index.heads[entry.name] = record
        return record

    def _describe(self, path: str, record: CheckpointRecord) -> WholeRecord:
        """Complete the record of a checkpoint in the pickled format, if that may be read."""
        if self._pickled is None:
            reason = (
                "it is in the pickled format, and unpickling can run any code. If you trust the folder, open it with "
                'FileCheckpointStorage(path, codec="pickle")'
            )
            raise UnreadableManifestError(path, reason, is_lost=False)
        try:
            return self._pickled.describe(record.content)
        except (WorkflowCheckpointException, TypeError, AttributeError, ValueError, RecursionError) as error:
            raise UnreadableManifestError(path, str(error).rstrip("."), is_lost=False) from error

    def _scan(self, *, only_names: bool = False) -> None:
        try:
            n_read = self._index.scan(only_names=only_names)
        except OSError:
            self._folder.require()
            raise
        with suppress(OSError):  # it may be there for reading only
            if n_read >= _WORTH_KEEPING and self._folder.lock.attempt():
                try:
                    self._index.follow()
                    self._index.rewrite()
                finally:
                    self._folder.lock.release()

    def _pack(self, workflow_name: str) -> PartsPack:
        pack = self._packs.get(workflow_name)
        if pack is None:
            path = self._folder.path_of(pack_name(workflow_name))
            pack = self._packs[workflow_name] = PartsPack(path, workflow_name, fsync=self._fsync)
            if len(self._packs) > _OPEN_PACKS:
                self._packs.popitem(last=False)[1].close()
        else:
            self._packs.move_to_end(workflow_name)
        return pack


def _refuse_another(path: str, checkpoint_id: str) -> None:
    """Refuse to replace a file that holds another checkpoint."""
    if os.path.isdir(path):
        message = f"Checkpoint {checkpoint_id!r} cannot be saved: {path!r} is a folder. Remove it, or use another id."
        raise WorkflowCheckpointException(message)
    try:
        read_manifest(path)
    except UnreadableManifestError as error:
        if error.holds is not None:
            message = (
                f"Checkpoint {checkpoint_id!r} cannot be saved: {path!r} holds the checkpoint {error.holds!r}. "
                "Expected ids that differ by more than upper and lower case, which may be the "
                "same to the file system; remove the file if it is a stray copy."
            )
            raise WorkflowCheckpointException(message) from error


def _warn(problems: Sequence[UnreadableManifestError]) -> None:
    if not problems:
        return
    named = " ".join(str(problem) for problem in problems[:3])
    more = f" And {len(problems) - 3} more." if len(problems) > 3 else ""
    _log.warning("Left out of a list: %s%s", named, more)

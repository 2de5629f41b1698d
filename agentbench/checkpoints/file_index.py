"""Which checkpoints a folder holds, in order, without opening their files again and again.

The folder is the truth. What is known of it is kept in memory and in one file, a log of what was saved and removed; an
entry counts only as long as the manifest has the name, the size and the time that it had then. The log is a cache: it
may be removed at any time, and a damaged line is passed over.
"""

from __future__ import annotations

import json
import os
import stat
import zlib
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from contextlib import suppress
from operator import attrgetter
from typing import Any

from agentbench.checkpoints.backend import CheckpointRecord
from agentbench.checkpoints.file_names import SUFFIX
from agentbench.checkpoints.line_file import LineFile
from agentbench.checkpoints.manifest import ManifestEntry, UnreadableManifestError, read_manifest
from agentbench.serialization.writer import quote

_order = attrgetter("order")
_SPARE_LINES = 256
"""How many lines of the log may be out of date, besides as many as count, before it is written anew."""
_KINDS = {(str,)} | {
    (str, int, int, str, int, str, run_id, int, *is_reference)
    for run_id in (str, type(None))
    for is_reference in ((), (bool,))
}


class FolderIndex:
    """The entries of a folder by name and by chain. Who calls `add` or `remove` must hold the lock of the folder.

    Args:
        folder: Where the manifests are.
        path: The log.

    Attributes:
        problems: Files that are named like manifests and cannot be read, by name.
        heads: What lists show of a file, by name, for whoever reads files: a text or a record. Dropped with its entry.
    """

    def __init__(self, folder: str, path: str) -> None:
        self.problems: dict[str, UnreadableManifestError] = {}
        self.heads: dict[str, str | CheckpointRecord] = {}
        self._folder = folder
        self._log = LineFile(path)
        self._log_lines = 0
        self._log_is_whole = False
        self._entries: dict[str, ManifestEntry] = {}
        self._chains: dict[str, list[ManifestEntry]] = {}
        self._problem_status: dict[str, tuple[int, int]] = {}
        self._newest_saved = 0
        self._was_scanned = False

    # --------------------------------------------------------------------------------------------------------- looking

    def find(self, name: str) -> ManifestEntry | None:
        """Return the entry of a file, if one is known."""
        return self._entries.get(name)

    def chain(self, workflow_name: str) -> list[ManifestEntry]:
        """Return the entries of a chain in order; not to be changed."""
        return self._chains.get(workflow_name, [])

    def chains(self) -> list[str]:
        """Return the names of all chains."""
        return list(self._chains)

    def next_saved(self, now_ns: int) -> int:
        """Return the present time, or a little more, so that it rises from one checkpoint of the folder to the next."""
        return max(now_ns, self._newest_saved + 1)

    # ------------------------------------------------------------------------------------------------------- following

    def follow(self) -> None:
        """See what other writers did; costs nothing where nobody did anything.

        Raises:
            OSError: The folder cannot be read.
        """
        if not self._was_scanned or not self._log_is_whole or not self._follow_log():
            self.scan()

    def scan(self, *, only_names: bool = False) -> int:
        """Compare what is known with the folder itself, and read what is new or was changed by others.

        Args:
            only_names: Do not ask for the size and the time of files that are known by name.

        Returns:
            How many files had to be read.

        Raises:
            OSError: The folder cannot be read.
        """
        self._follow_log()  # before the listing: files are there before the log tells of them
        with os.scandir(self._folder) as found:
            files = {each.name: each for each in found if each.name.endswith(SUFFIX)}
        for name in [*(self._entries.keys() - files.keys()), *(self.problems.keys() - files.keys())]:
            self._forget(name)
        n_read = 0
        for name, file in files.items():
            if only_names and name in self._entries:
                continue
            n_read += self._check(name, file)
        self._was_scanned = True
        return n_read

    def is_current(self, entry: ManifestEntry) -> bool:
        """Whether the file is still as the entry says."""
        try:
            status = os.lstat(os.path.join(self._folder, entry.name))
        except FileNotFoundError:
            return False
        return stat.S_ISREG(status.st_mode) and entry[1:3] == (status.st_size, status.st_mtime_ns)

    def look_up(self, name: str) -> ManifestEntry | None:
        """Return the entry of a file, also if nobody has looked at the file before.

        Raises:
            OSError: The folder cannot be read.
        """
        if name not in self._entries:
            self.look_again(name)
        return self._entries.get(name)

    def look_again(self, name: str) -> None:
        """Read a file whose entry turned out to be wrong.

        Raises:
            OSError: The folder cannot be read.
        """
        self._forget(name)
        self._read(name, (-1, -1))

    def _check(self, name: str, file: os.DirEntry[str]) -> bool:
        """Read a file if it is not known as it is now."""
        try:
            status = file.stat(follow_symlinks=False)
        except FileNotFoundError:
            self._forget(name)
            return False
        entry = self._entries.get(name)
        seen = (status.st_size, status.st_mtime_ns)
        if stat.S_ISREG(status.st_mode):
            if (entry is not None and entry[1:3] == seen) or self._problem_status.get(name) == seen:
                return False
        elif name in self.problems:
            return False
        self._forget(name)
        self._read(name, seen)
        return True

    def _read(self, name: str, seen: tuple[int, int]) -> None:
        try:
            self._note(read_manifest(os.path.join(self._folder, name))[0])
        except FileNotFoundError:
            pass
        except UnreadableManifestError as error:
            self.problems[name], self._problem_status[name] = error, seen

    # --------------------------------------------------------------------------------------------------------- changing

    def add(self, entry: ManifestEntry) -> None:
        """Note what was just saved."""
        self._note(entry)
        self._append([entry])

    def remove(self, names: Iterable[str]) -> None:
        """Note what was just removed."""
        gone = list(names)
        for name in gone:
            self._forget(name)
        self._append([[name] for name in gone])

    def rewrite(self) -> None:
        """Write the log anew, with what counts."""
        entries = list(self._entries.values())
        with suppress(OSError):  # it is only a cache
            self._log.replace(b"".join(map(_line_of, entries)))
            self._log.follow()
            self._log_lines, self._log_is_whole = len(entries), True

    def close(self) -> None:
        """Let go of the log; what is known is kept."""
        self._log.close()

    def _append(self, items: list[Any]) -> None:
        if not self._log.is_there or self._log_lines > 2 * len(self._entries) + _SPARE_LINES:
            self._log_is_whole = False
            self.rewrite()
            return
        try:
            self._log.append(b"".join(map(_line_of, items)))
            self._log_lines += len(items)
        except OSError:  # it is only a cache; without it the others look at the folder
            self._log_is_whole = False
            self._log.close()
            with suppress(OSError):
                os.unlink(self._log.path)

    def _follow_log(self) -> bool:
        """Take over what the log tells, and return whether it goes on from what was known."""
        try:
            anew, _, lines = self._log.follow()
        except OSError:
            self._log_is_whole = False
            return False
        if anew:
            self._log_lines = 0
        if lines:
            for item in _items_of(lines):
                self._log_lines += 1
                if len(item) > 1:
                    self._note(ManifestEntry(*item))
                else:
                    self._forget(item[0])
        self._log_is_whole = self._log.is_there
        return not anew

    def _note(self, entry: ManifestEntry) -> None:
        if self._entries.get(entry.name) == entry:
            return
        if entry.name in self._entries or entry.name in self.problems:
            self._forget(entry.name)
        self._entries[entry.name] = entry
        chain = self._chains.setdefault(entry.workflow_name, [])
        if chain and entry.order < chain[-1].order:
            insort(chain, entry, key=_order)
        else:
            chain.append(entry)
        self._newest_saved = max(self._newest_saved, entry.saved)

    def _forget(self, name: str) -> None:
        self.problems.pop(name, None)
        self.heads.pop(name, None)
        self._problem_status.pop(name, None)
        entry = self._entries.pop(name, None)
        if entry is None:
            return
        chain = self._chains[entry.workflow_name]
        at = bisect_left(chain, entry.order, key=_order)
        while chain[at] is not entry:
            at += 1
        del chain[at]
        if not chain:
            del self._chains[entry.workflow_name]


# ------------------------------------------------------------------------------------------------------------ the log


def _line_of(item: Any) -> bytes:
    text = f"[{quote(item[0])}]"
    if isinstance(item, ManifestEntry):
        run_id = "null" if item.run_id is None else quote(item.run_id)
        text = (
            f"[{quote(item.name)},{item.size},{item.mtime_ns},{quote(item.workflow_name)},{item.seq},"
            f"{quote(item.timestamp)},{run_id},{item.saved}{',true' if item.is_reference else ''}]"
        )
    line = text.encode()
    return b"%08x %b\n" % (zlib.crc32(line), line)


def _items_of(lines: bytes) -> Iterator[Any]:
    """Read lines of the log, all together because that is faster; those that are damaged are left out."""
    texts = [line[9:] for line in lines.split(b"\n") if line[:8] == b"%08x" % zlib.crc32(line[9:])]
    try:
        items = json.loads(b"[" + b",".join(texts) + b"]")
    except (ValueError, RecursionError):
        return iter(())
    return (item for item in items if _is_item(item))


def _is_item(item: Any) -> bool:
    return isinstance(item, list) and tuple(map(type, item)) in _KINDS

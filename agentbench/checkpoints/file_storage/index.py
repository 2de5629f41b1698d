"""Which checkpoints a folder holds, in order, without opening their files again and again.

The folder is the truth. What is known of it is in memory and in one file, a log of what was saved and removed; an
entry counts only as long as the manifest has the name, the size and the time that it had then. The log is a cache: it
may be removed at any time, and a damaged line is passed over.
"""

from __future__ import annotations

import json
import os
import re
import stat
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from operator import itemgetter
from typing import Any
from zlib import crc32

from agentbench._files.line_file import LineFile
from agentbench.checkpoints.file_storage.manifest import ManifestEntry, UnreadableManifestError, read_manifest
from agentbench.checkpoints.file_storage.names import SUFFIX
from agentbench.checkpoints.parts.backend import CheckpointRecord

_order = itemgetter(slice(4, 7))  # as `ManifestEntry.order`, and quicker
_entry_of: Callable[[list[Any]], ManifestEntry] = partial(tuple.__new__, ManifestEntry)  # checked already
_quote: Callable[[str], str] = json.encoder.encode_basestring_ascii
_LINE = re.compile(rb"^([0-9a-f]{8}) (.*)$", re.MULTILINE)
_SPARE_LINES = 256
"""How many lines of the log may be out of date, besides as many as count, before it is written anew."""
_KINDS = {(str,)} | {(str, int, int, str, int, str, int, run_id, bool) for run_id in (str, type(None))}


class FolderIndex:
    """The entries of a folder by name and by chain. Who calls `add` or `remove` must hold the lock of the folder.

    Attributes:
        entries: By file name; changed here only.
        chains: The same entries in order, by chain.
        problems: Files that are named like manifests and cannot be read, by name.
        heads: Cache of heads by file name, filled by the backend: a text or a record. Dropped with its entry.
    """

    def __init__(self, folder: str, path: str) -> None:
        self.problems: dict[str, UnreadableManifestError] = {}
        self.heads: dict[str, str | CheckpointRecord] = {}
        self._folder = folder
        self._start = os.path.join(folder, "")
        self.path = path
        self.log = LineFile(path)
        self._log_lines = 0
        self._log_is_whole = False
        self.entries: dict[str, ManifestEntry] = {}
        self.chains: dict[str, list[ManifestEntry]] = {}
        self._problem_status: dict[str, tuple[int, int]] = {}
        self._newest_saved = 0
        self._was_scanned = False
        #: What the folder held when it was last compared with what is known here; nothing once that has changed.
        self._files: list[str] = []

    # --------------------------------------------------------------------------------------------------------- looking

    def chain(self, workflow_name: str) -> list[ManifestEntry]:
        """Return the entries of a chain in order; not to be changed."""
        return self.chains.get(workflow_name, [])

    def next_saved(self, now_ns: int) -> int:
        """Return the present time, or a little more, so that it rises from one checkpoint of the folder to the next."""
        return max(now_ns, self._newest_saved + 1)

    # ------------------------------------------------------------------------------------------------------- following

    def follow(self) -> None:
        """Read what other writers did; costs little where nothing was done."""
        if not self._was_scanned or not self._log_is_whole or not self._follow_log():
            self.scan()

    def scan(self, *, only_names: bool = False) -> int:
        """Compare what is known with the folder, and return how many files were read: new ones, or changed by others.

        With `only_names` those that are known by name count as unchanged.
        """
        self._follow_log()  # before the listing: files exist before the log names them
        files = os.listdir(self._folder)
        if only_names and files == self._files and not self.problems:
            return 0
        entries = self.entries
        names = dict.fromkeys([name for name in files if name.endswith(SUFFIX)]).keys()
        for name in [*(entries.keys() - names), *(self.problems.keys() - names)]:
            self._forget(name)
        n_read = 0
        for name in names - entries.keys() if only_names else names:
            n_read += self._check(name)
        self._files = files
        self._was_scanned = True
        return n_read

    def is_current(self, entry: ManifestEntry) -> bool:
        """Whether the file is still as the entry says."""
        try:
            status = os.lstat(self._start + entry.name)
        except FileNotFoundError:
            return False
        return stat.S_ISREG(status.st_mode) and entry[1:3] == (status.st_size, status.st_mtime_ns)

    def look_again(self, name: str) -> None:
        """Read a file whose entry turned out to be wrong."""
        self._forget(name)
        self._read(name, (-1, -1))

    def _check(self, name: str) -> bool:
        """Read a file if it is not known as it is now."""
        try:
            status = os.lstat(self._start + name)
        except FileNotFoundError:
            self._forget(name)
            return False
        entry = self.entries.get(name)
        stamp = (status.st_size, status.st_mtime_ns)
        if stat.S_ISREG(status.st_mode):
            if (entry is not None and entry[1:3] == stamp) or self._problem_status.get(name) == stamp:
                return False
        elif name in self.problems:
            return False
        self._forget(name)
        self._read(name, stamp)
        return True

    def _read(self, name: str, stamp: tuple[int, int]) -> None:
        try:
            self._note(read_manifest(self._start + name)[0])
        except FileNotFoundError:
            pass
        except UnreadableManifestError as error:
            self.problems[name], self._problem_status[name] = error, stamp

    # --------------------------------------------------------------------------------------------------------- changing

    def add(self, entry: ManifestEntry) -> None:
        """Note what was just saved."""
        self._note(entry)
        self._append(_line_of(entry), 1)

    def remove(self, names: Iterable[str]) -> None:
        """Note what was just removed."""
        gone = list(names)
        for name in gone:
            self._forget(name)
        self._append(b"".join(_with_sum(f"[{_quote(name)}]") for name in gone), len(gone))

    def rewrite(self) -> None:
        """Write the log anew, with what counts."""
        entries = list(self.entries.values())
        with suppress(OSError):  # it is only a cache
            self.log.replace(b"".join(map(_line_of, entries)))
            self.log.follow()
            self._log_lines, self._log_is_whole = len(entries), True

    def _append(self, lines: bytes, n_lines: int) -> None:
        if not self.log.is_there or self._log_lines > 2 * len(self.entries) + _SPARE_LINES:
            self._log_is_whole = False
            self.rewrite()
            return
        try:
            self.log.append(lines)
            self._log_lines += n_lines
        except OSError:  # it is only a cache; without it the others look at the folder
            self._log_is_whole = False
            self.log.close()
            with suppress(OSError):
                os.unlink(self.log.path)

    def _follow_log(self) -> bool:
        """Take over what the log says, and return whether it continues what was known."""
        try:
            anew, _, lines = self.log.follow()
        except OSError:
            self._log_is_whole = False
            return False
        if anew:
            self._log_lines = 0
        if lines:
            items = _items_of(lines)
            self._log_lines += len(items)
            if self.entries or self.problems or not self._note_all(items):
                for item in items:
                    if len(item) > 1:
                        self._note(_entry_of(item))
                    else:
                        self._forget(item[0])
        self._log_is_whole = self.log.is_there
        return not anew

    def _note_all(self, items: list[Any]) -> bool:
        """Take over a whole log where nothing is known yet, unless it names one file more than once."""
        entries = {item[0]: _entry_of(item) for item in items if len(item) > 1}
        if len(entries) < len(items):
            return False
        self.entries, self._files = entries, []
        self._newest_saved = max([self._newest_saved, *[entry[6] for entry in entries.values()]])
        for entry in entries.values():
            self.chains.setdefault(entry[3], []).append(entry)
        for chain in self.chains.values():
            chain.sort(key=_order)
        return True

    def _note(self, entry: ManifestEntry) -> None:
        name = entry.name
        if name in self.entries or name in self.problems:
            if self.entries.get(name) == entry:
                return
            self._forget(name)
        self.entries[name] = entry
        self._files = []
        chain = self.chains.setdefault(entry.workflow_name, [])
        if chain and entry[4:7] < chain[-1][4:7]:
            insort(chain, entry, key=_order)
        else:
            chain.append(entry)
        if entry.saved > self._newest_saved:
            self._newest_saved = entry.saved

    def _forget(self, name: str) -> None:
        self.problems.pop(name, None)
        self.heads.pop(name, None)
        self._problem_status.pop(name, None)
        self._files = []
        entry = self.entries.pop(name, None)
        if entry is None:
            return
        chain = self.chains[entry.workflow_name]
        at = bisect_left(chain, entry.order, key=_order)
        while chain[at] is not entry:
            at += 1
        del chain[at]
        if not chain:
            del self.chains[entry.workflow_name]


# ------------------------------------------------------------------------------------------------------------ the log


def _line_of(entry: ManifestEntry) -> bytes:
    name, size, mtime_ns, chain, seq, timestamp, saved, run_id, is_reference = entry
    run = "null" if run_id is None else _quote(run_id)
    return _with_sum(
        f"[{_quote(name)},{size},{mtime_ns},{_quote(chain)},{seq},{_quote(timestamp)},{saved},{run},"
        f"{'true' if is_reference else 'false'}]"
    )


def _with_sum(text: str) -> bytes:
    line = text.encode()
    return b"%08x %b\n" % (crc32(line), line)


def _items_of(lines: bytes) -> list[Any]:
    """Read lines of the log, all together because that is faster; those that are damaged are left out."""
    texts = [text for total, text in _LINE.findall(lines) if int(total, 16) == crc32(text)]
    try:
        items: list[Any] = json.loads(b"[%b]" % b",".join(texts))
    except (ValueError, RecursionError):
        return []
    return [item for item in items if type(item) is list and tuple(map(type, item)) in _KINDS]

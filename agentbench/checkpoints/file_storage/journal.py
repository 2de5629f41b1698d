"""The checkpoints of one chain in an append-only file, which is rewritten only to remove unneeded parts.

Every line is JSON. The first line names the chain and its generation. The other lines are, in any order:

    ["<id>",<text>]                                                       a part
    {"sum":"<crc32>","key":[id, seq, time, run, size of head],"head":{…},"content":{…}}    a checkpoint
    {"sum":"<crc32>","removed":[id, …]}                                   removed checkpoints

A save is one append: its parts, then the checkpoint. Text after the last newline is an unfinished write of a killed
process; the next writer cuts it off.
"""

from __future__ import annotations

import json
import os
import re
import sys
from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from zlib import crc32

from agentbench._files.private_file import open_private, read_at, write_all, write_private
from agentbench.checkpoints.file_storage.folder import NewerFormatError, UnreadableCheckpointError
from agentbench.checkpoints.parts.backend import CheckpointRecord
from agentbench.serialization.writer import quote_ascii

_FORMAT, _VERSION = "agentbench_chain", 1
_TEXT = len('["",') + 28  # where the text of a part begins in its line
_SUM = b'{"sum":"'
_HEAD, _CONTENT, _REMOVED = b',"head":', b',"content":', b'"removed":'
_STRING = rb'"([^"\\]*(?:\\.[^"\\]*)*)"'
_KEY = re.compile(rb'"key":\[%b,(\d+),%b,(?:%b|null),(\d+)\],"head":' % (_STRING, _STRING, _STRING))
_ID = re.compile(rb'"key":\[' + _STRING)
_LONGEST_FIRST_LINE = 1 << 16
_CHUNK, _LONGEST_LINE = 1 << 24, 1 << 30
_START = len(_SUM) + len('01234567",')


class JournalEntry(NamedTuple):
    """A checkpoint of a journal, and where its head begins in its line; entries sort in the order of the chain."""

    seq: int
    timestamp: str
    place: int
    length: int
    checkpoint_id: str
    run_id: str | None
    head_start: int
    head_length: int


class Journal:
    """Follows what other processes append to a chain's file or replace it with, and appends to it.

    Appending and rewriting require the lock of the folder and an up-to-date view; reading needs no lock.
    """

    def __init__(
        self, path: str, workflow_name: str, index: dict[str, Journal] | None = None, *, fsync: bool = False
    ) -> None:
        self.path = path
        self.workflow_name = workflow_name
        self._index = {} if index is None else index
        self._fsync = fsync
        self._descriptor = -1
        self._is_writable = False
        self._identity: tuple[int, int] | None = None
        self._first_line = b""
        self._end = 0
        self._is_torn = False
        self.generation: int | None = None
        self.entries: list[JournalEntry] = []
        self.problems: dict[str, UnreadableCheckpointError] = {}
        self._damaged: dict[str, tuple[int, int]] = {}
        self._by_id: dict[str, JournalEntry] = {}
        self._parts: dict[str, tuple[int, int]] = {}

    def __del__(self) -> None:
        self.release()

    @property
    def exists(self) -> bool:
        """Whether the file existed when it was last read."""
        return self._identity is not None

    def __contains__(self, checkpoint_id: str) -> bool:
        return checkpoint_id in self._by_id or checkpoint_id in self.problems

    @staticmethod
    def read_name(path: str) -> str | None:
        """Return the chain of a journal; None if its first line is damaged."""
        try:
            descriptor = open_private(path, os.O_RDONLY)
            try:
                name = json.loads(read_at(descriptor, 0, _LONGEST_FIRST_LINE).partition(b"\n")[0])["workflow_name"]
            finally:
                os.close(descriptor)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        return name if isinstance(name, str) else None

    # ---- reading ---------------------------------------------------------------------------------

    def follow(self) -> None:
        """Read appended lines, or the file that has replaced the previous one."""
        try:
            status = os.lstat(self.path)
            is_cut = status.st_size < self._end
            if is_cut or (status.st_dev, status.st_ino) != self._identity or not self._is_open():
                self.close()
                status = os.fstat(self._open())
                self._identity = status.st_dev, status.st_ino
        except FileNotFoundError:
            self.close()
            return
        if status.st_size == self._end:
            self._is_torn = False
            return
        try:
            self._read_on(status.st_size)
        except BaseException:
            self.close()
            raise
        if is_cut:  # an older copy replaced the content, so writers must not rely on the parts they wrote
            self.generation = None

    def _read_on(self, size: int) -> None:
        chunk = _CHUNK
        while self._end < size:
            data = read_at(self._open(), self._end, min(chunk, size - self._end))
            lines = data[: data.rfind(b"\n") + 1]
            if lines:
                start, self._end = self._end, self._end + len(lines)
                self._note(lines, start)
            elif len(data) < chunk:
                break
            elif self._end == 0 or chunk >= _LONGEST_LINE:
                reason = f"it has a line of more than {chunk:,} bytes; restore it from a copy, or remove it"
                raise UnreadableCheckpointError(self.workflow_name, self.path, reason)
            else:
                chunk *= 2
        self._is_torn = self._end < size

    def _note(self, lines: bytes, start: int) -> None:
        place, parts = start, self._parts
        for line in lines.split(b"\n")[:-1]:
            length = len(line)
            if line[30:32] == b'",' and line[:2] == b'["' and line[-1:] == b"]":
                parts[line[2:30].decode("latin-1")] = place + _TEXT, length - _TEXT - 1
            elif line[:8] == _SUM:
                self._note_summed(line, place)
            elif place == 0:
                self._first_line = line + b"\n"
                self.generation = self._read_first(line)
            else:
                self._add_problem(line, place)
            place += length + 1

    def _note_summed(self, line: bytes, place: int) -> None:
        try:
            if not _has_right_sum(line):
                raise ValueError
            if line.startswith(_REMOVED, _START):
                for checkpoint_id in json.loads(line[_START + len(_REMOVED) : -1]):
                    self._drop(checkpoint_id)
            else:
                self._add(_entry_of(line, place))
        except (ValueError, TypeError, IndexError, RecursionError):
            self._add_problem(line, place)

    def _read_first(self, line: bytes) -> int | None:
        try:
            found = json.loads(line)
            version, name, generation = found[_FORMAT], found["workflow_name"], found["generation"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        if type(version) is int and version > _VERSION:
            reason = f"it is of version {version}, expected {_VERSION}; a newer version of agentbench may read it"
            raise NewerFormatError(self.workflow_name, self.path, reason)
        return generation if name == self.workflow_name and isinstance(generation, int) else None

    def _add(self, entry: JournalEntry) -> None:
        if entry.checkpoint_id in self:
            self._drop(entry.checkpoint_id)
        self._by_id[entry.checkpoint_id] = entry
        self._index.setdefault(entry.checkpoint_id, self)  # an earlier journal, from which it is removed below
        if self.entries and entry < self.entries[-1]:
            insort(self.entries, entry)
        else:
            self.entries.append(entry)

    def _leave(self, checkpoint_id: str) -> None:
        if self._index.get(checkpoint_id) is self:
            del self._index[checkpoint_id]

    def _drop(self, checkpoint_id: str) -> None:
        self._leave(checkpoint_id)
        if self.problems.pop(checkpoint_id, None) is not None:
            del self._damaged[checkpoint_id]
        entry = self._by_id.pop(checkpoint_id, None)
        if entry is not None:
            del self.entries[bisect_left(self.entries, entry)]

    def _add_problem(self, line: bytes, place: int) -> None:
        found = _ID.search(line)
        try:
            checkpoint_id = f"at byte {place}" if found is None else _read_escaped(found[1])
        except ValueError:
            checkpoint_id = f"at byte {place}"
        self._drop(checkpoint_id)
        self._damaged[checkpoint_id] = place, len(line)
        self._index[checkpoint_id] = self
        reason = "its line was damaged after it was saved; delete it, or restore the file from a copy"
        self.problems[checkpoint_id] = UnreadableCheckpointError(checkpoint_id, self.path, reason)

    def records(self, entries: Sequence[JournalEntry]) -> list[CheckpointRecord]:
        """Return the data that lists need about checkpoints, whose heads are not kept in memory."""
        heads = [(entry.place + entry.head_start, entry.head_length) for entry in entries]
        if not heads:
            return []
        start, end = min(heads)[0], sum(max(heads))
        if end - start > _CHUNK:
            texts = [read_at(self._open(), *head) for head in heads]
        else:
            data = read_at(self._open(), start, end - start)
            texts = [data[place - start : place - start + length] for place, length in heads]
        return [self._record(entry, text) for entry, text in zip(entries, texts, strict=True)]

    def _record(self, entry: JournalEntry, head: bytes) -> CheckpointRecord:
        text = head.decode(errors="replace")
        return CheckpointRecord(entry.checkpoint_id, self.workflow_name, entry.seq, entry.timestamp, entry.run_id, text)

    def get(self, checkpoint_id: str) -> CheckpointRecord | None:
        """Return a checkpoint with its content; UnreadableCheckpointError if its line is damaged."""
        entry = self._by_id.get(checkpoint_id)
        if entry is None:
            if checkpoint_id in self.problems:
                raise self.problems[checkpoint_id]
            return None
        line = read_at(self._open(), entry.place, entry.length)
        if not _has_right_sum(line):
            self._add_problem(line, entry.place)
            raise self.problems[checkpoint_id]
        end = entry.head_start + entry.head_length
        record = self._record(entry, line[entry.head_start : end])
        return replace(record, content=line[end + len(_CONTENT) : -1].decode())

    def newest_damage(self) -> UnreadableCheckpointError | None:
        """Return the problem of a damaged checkpoint that was saved after the newest readable one."""
        newest = self.entries[-1].place if self.entries else -1
        for checkpoint_id, (place, _) in self._damaged.items():
            if place > newest:
                return self.problems[checkpoint_id]
        return None

    def parts(self, ids: Collection[str]) -> dict[str, str]:
        """Return parts by id, without missing ones."""
        if not self._parts.keys() >= set(ids):
            self.follow()
        return {each: self._text(each) for each in ids if each in self._parts}

    def _text(self, part_id: str) -> str:
        return read_at(self._open(), *self._parts[part_id]).decode(errors="replace")

    # ---- writing ---------------------------------------------------------------------------------

    def append(self, record: CheckpointRecord, parts: Mapping[str, str]) -> None:
        """Save a checkpoint, with the parts that are missing or were damaged on the disk."""
        stored = self._parts
        lines = []
        places = {}
        place = self._end
        for each, text in parts.items():
            if each not in stored or self._text(each) != text:
                line = f'["{each}",{text}]\n'.encode()
                places[each] = (place + _TEXT, len(line) - _TEXT - 2)
                place += len(line)
                lines.append(line)
        line, head_start, head_length = _line_of(record)
        lines.append(line)
        self._write(b"".join(lines))
        stored.update(places)
        self._add(
            JournalEntry(
                record.seq,
                record.timestamp,
                place,
                len(line) - 1,
                record.checkpoint_id,
                record.run_id,
                head_start,
                head_length,
            )
        )

    def remove(self, ids: Iterable[str]) -> int:
        """Remove checkpoints and return their number; their parts stay until `rewrite`."""
        present = [each for each in ids if each in self]
        if present:
            self._write(_with_checksum(b"%b%b}" % (_REMOVED, json.dumps(present).encode())))
        for each in present:
            self._drop(each)
        return len(present)

    def rewrite(
        self,
        generation: int,
        live: Collection[str] | None = None,
        *,
        added: Sequence[CheckpointRecord] = (),
        parts: Mapping[str, str] | None = None,
    ) -> None:
        """Replace the file by one of a generation: all checkpoints, the live parts, damaged lines, and added ones."""
        header = {_FORMAT: _VERSION, "workflow_name": self.workflow_name, "generation": generation}
        lines = [json.dumps(header).encode()]
        for each, (place, length) in self._parts.items():
            if live is None or each in live:
                lines.append(read_at(self._open(), place - _TEXT, length + _TEXT + 1))
        places = sorted([*((entry.place, entry.length) for entry in self.entries), *self._damaged.values()])
        lines += [read_at(self._open(), *place) for place in places]
        lines += [f'["{each}",{text}]'.encode() for each, text in (parts or {}).items()]
        lines += [_line_of(record)[0].rstrip(b"\n") for record in added]
        self.close()
        write_private(self.path, b"\n".join([*lines, b""]), fsync=self._fsync)
        self.follow()

    def unlink(self) -> None:
        """Remove the file, if there is one."""
        self.close()
        if os.path.lexists(self.path):
            os.unlink(self.path)

    def _write(self, lines: bytes) -> None:
        descriptor = self._open(writing=True)
        if self._is_torn:
            os.ftruncate(descriptor, self._end)
            self._is_torn = False
        write_all(descriptor, lines, self.path, fsync=self._fsync)
        self._end += len(lines)
        if sys.platform == "emscripten":
            self.release()  # the drive of a page keeps what was written when the file is closed

    # ---- the file --------------------------------------------------------------------------------

    def _is_open(self) -> bool:
        """Return whether the file that was read is still open; if it was released, another may have replaced it."""
        if self._descriptor < 0:
            try:
                self._open()
            except _ReplacedError:
                return False
        return True

    def _open(self, *, writing: bool = False) -> int:
        if self._descriptor < 0 or (writing and not self._is_writable):
            self.release()
            descriptor = open_private(self.path, os.O_RDWR | os.O_APPEND if writing else os.O_RDONLY)
            status = os.fstat(descriptor)
            is_other = self._identity not in (None, (status.st_dev, status.st_ino))
            # The inode number of a removed file may be reused for the next one.
            if is_other or read_at(descriptor, 0, len(self._first_line)) != self._first_line:
                os.close(descriptor)
                message = f"{self.path!r} was replaced by another process at this moment"
                raise _ReplacedError(message)
            self._descriptor, self._is_writable = descriptor, writing
        return self._descriptor

    def release(self) -> None:
        """Close the descriptor; the data that was read is kept."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def close(self) -> None:
        """Close the file and drop all data that was read."""
        self.release()
        for checkpoint_id in [*self._by_id, *self.problems]:
            self._leave(checkpoint_id)
        self._identity, self._first_line, self._end, self._is_torn, self.generation = None, b"", 0, False, None
        self.entries, self.problems, self._damaged, self._by_id, self._parts = [], {}, {}, {}, {}


class _ReplacedError(OSError):
    """The file that was read has been replaced by another one."""


def new_generation() -> int:
    """Return a random generation that no chain has had before."""
    return 1 + int.from_bytes(os.urandom(6), "big")


def _with_checksum(rest: bytes) -> bytes:
    return b'%b%08x",%b\n' % (_SUM, crc32(rest), rest)


def _line_of(record: CheckpointRecord) -> tuple[bytes, int, int]:
    """Return the line of a checkpoint, and the place and length of the head in it."""
    run_id = "null" if record.run_id is None else quote_ascii(record.run_id)
    head = record.head.encode()
    key = f"{quote_ascii(record.checkpoint_id)},{record.seq},{quote_ascii(record.timestamp)},{run_id},{len(head)}"
    start = b'"key":[%b]%b' % (key.encode(), _HEAD)
    body = b"%b%b%b%b}" % (start, head, _CONTENT, record.content.encode())
    return _with_checksum(body), _START + len(start), len(head)


def _has_right_sum(line: bytes) -> bool:
    return line[len(_SUM) : _START] == b'%08x",' % crc32(line[_START:])


def _entry_of(line: bytes, place: int) -> JournalEntry:
    """Parse a checkpoint's line; ValueError or a similar error if it is not one."""
    found = _KEY.match(line, _START)
    if found is None:
        raise ValueError
    checkpoint_id, seq, timestamp, run_id, size = found.groups()
    read = _read_escaped if b"\\" in found[0] else bytes.decode
    run = None if run_id is None else read(run_id)
    return JournalEntry(int(seq), read(timestamp), place, len(line), read(checkpoint_id), run, found.end(), int(size))


def _read_escaped(text: bytes) -> str:
    found: str = json.loads(b'"%b"' % text)
    return found

"""A file of lines that grows at its end, shared by several processes."""

from __future__ import annotations

import os

from agentbench._files.private_file import open_private, read_at, write_all, write_private


class LineFile:
    """Follows what others append or put in its place; appends itself, in one step for those who follow.

    Only whole lines count: what is behind the last line break is what a killed process was writing, and is cut off
    before the next line is appended. Who appends or replaces must hold the lock of the folder; reading needs none.
    With `fsync` lines have reached the disk when `append` and `replace` return.
    """

    def __init__(self, path: str, *, fsync: bool = False) -> None:
        self.path = path
        self._fsync = fsync
        self._descriptor = -1
        self._identity = (0, 0)
        self._end = 0
        self._is_torn = False

    def __del__(self) -> None:
        self.close()

    @property
    def is_there(self) -> bool:
        """Whether there was such a file when it was last followed."""
        return self._descriptor >= 0

    def follow(self) -> tuple[bool, int, bytes]:
        """Return whether it is another file than before, or none any more; where the new lines begin; these lines."""
        try:
            status = os.lstat(self.path)
        except FileNotFoundError:
            anew = self.is_there
            self.close()
            return anew, 0, b""
        size, start = status.st_size, self._end
        anew = size < start or (status.st_dev, status.st_ino) != self._identity or self._descriptor < 0
        if anew:
            size, start = self._open().st_size, 0
        self._is_torn = False
        if size == start:
            return anew, start, b""
        lines = read_at(self._descriptor, start, size - start)
        lines = lines[: lines.rfind(b"\n") + 1]
        self._end = start + len(lines)
        self._is_torn = self._end != size
        return anew, start, lines

    def append(self, lines: bytes) -> int:
        """Append whole lines to a file that was just followed, and return where they begin."""
        start = self._end
        if self._is_torn:
            os.ftruncate(self._descriptor, start)
            self._is_torn = False
        write_all(self._descriptor, lines)
        if self._fsync:
            os.fsync(self._descriptor)
        self._end = start + len(lines)
        return start

    def replace(self, lines: bytes) -> None:
        """Put another file in its place; a process that follows the old one can still read it."""
        self.close()
        write_private(self.path, lines, fsync=self._fsync)

    def read(self, offset: int, length: int) -> bytes:
        """Read from the file that was last followed."""
        return read_at(self._descriptor, offset, length)

    def close(self) -> None:
        """Let go of the file; following opens it again, and begins anew."""
        descriptor, self._descriptor, self._end = self._descriptor, -1, 0
        if descriptor >= 0:
            os.close(descriptor)

    def _open(self) -> os.stat_result:
        self.close()
        try:
            self._descriptor = open_private(self.path, os.O_RDWR | os.O_APPEND)
        except PermissionError:  # a folder may be there for reading only
            self._descriptor = open_private(self.path, os.O_RDONLY)
        status = os.fstat(self._descriptor)
        self._identity = (status.st_dev, status.st_ino)
        return status

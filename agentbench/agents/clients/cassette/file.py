"""The file of a cassette: followed as it grows, appended to by several writers, replaced in one step."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import BinaryIO, cast

from agentbench.agents.clients.cassette.lines import BadLineError, CassetteLines, parse_line

__all__ = ["CassetteFile"]

logger = logging.getLogger("agentbench")


class CassetteFile:
    """A file, and the lines that have been read of it.

    Not safe between threads: the owner has a lock. Between processes, and between several of these for one file, it is.

    Args:
        path: The file. Its folder is made by the first write.

    Attributes:
        path: The file, as it was passed; where it is does not change with the working directory.
        lines: What has been read. Another object once the file is another one.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._place = os.path.abspath(path)
        self._reset()

    def _reset(self) -> None:
        self.lines = CassetteLines()
        self._status: tuple[int, ...] = ()
        self._size = 0
        self._hash = hashlib.sha256()  # of what was read, to see that the rest was only added to it
        self._ends_complete = True
        self._warned_at = -1

    def refresh(self) -> None:
        """Read the lines that were added since, or all of them if the file is another one now.

        Raises:
            OSError: It cannot be read.
            ValueError: A line is not one of a cassette; the message names file and line.
        """
        try:
            if _status(os.stat(self._place)) == self._status:
                return
            with open(self._place, "rb", buffering=0) as file, _locked(file.fileno(), shared=True):
                self._read(cast("BinaryIO", file))
        except FileNotFoundError:
            self._reset()

    def _read(self, file: BinaryIO) -> None:
        status = _status(os.fstat(file.fileno()))
        if status == self._status:
            return
        file.seek(0)
        data = file.read()
        if hashlib.sha256(data[: self._size]).digest() != self._hash.digest():
            self._reset()
        self._add(data[self._size :])
        self._status = status

    def _add(self, data: bytes) -> None:
        """Read what follows the bytes that were read before."""
        for line in data.splitlines(keepends=True):
            is_complete = line.endswith(b"\n")
            try:
                if not line.strip():
                    self.lines.count += self._ends_complete  # an empty line; else the missing end of the line before
                elif is_complete or parse_line(line):  # a last line without its end counts if it can be read
                    self.lines.read(line)
            except BadLineError as error:
                place = f"{self.path}, line {self.lines.count + 1}"
                if is_complete:
                    message = f"{place}: {error}. Mend the line, or delete the file and record again."
                    raise ValueError(message) from error
                if self._warned_at != self._size:  # its writer was killed
                    self._warned_at = self._size
                    logger.warning("%s is cut off; it is skipped, and the next recording overwrites it.", place)
                return
            self._size += len(line)
            self._hash.update(line)
            self._ends_complete = is_complete

    def require_writable(self, *, replace: bool = False) -> None:
        """Do nothing if it looks as if the file can be written.

        Args:
            replace: Another file is to take its place.

        Raises:
            OSError: It cannot be written or made.
        """
        if os.path.exists(self._place):
            open(self._place, "r+b", buffering=0).close()
            if not replace:
                return
        folder = os.path.dirname(os.path.realpath(self._place))
        while not os.path.exists(folder):
            folder = os.path.dirname(folder)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)

    def append(self, lines_for: Callable[[CassetteLines], list[str]]) -> None:
        """Add lines behind all that others have added meanwhile; either all of them or none.

        Args:
            lines_for: Makes the lines from what is in the file by then, a header included if there is none.

        Raises:
            OSError: It cannot be written; the file is as it was.
            ValueError: A line that another process wrote is not one of a cassette.
        """
        os.makedirs(os.path.dirname(self._place), exist_ok=True)
        with self._opened_locked() as file:
            self._read(file)
            try:
                lines = lines_for(self.lines)
            except BaseException:
                if not os.fstat(file.fileno()).st_size:
                    os.unlink(self._place)
                raise
            data = (b"" if self._ends_complete else b"\n") + "".join(f"{line}\n" for line in lines).encode()
            try:
                file.truncate(self._size)  # what a killed writer left behind
                unwritten = data
                while unwritten:
                    unwritten = unwritten[file.write(unwritten) :]
            except BaseException:
                with suppress(OSError):
                    file.truncate(self._size)
                raise
            self._add(data)
            self._status = _status(os.fstat(file.fileno()))

    def replace(self, lines: Iterable[str]) -> None:
        """Put a new file in the place of this one, in one step, and read it.

        Raises:
            OSError: It cannot be written; the file is as it was.
        """
        os.makedirs(os.path.dirname(self._place), exist_ok=True)
        target = os.path.realpath(self._place)  # a link stays
        temporary = f"{target}.{os.getpid()}.tmp"
        # A file that is open cannot be replaced on Windows.
        with nullcontext() if sys.platform == "win32" else self._opened_locked():
            try:
                with open(temporary, "w", encoding="utf-8", newline="\n") as file:
                    file.writelines(f"{line}\n" for line in lines)
                with suppress(OSError):
                    os.chmod(temporary, os.stat(target).st_mode)
                os.replace(temporary, target)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary)
                raise
        self._reset()
        self.refresh()

    @contextmanager
    def _opened_locked(self) -> Iterator[BinaryIO]:
        """The file, open for appending and locked; made if it is missing."""
        while True:
            with open(self._place, "a+b", buffering=0) as file, _locked(file.fileno(), shared=False):
                # While this waited for the lock, another file may have taken the place.
                if os.path.exists(self._place) and os.path.samestat(os.fstat(file.fileno()), os.stat(self._place)):
                    yield cast("BinaryIO", file)
                    return


def _status(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


if sys.platform == "win32":
    import msvcrt

    _FAR_AWAY = 0x7FFF_FFF0
    """Locked bytes cannot be read by others there, so one is locked that no cassette has."""

    @contextmanager
    def _locked(descriptor: int, *, shared: bool) -> Iterator[None]:
        del shared
        os.lseek(descriptor, _FAR_AWAY, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
        try:
            yield
        finally:
            os.lseek(descriptor, _FAR_AWAY, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    @contextmanager
    def _locked(descriptor: int, *, shared: bool) -> Iterator[None]:
        with suppress(OSError):  # a file system without locks: one writer at a time is then up to its users
            fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield  # closing the file releases the lock

"""The file of a cassette: read as it grows, appended to by several writers, replaced in one step."""

from __future__ import annotations

import errno
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress

from agentbench.agents.clients.cassette.tape import BadLineError, Tape, parse_line

__all__ = ["CassetteFile"]

logger = logging.getLogger("agentbench")

_BINARY = getattr(os, "O_BINARY", 0)
_TAIL = 64
"""How many bytes before the end of what was read are compared to see that the rest was only added to it."""


class CassetteFile:
    """One file, and what has been read of it.

    Not safe between threads: the owner has a lock. Between processes, and between several of these for one file, it is.

    Args:
        path: The file. Its folder is made by the first write.

    Attributes:
        path: The file, as given; where it is does not change with the working directory.
        tape: What has been read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._place = os.path.abspath(path)
        self.tape = Tape()
        self._status: tuple[int, ...] = ()
        self._identity: tuple[int, int] | None = None
        self._read_bytes = 0
        self._tail = b""
        self._torn_at = -1

    # ------------------------------------------------------------------------------------------------------- reading

    def refresh(self) -> None:
        """Read what was added since, or everything if the file is another one now.

        Raises:
            OSError: It cannot be read.
            ValueError: A line is not one of a cassette; the message names file and line.
        """
        try:
            status = os.stat(self._place)
        except FileNotFoundError:
            self._forget()
            return
        if _facts(status) == self._status:
            return
        descriptor = os.open(self._place, os.O_RDONLY | _BINARY)
        try:
            with _locked(descriptor, shared=True):
                self._read(descriptor)
        finally:
            os.close(descriptor)

    def _read(self, descriptor: int) -> None:
        status = os.fstat(descriptor)
        if _facts(status) == self._status:
            return
        if not self._only_grew(descriptor, status):
            self._forget()
        self._identity = status.st_dev, status.st_ino
        os.lseek(descriptor, self._read_bytes, os.SEEK_SET)
        data = _read_to_end(descriptor)
        complete = data[: data.rfind(b"\n") + 1]
        for line in complete.split(b"\n")[:-1]:
            self._take(line + b"\n")
        self._take_last(data[len(complete) :])
        self._status = _facts(status)

    def _only_grew(self, descriptor: int, status: os.stat_result) -> bool:
        if self._identity != (status.st_dev, status.st_ino) or status.st_size < self._read_bytes:
            return False
        if status.st_size == self._read_bytes:
            return False  # as long as before, and yet not as it was
        os.lseek(descriptor, self._read_bytes - len(self._tail), os.SEEK_SET)
        return os.read(descriptor, len(self._tail)) == self._tail

    def _take(self, line: bytes) -> None:
        try:
            if line.strip():
                self.tape.read(line)
            elif not self._tail or self._tail.endswith(b"\n"):
                self.tape.lines += 1  # an empty line; else the missing end of the line before
        except BadLineError as error:
            message = (
                f"{self.path}, line {self.tape.lines + 1}: {error}. Mend the line, or delete the file and record again."
            )
            raise ValueError(message) from error
        self._read_bytes += len(line)
        self._tail = (self._tail + line)[-_TAIL:]

    def _take_last(self, rest: bytes) -> None:
        """A last line without a line end is whole if it can be read; else its writer died, and it never was."""
        if not rest:
            return
        try:
            parse_line(rest)
        except BadLineError:
            if self._torn_at != self._read_bytes:
                self._torn_at = self._read_bytes
                logger.warning(
                    "%s, line %d is cut off; it is skipped, and the next recording overwrites it.",
                    self.path,
                    self.tape.lines + 1,
                )
            return
        self._take(rest)

    def _forget(self) -> None:
        self.tape = Tape()
        self._status, self._identity = (), None
        self._read_bytes, self._tail, self._torn_at = 0, b"", -1

    # ------------------------------------------------------------------------------------------------------- writing

    def require_writable(self, *, replace: bool = False) -> None:
        """Do nothing if it looks as if the file can be written.

        Args:
            replace: Another one is to take its place.

        Raises:
            OSError: It cannot be written, or not be made.
        """
        try:
            os.close(os.open(self._place, os.O_RDWR | _BINARY))
        except FileNotFoundError:
            replace = True
        if not replace:
            return
        folder = os.path.dirname(os.path.realpath(self._place))
        while not os.path.exists(folder):
            folder = os.path.dirname(folder)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)

    def append(self, lines_of: Callable[[Tape], list[str]]) -> None:
        """Add lines behind all that others have added meanwhile; either all of them or none.

        Args:
            lines_of: Makes the lines from what is in the file by then, a header included if there is none.

        Raises:
            OSError: It cannot be written; the file is as it was.
            ValueError: A line that somebody else wrote is not one of a cassette.
        """
        os.makedirs(os.path.dirname(self._place), exist_ok=True)
        with self._held() as descriptor:
            self._read(descriptor)
            try:
                lines = lines_of(self.tape)
            except BaseException:
                if not os.fstat(descriptor).st_size:
                    os.unlink(self._place)
                raise
            end = self._read_bytes
            missing_end = b"\n" if self._tail and not self._tail.endswith(b"\n") else b""
            data = missing_end + "".join(f"{line}\n" for line in lines).encode()
            try:
                os.ftruncate(descriptor, end)  # what a dying writer left behind
                os.lseek(descriptor, end, os.SEEK_SET)
                _write_all(descriptor, data)
            except BaseException:
                with suppress(OSError):
                    os.ftruncate(descriptor, end)
                raise
            self._read_bytes += len(missing_end)
            self._tail = (self._tail + missing_end)[-_TAIL:]
            self._read(descriptor)

    def replace(self, lines: Iterable[str]) -> None:
        """Put a new file in the place of this one, in one step, and read it.

        Raises:
            OSError: It cannot be written; the file is as it was.
        """
        os.makedirs(os.path.dirname(self._place), exist_ok=True)
        # Through a link, as every other write: the link stays.
        target = os.path.realpath(self._place)
        temporary = f"{target}.{os.getpid()}.tmp"
        # A file that is open cannot be replaced on Windows.
        with nullcontext() if sys.platform == "win32" else self._held():
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
        self._forget()
        self.refresh()

    @contextmanager
    def _held(self) -> Iterator[int]:
        """The file, open and locked; made if it is missing."""
        while True:
            descriptor = os.open(self._place, os.O_RDWR | os.O_CREAT | _BINARY, 0o666)
            try:
                with _locked(descriptor, shared=False):
                    # Whoever waited for the lock may hold a file that has been replaced meanwhile.
                    if not _is_at(descriptor, self._place):
                        continue
                    yield descriptor
                    return
            finally:
                os.close(descriptor)


def _is_at(descriptor: int, path: str) -> bool:
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return False
    here = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


def _facts(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _read_to_end(descriptor: int) -> bytes:
    pieces = []
    while piece := os.read(descriptor, 1 << 20):
        pieces.append(piece)
    return b"".join(pieces)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


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
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        except OSError:  # a file system without locks: one writer at a time is then up to its users
            yield
            return
        try:
            yield
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)

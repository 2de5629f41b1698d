"""The file of a cassette: followed as it grows, appended to by several writers, replaced in one step."""

from __future__ import annotations

import errno
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from io import FileIO

from agentbench.agents.clients.cassette.lines import BadLineError, CassetteLines, parse_line

__all__ = ["CassetteFile"]

logger = logging.getLogger("agentbench")


class CassetteFile:
    """A file, and the lines that have been read of it; safe between processes, and its owner has a lock for threads.

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
        self._data = b""  # what was read, to see that the rest was only added to it
        self._warned_at = -1

    def refresh(self) -> None:
        """Read the lines that were added since, or all of them if the file is another one now.

        A `ValueError` names the line that is not one of a cassette.
        """
        try:
            if _status(os.stat(self._place)) == self._status:
                return
            with open(self._place, "rb", buffering=0) as file, _locked(file.fileno()):
                self._read(file)
        except FileNotFoundError:
            self._reset()

    def _read(self, file: FileIO) -> None:
        status = _status(os.fstat(file.fileno()))
        if status == self._status:
            return
        file.seek(0)
        data = file.read()
        if not data.startswith(self._data):
            self._reset()
        self._add(data)
        self._status = status

    def _add(self, data: bytes) -> None:
        """Read the lines behind those that were read before, which `data` begins with."""
        end = len(self._data)
        try:
            for line in data[end:].splitlines(keepends=True):
                is_complete = line.endswith(b"\n")
                if not line.strip():  # an empty line; or the missing end of the line before
                    self.lines.count += not end or data[end - 1 : end] == b"\n"
                elif is_complete or parse_line(line):  # a last line without its end counts if it can be read
                    self.lines.read(line)
                end += len(line)
        except BadLineError as error:
            place = f"{self.path}, line {self.lines.count + 1}"
            if is_complete:
                message = f"{place}: {error}. Mend the line, or delete the file and record again."
                raise ValueError(message) from error
            if self._warned_at != end:  # its writer was killed
                self._warned_at = end
                logger.warning("%s is cut off; it is skipped, and the next recording overwrites it.", place)
        finally:
            self._data = data[:end]

    def require_writable(self, *, replace: bool = False) -> None:
        """Raise an `OSError` if the file cannot be written, or with `replace`, if no other one can take its place."""
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
        """Add lines, made from what is in the file by then, behind all that others have added; all of them or none."""
        with self._opened_locked() as file:
            self._read(file)
            try:
                lines = lines_for(self.lines)
            except BaseException:
                if not os.fstat(file.fileno()).st_size:
                    os.unlink(self._place)
                raise
            size = len(self._data)
            text = "".join(f"{line}\n" for line in lines)
            if size and not self._data.endswith(b"\n"):
                text = f"\n{text}"
            try:
                file.truncate(size)  # what a killed writer left behind
                unwritten = text.encode()
                while unwritten:
                    unwritten = unwritten[file.write(unwritten) :]
            except BaseException:
                with suppress(OSError):
                    file.truncate(size)
                raise
            self._add(self._data + text.encode())
            self._status = _status(os.fstat(file.fileno()))

    def replace(self, lines: Iterable[str]) -> None:
        """Put a new file in the place of this one, in one step, and read it."""
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
    def _opened_locked(self) -> Iterator[FileIO]:
        """The file, open for appending and locked; made if it is missing."""
        os.makedirs(os.path.dirname(self._place), exist_ok=True)
        while True:
            with open(self._place, "a+b", buffering=0) as file, _locked(file.fileno()):
                # While this waited for the lock, another file may have taken the place.
                if os.path.exists(self._place) and os.path.samestat(os.fstat(file.fileno()), os.stat(self._place)):
                    yield file
                    return


def _status(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


if sys.platform == "win32":
    import msvcrt

    _FAR_AWAY = 0x7FFF_FFF0
    """Locked bytes cannot be read by others there, so one is locked that no cassette has."""

    @contextmanager
    def _locked(descriptor: int) -> Iterator[None]:
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
    def _locked(descriptor: int) -> Iterator[None]:
        with suppress(OSError):  # a file system without locks: one writer at a time is then up to its users
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield  # closing the file releases the lock

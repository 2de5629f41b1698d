"""Files of lines that only grow, shared by the threads of a process and, if wanted, by several processes.

Everything here blocks: it belongs on a thread of its own.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final
from weakref import WeakValueDictionary

from agentbench._files.lock import FolderLock
from agentbench._files.private_file import open_private, read_at, write_all

_PATIENCE_S: Final = 30.0
_FIRST_PAUSE_S: Final = 0.0005
_LONGEST_PAUSE_S: Final = 0.02
_LOCK_NAME: Final = ".history.lock"


class _FileLock:
    """The lock of one file among the threads of this process, in an object that can be held weakly."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


#: The locks of the files in use, by path.
_file_locks: WeakValueDictionary[str, _FileLock] = WeakValueDictionary()
_registry_lock = threading.Lock()


class LineStore:
    """The files of one folder.

    Args:
        folder: Its real path.
        between_processes: Whether other processes write to it too: they then wait for each other.
    """

    def __init__(self, folder: str, *, between_processes: bool) -> None:
        self._folder = folder
        self._between_processes = between_processes

    def read(self, path: str) -> tuple[list[bytes], bytes]:
        """Return the whole lines of a file and the bytes behind the last line break; without a file both are empty.

        Raises:
            OSError: The file cannot be read, or is no plain file.
        """
        with _of_thread(path):
            try:
                descriptor = open_private(path, os.O_RDONLY)
            except FileNotFoundError:
                return [], b""
            try:
                data = read_at(descriptor, 0, os.fstat(descriptor).st_size)
            finally:
                os.close(descriptor)
        *lines, rest = data.split(b"\n")
        return lines, rest

    def append(self, path: str, lines: bytes, is_whole: Callable[[bytes], bool]) -> bytes:
        """Append whole lines to a file in one step; a new file is made with its folder.

        Bytes behind the last line break, which an interrupted write has left, are cut off unless they are a whole line.

        Args:
            path: The file.
            lines: The lines, each with its line break.
            is_whole: Whether bytes are a line that lacks only its line break.

        Returns:
            The bytes that were cut off.

        Raises:
            OSError: The file cannot be written.
            TimeoutError: Another process has been writing for too long.
        """
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        with _of_thread(path), self._of_process():
            descriptor = open_private(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            try:
                size = os.fstat(descriptor).st_size
                rest = _last_piece(descriptor, size)
                if rest and is_whole(rest):
                    lines, rest = b"\n" + lines, b""
                elif rest:
                    os.ftruncate(descriptor, size - len(rest))
                write_all(descriptor, lines)
                return rest
            finally:
                os.close(descriptor)

    def delete(self, path: str) -> bool:
        """Remove a file, and return whether there was one.

        Raises:
            OSError: The file cannot be removed.
            TimeoutError: Another process has been writing for too long.
        """
        if not os.path.isdir(self._folder):
            return False
        with _of_thread(path), self._of_process():
            try:
                os.unlink(path)
            except FileNotFoundError:
                return False
            return True

    @contextmanager
    def _of_process(self) -> Iterator[None]:
        if not self._between_processes:
            yield
            return
        lock = FolderLock(os.path.join(self._folder, _LOCK_NAME))
        try:
            _acquire(lock)
            try:
                yield
            finally:
                lock.release()
        finally:
            lock.close()


def _acquire(lock: FolderLock) -> None:
    deadline, pause_s = time.monotonic() + _PATIENCE_S, _FIRST_PAUSE_S
    while not lock.attempt():
        if time.monotonic() > deadline:
            message = (
                f"Another process has been writing to the histories in {os.path.dirname(lock.path)!r} for "
                f"{_PATIENCE_S:g} s; expected less than that. End it, or use another folder."
            )
            raise TimeoutError(message)
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


@contextmanager
def _of_thread(path: str) -> Iterator[None]:
    with _registry_lock:
        held = _file_locks.get(path)
        if held is None:
            held = _file_locks[path] = _FileLock()
    with held.lock:
        yield


def _last_piece(descriptor: int, size: int) -> bytes:
    """Return the bytes behind the last line break."""
    piece, start, step = b"", size, 4096
    while start > 0:
        start = max(0, start - step)
        piece = read_at(descriptor, start, size - start)
        end = piece.rfind(b"\n")
        if end >= 0:
            return piece[end + 1 :]
        step *= 2
    return piece

"""A lock on a folder: one writer at a time among all processes of a machine."""

from __future__ import annotations

import errno
import os
import sys
import time

from agentbench._files.private_file import open_private

_LONGEST_PAUSE_S = 0.02


class FolderLock:
    """A lock on a file that is never removed; the operating system releases it when its holder dies."""

    def __init__(self, path: str, *, patience_s: float = 30.0) -> None:
        self.path = path
        self._patience_s = patience_s
        self._descriptor = -1
        self._identity = (0, 0)
        self._pid = 0

    def __del__(self) -> None:
        self.close()

    def acquire(self, *, patient: bool = True) -> None:
        """Acquire the lock. Raises `TimeoutError` after a wait, or `BlockingIOError` if the caller does not wait."""
        if self.attempt():
            return
        if not patient:
            raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK), self.path)
        deadline, pause_s = time.monotonic() + self._patience_s, 0.0005
        while time.monotonic() < deadline:
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            if self.attempt():
                return
        message = (
            f"Another process has been writing to {os.path.dirname(self.path)!r} for {self._patience_s:g} s; expected "
            "less than a second. Stop that process, or use another folder."
        )
        raise TimeoutError(message)

    def attempt(self) -> bool:
        """Acquire the lock if it is free, and return whether it was acquired."""
        for _ in range(2):
            if self._descriptor < 0 or self._pid != os.getpid():  # a forked process would share its parent's lock
                self._open()
            if not _try_lock(self._descriptor):
                return False
            try:
                status = os.lstat(self.path)
                if (status.st_dev, status.st_ino) == self._identity:
                    return True
            except FileNotFoundError:
                pass
            self.close()  # the file, or its folder, was removed, so a lock on it has no effect
        return False

    def release(self) -> None:
        """Release the lock for the next writer."""
        _unlock(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _open(self) -> None:
        self.close()
        self._descriptor = open_private(self.path, os.O_RDWR | os.O_CREAT)
        status = os.fstat(self._descriptor)
        self._identity, self._pid = (status.st_dev, status.st_ino), os.getpid()


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        os.lseek(descriptor, 0, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

elif sys.platform == "emscripten":  # a browser tab has one process, and no locks

    def _try_lock(descriptor: int) -> bool:
        return True

    def _unlock(descriptor: int) -> None:
        pass

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)

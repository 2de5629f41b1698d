"""Files that only their owner can read. They are never reached through a link, and are replaced in one step."""

from __future__ import annotations

import itertools
import os
import re
import stat
import sys
from contextlib import suppress

_MODE = 0o600
_PRIVATE_FILE = stat.S_IFREG | _MODE
_FLAGS = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY", "O_NONBLOCK"))
"""Not blocking, because opening a planted pipe would wait for its other end."""
_CHUNK = 1 << 30
_TOKEN = os.urandom(6).hex()
_NUMBERS = itertools.count()
_TEMPORARY = re.compile(r"\.[0-9a-f]{12}-[0-9]+-[0-9]+\.tmp")


def open_private(path: str, flags: int) -> int:
    """Open a plain file, never a link, and return its descriptor; a new file is accessible only to its owner."""
    if sys.platform == "win32" and os.path.islink(path):
        raise _not_plain(path)
    descriptor = os.open(path, flags | _FLAGS, _MODE)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _not_plain(path)
        if flags & os.O_CREAT:
            _keep_private(descriptor, status)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_private(path: str, limit: int) -> tuple[bytes, os.stat_result]:
    """Read a whole plain file, never a link, of at most `limit` bytes."""
    descriptor = os.open(path, os.O_RDONLY | _FLAGS)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _not_plain(path)
        if status.st_size > limit:
            message = f"it has {status.st_size:,} bytes, expected at most {limit:,}"
            raise OSError(message)
        data = os.read(descriptor, status.st_size + 1)
        while len(data) < status.st_size and (more := os.read(descriptor, _CHUNK)):
            data += more
        return data, status
    finally:
        os.close(descriptor)


def write_private(path: str, data: bytes, *, fsync: bool = False) -> os.stat_result:
    """Replace a file or link by a whole new file in one step; `fsync` only if its content has to be on disk."""
    folder = path[: path.rindex(os.sep)]
    temporary = f"{folder}{os.sep}.{_TOKEN}-{os.getpid()}-{next(_NUMBERS)}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, _MODE)
    try:
        try:
            write_all(descriptor, data, path, fsync=fsync)
            status = os.fstat(descriptor)
            if status.st_mode != _PRIVATE_FILE:
                _keep_private(descriptor, status)
        finally:
            os.close(descriptor)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    if fsync:
        sync_folder(folder)
    return status


def refuse_links(folder: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """Raise ValueError if a path below a folder is a link or leads through one, since it could lead anywhere."""
    if os.path.realpath(path) != os.path.join(os.path.realpath(folder), os.path.relpath(path, folder)):
        message = f"{os.fspath(path)!r} is a link, or is in a linked folder. Remove the link; links are not followed."
        raise ValueError(message)


def is_temporary(name: str) -> bool:
    """Return whether `write_private` uses this name for a file that is being written."""
    return name.endswith(".tmp") and _TEMPORARY.fullmatch(name) is not None


def write_all(descriptor: int, data: bytes, path: str, *, fsync: bool = False) -> None:
    """Write all data to a file, in as many steps as necessary; an error such as a full disk names the file."""
    try:
        written = os.write(descriptor, data)
        while written < len(data):
            data = data[written:]
            written = os.write(descriptor, data)
        if fsync:
            os.fsync(descriptor)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error


def read_at(descriptor: int, offset: int, length: int) -> bytes:
    """Read from a position in a file; returns less than `length` bytes at the end of the file."""
    pieces: list[bytes] = []
    while length > 0:
        if sys.platform == "win32":
            os.lseek(descriptor, offset, os.SEEK_SET)
            piece = os.read(descriptor, min(length, _CHUNK))
        else:
            piece = os.pread(descriptor, min(length, _CHUNK), offset)
        if not piece:
            break
        pieces.append(piece)
        offset += len(piece)
        length -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def sync_folder(folder: str) -> None:
    """Make the new, renamed and removed names in a folder survive a power failure."""
    if sys.platform == "win32":  # folders cannot be opened on Windows, and names are journalled
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _keep_private(descriptor: int, status: os.stat_result) -> None:
    """Make a file private: undo the effect of an unusual umask on a new file, or restrict an older one."""
    if sys.platform != "win32" and stat.S_IMODE(status.st_mode) != _MODE and status.st_uid == os.geteuid():
        os.fchmod(descriptor, _MODE)


def _not_plain(path: str) -> OSError:
    return OSError(f"{os.path.basename(path)!r} is not a plain file")

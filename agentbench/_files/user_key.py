"""The key of this user: random bytes in a private file of the user's configuration folder, for signatures."""

from __future__ import annotations

import os
import secrets
import sys
from contextlib import closing, suppress
from typing import Final

from agentbench._files.lock import FolderLock
from agentbench._files.private_file import read_private, write_private

_SIZE: Final = 32
_NAME: Final = "user.key"


def config_folder() -> str:
    """Return the configuration folder: `AGENTBENCH_CONFIG_DIR`, or the place that the operating system provides.

    Raises OSError if there is no home folder, so that no key gets into the working directory.
    """
    if chosen := os.environ.get("AGENTBENCH_CONFIG_DIR"):
        return os.path.abspath(chosen)
    if sys.platform == "win32":
        base = os.environ.get("APPDATA") or os.path.expanduser(r"~\AppData\Roaming")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Application Support")
    else:
        base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    if not os.path.isabs(base):
        message = f"There is no home folder: {base!r} is not absolute. Set AGENTBENCH_CONFIG_DIR to a private folder."
        raise OSError(message)
    return os.path.join(base, "agentbench")


def read_user_key() -> bytes | None:
    """Return the key, or None if there is none yet; raise OSError if the file cannot be read or is damaged."""
    path = os.path.join(config_folder(), _NAME)
    with suppress(FileNotFoundError):
        key, _ = read_private(path, _SIZE)
        if len(key) == _SIZE:
            return key
        message = f"{path!r} has {len(key)} bytes. Expected {_SIZE}: remove the file, so that a new key is made."
        raise OSError(message)
    return None


def user_key() -> bytes:
    """Return the key, and make it at the first call; raise OSError if the folder cannot be written."""
    key = read_user_key()
    if key is not None:
        return key
    folder = config_folder()
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with closing(FolderLock(os.path.join(folder, ".lock"))) as lock:
        lock.acquire()
        key = read_user_key()  # another process may have been faster
        if key is None:
            key = secrets.token_bytes(_SIZE)
            write_private(os.path.join(folder, _NAME), key, fsync=True)
    return key

"""A file with the progress of an evaluation, so that an interrupted evaluation can continue."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any, TypeAlias

from agentbench._files.private_file import open_private, write_all
from agentbench.serialization.plain import to_plain

Path: TypeAlias = str | os.PathLike[str]


class ResumeFile:
    """A file with answers and scores, each a line of JSON with a key. Only the current user can read the file.

    Args:
        path: The path of the file, which may not exist yet; `None` stores nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = None if path is None else os.path.abspath(os.fspath(path))
        self._known: dict[str, Any] = {}
        self._broken_line = False
        if self._path is not None and os.path.exists(self._path):
            with open(self._path, "rb") as file:
                lines = file.read().split(b"\n")
            self._broken_line = bool(lines.pop())  # the last writer was interrupted, so this entry is computed again
            for line in filter(None, lines):
                try:
                    key, value = json.loads(line)
                except ValueError:
                    continue
                self._known[key] = value

    def get(self, key: str) -> Any:
        """Return the stored value; `None` if there is none."""
        return self._known.get(key)

    def put(self, key: str, value: Any) -> None:
        """Append a value with its key."""
        if self._path is None:
            return
        line = json.dumps([key, value], ensure_ascii=False, default=str).encode() + b"\n"
        if self._broken_line:
            line, self._broken_line = b"\n" + line, False
        descriptor = open_private(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            write_all(descriptor, line, self._path)
        finally:
            os.close(descriptor)


def digest(*parts: Any) -> str:
    """Return a hash of values. Values that are not JSON are hashed by their text."""
    return hashlib.sha256(json.dumps(to_plain(parts), sort_keys=True).encode()).hexdigest()

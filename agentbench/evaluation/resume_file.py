"""Store the progress of an evaluation in a file, so that an interrupted evaluation can continue."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any, TypeAlias

from agentbench._files.private_file import open_private, write_all
from agentbench.serialization.plain import to_plain

Path: TypeAlias = str | os.PathLike[str]


class ResumeFile:
    """Answers and scores by a digest of what they are for, a line of JSON each. Only its owner can read the file.

    Args:
        path: The file, which need not exist; `None` keeps nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = None if path is None else os.path.abspath(os.fspath(path))
        self._known: dict[str, Any] = {}
        self._broken_line = False
        if self._path is not None and os.path.exists(self._path):
            with open(self._path, "rb") as file:
                lines = file.read().split(b"\n")
            self._broken_line = bool(lines.pop())  # the last writer was interrupted: what it did is done again
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
        """Append a line."""
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
    """Return a key of values; what JSON cannot hold counts by its text."""
    return hashlib.sha256(json.dumps(to_plain(parts), sort_keys=True).encode()).hexdigest()

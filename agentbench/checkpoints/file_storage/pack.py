"""The parts of a chain in one file that only grows, until it is swept."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from contextlib import suppress

from agentbench._files.line_file import LineFile

_ID_LENGTH = 28
_TEXT = _ID_LENGTH + 1
_FORMAT, _VERSION = "agentbench_parts", 1


class PartsPack:
    """Finds parts by id, and appends new ones. Who changes the file must hold the folder's lock, and have followed.

    The first line names the chain and the generation; every other line is an id, a space and the part's text. Where an
    id occurs twice, the later line counts. Whether a text is still what was saved is for the reader to check.

    Attributes:
        generation: Drawn anew whenever parts are removed; `None` where there is no pack, or its first line is damaged.
    """

    __slots__ = ("_file", "_places", "_workflow_name", "generation")

    def __init__(self, path: str, workflow_name: str, *, fsync: bool = False) -> None:
        self._file = LineFile(path, fsync=fsync)
        self._workflow_name = workflow_name
        self._places: dict[str, tuple[int, int]] = {}
        self.generation: int | None = None

    @property
    def is_there(self) -> bool:
        """Whether there was a pack when it was last followed."""
        return self._file.is_there

    def follow(self) -> None:
        """See what others appended or put in its place."""
        anew, start, lines = self._file.follow()
        if anew:
            self._places.clear()
            self.generation = None
        if start == 0 and lines:
            header, _, _ = lines.partition(b"\n")
            self.generation = _generation_of(header, self._workflow_name)
        if lines:
            self._note(lines, start)

    def fetch(self, ids: Collection[str]) -> dict[str, str]:
        """Return parts by id, leaving out what is not there."""
        places = self._places
        if any(each not in places for each in ids):
            self.follow()
        return {each: self._text(each) for each in ids if each in places}

    def append(self, parts: Mapping[str, str]) -> None:
        """Add the parts that are not there yet, or not as they should be."""
        places = self._places
        lines: dict[str, bytes] = {}
        for each, text in parts.items():
            if each not in places or self._text(each) != text:  # damaged on the disk
                lines[each] = f"{each} {text}\n".encode()
        if lines:
            start = self._file.append(b"".join(lines.values()))
            for each, line in lines.items():
                places[each] = (start + _TEXT, len(line) - _TEXT - 1)
                start += len(line)

    def start_over(self, generation: int, live: Collection[str] | None = None) -> None:
        """Put a pack of another generation in place of this one, with the parts whose ids are live, or with all."""
        header = {_FORMAT: _VERSION, "workflow_name": self._workflow_name, "generation": generation}
        lines = [json.dumps(header).encode()]
        for each, (offset, length) in self._places.items():
            if live is None or each in live:
                lines.append(each.encode() + b" " + self._file.read(offset, length))
        self._file.replace(b"\n".join([*lines, b""]))
        self.follow()

    def remove(self) -> None:
        """Remove the file."""
        self.close()
        with suppress(FileNotFoundError):
            os.unlink(self._file.path)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()
        self._places.clear()
        self.generation = None

    def _text(self, part_id: str) -> str:
        return self._file.read(*self._places[part_id]).decode(errors="replace")

    def _note(self, lines: bytes, start: int) -> None:
        places = self._places
        for line in lines.decode("latin-1").split("\n"):  # bytes as characters, in one go
            length = len(line)
            if line[_ID_LENGTH:_TEXT] == " ":
                places[line[:_ID_LENGTH]] = (start + _TEXT, length - _TEXT)
            start += length + 1


def new_generation() -> int:
    """Draw a generation that no pack had before."""
    return 1 + int.from_bytes(os.urandom(6), "big")


def _generation_of(header: bytes, workflow_name: str) -> int | None:
    try:
        found = json.loads(header)
        if found[_FORMAT] == _VERSION and found["workflow_name"] == workflow_name:
            generation = found["generation"]
            return generation if isinstance(generation, int) else None
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    return None

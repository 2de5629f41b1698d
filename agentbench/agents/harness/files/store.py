"""Stores of text files for agents: the base class with its search and edits, and a store in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, Literal, cast

from agentbench._display import shorten
from agentbench._limits import require_limit
from agentbench.exceptions import FileStoreError

_SNIPPET: Final = 200
"""Maximum number of characters of a line in the results of a search."""


@dataclass(frozen=True)
class FileStoreEntry:
    """A file or folder in a folder of a store.

    Args:
        name: The name, without the folder.
        type: `"file"` or `"directory"`.

    Example:
        from agentbench import FileStoreEntry

        entry = FileStoreEntry("notes.md", "file")
    """

    name: str
    type: Literal["file", "directory"]


@dataclass(frozen=True)
class FileSearchMatch:
    """A line that a search found.

    Args:
        line_number: The number of the line; the first one is 1.
        line: The line; of a long one, the part with the match.

    Example:
        from agentbench import FileSearchMatch

        match = FileSearchMatch(3, "Owls hunt at night.")
    """

    line_number: int
    line: str


@dataclass(frozen=True)
class FileSearchResult:
    """A file in which a search found lines.

    Args:
        file_name: The path of the file in the store.
        matching_lines: The lines, in the order of the file.

    Example:
        from agentbench import FileSearchMatch, FileSearchResult

        result = FileSearchResult("birds/owls.md", (FileSearchMatch(3, "Owls hunt at night."),))
    """

    file_name: str
    matching_lines: tuple[FileSearchMatch, ...]


class AgentFileStore(ABC):
    """Base class of stores of text files, for `FileAccessProvider` and `FileMemoryProvider`.

    Paths are relative to the root of the store, with `/` between the names. A subclass implements `read`, `write`,
    `delete` and `list_children`; it passes paths to `normalize_path`, which refuses those that leave the root.

    Example:
        agent = Agent(EchoChatClient(), context_providers=[FileAccessProvider(InMemoryAgentFileStore())])
    """

    @abstractmethod
    async def read(self, path: str) -> str:
        """Return the text of a file.

        Raises:
            FileNotFoundError: There is no file with this path.
            FileStoreError: The path leaves the store, or the file is not text.
        """

    @abstractmethod
    async def write(self, path: str, content: str) -> None:
        """Create or replace a file. Missing folders are created.

        Raises:
            FileStoreError: The path leaves the store, or a file and a folder would have the same path.
        """

    @abstractmethod
    async def delete(self, path: str) -> bool:
        """Delete a file, and return whether there was one."""

    @abstractmethod
    async def list_children(self, directory: str = "") -> list[FileStoreEntry]:
        """Return the files and folders in a folder, ordered by name; `""` is the root.

        Raises:
            FileNotFoundError: There is no folder with this path. The root always exists.
        """

    async def edit(self, path: str, old_text: str, new_text: str, *, replace_all: bool = False) -> int:
        """Replace a piece of a file, and return the number of replacements.

        Args:
            path: The path of the file.
            old_text: The text to replace.
            new_text: The new text.
            replace_all: Whether to replace every occurrence; otherwise the old text must occur exactly once.

        Raises:
            FileNotFoundError: There is no file with this path.
            FileStoreError: The old text is empty, does not occur, or occurs more than once without `replace_all`.
        """
        text, count = replace_piece(path, await self.read(path), old_text, new_text, replace_all=replace_all)
        await self.write(path, text)
        return count

    async def search(
        self, query: str, directory: str = "", *, file_pattern: str = "*", limit: int = 100
    ) -> list[FileSearchResult]:
        """Find the lines that contain a text, ignoring case. Files that are not text are skipped.

        Args:
            query: The text to find. It is not a regular expression, since one from a model may take forever.
            directory: The folder to search, with those in it.
            file_pattern: The pattern of the names of the files, such as `*.md`.
            limit: The maximum number of lines.

        Raises:
            FileNotFoundError: There is no folder with this path.
            FileStoreError: The text to find is empty, or the path leaves the store.
        """
        require_limit("limit", limit, least=1)
        if not query:
            raise FileStoreError(directory, "The text to find is empty; pass some text.")
        results: list[FileSearchResult] = []
        async for path in self._files_below(normalize_path(directory)):
            if limit and fnmatchcase(path.rpartition("/")[2], file_pattern):
                try:
                    text = await self.read(path)
                except (OSError, ValueError):
                    continue
                if lines := _matches(text, query)[:limit]:
                    limit -= len(lines)
                    results.append(FileSearchResult(path, tuple(lines)))
        return results

    async def _files_below(self, directory: str) -> AsyncIterator[str]:
        for entry in await self.list_children(directory):
            path = f"{directory}/{entry.name}" if directory else entry.name
            if entry.type == "file":
                yield path
            else:
                async for inner in self._files_below(path):
                    yield inner


class InMemoryAgentFileStore(AgentFileStore):
    """Stores files in memory, for tests and for work that no one keeps.

    Args:
        files: The first files: their texts by path.

    Raises:
        FileStoreError: A path leaves the store, or a file and a folder have the same path.
        TypeError: A file is not text.

    Example:
        store = InMemoryAgentFileStore({"birds/owls.md": "Owls hunt at night."})
        assert await store.read("birds/owls.md") == "Owls hunt at night."
    """

    def __init__(self, files: Mapping[str, str] | None = None) -> None:
        self._files: dict[str, str] = {}
        for path, content in (files or {}).items():
            self._write(path, content)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._files)} files)"

    async def read(self, path: str) -> str:
        """Return the text of a file; raise FileNotFoundError if there is none."""
        try:
            return self._files[normalize_path(path)]
        except KeyError:
            raise missing("file", path) from None

    async def write(self, path: str, content: str) -> None:
        """Create or replace a file."""
        self._write(path, content)

    def _write(self, path: str, content: str) -> None:
        if not isinstance(cast("object", content), str):
            message = f"The content of {path!r} is {shorten(content)}. Expected text."
            raise TypeError(message)
        key = require_name(path)
        folders = {key[:index] for index, character in enumerate(key) if character == "/"}
        if folders & self._files.keys() or any(other.startswith(f"{key}/") for other in self._files):
            raise FileStoreError(path, "A file and a folder cannot have the same path; choose another one.")
        self._files[key] = content

    async def delete(self, path: str) -> bool:
        """Delete a file, and return whether there was one."""
        return self._files.pop(normalize_path(path), None) is not None

    async def list_children(self, directory: str = "") -> list[FileStoreEntry]:
        """Return the files and folders in a folder; raise FileNotFoundError if there is none."""
        folder = normalize_path(directory)
        prefix = f"{folder}/" if folder else ""
        below = [path.removeprefix(prefix) for path in self._files if path.startswith(prefix)]
        if folder and not below:
            raise missing("folder", directory)
        return sort_entries(
            {FileStoreEntry(path.partition("/")[0], "directory" if "/" in path else "file") for path in below}
        )


def normalize_path(path: str) -> str:
    r"""Return a path in a store with single `/` between names and without `.`; `""` for the root.

    `\` separates names, too. Absolute paths, drives and `..` are refused.
    """
    names = path.replace("\\", "/").split("/")
    if path and not names[0]:
        raise FileStoreError(path, "Absolute paths are refused; pass a path relative to the root of the store.")
    if ".." in names or ":" in path or "\0" in path:
        raise FileStoreError(path, "A path contains neither '..' nor ':'; pass one below the root of the store.")
    return "/".join(name for name in names if name not in ("", "."))


def require_name(path: str) -> str:
    """Return the normalized path of a file to write; the root has no name and is refused."""
    normalized = normalize_path(path)
    if not normalized:
        raise FileStoreError(path, "A file needs a name; pass a path such as 'notes.md'.")
    return normalized


def sort_entries(entries: Iterable[FileStoreEntry]) -> list[FileStoreEntry]:
    """Return entries ordered by name."""
    return sorted(entries, key=lambda entry: entry.name)


def missing(kind: Literal["file", "folder"], path: str) -> FileNotFoundError:
    """Return the error for a path that does not exist."""
    return FileNotFoundError(f"There is no {kind} {path!r}. List its folder to see what there is.")


def replace_piece(path: str, text: str, old_text: str, new_text: str, *, replace_all: bool) -> tuple[str, int]:
    """Return a text with a piece replaced, and the number of replacements; see `AgentFileStore.edit`."""
    if not old_text:
        raise FileStoreError(path, "The text to replace is empty; pass a piece of the file.")
    count = text.count(old_text)
    if count == 0:
        raise FileStoreError(path, "The text to replace does not occur; read the file and pass a piece of it.")
    if count > 1 and not replace_all:
        raise FileStoreError(path, f"The text to replace occurs {count} times; pass a longer piece, or replace all.")
    return text.replace(old_text, new_text), count


def _matches(text: str, query: str) -> list[FileSearchMatch]:
    wanted = query.casefold()
    matches = []
    for number, line in enumerate(text.splitlines(), start=1):
        found = line.casefold().find(wanted)
        if found >= 0:
            begin = max(0, found - _SNIPPET // 2) if len(line) > _SNIPPET else 0
            matches.append(FileSearchMatch(number, line[begin : begin + _SNIPPET]))
    return matches

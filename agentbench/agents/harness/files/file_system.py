"""A store of text files in a folder of this machine."""

from __future__ import annotations

import os
import stat
import threading
from contextlib import suppress
from typing import Final

from agentbench._files.private_file import is_temporary, read_private, refuse_links
from agentbench._files.stored_text import replace_text
from agentbench._limits import require_limit
from agentbench._workers import run_in_thread
from agentbench.agents.harness.files.store import (
    AgentFileStore,
    FileStoreEntry,
    missing,
    normalize_path,
    replace_piece,
    require_name,
    sort_entries,
)
from agentbench.exceptions import FileStoreError

_MAX_FILE_BYTES: Final = 10_000_000


class FileSystemAgentFileStore(AgentFileStore):
    """Stores files in a folder of this machine. Nothing outside it is reached: links are refused and not listed.

    Files are UTF-8 and replaced atomically. A new file is accessible only to the current user; a replaced one keeps its
    permissions.

    Args:
        root_directory: The folder. It is created with the first file.
        max_file_bytes: The maximum size of a file that is read.

    Raises:
        ValueError: `root_directory` is empty, or `max_file_bytes` is less than 1.

    Example:
        store = FileSystemAgentFileStore("workspace")
        await store.write("notes/owls.md", "Owls hunt at night.")
        assert [entry.name for entry in await store.list_children("notes")] == ["owls.md"]
    """

    def __init__(self, root_directory: str | os.PathLike[str], *, max_file_bytes: int = _MAX_FILE_BYTES) -> None:
        require_limit("max_file_bytes", max_file_bytes, least=1)
        if not os.fspath(root_directory):
            message = "root_directory is empty. Expected the path of a folder; '.' is the current one."
            raise ValueError(message)
        self.root_directory = os.path.abspath(root_directory)
        self.max_file_bytes = max_file_bytes
        self._changing = threading.Lock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.root_directory!r})"

    async def read(self, path: str) -> str:
        """Return the text of a file; raise FileNotFoundError if there is none."""
        return await run_in_thread(self._read, path)

    async def write(self, path: str, content: str) -> None:
        """Create or replace a file."""
        await run_in_thread(self._write, path, content)

    async def edit(self, path: str, old_text: str, new_text: str, *, replace_all: bool = False) -> int:
        """Replace a piece of a file, and return the number of replacements. Other changes of this store wait."""
        return await run_in_thread(self._edit, path, old_text, new_text, replace_all)

    async def delete(self, path: str) -> bool:
        """Delete a file, and return whether there was one."""
        return await run_in_thread(self._delete, path)

    async def list_children(self, directory: str = "") -> list[FileStoreEntry]:
        """Return the files and folders in a folder; raise FileNotFoundError if there is none."""
        return await run_in_thread(self._list, directory)

    def _place(self, path: str, normalized: str) -> str:
        """Return where a file or folder is; raise FileStoreError if a link leads to it."""
        if not normalized:
            return self.root_directory
        place = os.path.join(self.root_directory, *normalized.split("/"))
        try:
            refuse_links(self.root_directory, place)
        except ValueError:
            raise FileStoreError(path, "It is a link, or in a linked folder; links are not followed.") from None
        return place

    def _read(self, path: str) -> str:
        place = self._place(path, normalize_path(path))
        try:
            if os.path.getsize(place) > self.max_file_bytes:
                raise FileStoreError(path, f"The file is larger than max_file_bytes={self.max_file_bytes:_}.")
            if not os.path.isfile(place):
                raise FileStoreError(path, "It is not a file; list it if it is a folder.")
            data, _ = read_private(place, self.max_file_bytes)
            return data.decode()
        except (FileNotFoundError, NotADirectoryError):
            raise missing("file", path) from None
        except UnicodeDecodeError:
            raise FileStoreError(path, "The file is not UTF-8 text, so it can be neither read nor edited.") from None

    def _write(self, path: str, content: str) -> None:
        with self._changing:
            self._replace(path, content)

    def _edit(self, path: str, old_text: str, new_text: str, replace_all: bool) -> int:
        with self._changing:
            text, count = replace_piece(path, self._read(path), old_text, new_text, replace_all=replace_all)
            self._replace(path, text)
            return count

    def _replace(self, path: str, content: str) -> None:
        place = self._place(path, require_name(path))
        mode = None
        with suppress(OSError):
            mode = stat.S_IMODE(os.stat(place, follow_symlinks=False).st_mode)
        try:
            replace_text(self.root_directory, place, content)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            raise FileStoreError(path, "A file and a folder cannot have the same path; choose another one.") from None
        if mode is not None:
            os.chmod(place, mode)

    def _delete(self, path: str) -> bool:
        place = self._place(path, require_name(path))
        with self._changing:
            try:
                os.unlink(place)
            except (FileNotFoundError, NotADirectoryError):
                return False
            except (IsADirectoryError, PermissionError):
                if os.path.isdir(place):
                    raise FileStoreError(path, "It is a folder; delete the files in it.") from None
                raise
        return True

    def _list(self, directory: str) -> list[FileStoreEntry]:
        normalized = normalize_path(directory)
        try:
            with os.scandir(self._place(directory, normalized)) as found:
                return sort_entries(
                    FileStoreEntry(one.name, "directory" if one.is_dir(follow_symlinks=False) else "file")
                    for one in found
                    if not one.is_symlink() and not is_temporary(one.name)
                )
        except (FileNotFoundError, NotADirectoryError):
            if normalized:
                raise missing("folder", directory) from None
            return []

"""Histories in files: one file for each session, one line for each message."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary, WeakValueDictionary

from agentbench.agents.arguments import describe
from agentbench.agents.history.file_names import folder_ignores_case, stem_of
from agentbench.agents.history.history import HistoryProvider, not_excluded
from agentbench.agents.history.line_store import LineStore
from agentbench.agents.sessions.session_json import read_values, write_values
from agentbench.messages.message import Message

_log = logging.getLogger("agentbench")

JsonDumps: TypeAlias = Callable[[Any], "str | bytes"]
JsonLoads: TypeAlias = Callable[[str], Any]


class FileHistoryProvider(HistoryProvider):
    """Stores conversations in a folder: a file `<session id>.jsonl` for each session, a line for each message.

    Files are UTF-8, for their owner only (mode 0600), and only grow. Ids that cannot name a file on every system are
    encoded. The broken last line of a killed process is skipped with a warning, and cut off by the next save.

    Args:
        storage_path: The folder; a new one is made with its parents.
        source_id: The id of the provider, unique in an agent.
        load_messages: Whether agents get the stored messages; otherwise new ones are only stored.
        store_inputs: Whether to store the input of runs.
        store_context_messages: Whether to store the messages that other providers add to runs.
        store_context_from: The source ids of the providers whose messages are stored; by default all others.
        store_outputs: Whether to store the answers of the model.
        skip_excluded: Whether messages that compaction left out (`_excluded`) are left out here too.
        dumps: Writes a dictionary as one line, text or UTF-8; by default `json.dumps`.
        loads: Reads such a line; by default `json.loads`.
        between_processes: Whether several processes save at the same time, and have to wait for each other.

    Raises:
        OSError: The folder cannot be made, or the path is that of a file.
        TypeError: `storage_path` is no path.
        ValueError: `storage_path` is empty.

    Example:
        ```python
        agent = Agent(EchoChatClient(), context_providers=[FileHistoryProvider("conversations")])
        await agent.run("My name is Ada.", session=agent.create_session(session_id="ada"))
        ```
    """

    def __init__(  # noqa: PLR0913 - the flags of all histories, and those of files
        self,
        storage_path: str | os.PathLike[str],
        *,
        source_id: str = "file_history",
        load_messages: bool = True,
        store_inputs: bool = True,
        store_context_messages: bool = False,
        store_context_from: Collection[str] | None = None,
        store_outputs: bool = True,
        skip_excluded: bool = False,
        dumps: JsonDumps | None = None,
        loads: JsonLoads | None = None,
        between_processes: bool = False,
    ) -> None:
        super().__init__(
            source_id,
            load_messages=load_messages,
            store_inputs=store_inputs,
            store_context_messages=store_context_messages,
            store_context_from=store_context_from,
            store_outputs=store_outputs,
        )
        folder = _checked_folder(storage_path)
        self.skip_excluded = skip_excluded
        self._dumps: JsonDumps = _to_json if dumps is None else dumps
        self._loads: JsonLoads = json.loads if loads is None else loads
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._folder = os.path.realpath(folder)
        self._ignores_case = folder_ignores_case(self._folder)
        self._store = LineStore(self._folder, between_processes=between_processes)
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakValueDictionary[str, asyncio.Lock]] = (
            WeakKeyDictionary()
        )

    @property
    def storage_path(self) -> Path:
        """The folder of the files, with links resolved."""
        return Path(self._folder)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._folder!r}, source_id={self.source_id!r})"

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """Return the messages of a session, oldest first; without a file the list is empty.

        Raises:
            ValueError: A line is no message; the error names the line and the file. Or the file is outside the folder.
        """
        path = self._path_of(session_id)
        async with self._lock_of(path):
            messages = await asyncio.to_thread(self._read, path)
        return not_excluded(messages) if self.skip_excluded else messages

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Add messages to the file of a session: all of them, or none.

        Raises:
            TypeError: A message cannot be written, or `dumps` returned neither text nor bytes.
            ValueError: `dumps` returned more than one line, or the file is outside the folder.
        """
        path = self._path_of(session_id)
        lines = b"".join([self._line_of(message) for message in messages])
        if lines:
            async with self._lock_of(path):
                await asyncio.to_thread(self._append, path, lines)

    async def delete(self, session_id: str | None) -> bool:
        """Delete the file of a session, and return whether there was one."""
        path = self._path_of(session_id)
        async with self._lock_of(path):
            return await asyncio.to_thread(self._store.delete, path)

    def _path_of(self, session_id: str | None) -> str:
        path = os.path.join(self._folder, f"{stem_of(session_id, ignores_case=self._ignores_case)}.jsonl")
        if os.path.dirname(os.path.realpath(path)) != self._folder:
            message = f"The file of session {session_id!r} leads out of {self._folder!r}. Remove the link in its place."
            raise ValueError(message)
        return path

    def _lock_of(self, path: str) -> asyncio.Lock:
        """Return the lock of a file on this loop, so that tasks wait on the loop and not on threads."""
        locks = self._locks.setdefault(asyncio.get_running_loop(), WeakValueDictionary())
        lock = locks.get(path)
        if lock is None:
            lock = locks[path] = asyncio.Lock()
        return lock

    # ------------------------------------------------------------------------------------------------------- on threads

    def _read(self, path: str) -> list[Message]:
        lines, rest = self._store.read(path)
        messages = [self._message_of(line, number, path) for number, line in enumerate(lines, start=1) if line.strip()]
        if rest.strip():
            try:
                messages.append(self._message_of(rest, len(lines) + 1, path))
            except ValueError:
                _log.warning("Line %d of %s is skipped: its writer was interrupted.", len(lines) + 1, path)
        return messages

    def _append(self, path: str, lines: bytes) -> None:
        cut_off = self._store.append(path, lines, self._is_whole)
        if cut_off.strip():
            _log.warning("%d bytes at the end of %s were cut off: their writer was interrupted.", len(cut_off), path)

    def _is_whole(self, rest: bytes) -> bool:
        try:
            self._message_of(rest, 0, "")
        except ValueError:
            return False
        return True

    # ------------------------------------------------------------------------------------------------------------ lines

    def _line_of(self, message: Message) -> bytes:
        line: Any = self._dumps(write_values(message.to_dict()))
        if isinstance(line, str):
            line = line.encode()
        if not isinstance(line, (bytes, bytearray)):
            problem = f"dumps returned a {type(line).__name__}. Expected a line of text or bytes."
            raise TypeError(problem)
        if b"\n" in line:
            problem = "dumps returned more than one line. Expected one: no indentation, line breaks escaped."
            raise ValueError(problem)
        return bytes(line) + b"\n"

    def _message_of(self, line: bytes, number: int, path: str) -> Message:
        try:
            found = self._loads(line.decode())
            if isinstance(found, Mapping):
                return Message.from_dict(read_values(found))
        except Exception as error:
            problem = f"Line {number} of {path} is no message ({type(error).__name__}). {_HOW}"
            raise ValueError(problem) from error
        problem = f"Line {number} of {path} is no message but a {type(found).__name__}. {_HOW}"
        raise ValueError(problem)


_HOW = "Expected one message per line, as they were saved: mend or remove the line."


def _to_json(data: Any) -> str:
    text = json.dumps(data, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a character, which UTF-8 lacks
        return json.dumps(data)
    return text


def _checked_folder(storage_path: object) -> str:
    if not isinstance(storage_path, (str, os.PathLike)):
        message = f"storage_path is {describe(storage_path)}. Expected a folder, as text or as a pathlib.Path."
        raise TypeError(message)
    folder = os.fspath(storage_path)
    if not folder:
        message = "storage_path is empty; expected a folder. The current one is '.'."
        raise ValueError(message)
    if os.path.isfile(folder):
        message = f"storage_path {folder!r} is a file. Expected a folder, in which each session gets a file of its own."
        raise NotADirectoryError(message)
    return folder

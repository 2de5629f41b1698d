"""Store histories in files: one file per session, one line per message."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from agentbench._files.lock import FolderLock
from agentbench._files.private_file import open_private, read_at, read_private, write_all
from agentbench._files.stored_text import folder_ignores_case, stem_of
from agentbench._workers import run_in_thread
from agentbench.agents.history.history import HistoryProvider, not_excluded
from agentbench.agents.sessions.session_context import add_source
from agentbench.agents.sessions.session_json import read_values, write_values
from agentbench.exceptions import HistoryFileError
from agentbench.messages.message import Message
from agentbench.observability.feature_stages import ExperimentalFeature, experimental

if TYPE_CHECKING:
    from agentbench.agents.sessions.agent_protocol import SupportsAgentRun
    from agentbench.agents.sessions.session import AgentSession
    from agentbench.agents.sessions.session_context import SessionContext

_log = logging.getLogger("agentbench")

JsonDumps: TypeAlias = Callable[[Any], "str | bytes"]
JsonLoads: TypeAlias = Callable[[str], Any]

_thread_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
"""Locks for the threads of this process, by folder."""

_MOST_FILES: Final = 16
"""Maximum number of files whose messages a provider caches."""


@dataclass(slots=True)
class _ReadFile:
    """The messages of a file at a `version`, without the last lines, which are `unread`."""

    version: tuple[int, ...]
    messages: list[Message]
    unread: bytes


@experimental(feature_id=ExperimentalFeature.FILE_HISTORY)
class FileHistoryProvider(HistoryProvider):
    """Stores conversations in a folder, with a file `<session id>.jsonl` per session and a line per message.

    Files are UTF-8, private to their owner (mode 0600), and append-only. Session ids that cannot be file names on every
    system are encoded. The incomplete last line of a killed process is skipped with a warning, and removed by the next
    save. The provider caches the messages of the last few sessions, so that a run does not read lines again that this
    provider has already read or written; a file that was changed otherwise is read again.

    Args:
        storage_path: The folder; it is created with its parents if it does not exist.
        source_id: The id of the provider, unique within an agent.
        load_messages, store_inputs, store_context_messages, store_context_from, store_outputs: See `HistoryProvider`.
        skip_excluded: Whether to skip messages that compaction excluded (`_excluded`).
        dumps: Converts a dictionary to one line of text or UTF-8 bytes; by default `json.dumps`.
        loads: Parses such a line; by default `json.loads`.
        between_processes: Whether several processes may save at the same time and must wait for each other.

    Raises:
        OSError: The folder cannot be created, because the path is empty or a file.
        TypeError: `storage_path` is not a path.

    Example:
        agent = Agent(EchoChatClient(), context_providers=[FileHistoryProvider("conversations")])
        await agent.run("My name is Ada.", session=agent.create_session(session_id="ada"))
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
        folder = os.fspath(storage_path)
        self.skip_excluded = skip_excluded
        self._ab_dumps: JsonDumps = _to_json if dumps is None else dumps
        self._ab_loads: JsonLoads = json.loads if loads is None else loads
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._ab_folder = os.path.realpath(folder)
        self._ab_ignores_case = folder_ignores_case(self._ab_folder)
        self._ab_between_processes = between_processes
        self._ab_files: dict[str, _ReadFile] = {}  # most recently used last

    @property
    def storage_path(self) -> Path:
        """The folder of the files, with symbolic links resolved."""
        return Path(self._ab_folder)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._ab_folder!r}, source_id={self.source_id!r})"

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """Return the messages of a session, oldest first; empty if there is no file.

        Raises:
            HistoryFileError: A line is not a message (the error contains the line number and the file), or the file is
                outside the folder.
            OSError: The file cannot be read.
        """
        messages = await run_in_thread(self._ab_read, self._ab_path_of(session_id))
        return not_excluded(messages) if self.skip_excluded else messages

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add the stored messages before the input."""
        if type(self).get_messages is not FileHistoryProvider.get_messages:
            await super().before_run(agent=agent, session=session, context=context, state=state)
            return
        messages = await run_in_thread(self._ab_read_new, self._ab_path_of(context.session_id))
        shared = context.context_messages.setdefault(self.source_id, [])  # not copied, because they do not change
        shared += not_excluded(messages) if self.skip_excluded else messages

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Append messages to the file of a session, all or none.

        Raises:
            HistoryFileError: The file is outside the folder.
            OSError: The file, which the error names, cannot be written; nothing is added.
            TypeError: A message cannot be serialized, or `dumps` returned neither text nor bytes.
            ValueError: `dumps` returned more than one line.
        """
        path = self._ab_path_of(session_id)
        lines = b"".join([self._ab_line_of(message) for message in messages])
        if lines:
            await run_in_thread(self._ab_append, path, lines)

    async def delete(self, session_id: str | None) -> bool:
        """Delete the file of a session, and return whether there was one."""
        return await run_in_thread(self._ab_delete, self._ab_path_of(session_id))

    def _ab_path_of(self, session_id: str | None) -> str:
        path = os.path.join(self._ab_folder, f"{stem_of(session_id, ignores_case=self._ab_ignores_case)}.jsonl")
        if os.path.dirname(os.path.realpath(path)) != self._ab_folder:
            folder = self._ab_folder
            problem = f"The file of session {session_id!r} is a link that points outside {folder!r}. Remove the link."
            raise HistoryFileError(path, problem)
        return path

    @contextmanager
    def _ab_writing(self) -> Iterator[None]:
        """Lock out other writers: the threads of this process and, if enabled, other processes."""
        with _thread_locks[self._ab_folder]:
            if not self._ab_between_processes:
                yield
                return
            with closing(FolderLock(os.path.join(self._ab_folder, ".history.lock"))) as lock:
                lock.acquire()
                try:
                    yield
                finally:
                    lock.release()

    def _ab_read(self, path: str) -> list[Message]:
        try:
            with _thread_locks[self._ab_folder]:
                data, _ = read_private(path, sys.maxsize)
        except FileNotFoundError:
            return []
        return self._ab_messages_of(data, path)

    def _ab_messages_of(self, data: bytes, path: str) -> list[Message]:
        *lines, unfinished = data.split(b"\n")
        messages = [
            self._ab_message_of(line, number, path) for number, line in enumerate(lines, start=1) if line.strip()
        ]
        if unfinished.strip():
            try:
                messages.append(self._ab_message_of(unfinished, len(lines) + 1, path))
            except ValueError:
                _log.warning("Line %d of %s is skipped: its writer was interrupted.", len(lines) + 1, path)
        return messages

    def _ab_read_new(self, path: str) -> list[Message]:
        """Return the messages of a file with their attribution; only new lines are read."""
        with _thread_locks[self._ab_folder]:
            try:
                version = _version(os.stat(path, follow_symlinks=False))
                file = self._ab_files.pop(path, None)
                if file is None or file.version != version:
                    data, status = read_private(path, sys.maxsize)
                    file = _ReadFile(_version(status), [], data)
            except FileNotFoundError:
                return []
            file.messages += add_source(self._ab_messages_of(file.unread, path), self)
            file.unread = b""
            self._ab_files[path] = file
            if len(self._ab_files) > _MOST_FILES:
                del self._ab_files[next(iter(self._ab_files))]
            return [*file.messages]

    def _ab_append(self, path: str, lines: bytes) -> None:
        os.makedirs(self._ab_folder, mode=0o700, exist_ok=True)
        with self._ab_writing():
            descriptor = open_private(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            try:
                before = os.fstat(descriptor)
                size = before.st_size
                if unfinished := _unfinished_line(descriptor, size):
                    try:
                        self._ab_message_of(unfinished, 0, "")
                        lines, unfinished = b"\n" + lines, b""
                    except ValueError:
                        os.ftruncate(descriptor, size - len(unfinished))
                end = os.fstat(descriptor).st_size
                try:
                    write_all(descriptor, lines, path)
                except OSError:  # for example, the disk is full
                    with suppress(OSError):
                        os.ftruncate(descriptor, end)
                    raise
                file = self._ab_files.get(path)
                after = os.fstat(descriptor)
                if file is not None and file.version == _version(before) and after.st_size == size + len(lines):
                    file.version, file.unread = _version(after), file.unread + lines
            finally:
                os.close(descriptor)
        if unfinished.strip():
            _log.warning("Removed %d bytes at the end of %s: their writer was interrupted.", len(unfinished), path)

    def _ab_delete(self, path: str) -> bool:
        with suppress(FileNotFoundError), self._ab_writing():
            os.unlink(path)
            return True
        return False

    def _ab_line_of(self, message: Message) -> bytes:
        line: Any = self._ab_dumps(write_values(message.to_dict()))
        if isinstance(line, str):
            line = line.encode()
        if not isinstance(line, (bytes, bytearray)):
            problem = f"dumps returned {type(line).__name__}. Expected a line of text or bytes."
            raise TypeError(problem)
        if b"\n" in line:
            problem = "dumps returned more than one line. Expected one: no indentation, escaped line breaks."
            raise ValueError(problem)
        return bytes(line) + b"\n"

    def _ab_message_of(self, line: bytes, number: int, path: str) -> Message:
        try:
            return Message.from_dict(read_values(self._ab_loads(line.decode())))
        except Exception as error:
            problem = (
                f"Line {number} of {path} is not a message ({type(error).__name__}). Expected one message per line. "
                "Fix or remove the line."
            )
            raise HistoryFileError(path, problem, number) from error


def _version(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _unfinished_line(descriptor: int, size: int) -> bytes:
    """Return the bytes after the last line break."""
    tail = read_at(descriptor, max(0, size - 4096), 4096)
    if b"\n" not in tail:
        tail = read_at(descriptor, 0, size)
    return tail[tail.rfind(b"\n") + 1 :]


def _to_json(data: Any) -> str:
    text = json.dumps(data, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which UTF-8 cannot encode
        return json.dumps(data)
    return text

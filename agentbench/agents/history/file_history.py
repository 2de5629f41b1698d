"""Histories in files: one file for each session, one line for each message."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import sys
import threading
import unicodedata
from base64 import b32encode, urlsafe_b64encode
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from uuid import uuid4

from agentbench._files.lock import FolderLock
from agentbench._files.private_file import open_private, read_at, read_private, write_all
from agentbench._workers import run_in_thread
from agentbench.agents.history.history import HistoryProvider, not_excluded
from agentbench.agents.sessions.attribution import attributed
from agentbench.agents.sessions.session_json import read_values, write_values
from agentbench.exceptions import HistoryFileError
from agentbench.messages.message import Message

if TYPE_CHECKING:
    from agentbench.agents.sessions.agent_protocol import SupportsAgentRun
    from agentbench.agents.sessions.session import AgentSession
    from agentbench.agents.sessions.session_context import SessionContext

_log = logging.getLogger("agentbench")

JsonDumps: TypeAlias = Callable[[Any], "str | bytes"]
JsonLoads: TypeAlias = Callable[[str], Any]

#: The locks among the threads of this process, by folder.
_thread_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

_DEVICE: Final = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\.|$)", re.IGNORECASE)
_PREFIX: Final = "~session-"
#: File systems allow 255 bytes; some are for the suffix.
_LONGEST: Final = 240


#: The most files of which a provider holds the messages.
_MOST_FILES: Final = 16


@dataclass(slots=True)
class _ReadFile:
    """The messages of a file as it was at a `version`, but for the last lines, which are `unread`."""

    version: tuple[int, ...]
    messages: list[Message]
    unread: bytes


class FileHistoryProvider(HistoryProvider):
    """Stores conversations in a folder: a file `<session id>.jsonl` for each session, a line for each message.

    Files are UTF-8, for their owner only (mode 0600), and only grow. Ids that cannot name a file on every system are
    encoded. The broken last line of a killed process is skipped with a warning, and cut off by the next save. The
    provider holds the messages of the last few sessions, so that a run reads no line again that it or an earlier run of
    this provider has read or written; a file that anything else has changed is read anew.

    Args:
        storage_path: The folder; a new one is made with its parents.
        source_id: The id of the provider, unique in an agent.
        load_messages, store_inputs, store_context_messages, store_context_from, store_outputs: See `HistoryProvider`.
        skip_excluded: Whether messages that compaction left out (`_excluded`) are left out here too.
        dumps: Writes a dictionary as one line, text or UTF-8; by default `json.dumps`.
        loads: Reads such a line; by default `json.loads`.
        between_processes: Whether several processes save at the same time, and have to wait for each other.

    Raises:
        OSError: The folder cannot be made: the path is empty, or that of a file.
        TypeError: `storage_path` is no path.

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
        self._dumps: JsonDumps = _to_json if dumps is None else dumps
        self._loads: JsonLoads = json.loads if loads is None else loads
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._folder = os.path.realpath(folder)
        self._ignores_case = folder_ignores_case(self._folder)
        self._between_processes = between_processes
        self._files: dict[str, _ReadFile] = {}  # the latest last

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
            HistoryFileError: A line is no message; the error names the line and the file. Or the file is outside the
                folder.
            OSError: The system refuses to read the file.
        """
        messages = await run_in_thread(self._read, self._path_of(session_id))
        return not_excluded(messages) if self.skip_excluded else messages

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Put the stored messages in front of the input."""
        if type(self).get_messages is not FileHistoryProvider.get_messages:
            await super().before_run(agent=agent, session=session, context=context, state=state)
            return
        messages = await run_in_thread(self._read_new, self._path_of(context.session_id))
        shared = context.context_messages.setdefault(self.source_id, [])  # not copied: they never change
        shared += not_excluded(messages) if self.skip_excluded else messages

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Add messages to the file of a session: all of them, or none.

        Raises:
            HistoryFileError: The file is outside the folder.
            OSError: The system refuses to write the file, which the error names; nothing is added.
            TypeError: A message cannot be written, or `dumps` returned neither text nor bytes.
            ValueError: `dumps` returned more than one line.
        """
        path = self._path_of(session_id)
        lines = b"".join([self._line_of(message) for message in messages])
        if lines:
            await run_in_thread(self._append, path, lines)

    async def delete(self, session_id: str | None) -> bool:
        """Delete the file of a session, and return whether there was one."""
        return await run_in_thread(self._delete, self._path_of(session_id))

    def _path_of(self, session_id: str | None) -> str:
        path = os.path.join(self._folder, f"{stem_of(session_id, ignores_case=self._ignores_case)}.jsonl")
        if os.path.dirname(os.path.realpath(path)) != self._folder:
            problem = f"The file of session {session_id!r} leads out of {self._folder!r}. Remove the link in its place."
            raise HistoryFileError(path, problem)
        return path

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Keep out the other writers: the threads of this process and, if wanted, other processes."""
        with _thread_locks[self._folder]:
            if not self._between_processes:
                yield
                return
            with closing(FolderLock(os.path.join(self._folder, ".history.lock"))) as lock:
                lock.acquire()
                try:
                    yield
                finally:
                    lock.release()

    def _read(self, path: str) -> list[Message]:
        try:
            with _thread_locks[self._folder]:
                data, _ = read_private(path, sys.maxsize)
        except FileNotFoundError:
            return []
        return self._messages_of(data, path)

    def _messages_of(self, data: bytes, path: str) -> list[Message]:
        *lines, rest = data.split(b"\n")
        messages = [self._message_of(line, number, path) for number, line in enumerate(lines, start=1) if line.strip()]
        if rest.strip():
            try:
                messages.append(self._message_of(rest, len(lines) + 1, path))
            except ValueError:
                _log.warning("Line %d of %s is skipped: its writer was interrupted.", len(lines) + 1, path)
        return messages

    def _read_new(self, path: str) -> list[Message]:
        """Return the messages of a file with their attribution; only what was written since the last time is read."""
        with _thread_locks[self._folder]:
            try:
                version = _version(os.stat(path, follow_symlinks=False))
                known = self._files.pop(path, None)
                if known is None or known.version != version:
                    data, status = read_private(path, sys.maxsize)
                    known = _ReadFile(_version(status), [], data)
            except FileNotFoundError:
                return []
            known.messages += attributed(self._messages_of(known.unread, path), self)
            known.unread = b""
            self._files[path] = known
            if len(self._files) > _MOST_FILES:
                del self._files[next(iter(self._files))]
            return [*known.messages]

    def _append(self, path: str, lines: bytes) -> None:
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        with self._writing():
            descriptor = open_private(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            try:
                before = os.fstat(descriptor)
                size = before.st_size
                if rest := _unfinished_line(descriptor, size):
                    try:
                        self._message_of(rest, 0, "")
                        lines, rest = b"\n" + lines, b""
                    except ValueError:
                        os.ftruncate(descriptor, size - len(rest))
                end = os.fstat(descriptor).st_size
                try:
                    write_all(descriptor, lines, path)
                except OSError:  # of a full disk, say
                    with suppress(OSError):
                        os.ftruncate(descriptor, end)
                    raise
                known = self._files.get(path)
                after = os.fstat(descriptor)
                if known is not None and known.version == _version(before) and after.st_size == size + len(lines):
                    known.version, known.unread = _version(after), known.unread + lines
            finally:
                os.close(descriptor)
        if rest.strip():
            _log.warning("%d bytes at the end of %s were cut off: their writer was interrupted.", len(rest), path)

    def _delete(self, path: str) -> bool:
        with suppress(FileNotFoundError), self._writing():
            os.unlink(path)
            return True
        return False

    def _line_of(self, message: Message) -> bytes:
        line: Any = self._dumps(write_values(message.to_dict()))
        if isinstance(line, str):
            line = line.encode()
        if not isinstance(line, (bytes, bytearray)):
            problem = f"dumps returned data of type {type(line).__name__}. Expected a line of text or bytes."
            raise TypeError(problem)
        if b"\n" in line:
            problem = "dumps returned more than one line. Expected one: no indentation, line breaks escaped."
            raise ValueError(problem)
        return bytes(line) + b"\n"

    def _message_of(self, line: bytes, number: int, path: str) -> Message:
        try:
            return Message.from_dict(read_values(self._loads(line.decode())))
        except Exception as error:
            problem = (
                f"Line {number} of {path} is no message ({type(error).__name__}). Expected one message per line, as "
                "they were saved: mend or remove the line."
            )
            raise HistoryFileError(path, problem, number) from error


def _version(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _unfinished_line(descriptor: int, size: int) -> bytes:
    """Return the bytes behind the last line break."""
    tail = read_at(descriptor, max(0, size - 4096), 4096)
    if b"\n" not in tail:
        tail = read_at(descriptor, 0, size)
    return tail[tail.rfind(b"\n") + 1 :]


def _to_json(data: Any) -> str:
    text = json.dumps(data, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a character, which UTF-8 lacks
        return json.dumps(data)
    return text


def stem_of(session_id: str | None, *, ignores_case: bool = False) -> str:
    """Return the name of a session's file, without suffix: different for each id, `default` without one.

    An id that can name a file on every system is its own name; with `ignores_case` only if no other id differs from it
    by case alone, or in how letters with accents are composed.
    """
    if not session_id:
        return "default"
    data = session_id.encode("utf-8", "surrogatepass")
    if (
        all(character.isalnum() or character in "._-" for character in session_id)
        and session_id.casefold() != "default"  # of histories without a session
        and not session_id.startswith(".")
        and not session_id.endswith(".")
        and not _DEVICE.match(session_id)
        and len(data) <= _LONGEST
        and not (ignores_case and unicodedata.normalize("NFC", session_id).casefold() != session_id)
    ):
        return session_id
    encoded = b32encode(data).lower() if ignores_case else urlsafe_b64encode(data)
    stem = _PREFIX + encoded.decode().rstrip("=")
    return stem if len(stem) <= _LONGEST else f"~digest-{hashlib.sha256(data).hexdigest()}"


def folder_ignores_case(folder: str) -> bool:
    """Whether a folder takes names for the same that differ by case; `False` if it cannot be written to."""
    probe = os.path.join(folder, f".probe-{uuid4().hex}-a")
    try:
        with open(probe, "xb"):
            pass
    except OSError:
        return False
    try:
        return os.path.exists(probe[:-1] + "A")
    finally:
        os.unlink(probe)

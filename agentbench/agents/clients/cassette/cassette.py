"""The recorded calls of one cassette: found, added to, pruned. Safe between tasks, threads and processes."""

from __future__ import annotations

import errno
import logging
import os
import sys
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from io import FileIO
from typing import NamedTuple

from agentbench.agents.clients.cassette.lines import (
    BadLineError,
    CassetteLines,
    RecordedCall,
    parse_line,
    pruned_lines,
)
from agentbench.agents.clients.cassette.request import (
    Match,
    Matcher,
    Plain,
    plain_message,
    plain_options,
    plain_tools,
)
from agentbench.agents.clients.cassette.secrets import Redaction, contains_secret
from agentbench.exceptions import ChatClientException
from agentbench.messages.message import Message
from agentbench.serialization.plain import to_plain

logger = logging.getLogger("agentbench")


class Request(NamedTuple):
    """A request to the model as it is written, with a key that is equal for equal requests."""

    sent: Plain
    key: str


class Cassette:
    """A file of recorded calls, read as it grows; `anew`: it answers nothing, the first recording starts it anew."""

    def __init__(
        self,
        path: str,
        *,
        match: Match | None = None,
        redaction: Redaction | None = None,
        repeat: bool = True,
        anew: bool = False,
    ) -> None:
        self.path = path
        self._place = os.path.abspath(path)
        self._redaction = redaction or Redaction(())
        self.matcher = Matcher(match, self._redaction)
        self._repeat = repeat
        self._answers = not anew
        self._anew = anew
        self._lock = threading.Lock()
        self._reset()

    def _reset(self) -> None:
        self.lines = CassetteLines()
        self._status: tuple[int, ...] = ()
        self._data = b""  # what was read, to see that the rest was only added to it
        self._warned_at = -1
        self._by_key: dict[str, list[int]] = {}
        self._indexed = 0
        self._used: set[int] = set()

    @property
    def unused(self) -> list[RecordedCall]:
        """The calls that were neither served nor recorded here."""
        return [call for index, call in enumerate(self.lines.calls) if index not in self._used]

    def message(self, message: Message) -> Plain:
        """Return a message in the form in which it is written."""
        written: Plain = self._redaction.updates([plain_message(message)])[0]
        return written

    def request(self, messages: list[Plain], options: Mapping[str, object], *, model: str | None) -> Request:
        """Return the request of written messages, which must not change afterwards."""
        tools, plain = plain_tools(options.get("tools")), plain_options(options, model=model)
        sent: Plain = {"messages": messages, **self._redaction.value({"tools": tools, "options": plain})}
        return Request(sent, self.matcher.key(sent))

    def serve(self, request: Request) -> RecordedCall | None:
        """Return the call, of those read so far, that answers a request; each once, in recorded order."""
        with self._lock:
            indices = self._by_key.get(request.key, []) if self._answers else []
            repeated = indices[-1] if self._repeat and indices else None
            index = next((index for index in indices if index not in self._used), repeated)
            if index is None:
                return None
            self._used.add(index)
            return self.lines.calls[index]

    def count(self, request: Request) -> int:
        """Return how often a request was recorded."""
        return len(self._by_key.get(request.key, []))

    def read(self) -> None:
        """Read what was added to the file; a `ValueError` names a line that is not one of a cassette."""
        if self._answers:
            with self._lock:
                self._refresh()

    def _refresh(self) -> None:
        try:
            if _status(os.stat(self._place)) != self._status:
                with open(self._place, "rb", buffering=0) as file, _locked(file.fileno()):
                    self._read(file)
        except FileNotFoundError:
            self._reset()

    def _read(self, file: FileIO) -> None:
        """Read the lines that were added since, or all of them if the file is another one now."""
        status = _status(os.fstat(file.fileno()))
        if status == self._status:
            return
        file.seek(0)
        data = file.read()
        if not data.startswith(self._data):
            self._reset()
        self._add_lines(data)
        self._status = status

    def _add_lines(self, data: bytes) -> None:
        """Add the lines behind those that were read before, which `data` begins with."""
        end = len(self._data)
        try:
            for line in data[end:].splitlines(keepends=True):
                is_complete = line.endswith(b"\n")
                if not line.strip():  # an empty line; or the missing end of the line before
                    self.lines.count += not end or data[end - 1 : end] == b"\n"
                elif is_complete or parse_line(line):  # a last line without its end counts if it can be read
                    self.lines.read(line)
                end += len(line)
        except BadLineError as error:
            place = f"{self.path}, line {self.lines.count + 1}"
            if is_complete:
                message = f"{place}: {error}. Mend the line, or delete the file and record again."
                raise ValueError(message) from error
            if self._warned_at != end:  # its writer was killed
                self._warned_at = end
                logger.warning("%s is cut off; it is skipped, and the next recording overwrites it.", place)
        finally:
            self._data = data[:end]
        for call in self.lines.calls[self._indexed :]:
            self._by_key.setdefault(self.matcher.key(call.request), []).append(self._indexed)
            self._indexed += 1

    def require_writable(self) -> None:
        """Raise a `ChatClientException` if a call could not be recorded, before the model is called."""
        try:
            if os.path.exists(self._place):
                open(self._place, "r+b", buffering=0).close()
            if self._anew or not os.path.exists(self._place):
                folder = os.path.dirname(os.path.realpath(self._place))
                while not os.path.exists(folder):
                    folder = os.path.dirname(folder)
                if not os.access(folder, os.W_OK | os.X_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)
        except OSError as error:
            message = (
                f"This call is not in {self.path}, and cannot be recorded there: {error}. The model was not called. "
                "Make the file writable, or only replay it: mode='replay'."
            )
            raise ChatClientException(message) from error

    def add(self, request: Request, answer: Plain, *, header: str, secrets: Collection[str]) -> RecordedCall:
        """Write a call, `{"updates": [...]}` or `{"response": {...}}`: in whole, or not at all if it has secrets."""
        answer = self._masked(answer)
        contents = [content for update in answer.get("updates", ()) for content in update.get("contents", ())]
        for name in ("text", "arguments"):  # a secret may lie across updates
            self.refuse_secrets("".join(str(content[name]) for content in contents if content.get(name)), secrets)

        def new_lines(lines: CassetteLines) -> list[str]:
            new = [*([] if lines.header else [header]), *lines.lines_for(request.sent, answer)]
            for line in new:
                self.refuse_secrets(line, secrets)
            return new

        with self._lock:
            if self._anew:
                self._replace(new_lines(CassetteLines()))
                self._anew = False
            else:
                with self._opened_locked() as file:
                    self._read(file)
                    try:
                        lines = new_lines(self.lines)
                    except BaseException:
                        if not os.fstat(file.fileno()).st_size:
                            os.unlink(self._place)
                        raise
                    self._append(file, lines)
            self._used.add(len(self.lines.calls) - 1)
            return self.lines.calls[-1]

    def _masked(self, answer: Plain) -> Plain:
        if "updates" in answer:
            return {"updates": self._redaction.updates(answer["updates"])}
        messages = answer["response"].get("messages", [])
        response = self._redaction.value(to_plain(answer["response"], mask=True))
        return {"response": {**response, "messages": self._redaction.updates(messages)} if messages else response}

    def refuse_secrets(self, text: str, secrets: Collection[str]) -> None:
        """Raise a `ChatClientException` that does not show it if a text contains a secret."""
        if contains_secret(text, secrets):
            message = (
                f"Recording this call would write a secret that the client holds, such as its key, into {self.path}; "
                "nothing was written. Take it out of the messages, or replace it while recording: redact=[the secret]."
            )
            raise ChatClientException(message)

    def prune(self) -> int:
        """Rewrite the file with the calls that were served or recorded here, and return how many are gone."""
        with self._lock:
            if self._anew:  # the file is still that of an earlier recording
                return 0
            self._refresh()
            header, gone = self.lines.header, len(self.unused)
            if header is not None and gone:
                self._replace(pruned_lines(header, [self.lines.calls[index] for index in sorted(self._used)]))
                self._used.update(range(len(self.lines.calls)))
            return gone

    def _append(self, file: FileIO, lines: list[str]) -> None:
        size = len(self._data)
        separator = b"\n" if size and not self._data.endswith(b"\n") else b""
        added = separator + "".join(f"{line}\n" for line in lines).encode()
        try:
            file.truncate(size)  # what a killed writer left behind
            unwritten = added
            while unwritten:
                unwritten = unwritten[file.write(unwritten) :]
        except BaseException:
            with suppress(OSError):
                file.truncate(size)
            raise
        self._add_lines(self._data + added)
        self._status = _status(os.fstat(file.fileno()))

    def _replace(self, lines: list[str]) -> None:
        """Put a new file in the place of this one, in one step, and read it."""
        os.makedirs(os.path.dirname(self._place), exist_ok=True)
        target = os.path.realpath(self._place)  # a link stays
        temporary = f"{target}.{os.getpid()}.tmp"
        # A file that is open cannot be replaced on Windows.
        with nullcontext() if sys.platform == "win32" else self._opened_locked():
            try:
                with open(temporary, "w", encoding="utf-8", newline="\n") as file:
                    file.writelines(f"{line}\n" for line in lines)
                with suppress(OSError):
                    os.chmod(temporary, os.stat(target).st_mode)
                os.replace(temporary, target)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary)
                raise
        self._reset()
        self._refresh()

    @contextmanager
    def _opened_locked(self) -> Iterator[FileIO]:
        """The file, open for appending and locked; made if it is missing."""
        os.makedirs(os.path.dirname(self._place), exist_ok=True)
        while True:
            with open(self._place, "a+b", buffering=0) as file, _locked(file.fileno()):
                # While this waited for the lock, another file may have taken the place.
                if os.path.exists(self._place) and os.path.samestat(os.fstat(file.fileno()), os.stat(self._place)):
                    yield file
                    return


def _status(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


if sys.platform == "win32":
    import msvcrt

    _FAR_AWAY = 0x7FFF_FFF0  # others cannot read locked bytes there, so one is locked that no cassette has

    @contextmanager
    def _locked(descriptor: int) -> Iterator[None]:
        os.lseek(descriptor, _FAR_AWAY, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
        try:
            yield
        finally:
            os.lseek(descriptor, _FAR_AWAY, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    @contextmanager
    def _locked(descriptor: int) -> Iterator[None]:
        with suppress(OSError):  # a file system without locks: one writer at a time is then up to its users
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield  # closing the file releases the lock

"""The recorded calls of one cassette: find, add, prune, and explain a miss. Safe for tasks, threads and processes."""

from __future__ import annotations

import errno
import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from difflib import SequenceMatcher
from io import FileIO
from itertools import zip_longest
from typing import Any, Literal, NamedTuple

from agentbench.agents.clients.cassette.lines import (
    BadLineError,
    CassetteLines,
    StoredCall,
    parse_line,
    pruned_lines,
)
from agentbench.agents.clients.cassette.request import (
    Match,
    Matcher,
    Plain,
    Redaction,
    contains_secret,
    plain_message,
    plain_options,
    plain_tools,
    prompt_of,
    redact_secrets,
)
from agentbench.exceptions import CassetteMissError, ChatClientException
from agentbench.messages.message import Message
from agentbench.serialization.plain import are_equal

logger = logging.getLogger("agentbench")


class Request(NamedTuple):
    """A request in its stored form, with a key that is equal for equal requests."""

    sent: Plain
    key: str


class Cassette:
    """A file of recorded calls, read incrementally. With `anew`, the first recording replaces the file."""

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
        self._data = b""  # the data read so far, to detect whether the file only grew
        self._warned_at = -1
        self._by_key: dict[str, list[int]] = {}
        self._indexed = 0
        self._used: set[int] = set()

    @property
    def unused(self) -> list[StoredCall]:
        """The calls that this object neither served nor recorded."""
        return [call for index, call in enumerate(self.lines.calls) if index not in self._used]

    def message(self, message: Message) -> Plain:
        """Convert a message to its stored form."""
        written: Plain = self._redaction.updates([plain_message(message)])[0]
        return written

    def request(self, messages: list[Plain], options: Mapping[str, object], *, model: str | None) -> Request:
        """Make a request from stored messages, which must not change afterwards."""
        tools, plain = plain_tools(options.get("tools")), plain_options(options, model=model)
        sent: Plain = {"messages": messages, **self._redaction.value({"tools": tools, "options": plain})}
        return Request(sent, self.matcher.key(sent))

    def serve(self, request: Request) -> StoredCall | None:
        """Return the next call that answers a request, in recorded order and each once; `None` if there is none."""
        with self._lock:
            indices = self._by_key.get(request.key, []) if self._answers else []
            repeated = indices[-1] if self._repeat and indices else None
            index = next((index for index in indices if index not in self._used), repeated)
            if index is None:
                return None
            self._used.add(index)
            return self.lines.calls[index]

    def count(self, request: Request) -> int:
        """Return the number of recordings of a request."""
        return len(self._by_key.get(request.key, []))

    def read(self) -> None:
        """Read the new lines of the file; raise a `ValueError` for an invalid line."""
        if self._answers:
            with self._lock:
                self._refresh()

    def _refresh(self) -> None:
        try:
            if _status(os.stat(self._place)) != self._status:
                with open(self._place, "rb", buffering=0) as file, _lock_file(file.fileno()):
                    self._read(file)
        except FileNotFoundError:
            self._reset()

    def _read(self, file: FileIO) -> None:
        """Read the new lines, or all lines if the file was replaced."""
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
        """Add the lines of `data` after those that have been read before."""
        end = len(self._data)
        try:
            for line in data[end:].splitlines(keepends=True):
                is_complete = line.endswith(b"\n")
                if not line.strip():  # an empty line, or the missing end of the previous line
                    self.lines.count += not end or data[end - 1 : end] == b"\n"
                elif is_complete or parse_line(line):  # a last line without a newline counts if it can be parsed
                    self.lines.read(line)
                end += len(line)
        except BadLineError as error:
            place = f"{self.path}, line {self.lines.count + 1}"
            if is_complete:
                message = f"{place}: {error}. Fix the line, or delete the file and record again."
                raise ValueError(message) from error
            if self._warned_at != end:  # its writer was killed
                self._warned_at = end
                logger.warning("%s is incomplete; it is skipped, and the next recording overwrites it.", place)
        finally:
            self._data = data[:end]
        for call in self.lines.calls[self._indexed :]:
            self._by_key.setdefault(self.matcher.key(call.request), []).append(self._indexed)
            self._indexed += 1

    def require_writable(self) -> None:
        """Raise a `ChatClientException` before the model is called if the call could not be recorded."""
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
                "Make the file writable, or use mode='replay'."
            )
            raise ChatClientException(message) from error

    def add(self, request: Request, answer: Plain, *, header: str, secrets: Collection[str]) -> StoredCall:
        """Write a call, `{"updates": [...]}` or `{"response": {...}}`, unless it contains secrets."""
        answer = self._redaction.answer(answer)
        contents = [content for update in answer.get("updates", ()) for content in update.get("contents", ())]
        for name in ("text", "arguments"):  # a secret may be split across updates
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
                with self._open_locked() as file:
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

    def refuse_secrets(self, text: str, secrets: Collection[str]) -> None:
        """Raise a `ChatClientException` if a text contains a secret, without showing the secret."""
        if contains_secret(text, secrets):
            message = (
                f"Recording this call would write a secret of the client, such as its API key, to {self.path}, so "
                "nothing was written. Remove it from the messages, or pass it as redact=[...] to replace it."
            )
            raise ChatClientException(message)

    def prune(self) -> int:
        """Keep only the calls that were served or recorded here, and return the number of removed calls."""
        with self._lock:
            if self._anew:  # the file still contains an earlier recording
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
            file.truncate(size)  # removes the remains of a killed writer
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
        """Replace the file atomically, and read it."""
        os.makedirs(os.path.dirname(self._place), exist_ok=True)
        target = os.path.realpath(self._place)  # keeps a symbolic link
        temporary = f"{target}.{os.getpid()}.tmp"
        # Windows cannot replace an open file.
        with nullcontext() if sys.platform == "win32" else self._open_locked():
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
    def _open_locked(self) -> Iterator[FileIO]:
        """Open the file for appending and lock it; create it if it is missing."""
        os.makedirs(os.path.dirname(self._place), exist_ok=True)
        while True:
            with open(self._place, "a+b", buffering=0) as file, _lock_file(file.fileno()):
                # The file may have been replaced while this waited for the lock.
                if os.path.exists(self._place) and os.path.samestat(os.fstat(file.fileno()), os.stat(self._place)):
                    yield file
                    return


def _status(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


# ---- a request that was not recorded


if sys.platform == "win32":
    import msvcrt

    _FAR_AWAY = 0x7FFF_FFF0  # on Windows others cannot read locked bytes, so this locks a byte beyond every cassette

    @contextmanager
    def _lock_file(descriptor: int) -> Iterator[None]:
        os.lseek(descriptor, _FAR_AWAY, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
        try:
            yield
        finally:
            os.lseek(descriptor, _FAR_AWAY, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

elif sys.platform == "emscripten":  # a browser tab has one process, and no locks

    @contextmanager
    def _lock_file(descriptor: int) -> Iterator[None]:
        yield

else:
    import fcntl

    @contextmanager
    def _lock_file(descriptor: int) -> Iterator[None]:
        with suppress(OSError):  # on a file system without locks, users must ensure that there is one writer
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield  # closing the file releases the lock


Reason = Literal["replay", "no client", "offline"]

_REMEDIES: dict[Reason, str] = {
    "replay": "pass a client and mode='auto', which adds missing calls, or mode='record', which starts a new file",
    "no client": "pass a client or a function that makes one; mode='record' starts a new file",
    "offline": "unset AGENTBENCH_OFFLINE, because recording needs the network",
}

_MOST_COMPARED = 400  # characters of two prompts
_LONGEST = 200
_LEAD = 40  # common characters of two long texts that are shown before the first difference
_ABSENT = object()


def miss_error(cassette: Cassette, request: Request, *, reason: Reason, secrets: Collection[str]) -> CassetteMissError:
    """Return the error with the nearest recorded call, the first difference and a remedy; secrets are masked."""
    canonical = cassette.matcher.canonical
    sent, equal = canonical(request.sent), cassette.count(request)
    messages = len(sent.get("messages") or ())
    lines = [f"No recorded answer in {cassette.path} to a request of {messages} message{'' if messages == 1 else 's'}."]
    nearest, difference = nearest_call(sent, cassette.lines.calls, canonical), None
    if equal:
        times = "once" if equal == 1 else f"{equal} times"
        lines.append(f"It was recorded and served {times}. Pass on_repeat='last' to serve the last answer again.")
    elif nearest is None:
        lines.append("The file contains no calls.")
    else:
        lines.append(f"The nearest call is call {nearest.number} in line {nearest.line}.")
        difference = first_difference(canonical(nearest.request), sent)
        if difference is not None:
            difference = redact_secrets(difference, secrets)
            lines.append(f"First difference: {difference}")
    lines.append(f"To record it, {_REMEDIES[reason]}.")
    return CassetteMissError(
        redact_secrets("\n".join(lines), secrets),
        path=cassette.path,
        request=Redaction(secrets).value(sent),
        nearest=nearest,
        difference=difference,
    )


def nearest_call(request: Plain, calls: Sequence[StoredCall], canonical: Callable[[Plain], Plain]) -> StoredCall | None:
    """Return the call with the longest common run of messages; ties are broken by tools, prompt and age."""
    messages, tools, prompt = _texts(request.get("messages")), request.get("tools"), prompt_of(request)[:_MOST_COMPARED]

    def likeness(call: StoredCall) -> tuple[int, bool, float, int, int]:
        form = canonical(call.request)
        recorded = _texts(form.get("messages"))
        run = SequenceMatcher(None, recorded, messages, autojunk=False).find_longest_match().size
        ratio = SequenceMatcher(None, prompt_of(form)[:_MOST_COMPARED], prompt).quick_ratio()
        return run, form.get("tools") == tools, ratio, -abs(len(recorded) - len(messages)), call.line

    return max(calls, key=likeness, default=None)


def _texts(values: Any) -> list[str]:
    return [json.dumps(value, sort_keys=True, default=str) for value in values or ()]


def first_difference(recorded: Any, now: Any) -> str | None:
    """Return the first difference of two plain values as a path and shortened values; `None` if equal."""
    first = next(_differences(recorded, now, ""), None)
    if first is None:
        return None
    path, *values = first
    texts = ["(absent)" if each is _ABSENT else json.dumps(each, ensure_ascii=False, default=repr) for each in values]
    common = len(os.path.commonprefix(texts))  # noqa: RUF071 - of characters
    start = common - _LEAD if max(map(len, texts)) > _LONGEST and common > _LONGEST // 2 else 0
    texts = [f"…{text[start + 1 :]}" if start else text for text in texts]
    texts = [text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…" for text in texts]
    return f"{path or 'the request'}\n  recorded: {texts[0]}\n  now:      {texts[1]}"


def _differences(recorded: Any, now: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(recorded, Mapping) and isinstance(now, Mapping):
        for name in {**recorded, **now}:
            place = name if name.isidentifier() else f"[{json.dumps(name, ensure_ascii=False)}]"
            dot = "." if path and name.isidentifier() else ""
            yield from _differences(recorded.get(name, _ABSENT), now.get(name, _ABSENT), f"{path}{dot}{place}")
    elif isinstance(recorded, list) and isinstance(now, list):
        for index, (before, after) in enumerate(zip_longest(recorded, now, fillvalue=_ABSENT)):
            yield from _differences(before, after, f"{path}[{index}]")
    elif not are_equal(recorded, now):
        yield path, recorded, now

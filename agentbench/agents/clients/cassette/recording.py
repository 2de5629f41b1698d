"""The recorded calls of one cassette: looked up, added to, pruned. Safe between tasks, threads and processes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from agentbench.agents.clients.cassette.file import CassetteFile
from agentbench.agents.clients.cassette.keys import RequestKeys
from agentbench.agents.clients.cassette.nearest import Nearest, nearest_call
from agentbench.agents.clients.cassette.plain import Plain, plain_message
from agentbench.agents.clients.cassette.recorded import RecordedCall
from agentbench.agents.clients.cassette.redaction import Redaction
from agentbench.agents.clients.cassette.request import Match, canonical_request, key_of, request_as_sent
from agentbench.agents.clients.cassette.secrets import find_secret
from agentbench.agents.clients.cassette.shelf import Shelf
from agentbench.agents.clients.cassette.tape import Tape, pruned_lines
from agentbench.exceptions import ChatClientException
from agentbench.messages.message import Message

__all__ = ["Recording", "Request"]


class Request(NamedTuple):
    """A request to the model.

    Attributes:
        sent: As it is written.
        key: Equal for requests that are.
    """

    sent: Plain
    key: str


class Recording:
    """What a cassette's client knows of its file.

    Args:
        path: The file.
        match: Rewrites what is compared.
        redaction: Replaces text before anything is compared or written.
        repeat: Whether the last of equal requests is served again and again.
        anew: Whether nothing is served, and the first call that is recorded starts the file anew.
    """

    def __init__(
        self, path: str, *, match: Match | None, redaction: Redaction, repeat: bool, anew: bool = False
    ) -> None:
        self._file = CassetteFile(path)
        self._match = match
        self._redaction = redaction
        self._key_of = RequestKeys(redaction.value) if match is None else lambda sent: key_of(self.canonical(sent))
        self._shelf = Shelf(self._key_of, repeat=repeat)
        self._serves = not anew
        self._anew = anew
        self._lock = threading.Lock()

    @property
    def path(self) -> str:
        """The file, as given."""
        return self._file.path

    @property
    def header(self) -> Plain:
        """What the first line says; empty without one."""
        return self._file.tape.header or {}

    @property
    def calls(self) -> Sequence[RecordedCall]:
        """Every call of the file, in its order, as far as it was read."""
        return tuple(self._file.tape.calls)

    @property
    def used(self) -> list[RecordedCall]:
        """Those that were served or recorded here."""
        return self._shelf.used

    @property
    def unused(self) -> list[RecordedCall]:
        """The others."""
        return self._shelf.unused

    def message(self, message: Message) -> Plain:
        """Bring a message into the form in which it is written."""
        written: Plain = self._redaction.value(plain_message(message))
        return written

    def request(self, messages: list[Plain], options: Mapping[str, Any], *, model: str | None) -> Request:
        """Bring a request into the form in which it is written, and find its key.

        Args:
            messages: As they are written; not to be changed afterwards.
            options: Of the call.
            model: What `model` is where the options say nothing.
        """
        sent: Plain = self._redaction.value(request_as_sent([], options, model=model))
        sent["messages"] = messages
        return Request(sent, self._key_of(sent))

    def canonical(self, sent: Plain) -> Plain:
        """Bring a request into the form in which it is compared."""
        return canonical_request(self._redaction.value(sent), self._match)

    def read(self) -> None:
        """Take in what is in the file by now, if it is to answer.

        Raises:
            OSError: It cannot be read.
            ValueError: A line is not one of a cassette; the message names file and line.
        """
        if self._serves:
            with self._lock:
                self._refresh()

    def serve(self, request: Request) -> RecordedCall | None:
        """The recorded call that answers a request, of those read so far; each once, in recorded order."""
        with self._lock:
            return self._shelf.serve(request.key) if self._serves else None

    def nearest(self, request: Request) -> Nearest | None:
        """The recorded call that is most like a request."""
        return nearest_call(self.canonical(request.sent), self._file.tape.calls, self.canonical)

    def count(self, request: Request) -> int:
        """How often a request was recorded."""
        return self._shelf.count(request.key)

    def require_writable(self) -> None:
        """Do nothing if it looks as if a call can be recorded.

        Raises:
            ChatClientException: The file cannot be written.
        """
        try:
            self._file.require_writable(replace=self._anew)
        except OSError as error:
            message = (
                f"This call is not in {self.path}, and cannot be recorded there: {error}. The model was not asked. "
                "Make the file writable, or only replay it: mode='replay'."
            )
            raise ChatClientException(message) from error

    def add(
        self, request: Request, answer: Plain, *, header: Callable[[], str], secrets: Collection[str]
    ) -> RecordedCall:
        """Write a call: all of its lines, or none.

        Args:
            request: What was asked.
            answer: `{"updates": [...]}` or `{"response": {...}}`.
            header: Makes the first line, for a file that has none.
            secrets: Text that must not get into the file.

        Raises:
            ChatClientException: It would get there.
            OSError: The file cannot be written.
        """
        answer = self._redacted(answer)
        self.refuse_secrets(_told(answer), secrets)

        def lines_of(tape: Tape) -> list[str]:
            head = [] if tape.header else [header()]
            lines = [*head, *tape.lines_for(request.sent, answer)]
            for line in lines:
                self.refuse_secrets(line, secrets)
            return lines

        with self._lock:
            if self._anew:
                self._file.replace(lines_of(Tape()))
                self._anew = False
            else:
                self._file.append(lines_of)
            self._shelf.take_in(self._file.tape)
            return self._shelf.use_last()

    def prune(self) -> int:
        """Rewrite the file with the calls that were served or recorded here.

        Returns:
            How many calls are gone.
        """
        with self._lock:
            if self._anew:  # the file is still that of an earlier recording
                return 0
            self._refresh()
            header, gone = self._file.tape.header, len(self._shelf.unused)
            if header is not None and gone:
                self._file.replace(pruned_lines(header, self._shelf.used))
                self._shelf.take_in(self._file.tape)
                self._shelf.use_all()
            return gone

    def refuse_secrets(self, text: str, secrets: Collection[str]) -> None:
        """Raise if a text holds a secret.

        Raises:
            ChatClientException: It does. The secret is not shown.
        """
        if find_secret(text, secrets):
            message = (
                f"Recording this call would write a secret that the client holds, such as its key, into {self.path}; "
                "nothing was written. Take it out of the messages, or replace it while recording: redact=[the secret]."
            )
            raise ChatClientException(message)

    def _refresh(self) -> None:
        self._file.refresh()
        self._shelf.take_in(self._file.tape)

    def _redacted(self, answer: Plain) -> Plain:
        if "updates" in answer:
            return {"updates": self._redaction.updates(answer["updates"])}
        redacted: Plain = self._redaction.value(answer)
        return redacted


def _told(answer: Plain) -> str:
    """The text of a streamed answer in one piece: a secret may lie across updates."""
    contents = [content for update in answer.get("updates", ()) for content in update.get("contents", ())]
    return "".join(
        str(content[name]) for name in ("text", "arguments") for content in contents if content.get(name) is not None
    )

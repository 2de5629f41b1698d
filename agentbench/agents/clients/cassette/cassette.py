"""The recorded calls of one cassette: found, added to, pruned. Safe between tasks, threads and processes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from agentbench.agents.clients.cassette.file import CassetteFile
from agentbench.agents.clients.cassette.lines import CassetteLines, RecordedCall, pruned_lines
from agentbench.agents.clients.cassette.plain import Plain, plain_message, plain_options, plain_tools
from agentbench.agents.clients.cassette.request import Match, Matcher
from agentbench.agents.clients.cassette.secrets import Redaction, contains_secret
from agentbench.exceptions import ChatClientException
from agentbench.messages.message import Message

__all__ = ["Cassette", "Request"]


class Request(NamedTuple):
    """A request to the model as it is written, with a key that is equal for equal requests."""

    sent: Plain
    key: str


class Cassette:
    """A file of recorded calls, and which of them were used.

    Args:
        path: The file.
        match: Rewrites what is compared.
        redaction: Replaces text before anything is compared or written.
        repeat: Whether the last of equal requests is served again and again.
        anew: Whether the file answers nothing, and the first call that is recorded starts it anew.
    """

    def __init__(
        self, path: str, *, match: Match | None, redaction: Redaction, repeat: bool, anew: bool = False
    ) -> None:
        self.path = path
        self.matcher = Matcher(match, redaction)
        self._file = CassetteFile(path)
        self._redaction = redaction
        self._repeat = repeat
        self._answers = not anew
        self._anew = anew
        self._lock = threading.Lock()
        self._index_calls()

    @property
    def header(self) -> Plain:
        """The first line; empty without one."""
        return self._file.lines.header or {}

    @property
    def calls(self) -> Sequence[RecordedCall]:
        """Every call that was read, in the order of the file."""
        return tuple(self._file.lines.calls)

    @property
    def unused(self) -> list[RecordedCall]:
        """The calls that were neither served nor recorded here."""
        return [call for index, call in enumerate(self._file.lines.calls) if index not in self._used]

    def message(self, message: Message) -> Plain:
        """Return a message in the form in which it is written."""
        written: Plain = self._redaction.value(plain_message(message))
        return written

    def request(self, messages: list[Plain], options: Mapping[str, object], *, model: str | None) -> Request:
        """Return the request of written messages, which must not change afterwards."""
        tools, plain = plain_tools(options.get("tools")), plain_options(options, model=model)
        sent: Plain = {"messages": messages, **self._redaction.value({"tools": tools, "options": plain})}
        return Request(sent, self.matcher.key(sent))

    def read(self) -> None:
        """Read what was added to the file, unless it is to be started anew."""
        if self._answers:
            with self._lock:
                self._refresh()

    def serve(self, request: Request) -> RecordedCall | None:
        """Return the recorded call that answers a request, of those read so far; each once, in recorded order."""
        with self._lock:
            indices = self._by_key.get(request.key, []) if self._answers else []
            repeated = indices[-1] if self._repeat and indices else None
            index = next((index for index in indices if index not in self._used), repeated)
            if index is None:
                return None
            self._used.add(index)
            return self._file.lines.calls[index]

    def count(self, request: Request) -> int:
        """Return how often a request was recorded."""
        return len(self._by_key.get(request.key, []))

    def require_writable(self) -> None:
        """Raise a `ChatClientException` if a call could not be recorded, before the model is called."""
        try:
            self._file.require_writable(replace=self._anew)
        except OSError as error:
            message = (
                f"This call is not in {self.path}, and cannot be recorded there: {error}. The model was not called. "
                "Make the file writable, or only replay it: mode='replay'."
            )
            raise ChatClientException(message) from error

    def add(
        self, request: Request, answer: Plain, *, header: Callable[[], str], secrets: Collection[str]
    ) -> RecordedCall:
        """Write a call: all of its lines, or none.

        Args:
            request: The request.
            answer: `{"updates": [...]}` or `{"response": {...}}`.
            header: Makes the first line, for a file that has none.
            secrets: Text that must not get into the file: a `ChatClientException` refuses it.
        """
        updates = answer.get("updates")
        answer = self._redaction.value(answer) if updates is None else {"updates": self._redaction.updates(updates)}
        contents = [content for update in answer.get("updates", ()) for content in update.get("contents", ())]
        for name in ("text", "arguments"):  # a secret may lie across updates
            self.refuse_secrets("".join(str(content[name]) for content in contents if content.get(name)), secrets)

        def lines_for(lines: CassetteLines) -> list[str]:
            new = [*([] if lines.header else [header()]), *lines.lines_for(request.sent, answer)]
            for line in new:
                self.refuse_secrets(line, secrets)
            return new

        with self._lock:
            if self._anew:
                self._file.replace(lines_for(CassetteLines()))
                self._anew = False
            else:
                self._file.append(lines_for)
            self._index_calls()
            self._used.add(len(self._file.lines.calls) - 1)
            return self._file.lines.calls[-1]

    def prune(self) -> int:
        """Rewrite the file with the calls that were served or recorded here, and return how many are gone."""
        with self._lock:
            if self._anew:  # the file is still that of an earlier recording
                return 0
            self._refresh()
            header, gone = self._file.lines.header, len(self.unused)
            if header is not None and gone:
                used = [call for index, call in enumerate(self._file.lines.calls) if index in self._used]
                self._file.replace(pruned_lines(header, used))
                self._index_calls()
                self._used.update(range(len(self._file.lines.calls)))
            return gone

    def refuse_secrets(self, text: str, secrets: Collection[str]) -> None:
        """Raise a `ChatClientException` that does not show it if a text contains a secret."""
        if contains_secret(text, secrets):
            message = (
                f"Recording this call would write a secret that the client holds, such as its key, into {self.path}; "
                "nothing was written. Take it out of the messages, or replace it while recording: redact=[the secret]."
            )
            raise ChatClientException(message)

    def _refresh(self) -> None:
        self._file.refresh()
        self._index_calls()

    def _index_calls(self) -> None:
        """Note under which keys new calls are found; all of them if the file is another one than before."""
        lines = self._file.lines
        if lines is not getattr(self, "_indexed_lines", None):
            self._indexed_lines, self._indexed_count = lines, 0
            self._by_key: dict[str, list[int]] = {}
            self._used: set[int] = set()
        for index in range(self._indexed_count, len(lines.calls)):
            self._by_key.setdefault(self.matcher.key(lines.calls[index].request), []).append(index)
            self._indexed_count = index + 1

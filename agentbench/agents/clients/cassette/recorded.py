"""One recorded call: what was asked, what was answered."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from agentbench.agents.clients.cassette.request import prompt_of

__all__ = ["RecordedCall"]

_SHOWN = 60


@dataclass(frozen=True, eq=False)
class RecordedCall:
    """A call of a model as it stands in a cassette.

    Attributes:
        number: Its number in the file, counted from 1.
        line: The line of the file that it stands in, counted from 1.
        request: `messages`, `tools` and `options` as they were sent, as plain JSON values.
        response: The answer, if it was not streamed: a `ChatResponse` as its `to_dict()`.
        updates: The answer, if it was streamed: every `ChatResponseUpdate` as its `to_dict()`.
    """

    number: int
    line: int
    request: dict[str, Any] = field(repr=False)
    response: dict[str, Any] | None = field(default=None, repr=False)
    updates: list[dict[str, Any]] | None = field(default=None, repr=False)

    @property
    def prompt(self) -> str:
        """The text of the last user message of the request."""
        return prompt_of(self.request)

    @property
    def answer(self) -> str:
        """The text of the answer; a tool that it calls is shown as `name(arguments)`."""
        if self.updates is not None:
            contents = [content for update in self.updates for content in update.get("contents", ())]
        else:
            messages = (self.response or {}).get("messages", ())
            contents = [content for message in messages for content in message.get("contents", ())]
        return _told(contents)

    def __repr__(self) -> str:
        return f"<call {self.number}: {_cut(self.prompt)!r} -> {_cut(self.answer)!r}>"


def _told(contents: list[dict[str, Any]]) -> str:
    """Texts as they are; calls one by one, also where their arguments came in pieces."""
    said: list[str] = []
    calls: list[list[str]] = []
    for content in contents:
        if content.get("type") == "text":
            said.append(str(content.get("text") or ""))
        elif content.get("type") == "function_call":
            arguments = content.get("arguments")
            piece = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
            if content.get("name") or not calls:
                calls.append([str(content.get("name") or "?")])
            calls[-1].append(piece)
    shown = [f"{name}({''.join(pieces)})" for name, *pieces in calls]
    return " ".join([part for part in ("".join(said).strip(), *shown) if part])


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"

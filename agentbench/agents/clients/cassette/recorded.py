"""One recorded call: what was asked, what was answered."""

from __future__ import annotations

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
        return "".join(_spoken(content) for content in contents).strip()

    def __repr__(self) -> str:
        return f"<call {self.number}: {_cut(self.prompt)!r} -> {_cut(self.answer)!r}>"


def _spoken(content: dict[str, Any]) -> str:
    if content.get("type") == "text":
        return str(content.get("text") or "")
    if content.get("type") != "function_call":
        return ""
    arguments = content.get("arguments")
    if not content.get("name"):  # a later piece of a call that came in pieces
        return str(arguments or "")
    return f" {content['name']} {'' if arguments is None else arguments}"


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"

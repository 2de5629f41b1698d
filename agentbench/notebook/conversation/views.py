"""How messages, responses and updates show themselves, and `transcript` for any list of messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_args

from agentbench._display import Displayable
from agentbench.notebook.conversation.html import conversation_html
from agentbench.notebook.conversation.model import Turn, parts_of, turns_of
from agentbench.notebook.conversation.text import text_lines
from agentbench.notebook.escaping import esc
from agentbench.notebook.prose import Render

if TYPE_CHECKING:
    from agentbench.messages.content.content import Content
    from agentbench.messages.message import Message

__all__ = ["Transcript", "content_bundle", "message_bundle", "response_bundle", "transcript", "update_bundle"]

Bundle = dict[str, Any]

LIMIT = 60


def transcript(conversation: Any, *, render: Render = "plain", limit: int = LIMIT) -> Transcript:
    """Show a conversation in a cell: who said what, with the calls of tools and the reasoning folded.

    Args:
        conversation: Messages, or anything that has `messages` (a response), or a session whose history is kept in
            memory.
        render: How the texts of models are shown: as they are, or with a little safe Markdown (`markdown`). What people
            wrote is always shown as it is.
        limit: Most turns that are shown, the latest.

    Raises:
        TypeError: There are no messages in what was given.
        ValueError: `render` is something else, or `limit` is below 1.

    Example:
        ```python
        transcript(session)
        ```
    """
    if render not in get_args(Render):
        message = f"render={render!r} is not possible. Choose one of {', '.join(get_args(Render))}."
        raise ValueError(message)
    if limit < 1:
        message = f"limit={limit!r} is not possible. Expected 1 or more turns."
        raise ValueError(message)
    return Transcript(tuple(_messages_of(conversation)), render, limit)


@dataclass(frozen=True, repr=False)
class Transcript(Displayable):
    """A conversation to look at; made by `transcript`.

    Attributes:
        messages: The messages, all.
        render: How texts of models are shown.
        limit: Most turns that are shown.
        title: What is shown; empty for a bare conversation.
        facts: One line about it, below.
    """

    messages: tuple[Message, ...]
    render: Render = "plain"
    limit: int = LIMIT
    title: str = ""
    facts: Sequence[str] = field(default=())

    @property
    def text(self) -> str:
        """The conversation as plain text."""
        turns, hidden = self._shown()
        head = [self.title] if self.title else []
        head += [f"… {hidden:,} earlier"] if hidden else []
        return "\n".join([*head, *text_lines(turns), *([self._fact_line()] if self.facts else [])]) or "(no messages)"

    @property
    def html(self) -> str:
        """What a notebook shows."""
        turns, hidden = self._shown()
        facts = self._fact_line() or ("" if turns else "(no messages)")
        return conversation_html(self.title, turns, facts, render=self.render, hidden=hidden)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Transcript({len(self.messages)} messages)"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Bundle:
        return {"text/plain": self.text, "text/html": self.html}

    def _shown(self) -> tuple[list[Turn], int]:
        turns = turns_of(self.messages)
        return turns[-self.limit :], max(len(turns) - self.limit, 0)

    def _fact_line(self) -> str:
        return esc(" · ".join(self.facts), into="line", limit=400)


def message_bundle(message: Any) -> Bundle:
    """One message."""
    return Transcript((message,))._repr_mimebundle_()


def response_bundle(response: Any) -> Bundle:
    """A response: its messages, then model, tokens and how it ended."""
    return Transcript(tuple(response.messages), facts=tuple(_response_facts(response)))._repr_mimebundle_()


def update_bundle(update: Any) -> Bundle:
    """One streamed update."""
    return _loose(update.contents, str(update.role or "assistant"), update.author_name or "")


def content_bundle(content: Any) -> Bundle:
    """One content."""
    return _loose([content], content.type.replace("_", " "), "")


def _loose(contents: Iterable[Content], role: str, name: str) -> Bundle:
    turns = [Turn(role, name, tuple(parts_of(contents)))]
    html = conversation_html("", turns, "", render="plain")
    return {"text/plain": "\n".join(text_lines(turns)), "text/html": html}


def _response_facts(response: Any) -> Iterator[str]:
    model = getattr(response, "model", None)
    if model:
        yield f"model {model}"
    yield from _token_facts(response.usage_details or {})
    if response.finish_reason and response.finish_reason != "stop":
        yield f"ended: {response.finish_reason}"
    waiting = len(getattr(response, "user_input_requests", ()))
    if waiting:
        yield f"waits for {waiting} answer{'' if waiting == 1 else 's'}"


def _token_facts(usage: Mapping[str, Any]) -> Iterator[str]:
    read, written = usage.get("input_token_count"), usage.get("output_token_count")
    if read is not None or written is not None:
        yield f"{read or 0:,} tokens in, {written or 0:,} out"


def _messages_of(conversation: Any) -> Iterable[Message]:
    from agentbench.messages.message import Message

    if isinstance(conversation, Message):
        return [conversation]
    found = getattr(conversation, "messages", None)
    if found is None and isinstance(getattr(conversation, "state", None), Mapping):
        found = _stored_messages(conversation.state)
    if found is None:
        found = conversation
    if isinstance(found, Sequence) and not isinstance(found, str) and all(isinstance(m, Message) for m in found):
        return found
    message = (
        f"transcript() was given a {type(conversation).__name__}. Expected messages, a response, or a session whose "
        "history is kept in memory."
    )
    raise TypeError(message)


def _stored_messages(state: Mapping[str, Any]) -> Sequence[Message]:
    """The messages that a history provider keeps in a session's state."""
    for kept in state.values():
        if isinstance(kept, Mapping) and isinstance(kept.get("messages"), Sequence):
            return kept["messages"]  # type: ignore[no-any-return]
    return ()

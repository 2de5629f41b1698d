"""Folding a stream's updates into one response. Takes time in proportion to what it is given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from agentbench.messages.content import Content
from agentbench.messages.content_addition import joined_arguments
from agentbench.messages.message import Message
from agentbench.messages.usage import UsageDetails, add_usage_details

if TYPE_CHECKING:
    from agentbench.messages.update import AgentResponseUpdate, ChatResponseUpdate

#: Under this name a client says to which of several calls a piece belongs, where the service numbers them.
TOOL_CALL_INDEX: Final = "tool_call_index"


def fold_updates(updates: Iterable[ChatResponseUpdate | AgentResponseUpdate], latest: Sequence[str]) -> dict[str, Any]:
    """Return the fields of the response that the updates make.

    Args:
        updates: In their order. They are not changed.
        latest: Names of fields of which the last value that is not empty holds.
    """
    messages: list[_OpenMessage] = []
    fields: dict[str, Any] = {}
    usage: UsageDetails | None = None
    properties: dict[str, Any] = {}
    raw: list[Any] = []
    token: Any = None
    for update in updates:
        if not messages or messages[-1].ends_before(update):
            messages.append(_OpenMessage())
        found = messages[-1].take(update)
        if found is not None:
            usage = add_usage_details(usage, found)
        for name in latest:
            value = getattr(update, name)
            if value:
                fields[name] = value
        if update.additional_properties:
            properties.update(update.additional_properties)
        raw.append(update.raw_representation)
        token = update.continuation_token
    return {
        **fields,
        "messages": [message.close() for message in messages],
        "usage_details": usage,
        "additional_properties": properties,
        "continuation_token": token,
        "raw_representation": raw,
    }


class _OpenMessage:
    """A message whose contents are still coming."""

    __slots__ = ("author_name", "by_id", "by_index", "entries", "message_id", "role")

    def __init__(self) -> None:
        self.role = "assistant"
        self.author_name: str | None = None
        self.message_id: Any = None
        self.entries: list[Content | _OpenCall] = []
        self.by_id: dict[str, _OpenCall] = {}
        self.by_index: dict[Any, _OpenCall] = {}

    def ends_before(self, update: Any) -> bool:
        """Tell whether an update belongs to a further message."""
        if update.role and update.role != self.role:
            return True
        return bool(self.message_id and update.message_id and update.message_id != self.message_id)

    def take(self, update: Any) -> UsageDetails | None:
        """Take the contents of an update, and return the usage among them."""
        if update.role is not None:
            self.role = update.role
        if update.author_name is not None:
            self.author_name = update.author_name
        if update.message_id:
            self.message_id = update.message_id
        usage: UsageDetails | None = None
        for content in update.contents:
            kind = content.type
            if kind == "function_call":
                self._take_call(content)
            elif kind == "usage":
                usage = add_usage_details(usage, content.usage_details)
            else:
                self.entries.append(content)
        return usage

    def _take_call(self, piece: Content) -> None:
        index = piece.additional_properties.get(TOOL_CALL_INDEX)
        call = self._call_of(piece, index)
        if call is None or not call.take(piece):
            call = _OpenCall(piece)
            self.entries.append(call)
        if call.call_id:
            self.by_id.setdefault(call.call_id, call)
        if index is not None:
            self.by_index[index] = call

    def _call_of(self, piece: Content, index: Any) -> _OpenCall | None:
        if piece.call_id:
            known = self.by_id.get(piece.call_id)
            if known is not None:
                return known
        if index is not None:
            return self.by_index.get(index)
        last = self.entries[-1] if self.entries else None
        return last if isinstance(last, _OpenCall) else None

    def close(self) -> Message:
        entries = [entry.close() if isinstance(entry, _OpenCall) else entry for entry in self.entries]
        contents = list(_coalesced_reasoning(_coalesced_texts(entries)))
        return Message(self.role, contents, author_name=self.author_name, message_id=self.message_id)


class _OpenCall:
    """A call whose arguments are still coming."""

    __slots__ = ("call_id", "is_text", "pieces")

    def __init__(self, first: Content) -> None:
        self.pieces = [first]
        self.call_id = first.call_id
        self.is_text = isinstance(first.arguments, str) if first.arguments else None

    def take(self, piece: Content) -> bool:
        """Add a piece, unless it is of another call."""
        numbered = TOOL_CALL_INDEX in piece.additional_properties
        if piece.call_id and piece.call_id != self.call_id and (self.call_id or not numbered):
            return False
        if piece.arguments:
            is_text = isinstance(piece.arguments, str)
            if self.is_text is not None and self.is_text != is_text:
                return False
            self.is_text = is_text
        self.call_id = self.call_id or piece.call_id
        self.pieces.append(piece)
        return True

    def close(self) -> Content:
        first = self.pieces[0]
        if len(self.pieces) == 1 and TOOL_CALL_INDEX not in first.additional_properties:
            return first
        call = joined(self.pieces)
        call.call_id = self.call_id
        call.name = next((piece.name for piece in self.pieces if piece.name), first.name)
        call.arguments = self._arguments()
        for name in ("exception", "user_input_request", "id"):
            setattr(call, name, next((value for piece in self.pieces if (value := getattr(piece, name))), None))
        # It told pieces of one stream apart, and is no part of the call.
        call.additional_properties.pop(TOOL_CALL_INDEX, None)
        return call

    def _arguments(self) -> Any:
        if self.is_text:
            return "".join([piece.arguments for piece in self.pieces if isinstance(piece.arguments, str)])
        arguments = self.pieces[0].arguments
        for piece in self.pieces[1:]:
            arguments = joined_arguments(arguments, piece.arguments)
        return arguments


def joined(pieces: Sequence[Content]) -> Content:
    """Return a new content with what any content may have, of several of one kind."""
    annotations = [annotation for piece in pieces for annotation in piece.annotations or ()]
    properties: dict[str, Any] = {}
    for piece in reversed(pieces):
        if piece.additional_properties:
            properties = {**properties, **piece.additional_properties}
    raw = [piece.raw_representation for piece in pieces if piece.raw_representation is not None]
    flat = [item for each in raw for item in (each if isinstance(each, list) else [each])]
    return Content(
        pieces[0].type,
        annotations=annotations if any(piece.annotations is not None for piece in pieces) else None,
        additional_properties=properties,
        raw_representation=flat if len(raw) > 1 else (raw or [None])[0],
    )


def _coalesced_texts(contents: list[Content]) -> Iterator[Content]:
    for kind, run in groupby(contents, key=attrgetter("type")):
        pieces = list(run)
        if kind != "text" or len(pieces) == 1:
            yield from pieces
        else:
            text = joined(pieces)
            text.text = "".join([piece.text or "" for piece in pieces])
            yield text


def _coalesced_reasoning(contents: Iterable[Content]) -> Iterator[Content]:
    for kind, run in groupby(contents, key=attrgetter("type")):
        if kind != "text_reasoning":
            yield from run
        else:
            for thought in _thoughts(list(run)):
                yield thought[0] if len(thought) == 1 else _joined_thought(thought)


def _thoughts(pieces: list[Content]) -> Iterator[list[Content]]:
    """Split where the id changes; what has no id belongs to what stands before it."""
    thought: list[Content] = []
    id_: str | None = None
    for piece in pieces:
        if id_ and piece.id and piece.id != id_:
            yield thought
            thought, id_ = [], None
        thought.append(piece)
        id_ = id_ or piece.id
    if thought:
        yield thought


def _joined_thought(pieces: list[Content]) -> Content:
    thought = joined(pieces)
    thought.id = next((piece.id for piece in pieces if piece.id), None)
    texts = [piece.text for piece in pieces if piece.text is not None]
    thought.text = "".join(texts) if texts else None
    thought.protected_data = next((p.protected_data for p in reversed(pieces) if p.protected_data is not None), None)
    return thought

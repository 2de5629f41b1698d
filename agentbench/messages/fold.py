"""Combine a stream's updates into one response, in linear time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from agentbench.messages.content.addition import join_call, join_reasoning, join_texts, mend_content
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.usage import UsageDetails, add_usage_details

if TYPE_CHECKING:
    from agentbench.messages.update import AgentResponseUpdate, ChatResponseUpdate

TOOL_CALL_INDEX: Final = "tool_call_index"
"""Property with the number of the call that a piece belongs to, for services that number calls."""


ROUNDS_OF_LOOPS: Final = "agentbench.rounds"
"""Property of an update from an agent that runs in rounds: by the id of each loop around it, the number of the round.

A response has the last round of each loop; it does not have this property.
"""

Update: TypeAlias = "ChatResponseUpdate | AgentResponseUpdate"
UpdateT = TypeVar("UpdateT", bound=Update)


def split_rounds(updates: Iterable[UpdateT]) -> tuple[list[UpdateT], list[UpdateT]]:
    """Return the updates of the last rounds, and those of earlier rounds of the same loops."""
    updates = list(updates)
    if not any(one.additional_properties and ROUNDS_OF_LOOPS in one.additional_properties for one in updates):
        return updates, []
    rounds = [(one.additional_properties or {}).get(ROUNDS_OF_LOOPS) or {} for one in updates]
    last: dict[str, int] = {}
    for numbers in rounds:
        for loop, number in numbers.items():
            last[loop] = max(number, last.get(loop, 0))
    parts: tuple[list[UpdateT], list[UpdateT]] = [], []
    for update, numbers in zip(updates, rounds, strict=True):
        parts[any(number < last[loop] for loop, number in numbers.items())].append(update)
    return parts


def usage_in(updates: Iterable[Update]) -> UsageDetails | None:
    """Return the sum of the tokens in updates."""
    contents = [one for update in updates for one in update.contents if one.type == "usage"]
    return reduce(add_usage_details, [one.usage_details for one in contents], None)


def fold_updates(updates: Iterable[Update], latest: Iterable[str]) -> dict[str, Any]:
    """Combine updates into the fields of a response; for fields in `latest` the last non-empty value counts.

    Of an agent that runs in rounds, only the last round counts, with the tokens of all rounds.
    """
    updates, earlier = split_rounds(updates)
    messages, usage = _fold_contents(updates)
    usage = add_usage_details(usage, usage_in(earlier)) if earlier else usage
    properties: dict[str, Any] = {}
    for more in filter(None, map(attrgetter("additional_properties"), updates)):
        properties.update(more)
    properties.pop(ROUNDS_OF_LOOPS, None)
    return {
        **{name: next(filter(None, map(attrgetter(name), reversed(updates))), None) for name in latest},
        "messages": [message.close() for message in messages if message.has_begun],
        "usage_details": usage,
        "additional_properties": properties,
        "continuation_token": updates[-1].continuation_token if updates else None,
        "raw_representation": list(map(attrgetter("raw_representation"), updates)),
    }


def _fold_contents(updates: Iterable[Update]) -> tuple[list[_OpenMessage], UsageDetails | None]:
    messages: list[_OpenMessage] = []
    usage: UsageDetails | None = None
    message: _OpenMessage | None = None
    facts: tuple[Any, ...] = ()
    agent_id: str | None = None
    latest: dict[str, _OpenMessage] = {}  # by agent, because updates of parallel agents alternate
    for update in updates:
        speaker = getattr(update, "agent_id", None)
        before = facts
        facts = (speaker, update.message_id, update.role, update.author_name, update.response_id)
        if facts != before or message is None:
            if speaker and speaker != agent_id:
                if message is not None and agent_id is not None:
                    latest[agent_id] = message
                agent_id, message = speaker, latest.get(speaker) or (message if agent_id is None else None)
            if message is None or not message.take_facts(update):
                message = _OpenMessage(update)
                messages.append(message)
        for content in update.contents:
            kind = content.type
            if kind == "function_call":
                message.take_call(content)
            elif kind == "usage":
                usage = add_usage_details(usage, content.usage_details)
            else:
                message.entries.append(content)
    return messages, usage


class _OpenMessage:
    """An incomplete message."""

    __slots__ = ("author_name", "by_id", "by_index", "entries", "has_role", "message_id", "response_id", "role")

    def __init__(self, first: Update) -> None:
        self.has_role = first.role is not None
        self.role = "assistant" if first.role is None else first.role
        self.author_name = first.author_name
        self.message_id: Any = first.message_id
        self.response_id = first.response_id
        self.entries: list[Content | _OpenCall] = []
        self.by_id: dict[str, _OpenCall] = {}
        self.by_index: dict[Any, _OpenCall] = {}

    def take_facts(self, update: Update) -> bool:
        """Store an update's facts about its message; return False if one contradicts a known fact."""
        role, author_name = update.role, update.author_name
        message_id, response_id = update.message_id, update.response_id
        if (
            (role and role != self.role)
            or (message_id and message_id != self.message_id and self.message_id)
            or (author_name and author_name != self.author_name and self.author_name)
            or (response_id and response_id != self.response_id and self.response_id)
        ):
            return False
        self.has_role = self.has_role or role is not None
        self.author_name = author_name or self.author_name
        self.message_id = message_id or self.message_id
        self.response_id = response_id or self.response_id
        return True

    @property
    def has_begun(self) -> bool:
        """Whether an update was about a message; others have only facts about the response, such as its usage."""
        return bool(self.entries or self.has_role or self.author_name or self.message_id)

    def take_call(self, piece: Content) -> None:
        """Add a call, or a piece of one."""
        call_id = piece.call_id
        index = piece.additional_properties.get(TOOL_CALL_INDEX) if piece.additional_properties else None
        call = self._call_of(call_id, index)
        if call is None or not call.take(piece, call_id, index):
            call = _OpenCall(piece, call_id, index)
            self.entries.append(call)
        if call_id:
            self.by_id.setdefault(call_id, call)
        if index is not None:
            self.by_index[index] = call

    def _call_of(self, call_id: str | None, index: Any) -> _OpenCall | None:
        if index is not None and (call := self.by_index.get(index)) is not None and call_id in (None, "", call.call_id):
            return call
        call_with_id = self.by_id.get(call_id) if call_id else None
        if call_with_id is not None:  # some services use one id for several calls
            return call_with_id if index is None or call_with_id.index in (None, index) else None
        if index is not None:
            return self.by_index.get(index)
        last = self.entries[-1] if self.entries else None
        return last if isinstance(last, _OpenCall) else None

    def close(self) -> Message:
        """Return the complete message."""
        entries = [entry.close() if isinstance(entry, _OpenCall) else entry for entry in self.entries]
        contents = list(map(mend_content, _join_runs(entries)))
        return Message(self.role, contents, author_name=self.author_name, message_id=self.message_id)


class _OpenCall:
    """A call whose arguments are incomplete."""

    __slots__ = ("arguments", "call_id", "index", "pieces")

    def __init__(self, first: Content, call_id: str | None, index: Any) -> None:
        self.pieces = [first]
        self.call_id, self.index = call_id, index
        self.arguments = [first.arguments] if first.arguments else []
        """The non-empty pieces: texts or mappings."""

    def take(self, piece: Content, call_id: str | None, index: Any) -> bool:
        """Add a piece and return True, unless it belongs to another call."""
        if call_id and call_id != self.call_id and (self.call_id or index is None):
            return False
        arguments = piece.arguments
        if arguments:
            if self.arguments and isinstance(arguments, str) != isinstance(self.arguments[0], str):
                return False
            self.arguments.append(arguments)
        self.call_id = self.call_id or call_id
        self.index = index if self.index is None else self.index
        self.pieces.append(piece)
        return True

    def close(self) -> Content:
        first = self.pieces[0]
        if len(self.pieces) == 1 and TOOL_CALL_INDEX not in first.additional_properties:
            return first
        call = join_call(self.pieces, self._arguments())
        # The number is only for assigning pieces within the stream.
        call.additional_properties.pop(TOOL_CALL_INDEX, None)
        return call

    def _arguments(self) -> Any:
        parts: list[Any] = self.arguments
        if not parts:
            return next((piece.arguments for piece in self.pieces if piece.arguments is not None), None)
        if len(parts) == 1:
            return parts[0]
        if isinstance(parts[0], str):
            return _join_without_repeat(parts)
        merged: dict[str, Any] = {}
        for arguments in parts:
            merged.update(arguments)
        return merged


def _join_without_repeat(texts: Sequence[str]) -> str:
    """Join the pieces of a JSON object; drop the complete object that some services repeat at the end."""
    pieces: list[str] = []
    length = 0
    for text in texts:
        if len(text) == length and text[0] == "{" and text[-1] == "}" and text == "".join(pieces):
            continue
        pieces.append(text)
        length += len(text)
    return "".join(pieces)


def _join_runs(contents: Iterable[Content]) -> Iterator[Content]:
    """Yield the contents with adjacent texts joined and adjacent pieces of one reasoning joined."""
    for kind, run in groupby(contents, key=attrgetter("type")):
        pieces = list(run)
        if len(pieces) == 1:
            yield pieces[0]
        elif kind == "text":
            yield join_texts(pieces)
        elif kind == "text_reasoning":
            for thought in _thoughts(pieces):
                yield thought[0] if len(thought) == 1 else join_reasoning(thought)
        else:
            yield from pieces


def _thoughts(pieces: list[Content]) -> Iterator[list[Content]]:
    """Split pieces of reasoning where the id changes; a piece without an id belongs to the one before it."""
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

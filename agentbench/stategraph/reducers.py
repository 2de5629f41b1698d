"""Functions that merge an update into a field of the state: `reducer(left, right)` returns the new value."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from agentbench._secrets import masked_fields, masked_repr
from agentbench.messages.inputs import MessageLike, to_messages
from agentbench.messages.message import Message


@dataclass(frozen=True)
class Reducer:
    """Marks a callable in `Annotated` as the reducer of a field if it could be mistaken for something else.

    Example:
        >>> class Basket(AgentState):
        ...     items: Annotated[set[str], Reducer(set.union)] = set()
    """

    fn: Callable[[Any, Any], Any]

    def __call__(self, left: Any, right: Any) -> Any:
        """Merge an update into a value."""
        return self.fn(left, right)


@dataclass(frozen=True)
class Overwrite:
    """Wraps the value of an update that replaces the field's value without calling the reducer.

    Example:
        >>> def start_again(state: Triage) -> dict:
        ...     return {"findings": Overwrite([])}
    """

    value: Any

    __repr__ = masked_fields


REMOVE_ALL_MESSAGES: Final = "*"
"""As the id of a `RemoveMessage`: removes all messages."""


@dataclass(frozen=True, init=False)
class RemoveMessage:
    """In an update of messages: removes the message with this id; `REMOVE_ALL_MESSAGES` removes all before it.

    Args:
        message_id: The id. It can also be passed as `id=`.

    Raises:
        TypeError: There is no id, or there are two.

    Example:
        >>> upsert_messages([Message("user", "Hi", message_id="m1")], [RemoveMessage("m1")])
        []
    """

    message_id: str | int

    def __init__(self, message_id: str | int | None = None, *, id: str | int | None = None) -> None:  # noqa: A002
        if (message_id is None) == (id is None):
            error = "A RemoveMessage has one id. Pass the id of a message, or REMOVE_ALL_MESSAGES."
            raise TypeError(error)
        object.__setattr__(self, "message_id", id if message_id is None else message_id)

    @property
    def id(self) -> str | int:
        """The same as `message_id`."""
        return self.message_id


Messages: TypeAlias = Sequence[MessageLike | RemoveMessage] | MessageLike | RemoveMessage | None
"""One or several messages, also in short forms, or the ids of messages to remove."""


def add_messages(left: Messages, right: Messages) -> list[Message]:
    """Append the messages that are not present yet; pieces of streamed messages (`delta`) are left out.

    Messages are the same if their ids have equal types and values. If a message occurs twice, the first one stays. A
    `RemoveMessage` removes the message with its id.

    Args:
        left: The messages so far.
        right: One message, or several. A message may be text (of the user), a pair such as `("ai", text)`, or a
            dictionary with `role` and `content`.

    Raises:
        TypeError: A value is not a message.

    Example:
        >>> add_messages([Message("user", "Hi", message_id=1)], ("assistant", "Hello"))
    """
    there, candidates = _messages_so_far(left), _complete(right)
    if any(isinstance(message, RemoveMessage) for message in candidates):
        return _merged(there, candidates, replaces=False)
    absent = _CONVERSATIONS.absent_ids(there, [message.message_id for message in candidates])
    new = []
    for message in candidates:
        if message.message_id is None or message.message_id in absent:
            absent.discard(message.message_id)
            new.append(message)
    return there + new


class _Conversations:
    """The ids in the long conversations that were merged last, so that not all of them are read again at each merge."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[int, tuple[list[Message], set[Any]]] = OrderedDict()
        """By the identity of the first message, which the list keeps alive."""

    def absent_ids(self, messages: list[Message], ids: list[Any]) -> set[Any]:
        """Return those ids that no message has."""
        if len(messages) < _LONG:
            return {*ids} - {message.message_id for message in messages}
        with self._lock:
            first = id(messages[0])
            former, known = self._known.pop(first, ([], set()))
            # Lists compare the identity of their items first, in C; and equal messages have equal ids.
            if former != messages[: len(former)]:
                former, known = [], set()
            known.update([message.message_id for message in messages[len(former) :]])
            self._known[first] = messages.copy(), known
            if len(self._known) > _MOST_CONVERSATIONS:
                self._known.popitem(last=False)
            return {*ids} - known


_LONG, _MOST_CONVERSATIONS = 100, 16
_CONVERSATIONS = _Conversations()


def replace_messages(left: Messages, right: Messages) -> list[Message]:
    """Replace all messages, with the same forms as `add_messages`; pieces of streamed messages are left out.

    Example:
        from agentbench import Message, replace_messages

        (message,) = replace_messages([Message("user", ["Hello"])], [Message("user", ["Goodbye"])])
        assert message.text == "Goodbye"
    """
    return _complete(right)


def append_items(left: list[Any] | None, right: list[Any] | None) -> list[Any]:
    """Append the items whose `id`, an attribute or a key, is not present yet; items whose id is None are always new.

    Raises:
        TypeError: An item has no `id`.

    Example:
        from agentbench import append_items

        assert append_items([{"id": 1}], [{"id": 1}, {"id": 2}]) == [{"id": 1}, {"id": 2}]
    """
    there = left or []
    present_ids = [_item_id(item, at) for at, item in enumerate(there)]
    ids = [_item_id(item, at) for at, item in enumerate(right or ())]
    new = []
    try:
        seen: Any = set(present_ids)
        hash(tuple(ids))
    except TypeError:  # ids that cannot be hashed are compared one by one
        seen = present_ids
    for item, item_id in zip(right or (), ids, strict=True):
        if item_id is None or item_id not in seen:
            seen.add(item_id) if isinstance(seen, set) else seen.append(item_id)
            new.append(item)
    return there + new


def replace_value(left: Any, right: Any) -> Any:
    """Return the update; of several nodes in one superstep, the last one in the order of their tasks wins.

    Example:
        from agentbench import replace_value

        assert replace_value(1, 2) == 2
    """
    return right


def upsert_messages(left: Messages, right: Messages) -> list[Message]:
    """Append messages; one with an existing id replaces that message, and a `RemoveMessage` removes it.

    It takes the same forms as `add_messages`.

    Example:
        from agentbench import Message
        from agentbench.stategraph import upsert_messages

        old, new = Message("user", ["Hello"], message_id="m1"), Message("user", ["Hi"], message_id="m1")
        assert [message.text for message in upsert_messages([old], [new])] == ["Hi"]
    """
    return _merged(_messages_so_far(left), _complete(right), replaces=True)


def remove_tool_messages(messages: list[Message]) -> list[Message]:
    """Return the messages without finished exchanges with tools. Not a reducer: call it, and return an `Overwrite`.

    An exchange is an assistant's message with calls and the tool messages after it. It is finished when an
    assistant's message without calls follows, which stays.

    Example:
        >>> def tidy(state: AgentState) -> dict:
        ...     return {"context": Overwrite(remove_tool_messages(state.context))}
    """
    result: list[Message] = []
    exchange: list[Message] = []
    for message in messages:
        calls = message.role == "assistant" and message.tools_calls is not None
        if calls or (exchange and message.role == "tool"):
            exchange.append(message)
            continue
        if message.role != "assistant":
            result += exchange
        result.append(message)
        exchange = []
    return result + exchange


def _merged(left: Sequence[Message], right: Sequence[Any], *, replaces: bool) -> list[Message]:
    by_key: dict[Any, Message] = {_key(message): message for message in left}
    for message in right:
        if not isinstance(message, RemoveMessage):
            if replaces or _key(message) not in by_key:
                by_key[_key(message)] = message
        elif message.message_id == REMOVE_ALL_MESSAGES:
            by_key.clear()
        else:
            by_key.pop(message.message_id, None)
    return [*by_key.values()]


def _messages_so_far(messages: Messages) -> list[Any]:
    """Return the messages so far as a list."""
    # A graph passes a conversation, which may be too long to look at each message.
    if isinstance(messages, list) and len(messages) >= _LONG and isinstance(messages[0], Message):
        return messages
    return _as_list(messages)


def _complete(messages: Messages) -> list[Any]:
    """Return the messages of an update as a list, without pieces of streamed ones."""
    return [message for message in _as_list(messages) if not getattr(message, "delta", False)]


def _as_list(messages: Messages) -> list[Any]:
    given: Any = to_messages(messages)
    if given is None:
        return []
    if isinstance(given, (Message, RemoveMessage, Mapping)) or not isinstance(given, Iterable):
        given = (given,)
    listed = [*given]
    for message in listed:
        if not isinstance(message, (Message, RemoveMessage)):
            text = (
                f"{masked_repr(message)} is not a message. Expected a Message, text, a pair such as ('user', text), "
                "or a dictionary with role and content."
            )
            raise TypeError(text)
    return listed


def _key(message: Message) -> Any:
    return (id(message),) if message.message_id is None else message.message_id


def _item_id(item: Any, at: int) -> Any:
    """Return the type and value of an item's id, since 1 and True are equal; `None` if the id has no value."""
    absent = object()
    item_id = item.get("id", absent) if isinstance(item, Mapping) else getattr(item, "id", absent)
    if item_id is absent:
        message = (
            f"append_items compares items by their id, but item {at}, of type {type(item).__name__}, has none. Add an "
            "attribute or a key 'id', or merge the field with operator.add."
        )
        raise TypeError(message)
    return None if item_id is None else (type(item_id), item_id)

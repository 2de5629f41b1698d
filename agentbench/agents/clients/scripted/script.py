"""Entries of a script, and their conversion to replies."""

from __future__ import annotations

import copy
import itertools
import json
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, cast

from agentbench.messages.content.content import Content
from agentbench.messages.content.fields import STORED
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.update import ChatResponseUpdate
from agentbench.messages.usage import UsageDetails

TOOLS_DISABLED = "(tools disabled)"

Chunk = Literal["word", "char", "whole"]

ScriptEntry = Any
"""Text, contents, messages, a response, updates, `Call`s, an exception, a mapping, or a function of those."""

Reply = ChatResponse[Any] | list[ChatResponseUpdate]

_CONTROL_KEYS = frozenset(
    {
        *("text", "contents", "usage", "finish_reason", "conversation_id", "response_id", "model", "created_at"),
        *("author_name", "additional_properties"),
    }
)


@dataclass(frozen=True)
class Call:
    """A tool call of a scripted model.

    Attributes:
        name: Name of the tool.
        arguments: Arguments by name. Text is sent unchanged, even if it is not JSON.
        call_id: Id of the call; by default numbered: `call-1`, `call-2`.

    Example:
        from agentbench import Call, ScriptedChatClient

        client = ScriptedChatClient([Call("add", {"a": 2, "b": 3}), "The sum is 5."])
        response = await client.get_response("2 + 3?")
        print(response.messages[0].contents[0].name)  # add
    """

    name: str
    arguments: Mapping[str, Any] | str | None = None
    call_id: str | None = None


class Ids:
    """Numbered ids for one client: `resp-1`, `msg-1`, `call-1`."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start at 1 again."""
        self._counters = {kind: itertools.count(1) for kind in ("resp", "msg", "call")}

    def new(self, kind: Literal["resp", "msg", "call"]) -> str:
        """Return the next id of this kind."""
        return f"{kind}-{next(self._counters[kind])}"


def calls_tools(entry: ScriptEntry) -> bool:
    """Return whether an entry calls a tool, as far as that is known in advance."""
    if isinstance(entry, Call):
        return True
    if isinstance(entry, Content):
        return entry.type == "function_call"
    if isinstance(entry, (Message, ChatResponseUpdate)):
        return calls_tools(entry.contents)
    if isinstance(entry, ChatResponse):
        return calls_tools(entry.messages)
    if isinstance(entry, Mapping):
        return entry.get("type") == "function_call" or calls_tools(entry.get("contents"))
    return isinstance(entry, (list, tuple)) and any(calls_tools(item) for item in entry)


def called_tools(reply: Reply) -> list[str]:
    """Return the names of the tools that a reply calls, in order."""
    parts = reply if isinstance(reply, list) else reply.messages
    calls = [content for part in parts for content in part.contents if content.type == "function_call"]
    return [call.name for call in calls if call.name]


def tool_names(tools: Any) -> set[str]:
    """Return the names of the tools that options offer."""
    offered = tools if isinstance(tools, (list, tuple)) else [] if tools is None else [tools]
    return {str(name) for name in map(_tool_name, offered) if name}


def _tool_name(tool: Any) -> Any:
    if isinstance(tool, Mapping):
        function = tool.get("function")
        return tool.get("name") or (function.get("name") if isinstance(function, Mapping) else None)
    return getattr(tool, "name", None) or getattr(tool, "__name__", None)


def read_entry(
    entry: ScriptEntry, *, messages: Sequence[Message], options: Mapping[str, Any], ids: Ids, model: str | None
) -> Reply:
    """Convert an entry to a response or updates; the client fills missing fields."""
    if isinstance(entry, ChatResponse):
        return copy.deepcopy(entry)
    items = list(entry) if isinstance(entry, (list, tuple)) else [entry]
    if items and all(isinstance(item, ChatResponseUpdate) for item in items):
        return copy.deepcopy(cast("list[ChatResponseUpdate]", items))
    facts: dict[str, Any] = {}
    if isinstance(entry, Mapping) and "type" not in entry and set(entry) <= _CONTROL_KEYS and entry:
        facts = dict(entry)
        answer = [_long_form_message(facts, ids)]
    elif options.get("response_format") is not None and _is_value(entry):
        answer = [Message("assistant", [_as_json(entry)])]
    else:
        answer = _as_messages(entry, items, ids)
    for message in answer:
        if message.message_id is None:
            message.message_id = ids.new("msg")
    usage = facts.pop("usage", None)
    default_reason = "tool_calls" if calls_tools(answer) else "stop"
    return ChatResponse(
        messages=answer,
        response_id=facts.pop("response_id", None) or ids.new("resp"),
        model=facts.pop("model", None) or model,
        finish_reason=facts.pop("finish_reason", None) or default_reason,
        usage_details=_count_words(messages, options, answer) if usage is None else cast("UsageDetails", dict(usage)),
        response_format=options.get("response_format"),
        **facts,
    )


def _long_form_message(facts: dict[str, Any], ids: Ids) -> Message:
    contents, text = facts.pop("contents", None), facts.pop("text", None)
    items = list(contents) if isinstance(contents, (list, tuple)) else [contents]
    items = [_to_content(item, ids) for item in [*items, text] if item is not None]
    return Message("assistant", items, author_name=facts.pop("author_name", None))


def _as_messages(entry: ScriptEntry, items: list[Any], ids: Ids) -> list[Message]:
    if items and all(isinstance(item, Message) for item in items):
        return copy.deepcopy(items)
    if isinstance(entry, (str, Content, Call, list, tuple)) or (isinstance(entry, Mapping) and "type" in entry):
        return [Message("assistant", [_to_content(item, ids) for item in items])]
    if _is_value(entry) and not isinstance(entry, Mapping):
        return [Message("assistant", [_as_json(entry)])]
    raise _no_entry(entry)


def _to_content(item: Any, ids: Ids) -> Content:
    if isinstance(item, Call):
        arguments = item.arguments
        if not isinstance(arguments, str):
            arguments = json.dumps(dict(arguments or {}), ensure_ascii=False)  # the format of services
        return Content.from_function_call(item.call_id or ids.new("call"), item.name, arguments=arguments)
    if isinstance(item, str):
        return Content.from_text(item)
    if isinstance(item, Content):
        return copy.deepcopy(item)
    if isinstance(item, Mapping) and "type" in item:
        return Content.from_dict(item)
    raise _no_entry(item)


def _is_value(entry: Any) -> bool:
    """Return whether an entry is data for a `response_format`: a mapping or a pydantic model instance."""
    return isinstance(entry, Mapping) or callable(getattr(type(entry), "model_dump_json", None))


def _as_json(value: Any) -> Any:
    is_mapping = isinstance(value, Mapping)
    return json.dumps(dict(value), ensure_ascii=False, default=str) if is_mapping else value.model_dump_json()


def _no_entry(entry: Any) -> TypeError:
    text = f"a mapping with the keys {', '.join(map(repr, entry))}" if isinstance(entry, Mapping) else repr(entry)
    return TypeError(
        f"A script contains {text}. Expected text, Content, Message, Call, ChatResponse, an exception, a list of these "
        "or of ChatResponseUpdate, a function of (messages, options), or a mapping with keys of "
        f"{', '.join(sorted(_CONTROL_KEYS))}; other mappings need a response_format in the options."
    )


def _count_words(messages: Sequence[Message], options: Mapping[str, Any], answer: Sequence[Message]) -> UsageDetails:
    instructions = options.get("instructions") or ()
    texts = [instructions] if isinstance(instructions, str) else list(instructions)
    sent = sum(len(text.split()) for text in texts) + sum(map(_words, messages))
    return usage_of_words(sent, sum(map(_words, answer)))


def usage_of_words(sent: int, answered: int) -> UsageDetails:
    """Return the usage for a number of sent and answered words."""
    return {"input_token_count": sent, "output_token_count": answered, "total_token_count": sent + answered}


def _words(message: Message) -> int:
    count = 0
    for content in message.contents:
        if content.type == "text":
            count += len((content.text or "").split())
            continue
        arguments = content.arguments
        if arguments is not None and not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False, default=str)
        texts = (content.text, content.result, arguments)
        count += sum(len(text.split()) for text in texts if isinstance(text, str))
    return count


# ---- one value per message


T = TypeVar("T")

_PARTS = ("usages", "additional_properties", "raw_representation", "contents")
_plain_fields = operator.attrgetter(*(name for name in Message.__slots__ if name not in _PARTS))
_parts = operator.attrgetter(*_PARTS)
_stored = operator.attrgetter(*STORED)


class PerMessage(Generic[T]):
    """A function with a cache by message values, because only the end of a long conversation is new."""

    def __init__(self, make: Callable[[Message], T]) -> None:
        self._make = make
        self._made: dict[Hashable, T] = {}

    def __call__(self, messages: Iterable[Message]) -> list[T]:
        """Call the function for each message, and return the results."""
        return [self._of(message) for message in messages]

    def made(self) -> list[T]:
        """Return the results for all messages so far."""
        return list(self._made.values())

    def _of(self, message: Message) -> T:
        try:
            value = _value_of(message)
        except TypeError:
            return self._make(message)
        if value not in self._made:
            self._made[value] = self._make(message)
        return self._made[value]


def _value_of(message: Message) -> Hashable:
    """Return an immutable value of all fields of a message; raise `TypeError` if that is not possible."""
    usages, properties, raw, contents = _parts(message)
    if type(message) is not Message or raw is not None:
        raise TypeError
    rare = _frozen([usages, properties]) if properties or usages is not None else None
    return (_plain_fields(message), rare, *map(_content_key, contents))


def _content_key(content: Content) -> Hashable:
    if type(content) is not Content:
        raise TypeError
    fields, properties, annotations, raw, text, kind = _stored(content)
    if raw is not None:
        raise TypeError
    rare = vars(fields)
    if not (rare or properties or annotations):
        return kind, text
    return kind, text, _frozen([rare, properties, annotations])


def _frozen(value: Any) -> Hashable:
    kind = type(value)
    if kind is str or value is None:
        return value  # type: ignore[no-any-return]
    if kind is dict:
        return (dict, *map(_frozen, value), *map(_frozen, value.values()))
    if kind is list or kind is tuple:
        return (kind, *map(_frozen, value))
    if kind is Content:
        return _content_key(value)
    if kind in (bool, int, float, bytes):
        return kind, repr(value)  # distinguishes 1, 1.0 and True, which are equal
    raise TypeError

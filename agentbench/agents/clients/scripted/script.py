"""What a scripted model may answer, and how an entry of a script becomes a reply: pure."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.update import ChatResponseUpdate
from agentbench.messages.usage import UsageDetails

__all__ = [
    "TOOLS_DISABLED",
    "Call",
    "Chunk",
    "Ids",
    "Reply",
    "ScriptEntry",
    "called_tools",
    "calls_tools",
    "read_entry",
    "tool_names",
    "tools_disabled",
]

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
    """A tool that a scripted model calls.

    Attributes:
        name: The tool.
        arguments: By name; text is sent as it is, also where it is no JSON.
        call_id: By default the client counts: `call-1`, `call-2`.

    Example:
        ```python
        ScriptedChatClient([Call("add", {"a": 2, "b": 3}), "The sum is 5."])
        ```
    """

    name: str
    arguments: Mapping[str, Any] | str | None = None
    call_id: str | None = None


class Ids:
    """Ids that count from one, for one client: `resp-1`, `msg-1`, `call-1`."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin at one again."""
        self._counters = {kind: itertools.count(1) for kind in ("resp", "msg", "call")}

    def new(self, kind: Literal["resp", "msg", "call"]) -> str:
        """Return the next id of a kind."""
        return f"{kind}-{next(self._counters[kind])}"


def calls_tools(entry: ScriptEntry) -> bool:
    """Tell whether an entry calls a tool, as far as that is known before it is played."""
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
    """The names of the tools that a reply calls, in order."""
    parts = reply if isinstance(reply, list) else reply.messages
    calls = [content for part in parts for content in part.contents if content.type == "function_call"]
    return [call.name for call in calls if call.name]


def tools_disabled(options: Mapping[str, Any]) -> bool:
    """Tell whether the options forbid tools: `tool_choice` is `"none"` or a mode that says so."""
    choice = options.get("tool_choice")
    return (choice.get("mode") if isinstance(choice, Mapping) else choice) == "none"


def tool_names(tools: Any) -> set[str]:
    """The names of the tools that options offer."""
    given = tools if isinstance(tools, (list, tuple)) else [] if tools is None else [tools]
    return {str(name) for name in map(_tool_name, given) if name}


def _tool_name(tool: Any) -> Any:
    if isinstance(tool, Mapping):
        function = tool.get("function")
        return tool.get("name") or (function.get("name") if isinstance(function, Mapping) else None)
    return getattr(tool, "name", None) or getattr(tool, "__name__", None)


def read_entry(
    entry: ScriptEntry, *, messages: Sequence[Message], options: Mapping[str, Any], ids: Ids, model: str | None
) -> Reply:
    """Make the reply that an entry describes.

    Args:
        entry: Any but a function or an exception.
        messages: What the model is asked; counted for the usage.
        options: Of the call.
        ids: Where ids come from that the entry does not give.
        model: The model that answers, where the entry does not say.

    Returns:
        A response of its own, or updates where the entry holds updates.

    Raises:
        TypeError: It is no entry; the message says which there are.
    """
    if isinstance(entry, ChatResponse):
        return copy.deepcopy(entry)
    items = list(entry) if isinstance(entry, (list, tuple)) else [entry]
    if items and all(isinstance(item, ChatResponseUpdate) for item in items):
        return copy.deepcopy(cast("list[ChatResponseUpdate]", items))
    facts: dict[str, Any] = {}
    if isinstance(entry, Mapping) and "type" not in entry and set(entry) <= _CONTROL_KEYS and entry:
        facts = dict(entry)
        spoken = _spoken(facts, ids)
    elif options.get("response_format") is not None and _is_value(entry):
        spoken = [Message("assistant", [_as_json(entry)])]
    else:
        spoken = _as_messages(entry, items, ids)
    for message in spoken:
        if message.message_id is None:
            message.message_id = ids.new("msg")
    usage = facts.pop("usage", None)
    default_reason = "tool_calls" if calls_tools(spoken) else "stop"
    return ChatResponse(
        messages=spoken,
        response_id=facts.pop("response_id", None) or ids.new("resp"),
        model=facts.pop("model", None) or model,
        finish_reason=facts.pop("finish_reason", None) or default_reason,
        usage_details=_counted(messages, options, spoken) if usage is None else cast("UsageDetails", dict(usage)),
        response_format=options.get("response_format"),
        **facts,
    )


def _spoken(facts: dict[str, Any], ids: Ids) -> list[Message]:
    """The one message of the long form."""
    contents = facts.pop("contents", None)
    given = list(contents) if isinstance(contents, (list, tuple)) else [] if contents is None else [contents]
    text = facts.pop("text", None)
    author_name = facts.pop("author_name", None)
    said = _contents([*given, *([] if text is None else [text])], ids)
    return [Message("assistant", said, author_name=author_name)]


def _as_messages(entry: ScriptEntry, items: list[Any], ids: Ids) -> list[Message]:
    if items and all(isinstance(item, Message) for item in items):
        return copy.deepcopy(items)
    if isinstance(entry, (str, Content, Call, list, tuple)) or (isinstance(entry, Mapping) and "type" in entry):
        return [Message("assistant", _contents(items, ids))]
    if _is_value(entry) and not isinstance(entry, Mapping):
        return [Message("assistant", [_as_json(entry)])]
    raise _no_entry(entry)


def _contents(items: Iterable[Any], ids: Ids) -> list[Content]:
    return [_content(item, ids) for item in items]


def _content(item: Any, ids: Ids) -> Content:
    if isinstance(item, Call):
        arguments = item.arguments
        if not isinstance(arguments, str):
            arguments = json.dumps(dict(arguments or {}), ensure_ascii=False)  # as services send them
        return Content.from_function_call(item.call_id or ids.new("call"), item.name, arguments=arguments)
    if isinstance(item, str):
        return Content.from_text(item)
    if isinstance(item, Content):
        return copy.deepcopy(item)
    if isinstance(item, Mapping) and "type" in item:
        return Content.from_dict(item)
    raise _no_entry(item)


def _is_value(entry: Any) -> bool:
    """Whether an entry is data for a `response_format`: a mapping, or an instance of a pydantic model."""
    return isinstance(entry, Mapping) or callable(getattr(type(entry), "model_dump_json", None))


def _as_json(value: Any) -> str:
    if isinstance(value, Mapping):
        return json.dumps(dict(value), ensure_ascii=False, default=str)
    text: str = value.model_dump_json()
    return text


def _no_entry(entry: Any) -> TypeError:
    shown = f"a mapping with the keys {', '.join(map(repr, entry))}" if isinstance(entry, Mapping) else repr(entry)
    return TypeError(
        f"A script holds {shown}. Expected text, Content, Message, Call, ChatResponse, an exception, a list of these "
        "or of ChatResponseUpdate, a function of (messages, options), or a mapping with keys of "
        f"{', '.join(sorted(_CONTROL_KEYS))}; any other mapping needs a response_format in the options."
    )


# ------------------------------------------------------------------------------------------------------------- counting


def _counted(messages: Sequence[Message], options: Mapping[str, Any], spoken: Sequence[Message]) -> UsageDetails:
    """Words instead of tokens, so that every run counts the same."""
    instructions = options.get("instructions") or ()
    asked = sum(len(text.split()) for text in ([instructions] if isinstance(instructions, str) else instructions))
    asked += sum(map(_words, messages))
    answered = sum(map(_words, spoken))
    return {
        "input_token_count": asked,
        "output_token_count": answered,
        "total_token_count": asked + answered,
    }


def _words(message: Message) -> int:
    return sum(len(text.split()) for content in message.contents for text in _texts(content))


def _texts(content: Content) -> Iterator[str]:
    for value in (content.text, content.result):
        if isinstance(value, str):
            yield value
    if isinstance(content.arguments, str):
        yield content.arguments
    elif content.arguments is not None:
        yield json.dumps(content.arguments, ensure_ascii=False, default=str)

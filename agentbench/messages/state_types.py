"""The stored form of contents, messages, responses and updates: the fields that are not `None`, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from agentbench.messages.content.content import Content
from agentbench.messages.content.fields import FIELDS as FIELDS_OF_CONTENT
from agentbench.messages.content.fields import NO_FIELDS, SetFields
from agentbench.messages.message import Message, as_contents
from agentbench.messages.record import Record
from agentbench.messages.response import AgentResponse, ChatResponse, Response
from agentbench.messages.update import AgentResponseUpdate, ChatResponseUpdate
from agentbench.serialization.registry import of_kind, register_type

_MOST_FIELDS: Final = 12
"""Contents with more fields are left to the general way, because a writer may cut large dictionaries into parts."""
_OWN_FIELDS_OF_CONTENT: Final = frozenset(FIELDS_OF_CONTENT) - {"text"}
_UNCHECKED_FIELDS: Final = frozenset({"type", *FIELDS_OF_CONTENT}) - {"approved"}
_NONE: Final = frozenset({type(None)})
_FIELDS: Final = frozenset(Message.FIELDS)

_new = object.__new__
_bare = Content._bare  # noqa: SLF001 - of the same package


def _content_to_state(content: Content) -> dict[str, Any]:
    found = {"type": content.type, **content.set_fields()}
    if content.annotations is not None:
        found["annotations"] = content.plain_annotations()
    if content.additional_properties:
        found["additional_properties"] = content.additional_properties
    return found


def _record_to_state(record: Message | Response[Any]) -> dict[str, Any]:
    found = record.set_fields()
    if not record.additional_properties:
        found.pop("additional_properties", None)
    if "usages" in found:
        found["usages"] = {**found["usages"]}  # any mapping
    if isinstance(record, Response):
        own = {"value": record.given_value, "response_format": record.response_format}
        found.update({name: value for name, value in own.items() if value is not None})
    return found


# Written field by field, with the same text as the dictionaries above, and without making them.


def _write_content(content: Content, write: Callable[[Any], str]) -> str | None:
    text, fields, properties = content.text, vars(content._rare), content.additional_properties  # noqa: SLF001
    if content.annotations is not None or type(properties) is not dict or properties:
        return None
    if len(fields) > _MOST_FIELDS or not _OWN_FIELDS_OF_CONTENT.issuperset(fields):
        return None
    written = f'{{"type":{write(content.type)}'
    if text is not None:
        written += f',"text":{write(text)}'
    for name, value in fields.items():
        written += f',"{name}":{write(value)}'
    return written + "}"


def _write_message(message: Any, write: Callable[[Any], str]) -> str | None:
    role, contents, properties = message.role, message.contents, message.additional_properties
    author_name, message_id = message.author_name, message.message_id
    timestamp, usages = message.timestamp, message.usages
    if role is None or contents is None or message.delta is not False or type(properties) is not dict or properties:
        return None
    text = f'{{"role":{write(role)},"contents":{write(contents)}'
    if author_name is not None:
        text += f',"author_name":{write(author_name)}'
    if message_id is not None:
        text += f',"message_id":{write(message_id)}'
    if timestamp is not None:
        text += f',"timestamp":{write(timestamp)}'
    return text + "}" if usages is None else f'{text},"usages":{write({**usages})}}}'


# The constructors take most of the time of reading. They run only if they would do more than store the fields.


def _content_from_state(found: dict[str, Any]) -> Content:
    kind, text = found.get("type"), found.get("text")
    if type(kind) is str and type(text) is str and len(found) == len(("type", "text")):
        return _bare(kind, text, NO_FIELDS)
    if type(kind) is str and _UNCHECKED_FIELDS.issuperset(found) and _NONE.isdisjoint(map(type, found.values())):
        fields = found.copy()
        del fields["type"]
        fields.pop("text", None)
        return _bare(kind, text, SetFields(**fields) if fields else NO_FIELDS)
    of_kind(list, found.get("annotations", []))  # otherwise an endless range would be expanded
    return Content(**found)


def _message_from_state(found: dict[str, Any]) -> Message:
    get = found.get
    role, properties = get("role"), get("additional_properties")
    if type(role) is not str or not _FIELDS.issuperset(found) or not (properties is None or type(properties) is dict):
        return Message(**found)
    message = _new(Message)
    message.role = role
    message.contents = as_contents(get("contents"))
    message.author_name = get("author_name")
    message.message_id = get("message_id")
    message.delta = get("delta", False)
    message.timestamp = get("timestamp")
    message.usages = get("usages")
    message.additional_properties = {} if properties is None else properties.copy()
    message.raw_representation = None
    return message


def _maker(cls: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda found: cls(**found)


register_type(Content, "content", _content_to_state, _content_from_state, write=_write_content, frozen=True)
register_type(Message, Message.TYPE, _record_to_state, _message_from_state, write=_write_message, frozen=True)
for _response in (ChatResponse, AgentResponse):
    register_type(_response, _response.TYPE, _record_to_state, _maker(_response), frozen=True)
for _update in (ChatResponseUpdate, AgentResponseUpdate):
    register_type(_update, _update.TYPE, Record.set_fields, _maker(_update), frozen=True)

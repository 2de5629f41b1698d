"""The stored form of contents, messages, responses and updates: the fields that are not `None`, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.record import Record
from agentbench.messages.response import AgentResponse, ChatResponse, Response
from agentbench.messages.update import AgentResponseUpdate, ChatResponseUpdate
from agentbench.serialization.registry import of_kind, register_type


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
    if isinstance(record, Response):
        own = {"value": record.given_value, "response_format": record.response_format}
        found.update({name: value for name, value in own.items() if value is not None})
    return found


def _content_from_state(found: dict[str, Any]) -> Content:
    of_kind(list, found.get("annotations", []))  # otherwise an endless range would be expanded
    return Content(**found)


def _maker(cls: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda found: cls(**found)


register_type(Content, "content", _content_to_state, _content_from_state, frozen=True)
register_type(Message, Message.TYPE, _record_to_state, _maker(Message), frozen=True)
for _response in (ChatResponse, AgentResponse):
    register_type(_response, _response.TYPE, _record_to_state, _maker(_response), frozen=True)
for _update in (ChatResponseUpdate, AgentResponseUpdate):
    register_type(_update, _update.TYPE, Record.set_fields, _maker(_update), frozen=True)

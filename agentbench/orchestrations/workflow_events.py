"""Converts the events of a workflow to messages and updates of an agent."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentbench._clock import iso_utc, runtime_defaults
from agentbench._secrets import masked_fields, masked_repr
from agentbench.exceptions import AgentInvalidRequestException
from agentbench.messages.content.content import Content
from agentbench.messages.fold import split_rounds, usage_in
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse
from agentbench.messages.update import AgentResponseUpdate, ids_apart
from agentbench.messages.usage import UsageDetails, add_usage_details
from agentbench.orchestrations.agent_node import request_id_of
from agentbench.serialization.plain import to_plain, write_plain
from agentbench.workflows.events.events import WorkflowEvent

REQUEST_INFO_FUNCTION_NAME = "request_info"
"""The name of the function whose call represents a request of a workflow."""

_SPOKEN = frozenset({"output", "intermediate", "data", "request_info"})


@dataclass(frozen=True)
class RequestInfoFunctionArgs:
    """The arguments of the call that represents a request of a workflow; in an approval, `data` is the response.

    Raises (reading one):
        ValueError: It is not JSON text or a mapping with `request_id` and `data`.
    """

    request_id: str
    data: Any

    __repr__ = masked_fields

    def to_dict(self) -> dict[str, Any]:
        """Return both by name."""
        return {"request_id": self.request_id, "data": self.data}

    def to_json(self) -> str:
        """Return both as JSON text; values without a JSON form are written by `str()`."""
        return write_plain(to_plain(self.to_dict()))

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> RequestInfoFunctionArgs:
        """Read the output of `to_dict`."""
        fields: object = found
        if not isinstance(fields, Mapping) or not isinstance(found.get("request_id"), str) or "data" not in found:
            expected = "a request_id, which is a text, and data"
            msg = f"The arguments of a request are {masked_repr(found)}; expected {expected}."
            raise ValueError(msg)
        return cls(found["request_id"], found["data"])

    @classmethod
    def from_json(cls, text: str) -> RequestInfoFunctionArgs:
        """Read the output of `to_json`."""
        return cls.from_dict(json.loads(text))


def response_of(events: Sequence[WorkflowEvent[Any]], response_id: str) -> AgentResponse[Any]:
    """Return the outputs and requests of a run as one response.

    A request of an agent inside the workflow is left out of its messages, because a request of the workflow repeats it.
    """
    requests = [event.data for event in events if event.type == "request_info" and isinstance(event.data, Content)]
    repeated = {*map(request_id_of, requests)}
    messages: list[Message] = []
    usage: UsageDetails | None = None
    properties: dict[str, Any] = {}
    times: list[str] = []
    for event in events:
        if event.type not in _SPOKEN:
            continue
        if isinstance(event.data, AgentResponse) and event.type != "request_info":
            messages += [_add_author(message, event) for message in _without_requests(event.data.messages, repeated)]
            properties |= event.data.additional_properties
            if event.data.usage_details is not None:
                usage = add_usage_details(usage, event.data.usage_details)
            times += [event.data.created_at] if event.data.created_at else []
        elif isinstance(event.data, AgentResponseUpdate):
            msg = (
                f"{event.executor_id!r} yielded an AgentResponseUpdate in a run that is not streamed. Call the agent "
                "with stream=True, or yield an AgentResponse where ctx.is_streaming() is false."
            )
            raise AgentInvalidRequestException(msg)
        else:
            messages += _messages(event)
    return AgentResponse(
        messages=messages,
        response_id=response_id,
        created_at=max(times, default=_now()),
        usage_details=usage,
        additional_properties=properties,
    )


def _without_requests(messages: Sequence[Message], repeated: Collection[str]) -> Iterator[Message]:
    for message in messages:
        remaining = [one for one in message.contents if not (one.user_input_request and request_id_of(one) in repeated)]
        if len(remaining) == len(message.contents):
            yield message
        elif remaining:
            message = copy.copy(message)
            message.contents = remaining
            yield message


class EventUpdates:
    """Converts the events of a streamed run to updates, with unique message ids.

    Args:
        response_id: The id of the whole response.
    """

    def __init__(self, response_id: str) -> None:
        self._response_id = response_id
        self._calls: Counter[str | None] = Counter()
        self._users: dict[str, tuple[str | None, int]] = {}  # by id: an executor and the number of its call
        self._renamed: dict[tuple[str | None, int, str], str] = {}
        self._unnamed: dict[tuple[str | None, int], tuple[str | None, str]] = {}  # role and id of the last message

    def of(self, event: WorkflowEvent[Any]) -> Iterator[AgentResponseUpdate]:
        """Yield an event as updates, one for each message."""
        if event.type == "executor_invoked":
            self._calls[event.executor_id] += 1
        if event.type not in _SPOKEN:
            return
        for update in _updates_of(event, self._response_id):
            user = (event.source_id, self._calls[event.source_id])
            if not update.message_id:
                role, id_ = self._unnamed.get(user, (None, ""))
                if not id_ or (update.role and update.role != role):
                    role, id_ = update.role or "assistant", runtime_defaults().ids.new_id("message")
                    self._unnamed[user] = role, id_
                update.message_id = id_
            else:
                self._unnamed.pop(user, None)
                if self._users.setdefault(update.message_id, user) != user:
                    key = (*user, update.message_id)
                    update.message_id = self._renamed.setdefault(key, runtime_defaults().ids.new_id("message"))
            yield update


def _updates_of(event: WorkflowEvent[Any], response_id: str) -> Iterator[AgentResponseUpdate]:
    if isinstance(event.data, AgentResponseUpdate):
        update = copy.copy(event.data)
        if update.user_input_requests:  # each follows as a request of the workflow
            update.contents = [content for content in update.contents if not content.user_input_request]
            if not update.contents:
                return
        update.author_name = update.author_name or event.executor_id
        yield update
        return
    usage = None
    if isinstance(event.data, AgentResponse) and event.type != "request_info":
        messages, usage = event.data.messages, event.data.usage_details
    else:
        messages = _messages(event)
    for number, (message, message_id) in enumerate(zip(messages, ids_apart(messages), strict=True), 1):
        is_last = number == len(messages)
        yield AgentResponseUpdate(
            contents=[*message.contents, *([Content.from_usage(usage)] if usage and is_last else [])],
            role=message.role,
            author_name=message.author_name or event.source_id,
            response_id=response_id,
            message_id=str(message_id or runtime_defaults().ids.new_id("message")),
            created_at=_now(),
            raw_representation=event.data,
        )


def _add_author(message: Message, event: WorkflowEvent[Any]) -> Message:
    """Return a message with the executor as its author if it has none."""
    if message.author_name:
        return message
    message = copy.copy(message)
    message.author_name = event.source_id
    return message


def _messages(event: WorkflowEvent[Any]) -> list[Message]:
    data = event.data
    if event.type == "request_info":
        call = Content.from_function_call(
            event.request_id,
            REQUEST_INFO_FUNCTION_NAME,
            arguments=RequestInfoFunctionArgs(event.request_id, data).to_dict(),
        )
        contents = [call, Content.from_function_approval_request(event.request_id, call)]
        return [Message("assistant", contents, author_name=event.source_id)]
    items = data if isinstance(data, list) else [data]
    if items and all(isinstance(item, Message) for item in items):
        return [_add_author(item, event) for item in items]
    return [Message("assistant", list(_contents(items)), author_name=event.executor_id)]


def _contents(items: Iterable[Any]) -> Iterator[Content]:
    for item in items:
        if isinstance(item, list):
            yield from _contents(item)
        elif isinstance(item, Message):
            yield from item.contents
        else:
            yield item if isinstance(item, Content) else Content.from_text(str(item))


def merge_updates(updates: Sequence[AgentResponseUpdate], response_id: str) -> AgentResponse[Any]:
    """Return one response from several updates, which may be interleaved.

    Updates are grouped by response, and within a response by message, both by the time of their first one; a function
    result belongs to the response of its call. Updates without a response come last. Of an agent that runs in rounds,
    only the last round counts, with the tokens of all rounds.
    """
    updates, earlier = split_rounds(updates)
    response_of_call = {
        content.call_id: update.response_id
        for update in updates
        for content in update.contents
        if content.type == "function_call"
    }
    responses: dict[str | None, dict[object, list[AgentResponseUpdate]]] = {}
    for update in updates:
        results = [content for content in update.contents if content.type == "function_result"]
        home = response_of_call.get(results[0].call_id, update.response_id) if results else update.response_id
        message = update.message_id or (update.agent_id, update.author_name)
        responses.setdefault(home, {}).setdefault(message, []).append(update)
    ordered = sorted(responses, key=lambda key: (key is None, min(_times(responses[key].values()), default="")))
    messages: list[Message] = []
    usage: UsageDetails | None = usage_in(earlier)
    properties: dict[str, Any] = {}
    for key in ordered:
        for group in sorted(responses[key].values(), key=lambda group: min(_times([group]), default="")):
            part: AgentResponse[Any] = AgentResponse.from_updates(group)
            messages += part.messages
            properties |= part.additional_properties
            if part.usage_details is not None:
                usage = add_usage_details(usage, part.usage_details)
    return AgentResponse(
        messages=messages,
        response_id=response_id,
        created_at=max(_times([updates]), default=_now()),
        usage_details=usage,
        additional_properties=properties,
    )


def _times(groups: Iterable[Iterable[AgentResponseUpdate]]) -> list[str]:
    return [update.created_at for group in groups for update in group if update.created_at]


def _now() -> str:
    return iso_utc(runtime_defaults().clock.time_ns())

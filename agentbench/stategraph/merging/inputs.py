"""Converts the inputs of `invoke` and similar methods to writes of the state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentbench.exceptions import InvalidUpdateError
from agentbench.messages.inputs import normalize_messages
from agentbench.messages.message import Message
from agentbench.stategraph.command import Command
from agentbench.stategraph.merging.state_fields import StateFields
from agentbench.stategraph.merging.updates import TaskWrites, Write, read_return
from agentbench.stategraph.reducers import Overwrite, add_messages
from agentbench.stategraph.state import START, AgentState


def read_input(data: Any, fields: StateFields, current: Mapping[str, Any]) -> tuple[TaskWrites, list[Message]]:
    """Return an input as writes of `START`, and the messages in it; `current` has the current values.

    `messages`, `state` and `resume` are keywords of the input unless the state has a field of that name.

    Raises:
        InvalidUpdateError: A key is neither a field nor one of those keywords, or there is no field for messages.
    """
    writes: list[Write] = []
    messages: Any = None
    values: Any = None
    goto = None
    if isinstance(data, Command):
        returned = read_return(data, fields, START)
        writes, goto = [*returned.writes], returned.goto
    elif isinstance(data, Mapping):
        others = {**data}
        messages, values, _ = (_word(others, word, fields) for word in ("messages", "state", "resume"))
        writes += read_return(others, fields, START).writes
    elif fields.is_instance(data) or isinstance(data, AgentState):
        values = data
    else:
        messages = data
    if fields.is_instance(values):
        values = fields.values_of(values)
        messages = values.pop(fields.conversation, messages)
    elif isinstance(values, AgentState):
        message = f"The input is a {type(values).__name__}. Expected a {fields.cls.__name__}, the state of this graph."
        raise InvalidUpdateError(message, node=START)
    writes += read_return(values or None, fields, START).writes
    added = [message.stamp() for message in normalize_messages(messages)]
    if added and fields.is_agent_state:
        # A new turn never erases the conversation, whatever reducer the field has.
        writes.append(("context", Overwrite(add_messages(current.get("context", []), added))))
    else:
        writes += read_return(added, fields, START).writes
    return TaskWrites(START, START, writes, goto), added


def _word(data: dict[str, Any], word: str, fields: StateFields) -> Any:
    """Remove a keyword's value from an input, unless it is an ordinary field of that name."""
    return data.pop(word, None) if word not in fields.by_name or word == fields.conversation else None

"""What `invoke` and the like accept as input, as writes of the state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentbench.exceptions import InvalidUpdateError
from agentbench.messages.inputs import normalize_messages
from agentbench.messages.message import Message
from agentbench.stategraph.command import Command
from agentbench.stategraph.merging.fields import StateFields
from agentbench.stategraph.merging.updates import TaskWrites, Write, read_return
from agentbench.stategraph.reducers import Overwrite, add_messages
from agentbench.stategraph.state import START, AgentState


def read_input(data: Any, fields: StateFields, context: list[Message]) -> tuple[TaskWrites, list[Message]]:
    """Return an input as writes of `START`, and the messages in it; `context` is the conversation so far.

    Raises:
        InvalidUpdateError: A key is neither a field nor `messages` nor `state`.
    """
    writes: list[Write] = []
    messages: Any = None
    values: Any = None
    goto = None
    if isinstance(data, Command):
        found = read_return(data, fields, START)
        writes, goto = [*found.writes], found.goto
    elif isinstance(data, AgentState):
        values = data
    elif isinstance(data, Mapping):
        others = {**data}
        messages, values = others.pop("messages", None), others.pop("state", None)
        others.pop("resume", None)
        writes += read_return(others, fields, START).writes
    else:
        messages = data
    if isinstance(values, AgentState):
        if not isinstance(values, fields.cls):
            message = (
                f"The input is a {type(values).__name__}. Expected a {fields.cls.__name__}, the state of this graph."
            )
            raise InvalidUpdateError(message, node=START)
        values = {name: getattr(values, name) for name in values.model_fields_set if name != "execution_meta"}
        messages = values.pop("context", messages)
    if values:
        writes += read_return(values, fields, START).writes
    added = [message.stamp() for message in normalize_messages(messages)] if messages is not None else []
    if added:
        # A new turn never erases the conversation, whichever reducer the field has.
        writes.append(("context", Overwrite(add_messages(context, added))))
    return TaskWrites(START, START, writes, goto), added

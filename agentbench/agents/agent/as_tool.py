"""Run an agent as a tool of another agent.

An agent that runs as a tool remembers nothing between calls. If it asks a person, its conversation so far is stored in
the request, in the conversation of the calling agent. Once the person has answered, it continues from there.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from inspect import isawaitable
from typing import Any, Final

from agentbench.agents.history.pending_calls import replace_messages
from agentbench.agents.loop.call import copy_with
from agentbench.agents.middleware.contexts import InnerApprovals
from agentbench.messages.answers import without_answers
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse

_KEY: Final = "inner_conversation"


def with_conversation(
    requests: Iterable[Content], messages: Sequence[Message], response: AgentResponse[Any]
) -> list[Content]:
    """Return copies of requests with the agent's conversation: its input for the model, and its answer."""
    written = [message.to_dict() for message in (*resolved_inputs(messages, response), *response.messages)]
    copies = []
    for request in requests:
        copied = copy_with(request)
        copied.additional_properties[_KEY] = written
        copies.append(copied)
    return copies


def resolved_inputs(messages: Sequence[Message], response: AgentResponse[Any]) -> list[Message]:
    """Return the input of a run as the model saw it, with answers to requests replaced by results."""
    return replace_messages(messages, getattr(response.raw_representation, "_resolved_inputs", None))


def resume_messages(approvals: InnerApprovals) -> Sequence[Message]:
    """Return an agent's input after a person has answered: its conversation or the requests, then the answers."""
    written = approvals.requests[0].additional_properties.get(_KEY)
    if written:
        before = without_answers([Message.from_dict(message) for message in written], "the conversation of a tool")
    else:
        before = [Message("assistant", [copy_with(request, call_id=None) for request in approvals.requests])]
    return [*before, Message("user", list(approvals.answers))]


async def run_streamed(
    agent: Any, messages: Any, on_update: Callable[[Any], Awaitable[None] | None] | None = None, **extra: Any
) -> AgentResponse[Any]:
    """Return the response of a streamed run, also for agents of other libraries; `on_update` gets each update."""
    stream = agent.run(messages, stream=True, **extra)
    if not hasattr(stream, "__aiter__"):
        stream = await stream
    updates = []
    try:
        async for update in stream:
            updates.append(update)
            if on_update is not None and isawaitable(pending := on_update(update)):
                await pending
        if hasattr(stream, "get_final_response"):
            final: AgentResponse[Any] = await stream.get_final_response()
            return final
    finally:
        if hasattr(stream, "aclose"):
            await stream.aclose()
    response_format = (getattr(agent, "default_options", None) or {}).get("response_format")
    return AgentResponse.from_updates(updates, output_format_type=response_format)


def tool_name_of(agent: Any) -> str:
    """Return an agent's name with only letters, digits and underscores, as services require for tools."""
    if not agent.name:
        message = f"{agent!r} has no name to use for the tool. Name the agent, or pass a name: as_tool(name='...')."
        raise ValueError(message)
    name = re.sub(r"[^0-9A-Za-z]+", "_", agent.name).strip("_") or "agent"
    return f"_{name}" if name[0].isdigit() else name

"""What an agent in a workflow was given and said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentbench.messages.inputs import normalize_messages
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse
from agentbench.messages.update import AgentResponseUpdate
from agentbench.notebook.history.run_history import ExecutorCall

__all__ = ["conversation_of", "tool_calls_in"]


def conversation_of(call: ExecutorCall) -> list[Message]:
    """Return the conversation of an agent's last turn in a superstep; empty for executors that run no agent."""
    sent = [result for result in call.results if hasattr(result, "agent_response")]
    if sent:
        return list(sent[-1].conversation)
    updates = [result for result in call.results if isinstance(result, AgentResponseUpdate)]
    said = [result for result in call.results if isinstance(result, AgentResponse)]
    if updates:
        said.append(AgentResponse.from_updates(updates))
    if not said:
        return []
    given = [message for received in call.messages for message in _messages_in(received)]
    return [*given, *(message for response in said for message in response.messages)]


def tool_calls_in(call: ExecutorCall) -> int:
    """Return how many calls of tools an agent made in a superstep."""
    responses = [result.agent_response for result in call.results if hasattr(result, "agent_response")]
    messages = [message for response in responses for message in response.messages] or conversation_of(call)
    return sum(content.type == "function_call" for message in messages for content in message.contents)


def _messages_in(received: Any) -> Iterator[Message]:
    if hasattr(received, "agent_response"):
        yield from received.conversation
    elif isinstance(messages := getattr(received, "messages", received), (str, Message, list)):
        yield from normalize_messages(messages)

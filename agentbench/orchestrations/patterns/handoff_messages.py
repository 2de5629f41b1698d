"""What agents that hand a conversation on to each other are told, send and ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentbench.agents.sessions.agent_protocol import resolve_agent_id
from agentbench.messages.inputs import normalize_messages
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse


class HandoffConfiguration:
    """To whom an agent may hand the conversation on.

    Args:
        target: The agent, or the id of its node.
        description: When it should, for the model; by default the description of the agent.

    Attributes:
        target_id: The id of its node.
    """

    def __init__(self, *, target: Any, description: str | None = None) -> None:
        self.target_id = target if isinstance(target, str) else resolve_agent_id(target)
        self.description = description if description or isinstance(target, str) else target.description

    def __repr__(self) -> str:
        return f"HandoffConfiguration(target={self.target_id!r})"


@dataclass(frozen=True)
class HandoffSentEvent:
    """The conversation was handed on: the data of an event of type `handoff_sent`.

    Args:
        source: Who had it.
        target: Who has it now.
    """

    source: str
    target: str

    def __str__(self) -> str:
        return f"hands the conversation on to {self.target}"


@dataclass
class HandoffAgentUserRequest:
    """Asks the user to go on: an agent has answered, and hands the conversation to nobody.

    Args:
        agent_response: The answer.

    Example:
        >>> answer = HandoffAgentUserRequest.create_response("My order is 1234.")
        >>> await workflow.run(responses={request.request_id: answer})
    """

    agent_response: AgentResponse

    @staticmethod
    def create_response(response: str | Message | Sequence[str | Message]) -> list[Message]:
        """Return what the user says, as the response to the request."""
        return normalize_messages(response)

    @staticmethod
    def terminate() -> list[Message]:
        """Return the response that ends the conversation."""
        return []

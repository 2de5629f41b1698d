"""The configuration, events and requests of agents that hand a conversation over to each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from agentbench.agents.sessions.agent_protocol import resolve_agent_id
from agentbench.messages.inputs import normalize_messages
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse
from agentbench.workflows.executors.approval import TextAnswer


class HandoffConfiguration:
    """A possible target of a handoff.

    Args:
        target: The agent, or the id of its node.
        description: When to hand over, for the model; by default the description of the agent.

    Attributes:
        target_id: The id of its node.

    Example:
        from agentbench.orchestrations import HandoffConfiguration

        handoff = HandoffConfiguration(target="refunds", description="The customer wants money back.")
        assert handoff.target_id == "refunds"
    """

    def __init__(self, *, target: Any, description: str | None = None) -> None:
        self.target_id = target if isinstance(target, str) else resolve_agent_id(target)
        self.description = description if description or isinstance(target, str) else target.description

    def __repr__(self) -> str:
        return f"HandoffConfiguration(target={self.target_id!r})"


@dataclass(frozen=True)
class HandoffSentEvent:
    """The conversation was handed over: the data of an event of type `handoff_sent`.

    Args:
        source: The agent that had it.
        target: The agent that has it now.

    Example:
        async for event in workflow.run("I want my money back.", stream=True):
            if event.type == "handoff_sent":
                print(event.data.source, "to", event.data.target)
    """

    source: str
    target: str

    def __str__(self) -> str:
        return f"hands the conversation on to {self.target}"


@dataclass
class HandoffAgentUserRequest:
    """Asks the user for the next message, because an agent has answered without a handoff.

    The response is a text, or a list of messages; an empty list ends the conversation.

    Args:
        agent_response: The answer of the agent.

    Example:
        >>> await workflow.run(responses={request.request_id: "My order is 1234."})
    """

    agent_response: AgentResponse

    _text_answer_: ClassVar = TextAnswer(without="End conversation")

    answer_hint: ClassVar = "Answer with a text, or end the conversation with HandoffAgentUserRequest.terminate()."
    """The last sentence of the error for an invalid response."""

    @staticmethod
    def create_response(response: str | Message | Sequence[str | Message]) -> list[Message]:
        """Return the user's message as the response to the request."""
        return normalize_messages(response)

    @staticmethod
    def terminate() -> list[Message]:
        """Return the response that ends the conversation."""
        return []

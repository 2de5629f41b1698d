"""What passes between the orchestrator of a group chat and those who take part, and what it remembers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from agentbench.messages.message import Message
from agentbench.orchestrations.agent_node import AgentNode
from agentbench.workflows.executors.executor import Executor


@dataclass
class GroupChatParticipantMessage:
    """What others have said, for an executor that takes part.

    Args:
        messages: The new messages.
    """

    messages: list[Message]


@dataclass
class GroupChatRequestMessage:
    """Gives an executor that takes part the turn; it answers with a `GroupChatResponseMessage`.

    Args:
        additional_instruction: What it is to do in this turn.
        metadata: More for it.
    """

    additional_instruction: str | None = None
    metadata: dict[str, Any] | None = None


@dataclass
class GroupChatResponseMessage:
    """What an executor says in its turn.

    Args:
        message: Its message.
    """

    message: Message


@dataclass(frozen=True)
class GroupChatRequestSentEvent:
    """Somebody got the turn: the data of an event of type `group_chat`.

    Args:
        round_index: Number of the turn, from 1.
        participant_name: Who got it.
        reason: Why, where a manager gave a reason.
    """

    round_index: int
    participant_name: str
    reason: str | None = None

    def __str__(self) -> str:
        return f"turn {self.round_index} goes to {self.participant_name}" + (f": {self.reason}" if self.reason else "")


@dataclass(frozen=True)
class GroupChatResponseReceivedEvent:
    """Somebody has answered: the data of an event of type `group_chat`.

    Args:
        round_index: Number of the turn, from 1.
        participant_name: Who answered.
    """

    round_index: int
    participant_name: str

    def __str__(self) -> str:
        return f"{self.participant_name} has answered in turn {self.round_index}"


@dataclass(frozen=True)
class GroupChatState:
    """What a function that chooses the next speaker can look at.

    Args:
        current_round: How many turns there were.
        participants: Descriptions by name, in order.
        conversation: What was said.

    Example:
        >>> def in_turn(state: GroupChatState) -> str:
        ...     return [*state.participants][state.current_round % len(state.participants)]
    """

    current_round: int
    participants: Mapping[str, str]
    conversation: Sequence[Message]


GroupChatSelectionFunction: TypeAlias = Callable[[GroupChatState], str | Awaitable[str]]
"""Returns the name of the next speaker."""

TerminationCondition: TypeAlias = Callable[[list[Message]], bool | Awaitable[bool]]
"""Whether a conversation is at its end."""


@dataclass
class OrchestrationState:
    """What the orchestrator of a conversation stores in checkpoints.

    Args:
        conversation: What was said.
        round_index: How many turns there were.
        orchestrator_name: Who signs the last message.
        metadata: More of it.
        task: What it is all about, where that is one message.
    """

    conversation: list[Message] = field(default_factory=list)
    round_index: int = 0
    orchestrator_name: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    task: Message | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain JSON values."""
        plain = asdict(self) | {"conversation": [message.to_dict() for message in self.conversation]}
        if self.task is None:
            del plain["task"]
        else:
            plain["task"] = self.task.to_dict()
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> OrchestrationState:
        """Return the state that `to_dict` wrote."""
        task = data.get("task")
        return cls(
            conversation=[Message.from_dict(each) for each in data.get("conversation", ())],
            round_index=data.get("round_index", 0),
            orchestrator_name=data.get("orchestrator_name", ""),
            metadata=dict(data.get("metadata", {})),
            task=None if task is None else Message.from_dict(task),
        )


class ParticipantRegistry:
    """Who takes part in a conversation, for its orchestrator.

    Args:
        participants: The nodes.

    Attributes:
        participants: Descriptions by id, in order.
    """

    def __init__(self, participants: Sequence[Executor]) -> None:
        self.participants = {node.id: str(getattr(node, "description", None) or "") for node in participants}
        self._agents = {node.id for node in participants if isinstance(node, AgentNode)}

    def is_agent(self, name: str) -> bool:
        """Return whether a participant is the node of an agent."""
        return name in self._agents

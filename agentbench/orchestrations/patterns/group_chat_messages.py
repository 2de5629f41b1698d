"""The messages between the orchestrator and the participants of a group chat, and the orchestrator's state."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from agentbench.messages.message import Message
from agentbench.orchestrations.agent_node import AgentNode
from agentbench.workflows.executors.executor import Executor


@dataclass
class GroupChatParticipantMessage:
    """Messages of others, for an executor that takes part.

    Args:
        messages: The new messages.

    Example:
        from agentbench import Message
        from agentbench.orchestrations import GroupChatParticipantMessage

        message = GroupChatParticipantMessage([Message("assistant", ["Tests are cheap."], author_name="writer")])
    """

    messages: list[Message]


@dataclass
class GroupChatRequestMessage:
    """Gives the turn to an executor that takes part; it answers with a `GroupChatResponseMessage`.

    Args:
        additional_instruction: The instruction for this turn.
        metadata: Further data.

    Example:
        class Clerk(Executor):
            @handler
            async def speak(
                self, turn: GroupChatRequestMessage, ctx: WorkflowContext[GroupChatResponseMessage]
            ) -> None:
                await ctx.send_message(GroupChatResponseMessage(Message("assistant", ["Noted."])))
    """

    additional_instruction: str | None = None
    metadata: dict[str, Any] | None = None


@dataclass
class GroupChatResponseMessage:
    """The message of an executor in its turn.

    Args:
        message: Its message.

    Example:
        from agentbench import Message
        from agentbench.orchestrations import GroupChatResponseMessage

        response = GroupChatResponseMessage(Message("assistant", ["Noted."]))
    """

    message: Message


@dataclass(frozen=True)
class GroupChatRequestSentEvent:
    """A participant got the turn: the data of an event of type `group_chat`.

    Args:
        round_index: The number of the turn, from 1.
        participant_name: The participant that got the turn.
        reason: The manager's reason, if there is one.

    Example:
        async for event in workflow.run("Discuss.", stream=True):
            if event.type == "group_chat" and isinstance(event.data, GroupChatRequestSentEvent):
                print(event.data.round_index, event.data.participant_name)
    """

    round_index: int
    participant_name: str
    reason: str | None = None

    def __str__(self) -> str:
        return f"turn {self.round_index} goes to {self.participant_name}" + (f": {self.reason}" if self.reason else "")


@dataclass(frozen=True)
class GroupChatResponseReceivedEvent:
    """A participant has answered: the data of an event of type `group_chat`.

    Args:
        round_index: The number of the turn, from 1.
        participant_name: The participant that answered.

    Example:
        async for event in workflow.run("Discuss.", stream=True):
            if event.type == "group_chat" and isinstance(event.data, GroupChatResponseReceivedEvent):
                print(event.data.participant_name, "has answered")
    """

    round_index: int
    participant_name: str

    def __str__(self) -> str:
        return f"{self.participant_name} has answered in turn {self.round_index}"


@dataclass(frozen=True)
class GroupChatState:
    """The state that a speaker selection function reads.

    Args:
        current_round: The number of turns up to now.
        participants: Descriptions by name, in order.
        conversation: The messages up to now.

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
"""Returns whether a conversation has ended."""


async def is_ended(condition: TerminationCondition | None, conversation: Sequence[Message]) -> bool:
    """Return whether a condition ends a conversation; it never does without a condition."""
    ends = condition is not None and condition([*conversation])
    return bool(await ends if inspect.isawaitable(ends) else ends)


@dataclass
class OrchestrationState:
    """The part of an orchestrator that is stored in checkpoints.

    Args:
        conversation: The messages up to now.
        round_index: The number of turns up to now.
        orchestrator_name: The author of the last message.
        metadata: Further data.
        task: The task, if it is a single message.

    Example:
        from agentbench.orchestrations import OrchestrationState

        state = OrchestrationState(round_index=2, orchestrator_name="moderator")
        assert OrchestrationState.from_dict(state.to_dict()).round_index == 2
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
            conversation=[Message.from_dict(message) for message in data.get("conversation", ())],
            round_index=data.get("round_index", 0),
            orchestrator_name=data.get("orchestrator_name", ""),
            metadata=dict(data.get("metadata", {})),
            task=None if task is None else Message.from_dict(task),
        )


class ParticipantRegistry:
    """The participants of a conversation, for its orchestrator.

    Args:
        participants: The nodes.

    Attributes:
        participants: Descriptions by id, in order.

    Example:
        from agentbench import Agent, AgentExecutor, EchoChatClient
        from agentbench.orchestrations import ParticipantRegistry

        registry = ParticipantRegistry([AgentExecutor(Agent(EchoChatClient(), name="writer"))])
        assert list(registry.participants) == ["writer"]
    """

    def __init__(self, participants: Sequence[Executor]) -> None:
        self.participants = {node.id: str(getattr(node, "description", None) or "") for node in participants}
        self._agents = {node.id for node in participants if isinstance(node, AgentNode)}

    def is_agent(self, name: str) -> bool:
        """Return whether a participant is the node of an agent."""
        return name in self._agents

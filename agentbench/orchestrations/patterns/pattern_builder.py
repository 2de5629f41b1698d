"""The common base of pattern builders."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

from agentbench.agents.sessions.agent_protocol import SupportsAgentRun
from agentbench.exceptions import EmptyConversationError
from agentbench.messages.inputs import normalize_messages
from agentbench.messages.message import Message
from agentbench.orchestrations.patterns.participants import Participants
from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.executors.executor import Executor

if TYPE_CHECKING:
    from agentbench.checkpoints.manager import CheckpointManager
    from agentbench.checkpoints.storage import CheckpointStorage


class PatternBuilder:
    """The base of builders: name, storage and outputs. `build()` may be called several times."""

    def __init__(
        self,
        checkpoint_storage: CheckpointStorage | CheckpointManager | None,
        output_from: Any,
        intermediate_output_from: Any,
        name: str | None,
    ) -> None:
        self._storage, self._name = checkpoint_storage, name
        self._output_from, self._intermediate_from = output_from, intermediate_output_from

    def with_checkpointing(self, checkpoint_storage: CheckpointStorage | CheckpointManager) -> Self:
        """Save checkpoints of runs in a storage by default."""
        self._storage = checkpoint_storage
        return self

    def _begin(
        self,
        start: Executor,
        participants: Participants,
        *,
        always: Sequence[Executor] = (),
        default: Sequence[Executor] = (),
        **settings: Any,
    ) -> WorkflowBuilder:
        """Return the builder of a workflow whose outputs are those of participants, see `Participants.designate`."""
        outputs = participants.designate(self._output_from, self._intermediate_from, always=always, default=default)
        return WorkflowBuilder(
            name=self._name, start_executor=start, checkpoint_storage=self._storage, **outputs, **settings
        )


class ReviewedPatternBuilder(PatternBuilder):
    """The base of builders whose participants' answers a person can review."""

    _reviewed: list[Any] | None = []  # noqa: RUF012 - never changed

    def with_request_info(self, *, agents: Sequence[Any] | None = None) -> Self:
        """Ask a person about each answer of agents, before the other participants get it.

        The workflow then raises a request with the `AgentExecutorResponse`, which expects an
        `AgentRequestInfoResponse`. An answer is an intermediate output until it is approved.

        Args:
            agents: The agents, or their ids; by default all of them.
        """
        self._reviewed = None if agents is None else list(agents)
        return self

    def _is_reviewed(self, agent: Any) -> bool:
        return self._reviewed is None or any(
            chosen is agent or (isinstance(chosen, str) and chosen in (agent.name, agent.id))
            for chosen in self._reviewed
        )

    def _check_review(self, participants: Participants) -> None:
        for chosen in self._reviewed or ():
            participants.find(chosen, "with_request_info(agents=...)")


def require_names(participants: Sequence[Any]) -> None:
    """Raise ValueError if an agent has no name by which it could be selected."""
    for participant in participants:
        if isinstance(participant, SupportsAgentRun) and not participant.name:
            msg = f"{participant!r} has no name, so it cannot be selected. Pass agents with names."
            raise ValueError(msg)


def require_messages(messages: Sequence[str | Message], executor_id: str) -> list[Message]:
    """Return the input of a pattern as messages; raise EmptyConversationError if there are none."""
    if not messages:
        raise EmptyConversationError(executor_id)
    return normalize_messages(messages)


def clean_conversation_for_handoff(conversation: Iterable[Message]) -> list[Message]:
    """Return the texts of a conversation, without tool calls, which only the agent that made them can continue.

    Args:
        conversation: The messages; messages without text are left out.

    Example:
        from agentbench import Message
        from agentbench.orchestrations import clean_conversation_for_handoff

        (message,) = clean_conversation_for_handoff([Message("user", ["Hello"]), Message("assistant", [])])
        assert message.text == "Hello"
    """
    return [
        Message(
            message.role,
            texts,
            author_name=message.author_name,
            message_id=message.message_id,
            additional_properties=message.additional_properties,
        )
        for message in conversation
        if (texts := [content for content in message.contents if content.type == "text" and content.text])
    ]


def create_completion_message(*, text: str | None = None, author_name: str, reason: str = "completed") -> Message:
    """Return the message with which a conversation ends.

    Args:
        text: The text of the message; by default the reason.
        author_name: The author of the message.
        reason: Why the conversation ends.

    Example:
        from agentbench.orchestrations import create_completion_message

        message = create_completion_message(text="The report is done.", author_name="moderator")
        assert message.text == "The report is done."
    """
    return Message("assistant", [text or f"The conversation has ended: {reason}."], author_name=author_name)


def json_objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a text, also in prose or between code fences."""
    decoder, place = json.JSONDecoder(), text.find("{")
    while place >= 0:
        try:
            found, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            yield found
        place = text.find("{", end)

"""A group chat led by an agent."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError  # noqa: TID253 - only chats that an agent leads load this

from agentbench._limits import require_limit
from agentbench.agents.sessions.agent_protocol import resolve_agent_id
from agentbench.agents.sessions.session import AgentSession
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse
from agentbench.orchestrations.agent_executor import AgentExecutor
from agentbench.orchestrations.agent_node import call_agent
from agentbench.orchestrations.patterns.group_chat_messages import ParticipantRegistry, TerminationCondition
from agentbench.orchestrations.patterns.group_chat_orchestrator import BaseGroupChatOrchestrator, OrchestratorContext
from agentbench.orchestrations.patterns.pattern_builder import create_completion_message, json_objects

logger = logging.getLogger("agentbench")


class AgentOrchestrationOutput(BaseModel):
    """The decision of the agent that leads a group chat.

    Attributes:
        terminate: Whether the conversation ends.
        reason: The reason for the decision.
        next_speaker: The name of the next speaker, unless the conversation ends.
        final_message: The last message, if the conversation ends.

    Example:
        from agentbench.orchestrations import AgentOrchestrationOutput

        decision = AgentOrchestrationOutput(terminate=False, reason="The critic has not spoken.", next_speaker="critic")
    """

    model_config = ConfigDict(extra="forbid")

    terminate: bool
    reason: str
    next_speaker: str | None = None
    final_message: str | None = None


class AgentBasedGroupChatOrchestrator(BaseGroupChatOrchestrator):
    """Leads a conversation by an agent, which has its own session and gets only messages that are new to it.

    Args:
        agent: The agent. It answers in the form of `AgentOrchestrationOutput`; its id is that of the node.
        participant_registry: The participants.
        max_rounds, termination_condition: As for `BaseGroupChatOrchestrator`.
        retry_attempts: How often it is asked again after an unusable answer; by default twice.
        session: Its session; by default a new one.

    Example:
        from agentbench.orchestrations import GroupChatBuilder

        workflow = GroupChatBuilder(participants=[writer, critic], orchestrator_agent=moderator).build()
    """

    def __init__(
        self,
        agent: Any,
        participant_registry: ParticipantRegistry,
        *,
        name: str | None = None,
        max_rounds: int | None = None,
        termination_condition: TerminationCondition | None = None,
        retry_attempts: int | None = None,
        session: AgentSession | None = None,
    ) -> None:
        self.manager = AgentExecutor(agent, session=session)
        require_limit("retry_attempts", retry_attempts, none="2")
        self.retry_attempts = 2 if retry_attempts is None else retry_attempts
        super().__init__(
            resolve_agent_id(agent),
            participant_registry,
            name=name,
            max_rounds=max_rounds,
            termination_condition=termination_condition,
        )

    def begin(self, messages: Sequence[Message]) -> None:
        """Begin a conversation; the manager has not read any of it."""
        super().begin(messages)
        self._ab_read = 0

    async def choose(self, ctx: OrchestratorContext) -> tuple[str, str | None] | Message:
        """Return the name that the agent selects and its reason, or its last message.

        Raises:
            RuntimeError: None of its answers can be used.
        """
        new = self.conversation[self._ab_read :]
        self._ab_read = len(self.conversation)
        members = self.participant_registry.participants
        team = "\n".join(f"- {name}: {description}" for name, description in members.items())
        ask = (
            f"These take part:\n{team}\nDecide who speaks next, by the exact name, or end the conversation if nothing "
            'is left to be done. Answer with JSON alone: {"terminate": true or false, "reason": "...", "next_speaker": '
            '"a name, or null", "final_message": "the result for the user if it ends, or null"}.'
        )
        messages = [*new, Message("user", [ask], author_name=self.name)]
        problem = ""
        for _ in range(1 + self.retry_attempts):
            reply = await call_agent(
                self.manager.agent,
                messages,
                ctx,
                {"session": self.manager.session, "options": {"response_format": AgentOrchestrationOutput}},
            )
            decision = _decision(reply.response)
            if decision is not None and decision.terminate:
                text = decision.final_message or None
                return create_completion_message(text=text, author_name=self.name, reason=decision.reason)
            if decision is not None and decision.next_speaker in members:
                return str(decision.next_speaker), decision.reason
            problem = _problem(decision, reply.response)
            messages = [
                Message("user", [f"{problem} Expected one of: {', '.join(members)}, or the end. Answer again."])
            ]
            logger.warning("The manager %r of a group chat is asked again. %s", self.id, problem)
        msg = f"The manager {self.id!r} gave {1 + self.retry_attempts} unusable answers. {problem}"
        raise RuntimeError(msg)

    def fresh(self) -> Self:
        """Return the orchestrator at the beginning of a conversation, with its own session."""
        clone = super().fresh()
        clone.manager = self.manager.fresh()
        return clone

    async def on_checkpoint_save(self) -> dict[str, Any]:
        """Return the conversation, the number of turns, and the session of the manager."""
        manager = await self.manager.on_checkpoint_save()
        return {**await super().on_checkpoint_save(), "read": self._ab_read, "session": manager["agent_session"]}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        """Restore the result of `on_checkpoint_save`."""
        await super().on_checkpoint_restore(state)
        self._ab_read = state["read"]
        await self.manager.on_checkpoint_restore({"agent_session": state["session"]})


def _problem(decision: AgentOrchestrationOutput | None, response: AgentResponse) -> str:
    if decision is None:
        return f"{response.text[:200]!r} is not JSON of the requested form."
    if decision.next_speaker is None:
        return "It neither ends the conversation nor names a next speaker."
    return f"There is no participant {decision.next_speaker!r}."


def _decision(response: AgentResponse) -> AgentOrchestrationOutput | None:
    """Read an agent's decision: its structured value, or the last JSON object in its text."""
    try:
        value = response.value
    except ValueError:
        value = None
    if isinstance(value, AgentOrchestrationOutput):
        return value
    objects = [*json_objects(response.text)]
    try:
        return AgentOrchestrationOutput.model_validate(objects[-1]) if objects else None
    except ValidationError:
        return None

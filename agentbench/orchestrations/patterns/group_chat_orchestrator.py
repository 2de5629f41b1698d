"""Orchestrators of group chats: they broadcast messages, give the turn, and end the conversation."""

from __future__ import annotations

import copy
import inspect
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from agentbench._limits import require_limit
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse
from agentbench.orchestrations.agent_executor import AgentExecutorRequest, AgentExecutorResponse
from agentbench.orchestrations.patterns.group_chat_messages import (
    GroupChatParticipantMessage,
    GroupChatRequestMessage,
    GroupChatRequestSentEvent,
    GroupChatResponseMessage,
    GroupChatResponseReceivedEvent,
    GroupChatSelectionFunction,
    GroupChatState,
    OrchestrationState,
    ParticipantRegistry,
    TerminationCondition,
    is_ended,
)
from agentbench.orchestrations.patterns.pattern_builder import (
    clean_conversation_for_handoff,
    create_completion_message,
    require_messages,
)
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.handlers import handler

OrchestratorContext = WorkflowContext[
    AgentExecutorRequest | GroupChatRequestMessage | GroupChatParticipantMessage, AgentResponse
]


class BaseGroupChatOrchestrator(Executor):
    """The base of orchestrators that lead a conversation. A subclass selects the next speaker, or ends it.

    Each input starts over: the conversation and the number of turns belong to one input. A subclass can replace the
    texts with which it ends the conversation: `TERMINATION_CONDITION_MET_MESSAGE` and `MAX_ROUNDS_MET_MESSAGE`.

    Args:
        id: The id of the node.
        participant_registry: The participants.
        name: The author of the last message; by default the id.
        max_rounds: Maximum number of turns; `None` for no limit.
        termination_condition: A condition that ends the conversation.

    Example:
        from agentbench.orchestrations import GroupChatBuilder

        workflow = GroupChatBuilder(participants=[writer, critic], selection_func=next_speaker).build()
    """

    signature_key: ClassVar[str | None] = "GroupChatOrchestrator"

    TERMINATION_CONDITION_MET_MESSAGE: ClassVar[str] = "The conversation has ended: the termination condition holds."
    MAX_ROUNDS_MET_MESSAGE: ClassVar[str] = "The conversation has ended: the maximum number of rounds is reached."

    def __init__(
        self,
        id: str,  # noqa: A002 - the public name
        participant_registry: ParticipantRegistry,
        *,
        name: str | None = None,
        max_rounds: int | None = None,
        termination_condition: TerminationCondition | None = None,
    ) -> None:
        super().__init__(id)
        self.participant_registry = participant_registry
        self.name = name or id
        require_limit("max_rounds", max_rounds, least=1, none="any number")
        self.max_rounds = max_rounds
        self.termination_condition = termination_condition
        self.begin([])

    def begin(self, messages: Sequence[Message]) -> None:
        """Begin a conversation and drop the previous one."""
        self.conversation: list[Message] = list(messages)
        self.round_index = 0

    @abstractmethod
    async def choose(self, ctx: OrchestratorContext) -> tuple[str, str | None] | Message:
        """Return the next speaker, with a reason if there is one; or the message that ends the conversation."""

    @property
    def state(self) -> GroupChatState:
        """Return the state on which the selection of the next speaker is based."""
        return GroupChatState(self.round_index, dict(self.participant_registry.participants), tuple(self.conversation))

    # ---- handlers ---------------------------------------------------------------------------

    @handler
    async def from_text(self, text: str, ctx: OrchestratorContext) -> None:
        """Begin with a text of the user."""
        await self._ab_start([Message("user", [text])], ctx)

    @handler
    async def from_message(self, message: Message, ctx: OrchestratorContext) -> None:
        """Begin with a message."""
        await self._ab_start([message], ctx)

    @handler
    async def from_messages(self, messages: list[str | Message], ctx: OrchestratorContext) -> None:
        """Begin with several messages.

        Raises:
            EmptyConversationError: There are no messages.
        """
        await self._ab_start(require_messages(messages, self.id), ctx)

    @handler
    async def from_agent(self, response: AgentExecutorResponse, ctx: OrchestratorContext) -> None:
        """Receive the answer of an agent."""
        await self._ab_take_answer(response.executor_id, response.agent_response.messages, ctx)

    @handler
    async def from_executor(self, response: GroupChatResponseMessage, ctx: OrchestratorContext) -> None:
        """Receive the answer of an executor."""
        await self._ab_take_answer(ctx.get_source_executor_id(), [response.message], ctx)

    # ---- the conversation ------------------------------------------------------------------------

    async def _ab_start(self, messages: list[Message], ctx: OrchestratorContext) -> None:
        self.begin(messages)
        await self._ab_go_on(messages, None, ctx)

    async def _ab_take_answer(self, author: str, messages: Sequence[Message], ctx: OrchestratorContext) -> None:
        texts = await self._ab_add_answer(author, messages, ctx)
        await self._ab_go_on(texts, author, ctx)

    async def _ab_add_answer(self, author: str, messages: Sequence[Message], ctx: OrchestratorContext) -> list[Message]:
        """Add the texts of an answer to the conversation, and return them."""
        await self._ab_report(GroupChatResponseReceivedEvent(self.round_index, author), ctx)
        texts = clean_conversation_for_handoff(message for message in messages if message.role != "tool")
        for message in texts:
            message.author_name = message.author_name or author
        self.conversation += texts
        return texts

    async def _ab_go_on(self, new: list[Message], author: str | None, ctx: OrchestratorContext) -> None:
        """Pass new messages on and give the turn; or end the conversation."""
        if await is_ended(self.termination_condition, self.conversation):
            await self.end(self.TERMINATION_CONDITION_MET_MESSAGE, ctx)
            return
        if self.max_rounds is not None and self.round_index >= self.max_rounds:
            await self.end(self.MAX_ROUNDS_MET_MESSAGE, ctx)
            return
        chosen = await self.choose(ctx)
        if isinstance(chosen, Message):
            self.conversation.append(chosen)
            await ctx.yield_output(AgentResponse(messages=[chosen]))
            return
        speaker, reason = chosen
        await self._ab_broadcast(new, ctx, author)
        self.round_index += 1
        await self._ab_report(GroupChatRequestSentEvent(self.round_index, speaker, reason), ctx)
        await self._ab_give_turn(speaker, ctx, speaks_again=speaker == author)

    async def end(self, text: str, ctx: OrchestratorContext) -> None:
        """End the conversation with a message of the orchestrator."""
        message = create_completion_message(text=text, author_name=self.name)
        self.conversation.append(message)
        await ctx.yield_output(AgentResponse(messages=[message]))

    async def _ab_report(self, data: Any, ctx: OrchestratorContext, kind: str = "group_chat") -> None:
        await ctx.add_event(WorkflowEvent(kind, data, executor_id=self.id))

    async def _ab_broadcast(self, messages: list[Message], ctx: OrchestratorContext, author: str | None = None) -> None:
        """Send messages to all participants except their author."""
        for name in self.participant_registry.participants if messages else ():
            if name == author:
                continue
            if self.participant_registry.is_agent(name):
                await ctx.send_message(AgentExecutorRequest([*messages], should_respond=False), name)
            else:
                await ctx.send_message(GroupChatParticipantMessage([*messages]), name)

    async def _ab_give_turn(
        self, name: str, ctx: OrchestratorContext, instruction: str | None = None, *, speaks_again: bool = False
    ) -> None:
        if not self.participant_registry.is_agent(name):
            await ctx.send_message(GroupChatRequestMessage(instruction), name)
            return
        if instruction is None and speaks_again:
            instruction = "Go on."  # nobody else has spoken, and a model needs a message to answer
        messages = [] if instruction is None else [Message("user", [instruction], author_name=self.name)]
        await ctx.send_message(AgentExecutorRequest(messages), name)

    # ---- runs and checkpoints --------------------------------------------------------------------

    def fresh(self) -> Self:
        """Return the orchestrator at the beginning of a conversation."""
        clone = copy.copy(self)
        clone.begin([])
        return clone

    async def on_checkpoint_save(self) -> dict[str, Any]:
        """Return the conversation and the number of turns."""
        return vars(OrchestrationState([*self.conversation], self.round_index, self.name))

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        """Restore the result of `on_checkpoint_save`."""
        self.conversation, self.round_index = [*state["conversation"]], state["round_index"]


class GroupChatOrchestrator(BaseGroupChatOrchestrator):
    """Leads a conversation by a function that returns the name of the next speaker.

    Args:
        id: The id of the node.
        participant_registry: The participants.
        selection_func: Called before each turn; it may be async.
        name, max_rounds, termination_condition: As for `BaseGroupChatOrchestrator`.

    Example:
        def next_speaker(state):
            return "writer" if state.current_round % 2 == 0 else "critic"

        workflow = GroupChatBuilder(participants=[writer, critic], selection_func=next_speaker).build()
    """

    def __init__(
        self,
        id: str,  # noqa: A002 - the public name
        participant_registry: ParticipantRegistry,
        selection_func: GroupChatSelectionFunction,
        *,
        name: str | None = None,
        max_rounds: int | None = None,
        termination_condition: TerminationCondition | None = None,
    ) -> None:
        super().__init__(
            id, participant_registry, name=name, max_rounds=max_rounds, termination_condition=termination_condition
        )
        self.selection_func = selection_func

    async def choose(self, ctx: OrchestratorContext) -> tuple[str, str | None]:
        """Return the name that the function selects.

        Raises:
            RuntimeError: The name is not that of a participant.
        """
        chosen = self.selection_func(self.state)
        name = await chosen if inspect.isawaitable(chosen) else chosen
        members = self.participant_registry.participants
        if name not in members:
            msg = f"The selection function of {self.id!r} returned {name!r}. Expected one of: {', '.join(members)}."
            raise RuntimeError(msg)
        return name, None

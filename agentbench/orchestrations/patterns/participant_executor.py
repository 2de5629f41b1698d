"""An agent in a pattern: people may review its answers, and its failure may count as an answer."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse
from agentbench.messages.update import AgentResponseUpdate
from agentbench.orchestrations.agent_executor import AgentExecutor, AgentExecutorResponse, AgentNodeContext
from agentbench.orchestrations.agent_node import AgentReply, OnUpdate
from agentbench.orchestrations.host_executor import reassign_to_user
from agentbench.orchestrations.patterns.participants import yield_response
from agentbench.workflows.events.events import WorkflowEvent, WorkflowEventSource
from agentbench.workflows.executors.approval import TextAnswer
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.handlers import response_handler

logger = logging.getLogger("agentbench")


@dataclass
class AgentRequestInfoResponse:
    """A person's response to the answer of an agent: an approval, or requested changes.

    A text is accepted instead, and means the same as `from_strings` with that text.

    Args:
        messages: Messages for the agent, which answers again; an empty list approves.

    Example:
        >>> await workflow.run(responses={request.request_id: AgentRequestInfoResponse.from_strings(["Shorter."])})
    """

    messages: list[Message] = field(default_factory=list)

    _text_answer_: ClassVar = TextAnswer(
        prompt="Is this answer good?", label="What to change", without="Approve as it is"
    )

    @classmethod
    def _from_text_(cls, text: str) -> AgentRequestInfoResponse:
        return cls.from_strings([text])

    @classmethod
    def approve(cls) -> AgentRequestInfoResponse:
        """Return the approval: the answer is passed on."""
        return cls()

    @classmethod
    def from_strings(cls, texts: Sequence[str]) -> AgentRequestInfoResponse:
        """Return texts of a user for the agent."""
        return cls([Message("user", [text]) for text in texts])

    @classmethod
    def from_messages(cls, messages: Sequence[Message]) -> AgentRequestInfoResponse:
        """Return messages for the agent."""
        return cls(list(messages))


class ParticipantExecutor(AgentExecutor):
    """A node of an agent in a pattern.

    Args:
        agent: The agent.
        reviewed: Whether a person is asked about each answer. An answer is an intermediate output until it is approved.
        collects_errors: Whether a failure of the agent is passed on as an answer with its error.
        reassigns: Whether the agent sees the answers of other agents as messages of the user.
        **settings: Arguments of `AgentExecutor`.
    """

    signature_key: ClassVar[str | None] = AgentExecutor.signature_key

    def __init__(
        self,
        agent: Any,
        *,
        reviewed: bool = False,
        collects_errors: bool = False,
        reassigns: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__(agent, **settings)
        self.reviewed, self.collects_errors, self.reassigns = reviewed, collects_errors, reassigns

    @property
    def asks_person(self) -> bool:
        """Whether a person is asked about each answer, or a tool needs approval."""
        return self.reviewed or super().asks_person

    async def _call_agent(
        self, messages: list[Message], ctx: WorkflowContext[Any, Any], on_update: OnUpdate | None = None
    ) -> AgentReply:
        if self.reassigns:
            messages = reassign_to_user(messages, self)
        try:
            return await super()._call_agent(messages, ctx, on_update)
        except Exception as error:
            if not self.collects_errors:
                raise
            logger.warning("Agent %r failed; the others continue.", self.id, exc_info=True)
            content = Content.from_error(message=str(error), error_code=type(error).__name__)
            message = Message("assistant", [content], author_name=self.agent.name)
            return AgentReply(AgentResponse(messages=[message]), {})

    async def _yield_output(self, output: AgentResponse | AgentResponseUpdate, ctx: AgentNodeContext) -> None:
        if self.reviewed:
            emit_intermediate(output, ctx)
        else:
            await super()._yield_output(output, ctx)

    async def _pass_on(self, response: AgentResponse, ctx: AgentNodeContext) -> None:
        if self.reviewed:
            draft = AgentExecutorResponse(self.id, response, [*self._ab_full_conversation])
            await ctx.request_info(draft, AgentRequestInfoResponse)
        else:
            await self._deliver(response, ctx)

    async def _deliver(self, response: AgentResponse, ctx: AgentNodeContext) -> None:
        """Send on an answer that needs no further review."""
        await super()._pass_on(response, ctx)

    @response_handler
    async def from_review(
        self, draft: AgentExecutorResponse, review: AgentRequestInfoResponse, ctx: AgentNodeContext
    ) -> None:
        """Pass an approved answer on, or let the agent answer again; the conversation stays complete."""
        if review.messages:
            await self._take_turn(self._take_in(review.messages), ctx, goes_on=True)
            return
        await yield_response(draft.agent_response, ctx)
        await self._deliver(draft.agent_response, ctx)


def emit_intermediate(data: Any, ctx: WorkflowContext[Any, Any]) -> None:
    """Emit an intermediate output, whatever the designation of the node."""
    event = WorkflowEvent("intermediate", data, origin=WorkflowEventSource.FRAMEWORK, executor_id=ctx.executor_id)
    run: Any = ctx._run  # noqa: SLF001 - the engine's side of the context
    run.log.append(event, ctx._delivery)  # noqa: SLF001 - as above

"""`AgentExecutor`: an agent as a node that answers each message at once; and what such nodes send each other."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import isawaitable
from typing import Any, ClassVar, Literal, get_args

from agentbench.agents.agent.as_tool import resolved_inputs
from agentbench.agents.sessions.agent_protocol import SupportsAgentRun
from agentbench.agents.sessions.session import AgentSession
from agentbench.messages.content.content import Content
from agentbench.messages.inputs import normalize_messages
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse
from agentbench.messages.update import AgentResponseUpdate
from agentbench.orchestrations.agent_node import AgentNode
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.handlers import handler, response_handler
from agentbench.workflows.executors.message import WORKFLOW_SOURCE

logger = logging.getLogger("agentbench")

ContextMode = Literal["full", "last_agent", "custom"]
ContextFilter = Callable[[list[Message]], list[Message] | Awaitable[list[Message]]]


@dataclass
class AgentExecutorRequest:
    """Messages for an agent node.

    Args:
        messages: What the agent gets, behind what waits for it already.
        should_respond: Whether the agent runs; else the messages wait for the next one that it is to answer.

    Example:
        >>> background = AgentExecutorRequest([Message("user", "I am Ada.")], should_respond=False)
        >>> question = AgentExecutorRequest([Message("user", "Who am I?")])
    """

    messages: list[Message]
    should_respond: bool = True


@dataclass
class AgentExecutorResponse:
    """What an agent node sends when its agent has answered.

    Args:
        executor_id: Id of the node.
        agent_response: The answer.
        full_conversation: What the agent was given, and its answer; `None` stands for the messages of the answer.

    Example:
        >>> @executor(id="shorten")
        ... async def shorten(response: AgentExecutorResponse, ctx: WorkflowContext[AgentExecutorResponse]) -> None:
        ...     await ctx.send_message(response.with_text(response.agent_response.text[:200]))
    """

    executor_id: str
    agent_response: AgentResponse
    full_conversation: list[Message] | None = None

    def with_text(self, text: str) -> AgentExecutorResponse:
        """Return the response with a text in the place of the agent's messages, also at the end of the conversation.

        A text that is sent alone would leave the next agent without the conversation.
        """
        own = self.agent_response.messages
        message = Message("assistant", [text], author_name=own[-1].author_name if own else None)
        conversation = [*self.conversation]
        for one in reversed(own):
            if not conversation or conversation[-1] != one:
                break
            conversation.pop()
        return replace(
            self, agent_response=AgentResponse(messages=[message]), full_conversation=[*conversation, message]
        )

    @property
    def conversation(self) -> list[Message]:
        """The full conversation, or the messages of the answer where there is none."""
        return self.agent_response.messages if self.full_conversation is None else self.full_conversation


AgentNodeContext = WorkflowContext[AgentExecutorResponse, AgentResponse | AgentResponseUpdate]


class AgentExecutor(AgentNode):
    """A node that runs an agent on each message that it gets, and sends the agent's answer on.

    A `WorkflowBuilder` makes one of each agent that it is given. Make it by hand to share a session between nodes, to
    choose the id, or to choose what the agent sees of the conversation before it.

    It takes text, messages, lists of both, an `AgentExecutorRequest`, and the `AgentExecutorResponse` of another agent
    node, and sends an `AgentExecutorResponse`. It yields the agent's response, in a streamed run each of its updates.
    Requests of the agent to a person, such as whether a tool may be called, become requests of the workflow; when the
    last one is answered, the agent goes on. Checkpoints hold the conversation; of one that the model's service stores
    they hold the id alone.

    Args:
        agent: The agent.
        session: Its conversation; by default a new one. Nodes that get one session share the conversation; as its
            history holds what the node before said, give the later ones a `context_filter` for what else they get.
        id: Id of the node; by default the name of the agent, or the id that its author chose.
        context_mode: What the agent gets of another agent node: `"full"`, the whole conversation (default);
            `"last_agent"`, the last answer alone; or `"custom"`, what `context_filter` returns.
        context_filter: Called with the whole conversation, may be async; returns the messages for the agent.

    Raises:
        TypeError: What should be an agent is none.
        ValueError: There is no id, the mode is not known, or `"custom"` comes without a filter or a filter without it.

    Example:
        >>> client = EchoChatClient()
        >>> writer = AgentExecutor(Agent(client, "Write.", name="writer"))
        >>> critic = AgentExecutor(Agent(client, "Review.", name="critic"), context_mode="last_agent")
        >>> workflow = WorkflowBuilder(start_executor=writer).add_edge(writer, critic).build()
        >>> result = await workflow.run("An essay on tests")
    """

    signature_key: ClassVar[str | None] = "AgentExecutor"

    def __init__(
        self,
        agent: SupportsAgentRun,
        *,
        session: AgentSession | None = None,
        id: str | None = None,  # noqa: A002 - the public name
        context_mode: ContextMode | None = None,
        context_filter: ContextFilter | None = None,
    ) -> None:
        super().__init__(agent, session=session, id=id)
        if context_mode not in (None, *get_args(ContextMode)):
            msg = f"context_mode is {context_mode!r}; expected 'full', 'last_agent' or 'custom'."
            raise ValueError(msg)
        if (context_mode == "custom") != (context_filter is not None):
            msg = "Give context_mode='custom' and a function together: context_filter=lambda messages: messages[-5:]."
            raise ValueError(msg)
        self._ab_context_mode = context_mode
        self._ab_context_filter = context_filter

    def reset(self) -> None:
        """Drop the messages that wait for the agent, and its open requests; the session stays."""
        super().reset()
        self._ab_full_conversation: list[Message] = []

    # ---- what it takes ---------------------------------------------------------------------------

    @handler
    async def run(self, request: AgentExecutorRequest, ctx: AgentNodeContext) -> None:
        """Take messages, and run the agent if it is to respond."""
        messages = self._take_in(request.messages)
        if request.should_respond:
            await self._take_turn(messages, ctx)
        else:
            self._ab_cache = messages

    @handler
    async def from_response(self, response: AgentExecutorResponse, ctx: AgentNodeContext) -> None:
        """Go on from the answer of another agent node."""
        messages: list[Message] | Awaitable[list[Message]] = response.conversation
        if self._ab_context_mode == "last_agent":
            messages = response.agent_response.messages
        elif self._ab_context_mode == "custom" and self._ab_context_filter is not None:
            messages = self._ab_context_filter([*response.conversation])
        await self._take_turn(self._take_in(await messages if isawaitable(messages) else messages), ctx)

    @handler
    async def from_str(self, text: str, ctx: AgentNodeContext) -> None:
        """Answer a text of the user."""
        if not self._ab_cache and ctx.source_executor_ids != [WORKFLOW_SOURCE]:
            logger.warning(
                "Agent node %r got a plain text from %s, so its agent sees nothing of the conversation before it. "
                "Behind an agent node, send response.with_text(...) of its AgentExecutorResponse instead.",
                self.id,
                ", ".join(ctx.source_executor_ids),
            )
        await self._take_turn(self._take_in(text), ctx)

    @handler
    async def from_message(self, message: Message, ctx: AgentNodeContext) -> None:
        """Answer a message."""
        await self._take_turn(self._take_in(message), ctx)

    @handler
    async def from_messages(self, messages: list[str | Message], ctx: AgentNodeContext) -> None:
        """Answer several messages; texts are messages of the user."""
        await self._take_turn(self._take_in(messages), ctx)

    @response_handler
    async def from_user_input(self, request: Content, answer: Content, ctx: AgentNodeContext) -> None:
        """Take the answer to a request of the agent; after the last one the agent goes on."""
        answers = self._add_answer(request, answer)
        if answers is not None:
            await self._take_turn([answers], ctx, is_answer=True)

    # ---- one turn --------------------------------------------------------------------------------

    async def _take_turn(
        self, messages: list[Message], ctx: AgentNodeContext, *, is_answer: bool = False, goes_on: bool = False
    ) -> None:
        """Run the agent and send its answer on, or raise its requests; messages that wait do so until after answers.

        A turn that goes on from the one before keeps its conversation.
        """
        stream = ctx.is_streaming()
        reply = await self._call_agent(messages, ctx, partial(self._yield_output, ctx=ctx) if stream else None)
        if not stream and not reply.was_raised:
            await self._yield_output(reply.response, ctx)
        # While requests are open, the agent's session has what led to them, and the next node lacks it.
        before = self._ab_full_conversation if self._ab_pending or goes_on else ()
        if is_answer:
            self._ab_pending = {}
        else:
            self._ab_cache = []
        inputs = resolved_inputs([*before, *messages], reply.response)
        self._ab_full_conversation = [*inputs, *reply.response.messages]
        if not reply.requests:
            await self._pass_on(reply.response, ctx)
            return
        if not self._ab_pending:
            self._ab_answers = []
        raised = [request for key, request in reply.requests.items() if key not in self._ab_pending]
        self._ab_pending = reply.requests  # earlier ones hold nothing up: the agent has moved on without their answers
        for request in raised:
            await ctx.request_info(request, Content)

    def _take_in(self, messages: str | Message | Sequence[str | Message]) -> list[Message]:
        """Return what the agent gets: the messages behind those that wait."""
        return [*self._ab_cache, *normalize_messages(messages)]

    async def _yield_output(self, output: AgentResponse | AgentResponseUpdate, ctx: AgentNodeContext) -> None:
        """Yield the response, or each update of a streamed one."""
        await ctx.yield_output(output)

    async def _pass_on(self, response: AgentResponse, ctx: AgentNodeContext) -> None:
        """Send the complete response on."""
        await ctx.send_message(AgentExecutorResponse(self.id, response, [*self._ab_full_conversation]))

    # ---- state -----------------------------------------------------------------------------------

    async def on_checkpoint_save(self) -> dict[str, Any]:
        """Return the session, the conversation, the messages that wait, and the open requests."""
        return {**await super().on_checkpoint_save(), "full_conversation": [*self._ab_full_conversation]}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        """Take over what `on_checkpoint_save` returned; what is missing is empty."""
        await super().on_checkpoint_restore(state)
        self._ab_full_conversation = [*state.get("full_conversation", ())]

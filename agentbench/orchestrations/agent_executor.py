"""`AgentExecutor`: an agent as a node that answers each message immediately; and the messages between such nodes."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import isawaitable
from typing import Any, ClassVar, Literal, TypedDict, get_args

from agentbench.agents.agent.as_tool import resolved_inputs
from agentbench.agents.sessions.agent_protocol import SupportsAgentRun
from agentbench.agents.sessions.session import AgentSession
from agentbench.messages.content.content import Content
from agentbench.messages.inputs import normalize_messages
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse
from agentbench.messages.update import AgentResponseUpdate
from agentbench.orchestrations.agent_node import AgentNode
from agentbench.workflows.builder.nodes import AgentMode
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.handlers import handler, response_handler
from agentbench.workflows.executors.message import WORKFLOW_SOURCE

logger = logging.getLogger("agentbench")

ContextMode = Literal["full", "last_agent", "custom"]
ContextFilter = Callable[[list[Message]], list[Message] | Awaitable[list[Message]]]


class AgentExecutorCheckpointState(TypedDict, total=False):
    """The state of an `AgentExecutor` in a checkpoint, as `on_checkpoint_save` returns it.

    Attributes:
        cache: The messages that wait for the agent's next run.
        full_conversation: The conversation up to now.
        agent_session: The ids and the state of the session.
        pending_agent_requests: The open requests of the agent, by id.
        pending_responses_to_agent: The responses to other requests of the same turn.

    Example:
        saved = AgentExecutorCheckpointState(**await AgentExecutor(agent).on_checkpoint_save())
        print(len(saved["full_conversation"]), saved["agent_session"]["session_id"])
    """

    cache: list[Message]
    full_conversation: list[Message]
    agent_session: dict[str, Any]
    pending_agent_requests: dict[str, Content]
    pending_responses_to_agent: list[Content]


@dataclass
class AgentExecutorRequest:
    """Messages for an agent node.

    Args:
        messages: The agent's input, appended to messages that are already waiting.
        should_respond: Whether the agent runs; otherwise the messages wait for the next one that it has to answer.

    Example:
        >>> background = AgentExecutorRequest([Message("user", "I am Ada.")], should_respond=False)
        >>> question = AgentExecutorRequest([Message("user", "Who am I?")])
    """

    messages: list[Message]
    should_respond: bool = True


@dataclass
class AgentExecutorResponse:
    """The message that an agent node sends when its agent has answered.

    Args:
        executor_id: The id of the node.
        agent_response: The answer.
        full_conversation: The agent's input and its answer; `None` means the messages of the answer.

    Example:
        >>> @executor(id="shorten")
        ... async def shorten(response: AgentExecutorResponse, ctx: WorkflowContext[AgentExecutorResponse]) -> None:
        ...     await ctx.send_message(response.with_text(response.agent_response.text[:200]))
    """

    executor_id: str
    agent_response: AgentResponse
    full_conversation: list[Message] | None = None

    def with_text(self, text: str) -> AgentExecutorResponse:
        """Return the response with a text instead of the agent's messages, at the end of the conversation too.

        A text sent on its own would leave the next agent without the conversation.
        """
        messages = self.agent_response.messages
        message = Message("assistant", [text], author_name=messages[-1].author_name if messages else None)
        conversation = [*self.conversation]
        for one in reversed(messages):
            if not conversation or conversation[-1] != one:
                break
            conversation.pop()
        return replace(
            self, agent_response=AgentResponse(messages=[message]), full_conversation=[*conversation, message]
        )

    @property
    def conversation(self) -> list[Message]:
        """The full conversation, or the messages of the answer if there is none."""
        return self.agent_response.messages if self.full_conversation is None else self.full_conversation


AgentNodeContext = WorkflowContext[AgentExecutorResponse, AgentResponse | AgentResponseUpdate]


class AgentExecutor(AgentNode):
    """A node that runs an agent on each message it gets, and sends the agent's answer on.

    A `WorkflowBuilder` creates one for each agent that it gets. Create it yourself to share a session between nodes, to
    choose the id, or to choose which part of the earlier conversation the agent sees.

    It takes text, messages, lists of both, an `AgentExecutorRequest`, or the `AgentExecutorResponse` of another agent
    node, and sends an `AgentExecutorResponse`. It yields the agent's response, or in a streamed run each of its
    updates. Requests of the agent to a person, for example to approve a tool call, become requests of the workflow;
    when the last one is answered, the agent continues. Checkpoints contain the conversation; if the model's service
    stores it, they contain only its id.

    Args:
        agent: The agent.
        session: The agent's conversation; by default a new one. Nodes with the same session share the conversation.
            Its history already contains what the previous node said, so give later nodes a `context_filter` for
            the rest of their input.
        id: The id of the node; by default the agent's name, or the id that its author chose.
        context_mode: The agent's input from another agent node: `"full"`, the whole conversation (default);
            `"last_agent"`, only the last answer; or `"custom"`, the result of `context_filter`.
        context_filter: Called with the whole conversation; returns the messages for the agent. May be async.

    Raises:
        TypeError: The first argument is not an agent.
        ValueError: The id is missing, the mode is unknown, or `"custom"` and a filter are not passed together.

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
            msg = "Pass context_mode='custom' and a function together: context_filter=lambda messages: messages[-5:]."
            raise ValueError(msg)
        self._ab_context_mode = context_mode
        self._ab_context_filter = context_filter

    def reset(self) -> None:
        """Drop the messages that wait for the agent, and its open requests; the session stays."""
        super().reset()
        self._ab_full_conversation: list[Message] = []

    # ---- handlers ---------------------------------------------------------------------------

    @handler
    async def run(self, request: AgentExecutorRequest, ctx: AgentNodeContext) -> None:
        """Receive messages, and run the agent if it should respond."""
        messages = self._ab_take_in(request.messages)
        if request.should_respond:
            await self._ab_take_turn(messages, ctx)
        else:
            self._ab_cache = messages

    @handler
    async def from_response(self, response: AgentExecutorResponse, ctx: AgentNodeContext) -> None:
        """Continue from the answer of another agent node."""
        messages: list[Message] | Awaitable[list[Message]] = response.conversation
        if self._ab_context_mode == "last_agent":
            messages = response.agent_response.messages
        elif self._ab_context_mode == "custom" and self._ab_context_filter is not None:
            messages = self._ab_context_filter([*response.conversation])
        await self._ab_take_turn(self._ab_take_in(await messages if isawaitable(messages) else messages), ctx)

    @handler
    async def from_str(self, text: str, ctx: AgentNodeContext) -> None:
        """Answer a text of the user."""
        if not self._ab_cache and ctx.source_executor_ids != [WORKFLOW_SOURCE]:
            logger.warning(
                "Agent node %r got a plain text from %s, so its agent sees nothing of the conversation before it. "
                "After an agent node, send response.with_text(...) of its AgentExecutorResponse instead.",
                self.id,
                ", ".join(ctx.source_executor_ids),
            )
        await self._ab_take_turn(self._ab_take_in(text), ctx)

    @handler
    async def from_message(self, message: Message, ctx: AgentNodeContext) -> None:
        """Answer a message."""
        await self._ab_take_turn(self._ab_take_in(message), ctx)

    @handler
    async def from_messages(self, messages: list[str | Message], ctx: AgentNodeContext) -> None:
        """Answer several messages; texts are messages of the user."""
        await self._ab_take_turn(self._ab_take_in(messages), ctx)

    @response_handler
    async def from_user_input(self, request: Content, answer: Content, ctx: AgentNodeContext) -> None:
        """Receive the response to a request of the agent; after the last one the agent continues."""
        answers = await self._ab_add_answer(request, answer)
        if answers is not None:
            await self._ab_take_turn([answers], ctx, is_answer=True)

    # ---- one turn --------------------------------------------------------------------------------

    async def _ab_take_turn(
        self, messages: list[Message], ctx: AgentNodeContext, *, is_answer: bool = False, goes_on: bool = False
    ) -> None:
        """Run the agent and send its answer on, or raise its requests; waiting messages stay until these are answered.

        A turn that continues from the previous one keeps its conversation.
        """
        stream = ctx.is_streaming()
        reply = await self._ab_call_agent(messages, ctx, partial(self._ab_yield_output, ctx=ctx) if stream else None)
        if not stream and not reply.was_raised:
            await self._ab_yield_output(reply.response, ctx)
        # While requests are open, the agent's session has the messages that led to them, but the next node does not.
        before = self._ab_full_conversation if self._ab_pending or goes_on else ()
        if is_answer:
            self._ab_pending = {}
        else:
            self._ab_cache = []
        inputs = resolved_inputs([*before, *messages], reply.response)
        self._ab_full_conversation = [*inputs, *reply.response.messages]
        if not reply.requests:
            await self._ab_pass_on(reply.response, ctx)
            return
        if not self._ab_pending:
            self._ab_answers = []
        raised = [request for key, request in reply.requests.items() if key not in self._ab_pending]
        self._ab_pending = reply.requests  # earlier requests block nothing: the agent has moved on
        for request in raised:
            await ctx.request_info(request, Content)

    def _ab_take_in(self, messages: str | Message | Sequence[str | Message]) -> list[Message]:
        """Return the agent's input: the new messages after those that already wait."""
        return [*self._ab_cache, *normalize_messages(messages)]

    def _ab_yield_output(self, output: AgentResponse | AgentResponseUpdate, ctx: AgentNodeContext) -> Awaitable[None]:
        """Yield the response, or each update of a streamed one."""
        return ctx.yield_output(output)

    async def _ab_pass_on(self, response: AgentResponse, ctx: AgentNodeContext) -> None:
        """Send the complete response on."""
        await ctx.send_message(AgentExecutorResponse(self.id, response, [*self._ab_full_conversation]))

    # ---- state -----------------------------------------------------------------------------------

    async def on_checkpoint_save(self) -> dict[str, Any]:
        """Return an `AgentExecutorCheckpointState`."""
        return {**await super().on_checkpoint_save(), "full_conversation": [*self._ab_full_conversation]}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        """Restore the result of `on_checkpoint_save`; missing parts are empty."""
        await super().on_checkpoint_restore(state)
        self._ab_full_conversation = [*state.get("full_conversation", ())]


def agent_node(agent: SupportsAgentRun, *, agent_mode: AgentMode = "respond") -> AgentNode:
    """Return the node of an agent."""
    if agent_mode == "respond":
        return AgentExecutor(agent)
    from agentbench.orchestrations.host_executor import AgentHostExecutor  # noqa: PLC0415 - most workflows need none

    return AgentHostExecutor(agent)

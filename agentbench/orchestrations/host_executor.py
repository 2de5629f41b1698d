"""`AgentHostExecutor`: an agent as a node that collects messages until it gets the turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from agentbench.agents.agent.as_tool import resolved_inputs
from agentbench.agents.sessions.agent_protocol import SupportsAgentRun
from agentbench.agents.sessions.session import AgentSession
from agentbench.agents.sessions.session_context import UNNAMED
from agentbench.messages.answers import with_contents
from agentbench.messages.content.content import Content
from agentbench.messages.inputs import normalize_messages
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse
from agentbench.messages.update import AgentResponseUpdate
from agentbench.orchestrations.agent_node import AgentNode, AgentReply, request_id_of
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.handlers import handler, response_handler


@dataclass(frozen=True, slots=True)
class TurnToken:
    """Gives the turn to the node that receives it: its agent answers the collected messages.

    Only nodes that work in turns take tokens: those of `WorkflowBuilder(agent_mode="turns")`, `bind_as_executor()` and
    `build_sequential(options=...)`.

    Args:
        emit_events: Whether the nodes of this turn stream and yield updates; `None` leaves that to their options.

    Example:
        >>> workflow = build_sequential(french, spanish, options=AgentHostOptions())
        >>> result = await workflow.run(["hello", TurnToken(emit_events=True)])
        >>> updates = result.get_outputs()
    """

    emit_events: bool | None = None
    may_be_untaken: ClassVar[bool] = True
    """A turn ends at nodes that answer immediately, so there is no warning that they do not take the token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentHostOptions:
    """How an `AgentHostExecutor` works.

    Args:
        emit_agent_update_events: Stream the agent and yield each update; the token's `emit_events` takes precedence.
        emit_agent_response_events: Yield the whole response.
        intercept_user_input_requests: Send the agent's requests to a person on as messages, whose responses come back
            as messages; otherwise they become requests of the workflow. The executor that gets them then decides about
            approvals in the person's place, so let it ask one.
        intercept_unterminated_function_calls: Do the same for calls that the agent cannot carry out itself.
        reassign_other_agents_as_users: Show the agent messages of other agents as messages of the user.
        forward_incoming_messages: Send the node's input on, before the agent's messages.

    Example:
        >>> node = bind_as_executor(french, AgentHostOptions(emit_agent_response_events=True))
    """

    emit_agent_update_events: bool | None = None
    emit_agent_response_events: bool = False
    intercept_user_input_requests: bool = False
    intercept_unterminated_function_calls: bool = False
    reassign_other_agents_as_users: bool = True
    forward_incoming_messages: bool = True


HostContext = WorkflowContext[list[Message] | Content | TurnToken, AgentResponse | AgentResponseUpdate]


class AgentHostExecutor(AgentNode):
    """A node that collects messages until it gets a `TurnToken`; then its agent answers all of them.

    It takes text, messages, lists of both, and a `TurnToken`, which may be at the end of a list. After its turn it
    sends one list with its input and its agent's messages, and then a new token, so one token at the head runs a chain.
    While requests of the agent are open, the token waits too.

    The agent's messages are not outputs of the workflow unless the options, or the token's `emit_events`, say so.

    Args:
        agent: The agent.
        options: How the node works.
        session: The conversation of the agent; by default a new one.
        id: The id of the node; by default the agent's name, or the id that its author chose.

    Raises:
        ValueError: The id is missing.

    Example:
        >>> node = AgentHostExecutor(french, AgentHostOptions(emit_agent_response_events=True))
        >>> workflow = WorkflowBuilder(start_executor=node).build()
        >>> result = await workflow.run(["hello", TurnToken()])
        >>> (response,) = result.get_outputs()
    """

    signature_key: ClassVar[str | None] = "AgentHostExecutor"

    def __init__(
        self,
        agent: SupportsAgentRun,
        options: AgentHostOptions | None = None,
        *,
        session: AgentSession | None = None,
        id: str | None = None,  # noqa: A002 - the public name
    ) -> None:
        super().__init__(agent, session=session, id=id)
        self.options = options or AgentHostOptions()

    def reset(self) -> None:
        """Drop the messages that wait for the turn, and a turn that waits for answers; the session stays."""
        super().reset()
        self._ab_token: TurnToken | None = None
        """While requests are pending: the token that waits, and what is to be sent in front of it."""
        self._ab_outgoing: list[Message] = []

    # ---- handlers ---------------------------------------------------------------------------

    @handler
    async def from_str(self, text: str, ctx: HostContext) -> None:
        """Collect a text of the user."""
        self._ab_cache += normalize_messages(text)

    @handler
    async def from_message(self, message: Message, ctx: HostContext) -> None:
        """Collect a message."""
        self._ab_cache.append(message)

    @handler
    async def from_messages(self, items: list[str | Message | TurnToken | list[Message]], ctx: HostContext) -> None:
        """Collect several messages, including lists of a fan-in; tokens among them count as one turn."""
        flat = [one for item in items for one in (item if isinstance(item, list) else (item,))]
        tokens = [one for one in flat if isinstance(one, TurnToken)]
        messages = [*self._ab_cache, *normalize_messages([one for one in flat if not isinstance(one, TurnToken)])]
        if tokens and not self._ab_pending:
            await self._ab_run_turn(tokens[0], messages, ctx)
        else:
            self._ab_cache = messages

    @handler
    async def take_turn(self, token: TurnToken, ctx: HostContext) -> None:
        """Let the agent answer the collected messages; a turn that waits for responses includes later messages."""
        if not self._ab_pending:
            await self._ab_run_turn(token, [*self._ab_cache], ctx)

    @handler
    async def from_answer(self, answer: Content, ctx: HostContext) -> None:
        """Receive the response to a request that was sent on as a message."""
        request = self._ab_pending.get(request_id_of(answer))
        if request is not None and self._ab_is_intercepted(request):
            await self.from_user_input(request, answer, ctx)
        else:
            sent = ", ".join(key for key, one in self._ab_pending.items() if self._ab_is_intercepted(one)) or "none"
            text = (
                f"Agent node {self.id!r} ignores the answer {request_id_of(answer)!r}. Its open requests, sent on as "
                f"messages: {sent}. An answer must have the id of its request."
            )
            await ctx.add_event(WorkflowEvent.warning(text, self.id))

    @response_handler
    async def from_user_input(self, request: Content, answer: Content, ctx: HostContext) -> None:
        """Receive the response to a request of the agent."""
        answers = await self._ab_add_answer(request, answer)
        if answers is not None:
            await self._ab_run_turn(self._ab_token or TurnToken(), [answers, *self._ab_cache], ctx)

    # ---- one turn --------------------------------------------------------------------------------

    async def _ab_run_turn(self, token: TurnToken, messages: list[Message], ctx: HostContext) -> None:
        """Run the agent, then send everything and the token on, or raise the requests that block it."""
        options = self.options
        emits = options.emit_agent_update_events if token.emit_events is None else token.emit_events
        inputs = reassign_to_user(messages, self) if options.reassign_other_agents_as_users else messages
        reply = await self._ab_call_agent(inputs, ctx, ctx.yield_output if emits else None)
        if options.emit_agent_response_events and not reply.was_raised:
            await ctx.yield_output(reply.response)
        answers, before = (messages[:1], self._ab_outgoing) if self._ab_pending else ([], [])
        forwarded = messages if options.forward_incoming_messages else answers
        outgoing = [*resolved_inputs([*before, *forwarded], reply.response), *self._ab_add_author(reply.response)]
        self._ab_cache, self._ab_pending = [], _open_requests(reply)
        if self._ab_pending:
            self._ab_token, self._ab_outgoing, self._ab_answers = token, outgoing, []
            for request in self._ab_pending.values():
                await self._ab_raise_request(request, ctx)
            return
        if outgoing:
            await ctx.send_message(outgoing)
        await ctx.send_message(TurnToken(token.emit_events))

    async def _ab_raise_request(self, request: Content, ctx: HostContext) -> None:
        if self._ab_is_intercepted(request):
            await ctx.send_message(request)
        else:
            await ctx.request_info(request, Content)

    def _ab_is_intercepted(self, request: Content) -> bool:
        options, is_call = self.options, request.type == "function_call"
        return options.intercept_unterminated_function_calls if is_call else options.intercept_user_input_requests

    def on_rolled_back(self, open_requests: Mapping[str, WorkflowEvent[Any]]) -> None:
        """Wait for responses to the open requests, including those that were sent on as messages."""
        intercepted = {key: request for key, request in self._ab_pending.items() if self._ab_is_intercepted(request)}
        super().on_rolled_back(open_requests)
        self._ab_pending = {**self._ab_pending, **intercepted}

    def _ab_add_author(self, response: AgentResponse) -> list[Message]:
        """Return the agent's messages, with an author if they have none, so that they can be recognized later."""
        return [
            with_contents(message, message.contents, author_name=self.id)
            if message.author_name in (None, UNNAMED)
            else message
            for message in response.messages
        ]

    # ---- state -----------------------------------------------------------------------------------

    async def on_checkpoint_save(self) -> dict[str, Any]:
        """Return the session, the waiting messages, the open requests, and the turn that waits for them."""
        turn = {"turn_token": self._ab_token, "outgoing": [*self._ab_outgoing]} if self._ab_pending else {}
        return {**await super().on_checkpoint_save(), **turn}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        """Restore the result of `on_checkpoint_save`; missing parts are empty."""
        await super().on_checkpoint_restore(state)
        self._ab_token, self._ab_outgoing = state.get("turn_token"), [*state.get("outgoing", ())]


def bind_as_executor(
    agent: SupportsAgentRun,
    options: AgentHostOptions | None = None,
    *,
    id: str | None = None,  # noqa: A002 - the public name
) -> AgentHostExecutor:
    """Return a node for an agent that works in turns; the arguments are those of `AgentHostExecutor`.

    With `WorkflowBuilder(agent_mode="turns")`, the other agents of the graph work in turns too.

    Example:
        >>> node = bind_as_executor(writer, AgentHostOptions(emit_agent_update_events=True))
        >>> workflow = WorkflowBuilder(node, agent_mode="turns").add_edge(node, reviewer).build()
        >>> result = await workflow.run(["A haiku, please", TurnToken()])
    """
    return AgentHostExecutor(agent, options, id=id)


def reassign_to_user(messages: list[Message], node: AgentNode) -> list[Message]:
    """Return the messages, with those of other agents as messages of the user, without their tool calls.

    A message of the user may answer a request, so those of other agents lose their requests and answers.
    """
    own_names, reassigned = (node.agent.name, node.id), list[Message]()
    for message in messages:
        kinds = {content.type for content in message.contents}
        if message.role == "assistant" and message.author_name not in own_names and "function_call" not in kinds:
            contents = [one for one in message.contents if not one.type.startswith("function_approval_")]
            reassigned += [with_contents(message, contents, role="user")] if contents else []
        else:
            reassigned.append(message)
    return reassigned


def _open_requests(reply: AgentReply) -> dict[str, Content]:
    """Return the requests that block the agent: requests to a person, and calls without a result."""
    contents = [content for message in reply.response.messages for content in message.contents]
    closed = {content.call_id for content in contents if content.type == "function_result"}
    requests = (*reply.requests.values(), *reply.response.user_input_requests)
    closed |= {request.function_call.call_id for request in requests if request.function_call}
    return reply.requests | {
        request_id_of(one): one
        for one in contents
        if one.type == "function_call" and one.call_id not in closed and not one.user_input_request
    }

"""An agent that hands the conversation over by calling a tool: its node, configuration, events and requests."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from agentbench._limits import require_limit
from agentbench.agents.middleware.contexts import CallNext, FunctionInvocationContext, FunctionMiddleware
from agentbench.agents.sessions.agent_protocol import resolve_agent_id
from agentbench.agents.sessions.session import AgentSession
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.exceptions import MiddlewareTermination
from agentbench.messages.answers import with_contents
from agentbench.messages.content.content import Content
from agentbench.messages.fold import TOOL_CALL_INDEX
from agentbench.messages.inputs import normalize_messages
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse
from agentbench.messages.update import AgentResponseUpdate
from agentbench.orchestrations.agent_executor import AgentExecutor, AgentExecutorRequest, AgentNodeContext
from agentbench.orchestrations.patterns.group_chat_messages import TerminationCondition, is_ended
from agentbench.orchestrations.patterns.pattern_builder import clean_conversation_for_handoff
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.approval import TextAnswer
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.handlers import handler, response_handler
from agentbench.workflows.executors.message import WORKFLOW_SOURCE

HandoffContext = WorkflowContext[AgentExecutorRequest, AgentResponse | AgentResponseUpdate]

CONVERSATION = "handoff_conversation"
"""Key of the shared state that holds the texts of all agents."""

_FOREIGN = re.compile(r"[^A-Za-z0-9_.-]")


def handoff_tool_name(target_id: str) -> str:
    """Return the name of the tool that hands over to a node."""
    return f"handoff_to_{_FOREIGN.sub('_', target_id)}"


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


class HandoffAgentExecutor(AgentExecutor):
    """A node with an agent that answers, hands the conversation over by a tool, or asks the user to continue.

    The agent itself is not changed: the tools are added to each of its runs.

    Args:
        agent: The agent.
        handoffs: The possible targets of a handoff.
        agent_session: Its session.
        termination_condition: A condition that ends the conversation, before or after a turn.
        autonomous_mode: Whether the agent continues without the user.
        autonomous_mode_prompt: The message it then gets.
        autonomous_mode_turn_limit: How often it gets this message before the user is asked.
        user_response_target_id: The id of the node that gets the user's next message; by default this one. The
            workflow needs an edge from this node to it.

    Example:
        from agentbench.orchestrations import HandoffAgentExecutor, HandoffConfiguration

        triage = HandoffAgentExecutor(triage_agent, [HandoffConfiguration(target="refunds")])
    """

    signature_key: ClassVar[str | None] = "HandoffAgentExecutor"

    def __init__(  # noqa: PLR0913 - the published signature
        self,
        agent: Any,
        handoffs: Sequence[HandoffConfiguration],
        *,
        agent_session: AgentSession | None = None,
        termination_condition: TerminationCondition | None = None,
        autonomous_mode: bool = False,
        autonomous_mode_prompt: str | None = None,
        autonomous_mode_turn_limit: int | None = None,
        user_response_target_id: str | None = None,
    ) -> None:
        super().__init__(agent, session=agent_session)
        self.user_response_target_id = user_response_target_id
        self.handoffs = {handoff.target_id: handoff for handoff in handoffs}
        self.termination_condition = termination_condition
        self.autonomous_mode = autonomous_mode
        self.autonomous_mode_prompt = autonomous_mode_prompt or "The user is not there. Go on by yourself."
        require_limit("autonomous_mode_turn_limit", autonomous_mode_turn_limit, none="50")
        self.autonomous_mode_turn_limit = 50 if autonomous_mode_turn_limit is None else autonomous_mode_turn_limit
        self._ab_tools = [_handoff_tool(handoff) for handoff in self.handoffs.values()]

    @property
    def asks_person(self) -> bool:
        """Whether it asks the user when it does not hand over, or a tool needs approval."""
        return not self.autonomous_mode or super().asks_person

    def reset(self) -> None:
        """Drop the data that waits for the agent, and the count of its turns without the user."""
        super().reset()
        self._ab_autonomous_turns = 0
        self._ab_handoff: _Handoff | None = None
        self._ab_goes_on = False

    # ---- handlers ---------------------------------------------------------------------------

    @handler
    async def run(self, request: AgentExecutorRequest, ctx: HandoffContext) -> None:  # type: ignore[override]
        """Receive messages or the conversation from another agent; from outside, begin."""
        if ctx.source_executor_ids == [WORKFLOW_SOURCE]:
            await self._ab_begin(request.messages, ctx)
        elif request.should_respond:
            self._ab_autonomous_turns = 0
            heard = self._ab_take_in(request.messages)
            told = f"{ctx.get_source_executor_id()} has handed the conversation to you."
            await self._ab_answer(heard or [Message("user", [told])], ctx)
        else:
            self._ab_cache = self._ab_take_in(request.messages)

    @handler
    async def from_str(self, text: str, ctx: HandoffContext) -> None:  # type: ignore[override]
        """Begin with a text of the user."""
        await self._ab_begin(normalize_messages(text), ctx)

    @handler
    async def from_message(self, message: Message, ctx: HandoffContext) -> None:  # type: ignore[override]
        """Begin with a message."""
        await self._ab_begin([message], ctx)

    @handler
    async def from_messages(self, messages: list[str | Message], ctx: HandoffContext) -> None:  # type: ignore[override]
        """Begin with several messages."""
        await self._ab_begin(normalize_messages(messages), ctx)

    @response_handler
    async def from_user(self, request: HandoffAgentUserRequest, answer: list[Message], ctx: HandoffContext) -> None:
        """Continue with the user's message; an empty list ends the conversation."""
        target = self.user_response_target_id
        if answer and target not in (None, self.id):
            texts = clean_conversation_for_handoff(answer)
            self._ab_cache = self._ab_take_in(texts)
            await self._ab_broadcast(texts, ctx)
            await ctx.send_message(AgentExecutorRequest([]), target)
        elif answer:
            await self._ab_handle_user_messages(answer, ctx)

    # ---- one turn --------------------------------------------------------------------------------

    async def _ab_begin(self, messages: list[Message], ctx: HandoffContext) -> None:
        ctx.set_state(CONVERSATION, [])
        await self._ab_handle_user_messages(messages, ctx)

    async def _ab_handle_user_messages(self, messages: list[Message], ctx: HandoffContext) -> None:
        self._ab_autonomous_turns = 0
        await self._ab_broadcast(clean_conversation_for_handoff(messages), ctx)
        await self._ab_answer(self._ab_take_in(messages), ctx)

    async def _ab_answer(self, messages: list[Message], ctx: HandoffContext) -> None:
        if not await is_ended(self.termination_condition, ctx.get_state(CONVERSATION, [])):
            await self._ab_take_turn(messages, ctx)  # type: ignore[arg-type]

    async def _ab_take_turn(
        self, messages: list[Message], ctx: AgentNodeContext, *, is_answer: bool = False, goes_on: bool = False
    ) -> None:
        await super()._ab_take_turn(messages, ctx, is_answer=is_answer, goes_on=goes_on)
        while self._ab_goes_on:
            self._ab_goes_on = False
            await super()._ab_take_turn([Message("user", [self.autonomous_mode_prompt])], ctx)

    def _ab_run_arguments(self) -> dict[str, Any]:
        self._ab_handoff = _Handoff({handoff_tool_name(target): target for target in self.handoffs})
        self._ab_handoff_calls: set[Any] = set()
        self._ab_has_shown = False
        if not self._ab_tools:
            return {}
        options = {"allow_multiple_tool_calls": False}
        return {"tools": self._ab_tools, "middleware": [self._ab_handoff], "options": options}

    async def _ab_yield_output(self, output: AgentResponse | AgentResponseUpdate, ctx: AgentNodeContext) -> None:
        """Yield an answer, or a piece of one, without the call of a handoff tool."""
        shown = copy.copy(output)
        if isinstance(shown, AgentResponseUpdate):
            shown.contents = self._ab_visible(shown.contents)
            self._ab_has_shown = self._ab_has_shown or any(content.type != "usage" for content in shown.contents)
            is_empty = not (shown.contents and self._ab_has_shown)  # a handoff alone is not an answer
        else:
            messages = [(message, self._ab_visible(message.contents)) for message in shown.messages]
            shown.messages = [with_contents(message, contents) for message, contents in messages if contents]
            is_empty = not shown.messages
        if not is_empty:
            await super()._ab_yield_output(shown, ctx)

    def _ab_visible(self, contents: list[Content]) -> list[Content]:
        """Return the contents that do not belong to a handoff; further pieces of a call have only its id or index."""
        visible: list[Content] = []
        for content in contents:
            keys = {content.call_id or None, content.additional_properties.get(TOOL_CALL_INDEX)} - {None}
            is_handoff = self._ab_handoff is not None and content.name in self._ab_handoff.targets
            if content.type == "function_call" and (is_handoff or keys & self._ab_handoff_calls):
                self._ab_handoff_calls |= keys
            elif content.type != "function_result" or content.call_id not in self._ab_handoff_calls:
                visible.append(content)
        return visible

    async def _ab_pass_on(self, response: AgentResponse, ctx: Any) -> None:
        """Send the messages to the others, and hand over, end the conversation, continue alone, or ask the user."""
        texts = clean_conversation_for_handoff(message for message in response.messages if message.role != "tool")
        await self._ab_broadcast(texts, ctx)
        target = None if self._ab_handoff is None else self._ab_handoff.target
        if target is not None:
            await ctx.add_event(WorkflowEvent("handoff_sent", HandoffSentEvent(self.id, target), executor_id=self.id))
            await ctx.send_message(AgentExecutorRequest([]), target)
        elif await is_ended(self.termination_condition, ctx.get_state(CONVERSATION, [])):
            return
        elif self.autonomous_mode and self._ab_autonomous_turns < self.autonomous_mode_turn_limit:
            self._ab_autonomous_turns += 1
            self._ab_goes_on = True
        else:
            await ctx.request_info(HandoffAgentUserRequest(response), list[Message])

    async def _ab_broadcast(self, texts: list[Message], ctx: HandoffContext) -> None:
        ctx.set_state(CONVERSATION, [*ctx.get_state(CONVERSATION, []), *texts])
        if texts:
            await ctx.send_message(AgentExecutorRequest(texts, should_respond=False))

    # ---- checkpoints -----------------------------------------------------------------------------

    async def on_checkpoint_save(self) -> dict[str, Any]:
        """Return the state of an agent node, and the number of turns without the user."""
        return {**await super().on_checkpoint_save(), "_autonomous_mode_turns": self._ab_autonomous_turns}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        """Restore the result of `on_checkpoint_save`; missing parts are empty."""
        await super().on_checkpoint_restore(state)
        self._ab_autonomous_turns = state.get("_autonomous_mode_turns", 0)


class _Handoff(FunctionMiddleware):
    """Ends the loop of model and tools at the call of a handoff tool; the first one wins."""

    def __init__(self, targets: dict[str, str]) -> None:
        self.targets = targets
        self.target: str | None = None

    async def process(self, context: FunctionInvocationContext, call_next: CallNext) -> None:
        target = self.targets.get(context.function.name)
        if target is None:
            await call_next()
            return
        refused = self.target is not None
        self.target = self.target or target
        await call_next()  # a result that no tool returned would not be stored
        if refused:
            context.result = f"Refused: the conversation goes to {self.target} already."
        raise MiddlewareTermination(result=context.result)


def _handoff_tool(handoff: HandoffConfiguration) -> FunctionTool:
    def hand_on() -> dict[str, str]:
        return {"handoff_to": handoff.target_id}

    description = f"Hand the conversation on to {handoff.target_id}."
    if handoff.description:
        description = f"{description} {handoff.description}"
    return FunctionTool(hand_on, name=handoff_tool_name(handoff.target_id), description=description)

"""History around every call of the model, instead of once around a whole run."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

from agentbench.agents.history.pending_calls import find_pending_calls, replace_messages
from agentbench.agents.history.run_hooks import RunHooks
from agentbench.agents.middleware.bases import CallNext, ChatMiddleware
from agentbench.agents.middleware.contexts import ChatContext
from agentbench.agents.sessions.attribution import signed
from agentbench.agents.sessions.session_context import SessionContext
from agentbench.agents.sessions.turn_lock import SessionTurn
from agentbench.exceptions import AgentInvalidRequestException, ChatClientInvalidResponseException
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse

if TYPE_CHECKING:
    from agentbench.agents.sessions.agent_protocol import SupportsAgentRun
    from agentbench.agents.sessions.session import AgentSession


class PerCallHistory(ChatMiddleware):
    """Loads the history before each call of the model and saves what is new after it, so that a crash loses one call.

    To whoever drives the tools it looks as if the service kept the conversation: each answer is marked
    (`has_internal_conversation_id()`), and the next call need hold nothing but what is new. There is no id that could
    reach anybody. What other providers added to the run goes before the history, in every call.

    Made anew for each run, and told by `finish` when it is over.

    Args:
        providers: The history providers of the agent, in its order.
        agent: That runs.
        session: Of the conversation.
        context: Of the run, after the other providers have added to it.

    Raises:
        AgentInvalidRequestException: The service keeps this conversation under an id of its own.
    """

    def __init__(
        self, providers: Sequence[Any], *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext
    ) -> None:
        self._providers = tuple(providers)
        self._agent = agent
        self._session = session
        self._run = context
        self._has_begun = False
        self._unsaved: SessionContext | None = None
        self._saved: list[Message] = []
        _refuse_id(context.service_session_id)

    async def process(self, context: ChatContext, call_next: CallNext) -> None:
        """Load, let the model answer, and save."""
        _refuse_id(context.options.get("conversation_id"))
        given = context.messages
        # In the first call the messages of other providers stand in front of what the history does not know yet.
        new = list(given) if self._has_begun else list(given[len(self._run.get_messages()) :])
        call = self._unsaved = self._context(new)
        async with SessionTurn(self._session):
            await RunHooks(self._agent, self._session, call, self._providers).before()
        context.messages = [*call.get_messages(), *new]
        pending = find_pending_calls(context.messages)
        if pending is not None:  # a run that was broken off, or that asked a person, has left calls without results
            context.messages, replaced = pending.resolve()
            new[:] = replace_messages(new, replaced)
        if context.stream:

            async def save(response: ChatResponse[Any]) -> None:
                await self._answered(call, response)

            context.stream_result_hooks.append(save)
        try:
            await call_next()
        finally:
            context.messages = given  # whoever tries again gives what was new once more
        if not context.stream and context.result is not None:
            await self._answered(call, context.result)

    async def finish(self, answer: ChatResponse[Any]) -> None:
        """Save what no call of the model came after: the last results, and the part of an answer that was given up.

        Args:
            answer: Of the run as a whole, or what there is of it.
        """
        if self._unsaved is not None:
            last: list[Message] = []
            for message in answer.messages:
                last = [] if message.role == "tool" else [*last, message]
            await self._save(self._unsaved, ChatResponse(messages=last))
        saved = {content.call_id for content in _results_in(self._saved)}
        results = [content for content in _results_in(answer.messages) if content.call_id not in saved]
        if results:
            await self._save(self._context([Message("tool", results)]), None)

    def _context(self, new_messages: list[Message]) -> SessionContext:
        run = self._run
        return SessionContext(
            session_id=run.session_id,
            service_session_id=run.service_session_id,
            input_messages=new_messages,
            context_messages={source_id: list(messages) for source_id, messages in run.context_messages.items()},
            options=run.options,
            metadata=run.metadata,
        )

    async def _answered(self, call: SessionContext, response: ChatResponse[Any]) -> None:
        if response.conversation_id is not None and not response.has_internal_conversation_id():
            message = (
                f"The service keeps the conversation under the id {response.conversation_id!r}, and the agent was made "
                "with require_per_service_call_history_persistence=True. Expected one of them to keep it: give the "
                "option store=False, or make the agent without."
            )
            raise ChatClientInvalidResponseException(message)
        await self._save(call, response)
        self._has_begun = True
        response.mark_internal_conversation_id()

    async def _save(self, call: SessionContext, response: ChatResponse[Any] | None) -> None:
        # Signed as at the end of a run: what the agent said, and after its first answer also the results of its tools.
        if response is not None:
            call._response = twin = copy(response)  # noqa: SLF001 - for users it is read-only
            twin.messages = signed(response.messages, self._agent)
        if self._has_begun:
            call._stored_inputs = signed(call.input_messages, self._agent)  # noqa: SLF001 - as above
        self._unsaved = None
        async with SessionTurn(self._session):
            await RunHooks(self._agent, self._session, call, self._providers, len(self._providers)).after()
        self._saved.extend(call.input_messages)


def _results_in(messages: Sequence[Message]) -> list[Content]:
    return [one for message in messages for one in message.contents if one.type == "function_result"]


def _refuse_id(conversation_id: Any) -> None:
    if conversation_id is not None:
        message = (
            f"The service keeps this conversation, under the id {conversation_id!r}, and the agent was made with "
            "require_per_service_call_history_persistence=True. Expected one of them to keep it: leave the id away, or "
            "make the agent without."
        )
        raise AgentInvalidRequestException(message)

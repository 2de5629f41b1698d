"""Load and save a history around every model call, instead of once around a run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from agentbench.agents.history.history import RunHooks
from agentbench.agents.history.pending_calls import (
    MADE_UP,
    UNANSWERED,
    PendingCalls,
    has_pending_calls,
    replace_messages,
)
from agentbench.agents.history.unique_calls import RecordedCalls, with_unique_calls
from agentbench.agents.middleware.contexts import CallNext, ChatContext, ChatMiddleware
from agentbench.agents.sessions.session import SessionTurn
from agentbench.agents.sessions.session_context import SessionContext, add_author
from agentbench.exceptions import AgentInvalidRequestException, ChatClientInvalidResponseException
from agentbench.messages.answers import with_contents, without_answers
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse, ChatResponse

if TYPE_CHECKING:
    from agentbench.agents.sessions.agent_protocol import SupportsAgentRun
    from agentbench.agents.sessions.session import AgentSession


class PerCallHistory(ChatMiddleware):
    """Loads the history before each model call and saves new messages after it, so that a crash loses only one call.

    Results of approved calls are saved before the model is called, so that the calls are not repeated after a failure.
    Approval requests are saved too, so that the history alone shows which calls wait for an answer.

    To the tool loop, it looks as if a service stored the conversation: each answer is marked
    (`has_internal_conversation_id()`), and the next call contains only new messages. Messages of other providers come
    before the history in every call. Each run creates a new instance and calls `finish` at its end.
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
        self._stored: dict[int, Content] = {}  # results in the loop's messages that are in the history, by their id()
        _refuse_id(context.service_session_id)

    async def record_requests(self, request_ids: Collection[str | None]) -> None:
        """Record in the session the calls of the history whose approval requests have these ids."""
        before = self._context([])
        async with SessionTurn(self._session):
            await RunHooks(self._agent, self._session, before, self._providers).before()
        recorded = RecordedCalls(self._session)
        recorded_ids = {request.id for one in recorded.read() for request in one.requests}
        for one in PendingCalls(without_answers(before.get_messages(), "a history")).requested:
            ids = {request.id for request in one.requests}
            if not ids.isdisjoint(request_ids) and (one.result is not None or not ids <= recorded_ids):
                recorded.add(one)
                if one.result is not None:
                    self._stored[id(one.result)] = one.result

    async def process(self, context: ChatContext, call_next: CallNext) -> None:
        """Load the history, call the model, and save."""
        _refuse_id(context.options.get("conversation_id"))
        messages = context.messages
        # In the first call, messages of other providers come before the new ones.
        new = self._not_stored(messages if self._has_begun else messages[len(self._run.get_messages()) :])
        call = self._unsaved = self._context(new)
        async with SessionTurn(self._session):
            await RunHooks(self._agent, self._session, call, self._providers).before()
        context.messages = [*without_answers(call.get_messages(), "a history"), *new]
        if has_pending_calls(context.messages):  # the previous run was interrupted or waits for a person
            context.messages, replaced = PendingCalls(context.messages).resolve()
            new[:] = replace_messages(new, replaced)
        made = [at for at, message in enumerate(new) if any(one.result != UNANSWERED for one in _results_in([message]))]
        if made and not self._has_begun:  # results of calls that a person approved
            results, new[:] = new[: made[-1] + 1], new[made[-1] + 1 :]
            await self._save(self._context(results), None)
            self._stored.update({id(content): content for content in _results_in(results)})
        if context.stream:

            async def save(response: ChatResponse[Any]) -> None:
                await self._save_answer(call, response)

            context.stream_result_hooks.append(save)
        try:
            await call_next()
        finally:
            context.messages = messages  # a retry passes the new messages again
        if not context.stream and context.result is not None:
            await self._save_answer(call, context.result)

    async def finish(self, answer: ChatResponse[Any]) -> None:
        """Save messages after the last model call, except results with which a middleware ended the loop."""
        if self._unsaved is not None:
            last: list[Message] = []
            for message in answer.messages:
                last = [] if message.role == "tool" else [*last, message]
            await self._save(self._unsaved, ChatResponse(messages=last))
        saved = {content.call_id for content in _results_in(self._saved)}
        saved |= {
            content.call_id for content in _results_in(answer.messages) if MADE_UP in content.additional_properties
        }
        results = [content for content in _results_in(answer.messages) if content.call_id not in saved]
        contents = [content for message in answer.messages for content in message.contents]
        requests = [content for content in contents if content.type == "function_approval_request"]
        unsaved = [Message(role, some) for role, some in (("assistant", requests), ("tool", results)) if some]
        if unsaved:
            await self._save(self._context(unsaved), None)

    def _not_stored(self, messages: Sequence[Message]) -> list[Message]:
        """Return messages without results that are in the history, and without calls that were repeated for them."""
        stored = {one.call_id for one in _results_in(messages) if id(one) in self._stored}
        found: list[Message] = []
        for message in messages if stored else ():
            remaining = [
                one
                for one in message.contents
                if id(one) not in self._stored and (one.type != "function_call" or one.call_id not in stored)
            ]
            found += (
                [with_contents(message, remaining)]
                if 0 < len(remaining) < len(message.contents)
                else [message] * bool(remaining)
            )
        return found if stored else [*messages]

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

    async def _save_answer(self, call: SessionContext, response: ChatResponse[Any]) -> None:
        if response.conversation_id is not None and not response.has_internal_conversation_id():
            message = _two_stores(response.conversation_id, "pass the option store=False")
            raise ChatClientInvalidResponseException(message)
        await self._save(call, with_unique_calls(response))
        self._has_begun = True
        response.mark_internal_conversation_id()

    async def _save(self, call: SessionContext, response: ChatResponse[Any] | None) -> None:
        # Sets the author as at the end of a run, for the answer and, after the first answer, for tool results.
        if response is not None:
            call._response = AgentResponse(  # noqa: SLF001 - for users it is read-only
                messages=add_author(response.messages, self._agent),
                created_at=response.created_at,
                finish_reason=response.finish_reason,
                usage_details=response.usage_details,
                raw_representation=response,
            )
        if self._has_begun:
            call._stored_inputs = add_author(call.input_messages, self._agent)  # noqa: SLF001 - as above
        self._unsaved = None
        async with SessionTurn(self._session):
            await RunHooks(self._agent, self._session, call, self._providers, len(self._providers)).after()
        self._saved.extend(call.input_messages)


def _results_in(messages: Sequence[Message]) -> list[Content]:
    return [one for message in messages for one in message.contents if one.type == "function_result"]


def _refuse_id(conversation_id: Any) -> None:
    if conversation_id is not None:
        raise AgentInvalidRequestException(_two_stores(conversation_id, "do not pass the id"))


def _two_stores(conversation_id: Any, remedy: str) -> str:
    return (
        f"The service stores the conversation under the id {conversation_id!r}, and the agent was created with "
        "require_per_service_call_history_persistence=True. Only one of them may store it: "
        f"{remedy}, or create the agent without this argument."
    )

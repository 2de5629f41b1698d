"""`MessageInjectionMiddleware`: adds messages to an agent while it runs."""

from __future__ import annotations

import copy
import logging
import uuid
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Any, Final, cast

from agentbench.agents.arguments import describe
from agentbench.agents.middleware.contexts import AgentContext, AgentMiddleware, CallNext, ChatContext, ChatMiddleware
from agentbench.agents.middleware.sorting import flat_middleware
from agentbench.agents.sessions.session import CLAIMS, AgentSession
from agentbench.agents.sessions.session_context import ATTRIBUTION, INJECTED, INJECTION_QUEUE
from agentbench.messages.inputs import AgentRunInputs, normalize_messages
from agentbench.messages.message import Message, copy_messages
from agentbench.messages.response import AgentResponse, ChatResponse
from agentbench.messages.stream import ResponseStream
from agentbench.messages.update import AgentResponseUpdate

logger = logging.getLogger("agentbench")

_NOT_FOR_MODELS: Final = frozenset(
    {"function_call", "function_result", "function_approval_request", "function_approval_response"}
)

_replacing = Lock()  # held while a queue is replaced, because threads may share sessions


def enqueue_messages(session: AgentSession, messages: AgentRunInputs) -> list[Message]:
    """Add messages to the queue of a session, for an agent with a `MessageInjectionMiddleware`. Any thread may call it.

    The agent gets them before the next model call of its run, or at the beginning of its next run. The queue is a part
    of the session's state, until a run that delivered the messages has ended and stored them.

    Args:
        session: The session of the agent's run.
        messages: Text, contents or messages. A message with the id of a queued message is ignored.

    Returns:
        The added messages; those without an id get one.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: A message contains a tool call, its result, or an approval, which only the input of a run can give.

    Example:
        session = AgentSession()
        agent = Agent(EchoChatClient(), middleware=[MessageInjectionMiddleware()])
        enqueue_messages(session, "Answer in French.")
        await agent.run("How is the weather?", session=session)
    """
    if not isinstance(cast("object", session), AgentSession):
        problem = f"session is {describe(session)}. Expected the AgentSession of the agent's run."
        raise TypeError(problem)
    added = copy_messages(normalize_messages(messages))
    for message in added:
        if not _is_for_models(message):
            problem = (
                f"A message of the role {message.role!r} contains a tool call, its result or an approval. Expected "
                "content for the model; answers to requests are the input of a run."
            )
            raise ValueError(problem)
        own_id = message.message_id
        message.message_id = uuid.uuid4().hex if own_id is None else str(own_id)  # unique after a restart too
    with _replacing:
        state = _state_of(session)
        ids = {message.message_id for message in state["messages"]}
        added = [message for message in added if message.message_id not in ids]
        session.state[INJECTION_QUEUE] = {**state, "messages": [*state["messages"], *added]}
    return added


def dequeue_stored(session: AgentSession, messages: Iterable[Message]) -> None:
    """Remove the messages of a loaded history from the queue, because a run that did not end has stored them.

    Called before compaction, which may drop them from what the model gets.
    """
    _remove(
        session, {one.message_id for one in messages if {INJECTED, ATTRIBUTION} <= one.additional_properties.keys()}
    )


class MessageInjectionMiddleware(AgentMiddleware):
    """Adds the messages of `enqueue_messages` to a running agent before its next model call.

    The conversation stores them at the place where the model got them; the response of the run does not contain them.
    A message is delivered and stored once, also if a run fails, or if the process ends and the agent is run again with
    the stored session. Runs without a session have no queue.

    Example:
        session = AgentSession()
        agent = Agent(EchoChatClient(), middleware=[MessageInjectionMiddleware()])
        run = asyncio.create_task(agent.run("Plan a trip to Oslo.", session=session))
        enqueue_messages(session, "By train, please.")
        print((await run).text)
    """

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    async def process(self, context: AgentContext, call_next: CallNext) -> None:
        """Run the agent with a chat middleware that adds the queued messages to its model calls."""
        if context.session is None:
            await call_next()
            return
        injection = _Injection(context.session)
        others = [
            one for one in flat_middleware(context.client_kwargs.get("middleware")) if type(one) is not _Injection
        ]
        context.client_kwargs["middleware"] = [injection, *others]
        is_open = False
        try:
            await call_next()
            if not context.stream:
                context.result = injection.finish(context.result)
            elif context.result is not None:
                context.result = injection.finish_stream(context.result)
                is_open = True
        finally:
            if not is_open:
                injection.release()


def _is_for_models(message: Message) -> bool:
    return all(content.type not in _NOT_FOR_MODELS for content in message.contents)


def _state_of(session: AgentSession) -> dict[str, Any]:
    state: Mapping[str, Any] = session.state.get(INJECTION_QUEUE) or {}
    return {"messages": state.get("messages") or [], "conversations": state.get("conversations") or {}}


def _remove(session: AgentSession, ids: Collection[Any]) -> None:
    with _replacing:
        state = _state_of(session)
        remaining = [message for message in state["messages"] if message.message_id not in ids]
        conversations = {one: known for one, known in state["conversations"].items() if one not in ids}
        if remaining or conversations:
            session.state[INJECTION_QUEUE] = {"messages": remaining, "conversations": conversations}
        else:
            session.state.pop(INJECTION_QUEUE, None)


class _Injection(ChatMiddleware):
    """Delivers the queue of a session in one run. Other runs of the session ignore the messages that it has claimed."""

    def __init__(self, session: AgentSession) -> None:
        self._session = session

    async def process(self, context: ChatContext, call_next: CallNext) -> None:
        """Add the queued messages to the call, and to the front of its response, so that they are stored."""
        messages, conversation_id = context.messages, context.options.get("conversation_id")
        added = self._claim(messages, conversation_id)
        accept = partial(self._accept, added, conversation_id)
        if context.stream:
            context.stream_result_hooks.insert(0, accept)  # before the hooks that store the response
        context.messages = [*messages, *added]
        try:
            await call_next()
        finally:
            context.messages = messages  # a retry adds them again
        if isinstance(context.result, ChatResponse):
            context.result = accept(context.result)

    def _claim(self, messages: Sequence[Message], conversation_id: str | None) -> list[Message]:
        """Return marked copies of the queued messages that the call does not contain and no other run has claimed."""
        known = {message.message_id for message in messages}
        claims: dict[Any, _Injection] = vars(self._session).setdefault(CLAIMS, {})
        with _replacing:
            state = _state_of(self._session)
            conversations = state["conversations"] if conversation_id else {}
            found = [
                message
                for message in state["messages"]
                if message.message_id not in known
                and (conversation_id is None or conversations.get(message.message_id) != conversation_id)
                and claims.setdefault(message.message_id, self) is self
            ]
        added = copy_messages(message for message in found if _is_for_models(message))
        if len(added) < len(found):
            logger.warning("Ignored %d queued messages with tool calls or approvals.", len(found) - len(added))
        for message in added:
            message.additional_properties[INJECTED] = True
        return added

    def _accept(self, added: list[Message], asked_in: str | None, response: ChatResponse[Any]) -> ChatResponse[Any]:
        """Return the response with the messages that the model got, and record the conversation that contains them."""
        conversation_id = response.conversation_id
        if conversation_id and not response.has_internal_conversation_id():
            with _replacing:
                state = _state_of(self._session)
                continued = [one for one, known in state["conversations"].items() if known == asked_in]
                new = dict.fromkeys([*continued, *(message.message_id for message in added)], conversation_id)
                if new:
                    self._session.state[INJECTION_QUEUE] = {**state, "conversations": {**state["conversations"], **new}}
        if not added:
            return response
        accepted = copy.copy(response)  # clients may keep a reference to the response
        accepted.messages = [*added, *response.messages]
        return accepted

    def finish(self, response: AgentResponse[Any] | None) -> AgentResponse[Any] | None:
        """Remove the stored messages from the queue. Return the response without them."""
        returned = [message for message in getattr(response, "messages", ()) if _is_injected(message)]
        conversations = _state_of(self._session)["conversations"]
        current = self._session.service_session_id
        in_conversation = {one for one, conversation_id in conversations.items() if conversation_id == current}
        _remove(self._session, in_conversation.union(message.message_id for message in returned))
        if response is None or not returned:
            return response
        stripped = copy.copy(response)
        stripped.messages = [message for message in response.messages if not _is_injected(message)]
        return stripped

    def finish_stream(self, stream: ResponseStream[Any, Any]) -> ResponseStream[Any, Any]:
        """Return a stream with the same updates, which finishes this injection at its end."""
        response: Any = None

        async def updates() -> AsyncIterator[AgentResponseUpdate]:
            nonlocal response
            try:
                async for update in stream:
                    yield update
                response = self.finish(await stream.get_final_response())
            finally:
                await stream.aclose()
                self.release()

        return ResponseStream(updates(), finalizer=lambda _: response)

    def release(self) -> None:
        """Let other runs deliver the messages that are still in the queue."""
        claims = vars(self._session).get(CLAIMS, {})
        with _replacing:
            for one in [one for one, run in claims.items() if run is self]:
                del claims[one]


def _is_injected(message: Message) -> bool:
    return INJECTED in message.additional_properties

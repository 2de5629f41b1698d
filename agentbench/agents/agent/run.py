"""One run of an agent, streaming or not: prepared, answered by the model's client, finished."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from inspect import isawaitable
from typing import Any, NamedTuple, NoReturn

from agentbench.agents.agent.run_answer import AnswerForm, partial_answer, streamed_answer
from agentbench.agents.agent.run_options import function_arguments, merged_options, united_tools
from agentbench.agents.agent.run_providers import auto_history, is_stored_by_service, loads_history
from agentbench.agents.agent.run_tools import connected_functions, split_mcp_tools
from agentbench.agents.history.history import HistoryProvider
from agentbench.agents.history.per_call_history import PerCallHistory
from agentbench.agents.history.run_hooks import RunHooks
from agentbench.agents.middleware.sorting import flat_middleware
from agentbench.agents.sessions.session import AgentSession
from agentbench.agents.sessions.session_context import SessionContext
from agentbench.agents.sessions.turn_lock import after_forgotten_streams, note_stream, session_turn
from agentbench.exceptions import AgentInvalidRequestException
from agentbench.messages.inputs import normalize_messages
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse, ChatResponse
from agentbench.messages.update import AgentResponseUpdate, ChatResponseUpdate

logger = logging.getLogger("agentbench")

_NOTHING: Mapping[str, Any] = {}


class Asked(NamedTuple):
    """What a run was called with; see `RawAgent.run`."""

    messages: Any = None
    session: AgentSession | None = None
    tools: Any = None
    options: Mapping[str, Any] | None = None
    compaction_strategy: Any = None
    tokenizer: Any = None
    function_invocation_kwargs: Mapping[str, Any] | None = None
    client_kwargs: Mapping[str, Any] | None = None
    raises: bool = False


class AgentRun:
    """One run. It holds what is known of it; the agent holds nothing of its runs.

    Args:
        agent: The agent, a `RawAgent`.
        asked: What it was called with.
    """

    __slots__ = (
        "_agent",
        "_arguments",
        "_asked",
        "_by_call",
        "_context",
        "_form",
        "_hooks",
        "_messages",
        "_response",
        "_session",
    )

    def __init__(self, agent: Any, asked: Asked) -> None:
        self._agent, self._asked = agent, asked
        self._session = asked.session
        self._context: SessionContext | None = None
        self._hooks: RunHooks | None = None
        self._by_call: PerCallHistory | None = None
        self._response: AgentResponse[Any]

    async def respond(self) -> AgentResponse[Any]:
        """Run without streaming.

        Cancelled, it saves what was asked.
        """
        try:
            await self._prepare()
            answer = self._agent.client.get_response(self._messages, **self._arguments)
            answer = await answer if isawaitable(answer) else answer
        except GeneratorExit:  # nobody awaits it any more, so nothing can be awaited here
            raise
        except Exception as error:  # noqa: BLE001 - raised below, maybe in other words
            await self._failed(error)
            self._raise_as_told(error)
        except BaseException as error:
            await _at_most_shortly(self._given_up(error, None, []))
            raise
        try:
            response = await self._finish(answer)
        except Exception as error:  # noqa: BLE001 - as above
            self._raise_as_told(error)
        return response.raise_for_user_input() if self._asked.raises else response

    respond.__qualname__ = "Agent.run"  # what Python names when the await was forgotten

    async def updates(self) -> AsyncIterator[AgentResponseUpdate]:
        """Run, giving updates; `final` has the response after the last one.

        Closed or cancelled before its end, it closes the client's stream and saves what was said until then.
        """
        seen: list[ChatResponseUpdate] = []
        stream: Any = None
        noted: AgentSession | None = None
        try:
            await self._prepare()
            if self._asked.session is not None:
                noted = self._asked.session
                note_stream(noted, 1)
            stream = await self._open()
            translate, note = self._form.update, seen.append
            async for update in stream:
                note(update)
                yield translate(update)
            answer = await streamed_answer(stream, seen)
        except GeneratorExit as closing:
            await self._given_up(closing, stream, seen)
            raise
        except Exception as error:  # noqa: BLE001 - raised below, maybe in other words
            await _close(stream)
            await self._failed(error)
            self._raise_as_told(error)
        except BaseException as error:
            await _at_most_shortly(self._given_up(error, stream, seen))
            raise
        finally:
            if noted is not None:
                note_stream(noted, -1)
        try:
            self._response = await self._finish(answer)
        except Exception as error:  # noqa: BLE001 - as above
            self._raise_as_told(error)

    def final(self, _: object = None) -> AgentResponse[Any]:
        """The response at the end of the updates."""
        return self._response

    # ------------------------------------------------------------------------------------------------------ preparation

    async def _prepare(self) -> None:
        agent, asked = self._agent, self._asked
        inputs = normalize_messages(asked.messages)
        options = asked.options or _NOTHING
        client_kwargs = {**asked.client_kwargs} if asked.client_kwargs else {}
        history = self._take_providers(inputs, options)
        self._messages = inputs
        context, session = self._context, self._session
        instructions: Sequence[str] = ()
        more_tools: list[Any] = []
        middleware: list[Any] = flat_middleware(client_kwargs.pop("middleware", None)) if client_kwargs else []
        if self._hooks is not None and context is not None and session is not None:
            await after_forgotten_streams(session)
            async with session_turn(session):
                await self._hooks.before()
            self._messages = context.get_messages(include_input=True)
            instructions, more_tools = context.instructions, context.tools
            if context.middleware:
                middleware = [*middleware, *context.get_middleware()]
            if history:
                self._by_call = PerCallHistory(history, agent=agent, session=session, context=context)
                middleware.insert(0, self._by_call)
        chat_options = merged_options(
            agent.default_options,
            options,
            instructions=instructions,
            conversation_id=None if session is None else session.service_session_id,
        )
        await self._add_tools(chat_options, more_tools, options.get("tools"))
        if session is not None:
            client_kwargs["session"] = session
        if agent.function_invocation_configuration is not None:
            client_kwargs.setdefault("function_invocation_configuration", agent.function_invocation_configuration)
        if middleware:
            client_kwargs["middleware"] = middleware
        self._arguments = self._given_to_client(chat_options, client_kwargs)
        self._form = AnswerForm(agent, chat_options.get("response_format"), keeps_id=not history)

    def _take_providers(self, inputs: list[Message], options: Mapping[str, Any]) -> list[HistoryProvider]:
        """Decide who takes part; what is returned keeps the history around each call of the model instead."""
        agent, session = self._agent, self._session
        providers: list[Any] = agent.context_providers
        by_call: list[HistoryProvider] = []
        around_calls = agent.require_per_service_call_history_persistence
        if session is not None or around_calls:
            conversation = (
                (session and session.service_session_id)
                or options.get("conversation_id")
                or agent.default_options.get("conversation_id")
            )
            stored = is_stored_by_service(agent.client, agent.default_options, options)
            if around_calls and conversation and not stored:
                raise _two_histories(agent, conversation)
            if session is not None and not stored and not conversation and not loads_history(providers):
                providers = [auto_history(providers), *providers]
            if around_calls and not stored:
                by_call = [each for each in providers if isinstance(each, HistoryProvider)]
                providers = [each for each in providers if not isinstance(each, HistoryProvider)]
        if providers or by_call:
            self._session = session = session or AgentSession()
            self._context = SessionContext(
                session_id=session.session_id,
                service_session_id=session.service_session_id,
                input_messages=inputs,
                options={**options},
            )
            self._hooks = RunHooks(agent, session, self._context, providers)
        return by_call

    async def _add_tools(self, chat_options: dict[str, Any], of_providers: list[Any], in_options: Any) -> None:
        agent, given = self._agent, self._asked.tools
        known = agent.default_options.get("tools") or ()
        if of_providers or given or in_options or agent.mcp_tools:
            tools, servers = split_mcp_tools(united_tools(known, of_providers, given, in_options))
            functions = await connected_functions([*agent.mcp_tools, *servers], agent.connections)
            known = united_tools(tools, functions)
        if known:
            chat_options["tools"] = list(known)
            agent.warn_if_tools_are_lost()

    def _given_to_client(self, chat_options: dict[str, Any], client_kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments of `get_response` that have a value: a client that knows no others will do."""
        agent, asked = self._agent, self._asked
        given: dict[str, Any] = {"options": chat_options}
        if client_kwargs:
            given["client_kwargs"] = client_kwargs
        strategy = agent.compaction_strategy if asked.compaction_strategy is None else asked.compaction_strategy
        if strategy is not None:
            given["compaction_strategy"] = strategy
        tokenizer = agent.tokenizer if asked.tokenizer is None else asked.tokenizer
        if tokenizer is not None:
            given["tokenizer"] = tokenizer
        arguments = function_arguments(asked.function_invocation_kwargs, asked.options)
        if arguments:
            given["function_invocation_kwargs"] = arguments
        return given

    async def _open(self) -> Any:
        stream = self._agent.client.get_response(self._messages, stream=True, **self._arguments)
        return stream if hasattr(stream, "__aiter__") else await stream

    # --------------------------------------------------------------------------------------------------------- the end

    async def _finish(self, answer: ChatResponse[Any]) -> AgentResponse[Any]:
        response = self._form.response(answer)
        session = self._session
        if session is not None and answer.conversation_id and not answer.has_internal_conversation_id():
            session.service_session_id = answer.conversation_id
        if self._hooks is not None:
            await self._keep(answer, response)
        return response

    async def _keep(self, answer: ChatResponse[Any], response: AgentResponse[Any]) -> None:
        context, session, hooks = self._context, self._session, self._hooks
        if hooks is None or context is None or session is None:
            return
        if self._by_call is not None:
            await self._by_call.finish(answer)
        _resolve_inputs(context, answer)
        context._response = response  # noqa: SLF001 - users read it, this sets it
        async with session_turn(session):
            await hooks.after()

    async def _given_up(self, reason: BaseException, stream: Any, seen: list[ChatResponseUpdate]) -> None:
        """Nobody wants the rest: what was asked and the part that was answered are kept, unless the agent says no.

        A conversation that the service began meanwhile is not gone on with: its last answer was never finished.
        """
        try:
            if self._agent.save_abandoned:
                answer = partial_answer(seen)
                await self._keep(answer, AnswerForm(self._agent, None, keeps_id=self._by_call is None).response(answer))
            elif not isinstance(reason, GeneratorExit):
                await self._failed(reason)
        finally:
            await _close(stream)

    def _raise_as_told(self, error: Exception) -> NoReturn:
        told = self._agent.error_to_raise(error)
        if told is error:
            raise error
        raise told from error

    async def _failed(self, error: BaseException) -> None:
        if self._hooks is not None and self._session is not None:
            async with session_turn(self._session):
                await self._hooks.failed(error)


def _resolve_inputs(context: SessionContext, answer: ChatResponse[Any]) -> None:
    """Have history store what the model saw in place of the answers to approvals."""
    if not answer._resolved_inputs:  # noqa: SLF001 - between the layers of one run
        return
    seen = {id(given): instead for given, instead in answer._resolved_inputs}  # noqa: SLF001 - as above
    stored = [one for each in context.stored_inputs for one in seen.get(id(each), [each])]
    context._stored_inputs = stored  # noqa: SLF001 - as above


async def _close(stream: Any) -> None:
    """Close the client's stream. What fails here is only logged: why it is closed matters more, and what was said."""
    if hasattr(stream, "aclose"):
        try:
            await stream.aclose()
        except Exception as error:
            logger.error("Closing the stream of a chat client failed: %s", type(error).__name__)
            logger.debug("Closing the stream of a chat client failed.", exc_info=error)


async def _at_most_shortly(saving: Coroutine[Any, Any, None]) -> None:
    """Save what is left of a run that is being cancelled; what takes longer goes on behind, and its errors are logged.

    Whoever cancels waits for the end of the run, and its cancellation is what the caller has to see.
    """
    task = asyncio.ensure_future(saving)
    _saving.add(task)
    task.add_done_callback(_saved)
    await asyncio.wait({task}, timeout=_PATIENCE_S)


_PATIENCE_S = 1.0

_saving: set[asyncio.Future[None]] = set()
"""Held until they are done: an event loop does not hold its tasks."""


def _saved(task: asyncio.Future[None]) -> None:
    _saving.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("Saving what a cancelled run had so far failed: %s", type(error).__name__)
        logger.debug("Saving what a cancelled run had so far failed.", exc_info=error)


def _two_histories(agent: Any, conversation: object) -> AgentInvalidRequestException:
    message = (
        f"{agent!r} keeps its history around each call of the model, and the service keeps the conversation "
        f"{conversation!r}, too. Only one of them can: run it in a session without a service_session_id, or make the "
        "agent without require_per_service_call_history_persistence."
    )
    return AgentInvalidRequestException(message)

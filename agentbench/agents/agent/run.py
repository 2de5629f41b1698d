"""One run of an agent: prepare the request, get the client's answer, store the turn."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from operator import is_
from typing import Any, NoReturn

from agentbench._clock import runtime_defaults
from agentbench._copying import isolate_or_same
from agentbench._secrets import masked_repr
from agentbench.agents.history.history import HistoryProvider, InMemoryHistoryProvider, RunHooks
from agentbench.agents.history.pending_calls import replace_messages
from agentbench.agents.history.per_call_history import PerCallHistory
from agentbench.agents.middleware.sorting import flat_middleware
from agentbench.agents.model.recording import recorder
from agentbench.agents.model.request import response_of, stream_of
from agentbench.agents.model.settings import ClientSettings
from agentbench.agents.sessions.session import AgentSession, SessionTurn, after_abandoned_streams
from agentbench.agents.sessions.session_context import UNNAMED, SessionContext, add_author
from agentbench.agents.tools.collection import connect_once, enter_tool, normalize_tools, split_mcp_tools
from agentbench.exceptions import AgentInvalidRequestException, AgentInvalidResponseException
from agentbench.messages.answers import without_foreign_answers
from agentbench.messages.content.content import Content
from agentbench.messages.inputs import normalize_messages
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse, ChatResponse
from agentbench.messages.stream import ResponseStream, abandoned_streams
from agentbench.messages.update import AgentResponseUpdate, ChatResponseUpdate, map_chat_to_agent_update

_MERGED_ELSEWHERE = frozenset({"instructions", "tools", "additional_function_arguments"})
_MERGED_BY_KEY = frozenset({"metadata", "logit_bias"})
_IMMUTABLE = frozenset({str, int, float, bool, type(None)})
_CONTAINERS = (dict, list, set)


def merge_options(
    defaults: Mapping[str, Any],
    options: Mapping[str, Any] | None,
    *,
    instructions: Sequence[str] = (),
    conversation_id: str | None = None,
) -> dict[str, Any]:
    """Merge a run's options over its agent's; providers' instructions come between those of agent and run."""
    merged = {
        key: value if type(value) in _IMMUTABLE else isolate_or_same(value)
        for key, value in defaults.items()
        if value is not None and key not in _MERGED_ELSEWHERE
    }
    for key, value in options.items() if options else ():
        if value is None or key in _MERGED_ELSEWHERE:
            continue
        before = merged.get(key)
        copied = isolate_or_same(value) if isinstance(value, _CONTAINERS) else value
        if key in _MERGED_BY_KEY and isinstance(before, Mapping) and isinstance(copied, Mapping):
            copied = {**before, **copied}
        merged[key] = copied
    text = join_instructions(defaults.get("instructions"), instructions, options and options.get("instructions"))
    if text:
        merged["instructions"] = text
    if conversation_id:
        merged["conversation_id"] = conversation_id
    return merged


def join_instructions(*parts: str | Iterable[str] | None) -> str | None:
    """Join instructions with line breaks; return `None` if there are none."""
    texts: list[str] = []
    for part in parts:
        if part:
            texts += (part,) if isinstance(part, str) else filter(None, part)
    return "\n".join(texts) or None


def merge_tools(known: Sequence[Any], *more: Any) -> list[Any]:
    """Return all tools of a run without duplicates; a function is the same as a known tool made from it."""
    merged = list(known)
    if not any(more):
        return merged
    by_name: dict[str, Any] = {}
    for tool in known:
        enter_tool(by_name, tool)
    for tools in more:
        for tool in normalize_tools(tools):
            if enter_tool(by_name, tool) and not any(each is tool for each in merged):
                merged.append(tool)
    return merged


# ---- answers


_NO_REQUESTS = frozenset({"text", "text_reasoning", "function_result", "usage"})


def agent_update(update: ChatResponseUpdate, author: str, agent_id: str) -> AgentResponseUpdate:
    """Convert a model's update to an agent's update."""
    _give_ids(update.contents)
    return map_chat_to_agent_update(update, author, agent_id)


def agent_response(agent: Any, answer: Any, *, response_format: Any = None, has_id: bool = True) -> AgentResponse[Any]:
    """Convert a model's answer to an agent's response; `response_format` overrides the answer's."""
    if not isinstance(answer, ChatResponse):
        problem = (
            f"The client {type(agent.client).__name__} of {agent!r} answered with {masked_repr(answer)}. "
            "Expected get_response to return a ChatResponse."
        )
        raise AgentInvalidResponseException(problem)
    messages = add_author(answer.messages, agent)
    for message in messages:
        _give_ids(message.contents)
    return AgentResponse(
        messages=messages,
        response_id=answer.response_id if has_id else None,
        agent_id=agent.id,
        created_at=answer.created_at,
        finish_reason=answer.finish_reason,
        usage_details=answer.usage_details,
        # The value is parsed from the text on first access, so that a run never fails because of it.
        value=answer.value if answer._value_is_given else None,  # noqa: SLF001 - between the layers of one run
        response_format=answer.response_format if response_format is None else response_format,
        continuation_token=answer.continuation_token,
        raw_representation=answer,
        additional_properties=answer.additional_properties,
    )


def _give_ids(contents: Iterable[Content]) -> None:
    """Give an id to each request without one, because answers refer to it. Updates and response share the content."""
    for content in contents:
        if content.type not in _NO_REQUESTS and content.user_input_request and not content.id:
            content.id = runtime_defaults().ids.new_id("call")


async def streamed_answer(stream: Any, updates: Sequence[ChatResponseUpdate]) -> ChatResponse[Any]:
    """Return the final response of the client's stream, or the combined updates if hooks changed them."""
    if not hasattr(stream, "get_final_response"):
        return ChatResponse.from_updates(updates)
    answer: Any = await stream.get_final_response()
    raw = getattr(stream, "updates", updates)
    if not isinstance(answer, ChatResponse) or (len(raw) == len(updates) and all(map(is_, raw, updates))):
        return answer  # type: ignore[no-any-return]
    folded: ChatResponse[Any] = ChatResponse.from_updates(updates, output_format_type=answer.response_format)
    folded._resolved_inputs = answer._resolved_inputs  # noqa: SLF001 - as above
    folded.additional_properties = {**answer.additional_properties, **folded.additional_properties}
    return folded


def partial_answer(updates: Sequence[ChatResponseUpdate]) -> ChatResponse[Any]:
    """Return the partial answer of a stream that was closed early, marked as partial, without unanswered calls."""
    answer: ChatResponse[Any] = ChatResponse.from_updates(updates)
    contents = [each for message in answer.messages for each in message.contents]
    results = {each.call_id for each in contents if each.type == "function_result"}
    for message in answer.messages:
        message.contents = [
            each for each in message.contents if each.type != "function_call" or each.call_id in results
        ]
    answer.messages = [message for message in answer.messages if message.contents]
    if answer.messages:
        answer.messages[-1].additional_properties["partial"] = True
    return answer


# ---- the run


logger = logging.getLogger("agentbench")

_PATIENCE_S = 1.0
"""Seconds that a cancelled run waits for its turn to be stored."""


class AgentRun:
    """The state of one run: `_prepare()` builds the request, the client answers, `_finish()` stores the turn."""

    __slots__ = (
        "_agent",
        "_arguments",
        "_context",
        "_hooks",
        "_input",
        "_is_foreign",
        "_per_call_history",
        "_raises",
        "_request",
        "_response",
        "_response_format",
        "_session",
    )

    def __init__(self, agent: Any, messages: Any, arguments: Mapping[str, Any], *, raise_on_user_input: bool) -> None:
        self._agent, self._input, self._arguments = agent, messages, arguments
        self._session: AgentSession | None = arguments.get("session")
        self._raises = raise_on_user_input
        self._is_foreign = not isinstance(agent.client, ClientSettings)
        self._hooks: RunHooks | None = None  # set together with `_session` and `_context`
        self._context: SessionContext
        self._per_call_history: PerCallHistory | None = None
        self._request: dict[str, Any]
        self._response_format: Any
        self._response: AgentResponse[Any]

    async def respond(self) -> AgentResponse[Any]:
        """Return the response. A cancelled run stores its input."""
        try:
            messages = await self._prepare()
            ask = self._ask_foreign if self._is_foreign else self._agent.client.get_response
            answer = ask(messages, **self._request)
            answer = await answer if hasattr(answer, "__await__") else answer
        except GeneratorExit:  # the event loop has ended, so nothing can be awaited
            raise
        except Exception as error:  # noqa: BLE001 - raised below, maybe as another one
            await self._report_failure(error)
            self._raise(error)
        except BaseException as error:
            await _wait_briefly(self._store_abandoned(error, None, []))
            raise
        try:
            response = await self._finish(answer)
        except Exception as error:  # noqa: BLE001 - as above
            self._raise(error)
        return response.raise_for_user_input() if self._raises else response

    respond.__qualname__ = "Agent.run"  # Python's warning about a forgotten await shows this name

    async def updates(self) -> AsyncIterator[AgentResponseUpdate]:
        """Yield the updates; afterwards `final` returns the response. If closed early, store the partial answer."""
        agent = self._agent
        author, agent_id = agent.name or UNNAMED, agent.id
        received: list[ChatResponseUpdate] = []
        stream: Any = None
        try:
            messages = await self._prepare()
            ask = self._ask_foreign if self._is_foreign else agent.client.get_response
            stream = ask(messages, stream=True, **self._request)
            stream = stream if hasattr(stream, "__aiter__") else await stream
            async for update in stream:
                received.append(update)
                yield agent_update(update, author, agent_id)
            answer = await streamed_answer(stream, received)
        except GeneratorExit as closing:
            await self._store_abandoned(closing, stream, received)
            raise
        except Exception as error:  # noqa: BLE001 - raised below, maybe as another one
            await _close(stream)
            await self._report_failure(error)
            self._raise(error)
        except BaseException as error:
            await _wait_briefly(self._store_abandoned(error, stream, received))
            raise
        try:
            self._response = await self._finish(answer)
        except Exception as error:  # noqa: BLE001 - as above
            self._raise(error)

    def _ask_foreign(self, messages: list[Message], *, stream: bool = False, **request: Any) -> Any:
        """Ask a client that does not record its calls itself, because it is not derived from `BaseChatClient`."""
        client, recording = self._agent.client, recorder.get()
        streamed = {"stream": True} if stream else {}
        if recording is None or not recording.covers(client):
            return client.get_response(messages, **streamed, **request)
        options = request.get("options") or {}
        convert, pass_on = (stream_of, recording.open) if stream else (response_of, recording.respond)
        build_stream = partial(ResponseStream, finalizer=ChatResponse.from_updates)

        async def send() -> Any:
            return await convert(client.get_response(messages, **streamed, **request), build_stream)

        return pass_on(client, messages, options, send)

    def final(self, _: object = None) -> AgentResponse[Any]:
        """Return the response, once the updates are exhausted."""
        return self._response

    # --------------------------------------------------------------------------------------------------------- prepare

    async def _prepare(self) -> list[Message]:
        """Run the `before_run` hooks, set the client's arguments, and return the messages for it."""
        agent, arguments = self._agent, self._arguments
        messages = normalize_messages(self._input)
        input_copy = messages.copy()  # copied before providers can add to the input
        options: Mapping[str, Any] = arguments.get("options") or {}
        client_kwargs: dict[str, Any] = {**(arguments.get("client_kwargs") or {})}
        middleware = flat_middleware(client_kwargs.pop("middleware")) if "middleware" in client_kwargs else []
        histories = self._choose_providers(messages, options)
        session = self._session
        instructions: Sequence[str] = ()
        provided_tools: list[Any] = []
        if self._hooks is not None and session is not None:
            context = self._context
            if abandoned_streams:
                await after_abandoned_streams()
            async with SessionTurn(session):
                await self._hooks.before()
            messages, answers = without_foreign_answers(context.get_messages(include_input=True), input_copy)
            instructions, provided_tools = context.instructions, context.tools
            if context.middleware:
                middleware.extend(context.get_middleware())
            if histories:
                self._per_call_history = PerCallHistory(histories, agent=agent, session=session, context=context)
                middleware.insert(0, self._per_call_history)
                if answers:
                    await self._per_call_history.record_requests({answer.id for answer in answers})
        chat_options = merge_options(
            agent.default_options,
            options,
            instructions=instructions,
            conversation_id=None if session is None else session.service_session_id,
        )
        self._response_format = chat_options.get("response_format")
        await self._add_tools(chat_options, provided_tools, options.get("tools"))
        self._request = self._build_request(chat_options, client_kwargs, middleware)
        return messages

    def _build_request(
        self, chat_options: dict[str, Any], client_kwargs: dict[str, Any], middleware: list[Any]
    ) -> dict[str, Any]:
        """Return the client's arguments that have a value; a client may not support others."""
        agent, arguments = self._agent, self._arguments
        request: dict[str, Any] = {"options": chat_options}
        if self._session is not None:
            client_kwargs["session"] = self._session
        if agent.function_invocation_configuration is not None:
            client_kwargs.setdefault("function_invocation_configuration", agent.function_invocation_configuration)
        if middleware:
            client_kwargs["middleware"] = middleware
        if client_kwargs:
            request["client_kwargs"] = client_kwargs
        for name in ("compaction_strategy", "tokenizer"):
            value = getattr(agent, name) if arguments.get(name) is None else arguments.get(name)
            if value is not None:
                request[name] = value
        for_tools = arguments.get("function_invocation_kwargs")
        if more := (arguments.get("options") or {}).get("additional_function_arguments"):
            for_tools = {**(for_tools or {}), **more}
        if for_tools:
            request["function_invocation_kwargs"] = for_tools
        return request

    def _choose_providers(self, messages: list[Message], options: Mapping[str, Any]) -> list[HistoryProvider]:
        """Set hooks, session and context for the providers; return the histories saved around each model call."""
        agent, session = self._agent, self._session
        providers: list[Any] = agent.context_providers
        histories: list[HistoryProvider] = []
        is_per_call = agent.require_per_service_call_history_persistence
        if session is not None or is_per_call:
            defaults = agent.default_options
            conversation_id = (
                (session and session.service_session_id)
                or options.get("conversation_id")
                or defaults.get("conversation_id")
            )
            store = defaults.get("store") if options.get("store") is None else options["store"]
            is_stored_by_service = getattr(agent.client, "STORES_BY_DEFAULT", False) if store is None else store
            if is_stored_by_service and is_per_call:
                providers = [each for each in providers if not _is_around_each_call(each)]
            elif not is_stored_by_service:
                if is_per_call and conversation_id:
                    message = (
                        f"{agent!r} stores its history around each model call, but the service also stores the "
                        f"conversation {conversation_id!r}. Run the agent in a session without a service_session_id, "
                        "or create it without require_per_service_call_history_persistence."
                    )
                    raise AgentInvalidRequestException(message)
                has_history = any(isinstance(each, HistoryProvider) and each.load_messages for each in providers)
                if session is not None and not conversation_id and not has_history:
                    providers = [_default_history(providers), *providers]
                if is_per_call:
                    histories = [each for each in providers if _is_around_each_call(each)]
                    providers = [each for each in providers if not _is_around_each_call(each)]
        if providers or histories:
            self._session = session = session or AgentSession()
            self._context = SessionContext(
                session_id=session.session_id,
                service_session_id=session.service_session_id,
                input_messages=messages,
                options={**options},
            )
            self._hooks = RunHooks(agent, session, self._context, providers)
        return histories

    async def _add_tools(self, chat_options: dict[str, Any], provided: list[Any], in_options: Any) -> None:
        """Add the tools of agent, providers and run to the options; servers are replaced by their functions."""
        agent, for_run = self._agent, self._arguments.get("tools")
        tools = agent.default_options.get("tools") or ()
        if provided or for_run or in_options or agent.mcp_tools:
            tools, servers = split_mcp_tools(merge_tools(tools, provided, for_run, in_options))
            functions: list[Any] = []
            for server in [*agent.mcp_tools, *servers]:
                if await connect_once(server):
                    agent.connections.append(server)
                functions.extend(server.functions)
            tools = merge_tools(tools, functions)
        if tools:
            chat_options["tools"] = list(tools)
            client = agent.client
            if not (
                hasattr(client, "FUNCTION_INVOCATION_ENABLED") or hasattr(client, "function_invocation_configuration")
            ):
                agent.warn_without_tool_loop()

    # ----------------------------------------------------------------------------------------------------------- store

    async def _finish(self, answer: ChatResponse[Any]) -> AgentResponse[Any]:
        """Store the turn, and return the response of the agent."""
        has_id = self._per_call_history is None
        response = agent_response(self._agent, answer, response_format=self._response_format, has_id=has_id)
        session = self._session
        if session is not None and answer.conversation_id and not answer.has_internal_conversation_id():
            session.service_session_id = answer.conversation_id
        await self._store(answer, response)
        return response

    async def _store(self, answer: ChatResponse[Any], response: AgentResponse[Any]) -> None:
        """Run the `after_run` hooks, in which histories store the turn."""
        session = self._session
        if self._hooks is None or session is None:
            return
        context = self._context
        if self._per_call_history is not None:
            await self._per_call_history.finish(answer)
        if answer._resolved_inputs:  # noqa: SLF001 - between the layers of one run
            # The results that the model got instead of the approval answers.
            stored = replace_messages(context.stored_inputs, answer._resolved_inputs)  # noqa: SLF001 - as above
            context._stored_inputs = stored  # noqa: SLF001 - as above
        context._response = response  # noqa: SLF001 - read-only for users
        async with SessionTurn(session):
            await self._hooks.after()

    async def _store_abandoned(self, reason: BaseException, stream: Any, received: list[ChatResponseUpdate]) -> None:
        """Store the input and partial answer of a closed or cancelled run, if `save_abandoned` is set."""
        try:
            if self._agent.save_abandoned:
                answer = partial_answer(received)
                has_id = self._per_call_history is None
                await self._store(answer, agent_response(self._agent, answer, has_id=has_id))
            elif not isinstance(reason, GeneratorExit):
                await self._report_failure(reason)
        finally:
            await _close(stream)

    async def _report_failure(self, error: BaseException) -> None:
        if self._hooks is not None and self._session is not None:
            async with SessionTurn(self._session):
                await self._hooks.on_error(error)

    def _raise(self, error: Exception) -> NoReturn:
        raised = self._agent.error_to_raise(error)
        if raised is error:
            raise error
        raise raised from error


def _is_around_each_call(provider: object) -> bool:
    return isinstance(provider, HistoryProvider) and not provider.ADDS_CONTEXT


def _default_history(providers: Sequence[Any]) -> InMemoryHistoryProvider:
    """Return the default history. Its messages are in the session, so all agents share one instance."""
    if any(getattr(each, "source_id", None) == _DEFAULT_HISTORY.source_id for each in providers):
        # A store-only history may have the default source id; the two must not write to the same list.
        return _SECOND_HISTORY
    return _DEFAULT_HISTORY


_DEFAULT_HISTORY, _SECOND_HISTORY = InMemoryHistoryProvider(), InMemoryHistoryProvider("in_memory_auto")


async def _close(stream: Any) -> None:
    """Close the client's stream. A failure is only logged, so that the caller sees the reason for closing."""
    if hasattr(stream, "aclose"):
        try:
            await stream.aclose()
        except Exception as error:
            logger.error("Closing the stream of a chat client failed: %s", type(error).__name__)
            logger.debug("Closing the stream of a chat client failed.", exc_info=error)


async def _wait_briefly(storing: Coroutine[Any, Any, None]) -> None:
    """Store a cancelled run while the canceller waits; after a second, continue in the background and log errors."""
    task = asyncio.ensure_future(storing)
    _background.add(task)
    task.add_done_callback(_log_failure)
    await asyncio.wait({task}, timeout=_PATIENCE_S)


_background: set[asyncio.Future[None]] = set()
"""References to running tasks, because the event loop keeps none."""


def _log_failure(task: asyncio.Future[None]) -> None:
    _background.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("Saving the partial turn of a cancelled run failed: %s", type(error).__name__)
        logger.debug("Saving the partial turn of a cancelled run failed.", exc_info=error)

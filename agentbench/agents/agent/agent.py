"""The agent: a client of a model with instructions, tools, memory, middleware and telemetry."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

from agentbench.agents.agent.families import in_both_families
from agentbench.agents.agent.raw_agent import AgentStream, RawAgent, RunArguments
from agentbench.agents.arguments import check_asked, check_constructor_keywords, unexpected_run_keyword
from agentbench.agents.middleware.layer import AgentMiddlewareRuns
from agentbench.agents.telemetry.layers import AgentSpans
from agentbench.exceptions import ChatClientException
from agentbench.messages.response import AgentResponse
from agentbench.observability import is_tracing

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from agentbench.agents.middleware.bases import MiddlewareInput
    from agentbench.agents.sessions.session import AgentSession
    from agentbench.agents.tools.collection import ToolTypes
    from agentbench.messages.inputs import AgentRunInputs


class AgentArguments(RunArguments, total=False):
    """What a run can be given besides its messages."""

    middleware: MiddlewareInput


class Agent(AgentMiddlewareRuns, AgentSpans, RawAgent):
    """Answers messages with a model, and calls tools for it.

    Agent middleware stands outside, then telemetry, then the run itself. Errors of the chat client about credentials,
    requests, responses and content filters are caught as the agent's errors, too (`except AgentInvalidAuthException`).

    The arguments are those of `RawAgent`; `middleware` may be of all three kinds.

    Example:
        ```python
        agent = Agent(OpenAIChatClient(), "You help with the weather.", name="weather", tools=[get_weather])
        session = agent.create_session()
        response = await agent.run("How is it in Oslo?", session=session)
        print(response.text)
        ```
    """

    _raises_here: ClassVar[bool] = False

    def __init__(  # noqa: PLR0913 - the given signature
        self,
        client: Any = None,
        instructions: str | Sequence[str] | None = None,
        *,
        id: str | None = None,  # noqa: A002 - the given name
        name: str | None = None,
        description: str | None = None,
        tools: ToolTypes | Callable[..., Any] | Sequence[ToolTypes | Callable[..., Any]] | None = None,
        default_options: Mapping[str, Any] | None = None,
        context_providers: Any = None,
        middleware: MiddlewareInput = None,
        require_per_service_call_history_persistence: bool = False,
        function_invocation_configuration: Mapping[str, Any] | None = None,
        compaction_strategy: Any = None,
        tokenizer: Any = None,
        raise_on_user_input: bool = False,
        save_abandoned: bool = True,
        additional_properties: Mapping[str, Any] | None = None,
        chat_client: Any = None,
        **layers: Any,
    ) -> None:
        if layers:
            check_constructor_keywords(self, layers, options="default_options")
        super().__init__(
            client,
            instructions,
            id=id,
            name=name,
            description=description,
            tools=tools,
            default_options=default_options,
            context_providers=context_providers,
            middleware=middleware,
            require_per_service_call_history_persistence=require_per_service_call_history_persistence,
            function_invocation_configuration=function_invocation_configuration,
            compaction_strategy=compaction_strategy,
            tokenizer=tokenizer,
            raise_on_user_input=raise_on_user_input,
            save_abandoned=save_abandoned,
            additional_properties=additional_properties,
            chat_client=chat_client,
            **layers,
        )

    @overload  # type: ignore[override]
    def run(
        self,
        messages: AgentRunInputs | None = None,
        *,
        stream: Literal[False] = ...,
        **arguments: Unpack[AgentArguments],
    ) -> Coroutine[Any, Any, AgentResponse[Any]]: ...
    @overload
    def run(
        self, messages: AgentRunInputs | None = None, *, stream: Literal[True], **arguments: Unpack[AgentArguments]
    ) -> AgentStream: ...
    @overload
    def run(
        self, messages: AgentRunInputs | None = None, *, stream: bool, **arguments: Unpack[AgentArguments]
    ) -> Coroutine[Any, Any, AgentResponse[Any]] | AgentStream: ...
    def run(  # noqa: PLR0913 - the given signature
        self,
        messages: AgentRunInputs | None = None,
        *,
        stream: bool = False,
        session: AgentSession | None = None,
        middleware: MiddlewareInput = None,
        tools: Any = None,
        options: Mapping[str, Any] | None = None,
        compaction_strategy: Any = None,
        tokenizer: Any = None,
        function_invocation_kwargs: Mapping[str, Any] | None = None,
        client_kwargs: Mapping[str, Any] | None = None,
        raise_on_user_input: bool | None = None,
        **unknown: Any,
    ) -> Coroutine[Any, Any, AgentResponse[Any]] | AgentStream:
        """Answer messages. Nothing happens before the awaitable is awaited, or the stream is asked for an update.

        The awaitable may be given to `asyncio.gather`, `create_task` or `wait_for`, and one agent may have many runs at
        once.

        Args:
            messages: As in `RawAgent.run`.
            stream: As in `RawAgent.run`.
            session: As in `RawAgent.run`.
            middleware: For this run, inside of the agent's.
            tools: As in `RawAgent.run`.
            options: As in `RawAgent.run`.
            compaction_strategy: As in `RawAgent.run`.
            tokenizer: As in `RawAgent.run`.
            function_invocation_kwargs: As in `RawAgent.run`.
            client_kwargs: As in `RawAgent.run`.
            raise_on_user_input: As in `RawAgent.run`.
            **unknown: None is taken; each is an error that tells what was meant.

        Returns:
            An awaitable of the response, `None` being it where a middleware ends the run without one; with
            `stream=True` a stream of updates that ends in the response.

        Raises:
            MiddlewareException: If something given is no middleware, or its kind cannot be told.
            TypeError: If an argument is not known, or of a wrong type.
            Exception: As in `RawAgent.run`, and whatever the client, a middleware or a provider raises.
        """
        if unknown:
            raise unexpected_run_keyword(self, unknown)
        raises = self.raise_on_user_input if raise_on_user_input is None else raise_on_user_input
        has_layers = bool(self.middleware or middleware) or is_tracing()
        if has_layers:
            check_asked(session, options, function_invocation_kwargs, client_kwargs)  # before the layers look at them
            below: Any = partial(super().run, middleware=middleware)
        else:
            below = partial(super(AgentSpans, self).run, raise_on_user_input=raises)
        pending: Any = below(
            messages,
            stream=stream,
            session=session,
            tools=tools,
            options=options,
            compaction_strategy=compaction_strategy,
            tokenizer=tokenizer,
            function_invocation_kwargs=function_invocation_kwargs,
            client_kwargs=client_kwargs,
        )
        if not has_layers:
            return pending  # type: ignore[no-any-return]
        if not stream:
            return _outermost(pending, raises=raises)
        streamed: AgentStream = pending
        return streamed.with_result_hook(AgentResponse.raise_for_user_input) if raises else streamed

    def error_to_raise(self, error: Exception) -> Exception:
        """An error of the client as one of both families; any other as it is."""
        return in_both_families(error) if isinstance(error, ChatClientException) else error


async def _outermost(pending: Awaitable[Any], *, raises: bool) -> Any:
    try:
        response = await pending
    except ChatClientException as error:
        told = in_both_families(error)
        if told is error:
            raise
        raise told from error
    if raises and isinstance(response, AgentResponse):
        response.raise_for_user_input()
    return response


_outermost.__qualname__ = "Agent.run"  # what Python names when the await was forgotten

"""The agent: a chat client with instructions, tools, memory, middleware and spans."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

from agentbench.agents.agent.errors import as_agent_error
from agentbench.agents.agent.raw_agent import AgentStream, RawAgent, RunArguments
from agentbench.agents.arguments import check_constructor_keywords, check_run_arguments, unexpected_run_keyword
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
    """The keywords of `run` besides `stream`."""

    middleware: MiddlewareInput


class Agent(AgentMiddlewareRuns, AgentSpans, RawAgent):
    """Answers messages with a model, runs tools for it, and remembers the conversation in a session.

    Around each run is the agent middleware, inside it the span, inside that the run itself. Errors of the chat client
    about credentials, requests, responses and content filters are also caught as errors of the agent
    (`except AgentInvalidAuthException`).

    Args:
        client: The chat client that calls the model: any object with a method `get_response`.
        instructions: What the model has to do, and how; one text or several.
        id: Identifies the agent. By default a new one at each start of the program.
        name: Signs the agent's messages; graphs and tools know the agent by it.
        description: What the agent is good for, for people and for models that call it as a tool.
        tools: What the model may call. Functions become tools.
        default_options: Options of every run, such as `temperature`; those of a run override them. The arguments
            `instructions` and `tools` override the options of these names.
        context_providers: Called before each run in this order, and after it in reverse; histories among them.
        middleware: Around runs, calls of the model and calls of tools, each kind outermost first.
        require_per_service_call_history_persistence: Load and save the history around each call of the model, instead
            of around the whole run, so that a crash loses one call.
        function_invocation_configuration: Limits of the tool loop, instead of the client's; see
            `FunctionInvocationConfiguration`.
        compaction_strategy: Shortens long conversations for the model, instead of the client's strategy.
        tokenizer: Counts tokens for it.
        raise_on_user_input: A run that needs a person's answer raises `UserInputRequiredException`, instead of
            returning a response that lists the `user_input_requests`.
        save_abandoned: A stream that is closed or cancelled before its end stores the answer until then in the session,
            and a cancelled run its input. `False`: they store nothing, and providers get a cancellation as an error.
        additional_properties: Anything that the application wants to store with the agent.
        chat_client: Another name for `client`.
        **layers: Keywords of layers that a subclass adds, such as `otel_agent_provider_name`.

    Raises:
        TypeError: If there is no client, or one without a callable `get_response`, a keyword is not known, or an
            argument is of a wrong type.
        ValueError: If two different tools have one name, or the configuration is not valid.
        MiddlewareException: If something in `middleware` is no middleware.

    Example:
        ```python
        def get_weather(city: str) -> str:
            "Tell the weather."
            return f"Fog in {city}."


        client = ScriptedChatClient([Call("get_weather", {"city": "Oslo"}), "It is foggy."])
        agent = Agent(client, "You help with the weather.", name="weather", tools=[get_weather])
        session = agent.create_session()
        response = await agent.run("How is it in Oslo?", session=session)
        print(response.text)
        ```
    """

    _raises_here: ClassVar[bool] = False

    def __init__(  # noqa: PLR0913 - the public signature
        self,
        client: Any = None,
        instructions: str | Sequence[str] | None = None,
        *,
        id: str | None = None,  # noqa: A002 - the public name
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
    def run(  # noqa: PLR0913 - the public signature
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
        """Answer messages. Nothing happens before the awaitable is awaited, or an update of the stream is requested.

        The awaitable may be passed to `asyncio.gather`, `create_task` or `wait_for`; one agent may have many runs at
        once. The session stores the turn of a run that comes to its end, and what there is of one that is cancelled or
        closed (see `save_abandoned`). Of a run that fails it stores nothing, so that it can be tried again.

        Args:
            messages: The input: text, contents, messages, or several of them.
            stream: Whether to return a stream of updates.
            session: The conversation that this is a turn of. Without one, the agent remembers nothing.
            middleware: For this run, inside of the agent's.
            tools: For this run, besides the agent's.
            options: For this run, over the agent's: `{"temperature": 0.2}`.
            compaction_strategy: For this run, instead of the agent's.
            tokenizer: For this run, instead of the agent's.
            function_invocation_kwargs: For tools that take a `FunctionInvocationContext`; the model does not see them.
            client_kwargs: For the client.
            raise_on_user_input: For this run, instead of the agent's.
            **unknown: Any other keyword is an error that proposes a known one.

        Returns:
            An awaitable of the response, or of `None` where a middleware ends the run without one; with `stream=True` a
            stream of updates that ends in the response.

        Raises:
            UserInputRequiredException: If a person has to answer, and `raise_on_user_input` holds; the turn is stored.
            AgentInvalidRequestException: If both the agent and the service would store the history.
            AgentInvalidResponseException: If the client returns no response.
            MiddlewareException: If something in `middleware` is no middleware.
            TypeError: If a keyword is not known, or an argument is of a wrong type.
            ValueError: If two different tools have one name.
            Exception: Errors of the client, of middleware and of providers.

        Example:
            ```python
            response = await agent.run("How is it in Oslo?")
            print(response.text)

            async for update in agent.run("And in Rome?", stream=True):
                print(update.text, end="")
            ```
        """
        if unknown:
            raise unexpected_run_keyword(self, unknown)
        raises = self.raise_on_user_input if raise_on_user_input is None else raise_on_user_input
        has_layers = bool(self.middleware or middleware) or is_tracing()
        if has_layers:
            # Before middleware and spans read them.
            check_run_arguments(session, options, function_invocation_kwargs, client_kwargs)
            run: Any = partial(super().run, middleware=middleware)
        else:
            run = partial(super(AgentSpans, self).run, raise_on_user_input=raises)
        pending: Any = run(
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
            return _run_layers(pending, raises=raises)
        streamed: AgentStream = pending
        return streamed.with_result_hook(AgentResponse.raise_for_user_input) if raises else streamed

    def error_to_raise(self, error: Exception) -> Exception:
        """Return what to raise for an error of the run: one of the client becomes one of the agent, too."""
        return as_agent_error(error) if isinstance(error, ChatClientException) else error


async def _run_layers(pending: Awaitable[Any], *, raises: bool) -> Any:
    try:
        response = await pending
    except ChatClientException as error:
        raised = as_agent_error(error)
        if raised is error:
            raise
        raise raised from error
    if raises and isinstance(response, AgentResponse):
        response.raise_for_user_input()
    return response


_run_layers.__qualname__ = "Agent.run"  # what Python names when the await was forgotten

"""The agents: a chat client with instructions, tools and context providers, without layers and with them."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NoReturn, Self, TypedDict, Unpack, overload

from agentbench._display import Displayable, drawn_by
from agentbench.agents.agent.base_agent import BaseAgent
from agentbench.agents.agent.errors import as_agent_error
from agentbench.agents.agent.run import AgentRun, join_instructions, merge_tools
from agentbench.agents.arguments import (
    check_instructions,
    check_options,
    check_run_arguments,
    constructor_keywords,
    unexpected_keyword,
    unexpected_run_keyword,
)
from agentbench.agents.loop.configuration import check_configuration
from agentbench.agents.middleware.layer import run_with_middleware
from agentbench.agents.middleware.sorting import sort_middleware
from agentbench.agents.telemetry.layers import run_in_span
from agentbench.agents.tools.collection import normalize_tools, split_mcp_tools, tool_name, tools_with_tags
from agentbench.exceptions import ChatClientException
from agentbench.messages.options import OptionsCoT
from agentbench.messages.response import AgentResponse
from agentbench.messages.stream import ResponseStream
from agentbench.messages.update import AgentResponseUpdate
from agentbench.observability.switches import is_tracing

if TYPE_CHECKING:
    from agentbench.agents.middleware.contexts import MiddlewareInput
    from agentbench.agents.sessions.session import AgentSession
    from agentbench.agents.tools.collection import ToolTypes
    from agentbench.messages.inputs import AgentRunInputs

logger = logging.getLogger("agentbench")

AgentStream = ResponseStream[AgentResponseUpdate, AgentResponse[Any]]


class AgentRunArguments(TypedDict, total=False):
    """The keywords of `run` besides `stream`."""

    session: AgentSession | None
    middleware: MiddlewareInput
    tools: ToolTypes | Callable[..., Any] | Sequence[ToolTypes | Callable[..., Any]] | None
    options: Mapping[str, Any] | None
    compaction_strategy: Any
    tokenizer: Any
    function_invocation_kwargs: Mapping[str, Any] | None
    client_kwargs: Mapping[str, Any] | None
    raise_on_user_input: bool | None


class AgentArguments(TypedDict, total=False):
    """The keywords of an agent besides its client."""

    instructions: str | Sequence[str] | None
    id: str | None
    name: str | None
    description: str | None
    tools: ToolTypes | Callable[..., Any] | Sequence[ToolTypes | Callable[..., Any]] | None
    tools_tags: Iterable[str] | str | None
    default_options: Mapping[str, Any] | None
    context_providers: Any
    middleware: MiddlewareInput
    require_per_service_call_history_persistence: bool
    function_invocation_configuration: Mapping[str, Any] | None
    compaction_strategy: Any
    tokenizer: Any
    raise_on_user_input: bool
    save_abandoned: bool
    additional_properties: Mapping[str, Any] | None


@drawn_by("agentbench.notebook.cards.agent:agent_bundle")
class RawAgent(BaseAgent, Displayable, Generic[OptionsCoT]):
    """An `Agent` without agent middleware, spans and error conversion, for agents composed of layers.

    Args:
        client: The chat client that calls the model: any object with a `get_response` method.
        middleware: Has no effect here: put `AgentMiddlewareLayer` before this class, or use `Agent`.
        ...: The other arguments are the same as in `Agent`.

    Attributes:
        client: The chat client.
        default_options: A dict without `None` values. It contains `tools` and `tool_choice` (by default `"auto"`).
        mcp_tools: The tools that are MCP server connections. They are connected at the first run that needs them.

    Raises: The errors of `Agent`.

    Example:
        class Measured(AgentTelemetryLayer, RawAgent):
            pass


        agent = Measured(EchoChatClient(), "Be brief.")
    """

    AGENT_PROVIDER_NAME: ClassVar[str] = "agentbench"

    RUNS_MIDDLEWARE: ClassVar[bool] = False

    def __init__(  # noqa: PLR0913 - the public signature
        self,
        client: Any = None,
        instructions: str | Sequence[str] | None = None,
        *,
        id: str | None = None,  # noqa: A002 - the public name
        name: str | None = None,
        description: str | None = None,
        tools: ToolTypes | Callable[..., Any] | Sequence[ToolTypes | Callable[..., Any]] | None = None,
        tools_tags: Iterable[str] | str | None = None,
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
        otel_agent_provider_name: str | None = None,
        otel_provider_name: str | None = None,
        **unknown: NoReturn,
    ) -> None:
        if unknown:
            known = constructor_keywords(type(self))
            raise unexpected_keyword(type(self).__name__, next(iter(unknown)), known, options="default_options")
        super().__init__(
            id=id,
            name=name,
            description=description,
            context_providers=context_providers,
            middleware=middleware,
            additional_properties=additional_properties,
        )
        if self.RUNS_MIDDLEWARE:
            sort_middleware(self.middleware)
        if provider_name := otel_agent_provider_name or otel_provider_name:
            self.otel_agent_provider_name: str | None = provider_name
        self.client: Any = _require_client(client, chat_client)
        check_instructions("instructions", instructions)
        check_options("default_options", default_options)
        check_instructions("The default option instructions", (default_options or {}).get("instructions"))
        if function_invocation_configuration is not None:
            function_invocation_configuration = check_configuration(function_invocation_configuration)
        self.require_per_service_call_history_persistence = require_per_service_call_history_persistence
        self.function_invocation_configuration = function_invocation_configuration
        self.compaction_strategy, self.tokenizer = compaction_strategy, tokenizer
        self.raise_on_user_input, self.save_abandoned = raise_on_user_input, save_abandoned
        all_tools = _all_tools(tools, (default_options or {}).get("tools"))
        own_tools, self.mcp_tools = split_mcp_tools(
            all_tools if tools_tags is None else tools_with_tags(all_tools, tools_tags)
        )
        self.default_options: dict[str, Any] = _defaults(self.client, instructions, own_tools, default_options or {})
        self.connections: list[Any] = []
        self._ab_open = AsyncExitStack()
        self._ab_has_warned = False
        rename = getattr(self.client, "_update_agent_name_and_description", None)
        if callable(rename):
            rename(name, description)

    @property
    def instructions(self) -> str | None:
        """The instructions for the model as one text."""
        return self.default_options.get("instructions")

    @overload
    def run(
        self,
        messages: AgentRunInputs | None = None,
        *,
        stream: Literal[False] = ...,
        **arguments: Unpack[AgentRunArguments],
    ) -> Coroutine[Any, Any, AgentResponse[Any]]: ...
    @overload
    def run(
        self, messages: AgentRunInputs | None = None, *, stream: Literal[True], **arguments: Unpack[AgentRunArguments]
    ) -> AgentStream: ...
    @overload
    def run(
        self, messages: AgentRunInputs | None = None, *, stream: bool, **arguments: Unpack[AgentRunArguments]
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
        """Answer messages. The run starts when the awaitable is awaited or the first update is requested.

        You may pass the awaitable to `asyncio.gather`, `create_task` or `wait_for`; one agent may have many runs at
        the same time. The session stores the turn of a completed run, and the partial turn of one cancelled or
        closed (see `save_abandoned`). A failed run stores nothing, so that it can be repeated.

        Args:
            messages: The input: text, contents, messages, or several of them.
            stream: Whether to return a stream of updates.
            session: The session of the conversation. Without one, the agent remembers nothing.
            middleware: Middleware for this run, inside the agent's. A `RawAgent` accepts none.
            tools: Additional tools for this run.
            options: Options for this run, overriding the agent's: `{"temperature": 0.2}`.
            compaction_strategy: Strategy for this run, instead of the agent's.
            tokenizer: Tokenizer for this run, instead of the agent's.
            function_invocation_kwargs: Values for tools that accept a `FunctionInvocationContext`, not for the model.
            client_kwargs: Keyword arguments for the client.
            raise_on_user_input: Setting for this run, instead of the agent's.
            **unknown: Any other keyword raises an error that suggests a known one.

        Returns:
            An awaitable of the response, or of `None` if a middleware ends the run without one. With `stream=True`,
            a stream of updates with a final response.

        Raises:
            UserInputRequiredException: If a person has to answer and `raise_on_user_input` is true; the turn is stored.
            AgentInvalidRequestException: If both the agent and the service are set to store the history.
            AgentInvalidResponseException: If the client does not return a response.
            MiddlewareException: If `middleware` contains an object that is not middleware.
            TypeError: If a keyword is unknown, or an argument has the wrong type.
            ValueError: If two different tools have the same name.
            Exception: Errors of the client, of middleware and of providers.

        Example:
            response = await agent.run("How is it in Oslo?")
            print(response.text)

            async for update in agent.run("And in Rome?", stream=True):
                print(update.text, end="")
        """
        if unknown:
            raise unexpected_run_keyword(self, unknown)
        check_run_arguments(session, options, function_invocation_kwargs, client_kwargs)
        arguments = {
            "session": session,
            "tools": tools,
            "options": options,
            "compaction_strategy": compaction_strategy,
            "tokenizer": tokenizer,
            "function_invocation_kwargs": function_invocation_kwargs,
            "client_kwargs": client_kwargs,
        }
        raises = self.raise_on_user_input if raise_on_user_input is None else raise_on_user_input
        return self._ab_start(messages, arguments, stream=stream, middleware=middleware, raises=raises)

    def _ab_start(
        self, messages: Any, arguments: Mapping[str, Any], *, stream: bool, middleware: Any = None, raises: bool = False
    ) -> Coroutine[Any, Any, AgentResponse[Any]] | AgentStream:
        """Start a run without layers; with `raises`, user input requests raise an error."""
        if middleware is not None:
            message = (
                f"{type(self).__name__}.run() does not accept middleware. Use an Agent, or put "
                "AgentMiddlewareLayer before RawAgent in the bases of the class."
            )
            raise TypeError(message)
        run = AgentRun(self, messages, arguments, raise_on_user_input=raises)
        if not stream:
            return run.respond()
        streamed: AgentStream = ResponseStream(run.updates(), finalizer=run.final)
        return streamed.with_result_hook(AgentResponse.raise_for_user_input) if raises else streamed

    # -------------------------------------------------------------------------------------------- opening and closing

    async def __aenter__(self) -> Self:
        """Enter the client and the MCP tools that are context managers."""
        try:
            for part in (self.client, *self.mcp_tools):
                if hasattr(part, "__aenter__") and hasattr(part, "__aexit__"):
                    await self._ab_open.enter_async_context(part)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections that the agent opened. A later run opens them again."""
        connections, self.connections = self.connections, []
        async with self._ab_open.pop_all() as stack:
            for server in connections:
                if callable(getattr(server, "close", None)):
                    stack.push_async_callback(server.close)

    def error_to_raise(self, error: Exception) -> Exception:
        """Return the error to raise for an error of the run: the error itself."""
        return error

    def warn_without_tool_loop(self) -> None:
        """Log once that the client returns tool calls instead of running them."""
        if self._ab_has_warned:
            return
        self._ab_has_warned = True
        logger.warning(
            "%r has tools, but its client %s has no tool loop, so the model's tool calls are not executed. "
            "Derive the client from BaseChatClient, or add FunctionInvocationLayer to its bases.",
            self,
            type(self.client).__name__,
        )

    def __repr__(self) -> str:
        facts = [f"{key}={value!r}" for key in ("id", "name", "description") if (value := getattr(self, key))]
        model = self.default_options.get("model")
        facts.append(f"client={type(self.client).__name__}" + (f"({model!r})" if model else ""))
        facts += [
            f"{key}=[{', '.join(names)}]"
            for key, names in (
                ("tools", [tool_name(tool) or type(tool).__name__ for tool in self.default_options.get("tools") or ()]),
                ("mcp_tools", [getattr(server, "name", type(server).__name__) for server in self.mcp_tools]),
                ("context_providers", [type(each).__name__ for each in self.context_providers]),
                ("middleware", [getattr(each, "__name__", type(each).__name__) for each in self.middleware]),
            )
            if names
        ]
        return f"{type(self).__name__}({', '.join(facts)})"


def _require_client(client: Any, chat_client: Any) -> Any:
    if client is not None and chat_client is not None and client is not chat_client:
        message = "client and chat_client are the same argument. Pass only one of them."
        raise TypeError(message)
    given = chat_client if client is None else client
    if given is None:
        message = (
            "An agent needs a chat client. Pass one: OpenAIChatClient(), or default_chat_client() for a first try."
        )
        raise TypeError(message)
    if isinstance(given, type) or not callable(getattr(given, "get_response", None)):
        message = f"{given!r} is not a chat client. Expected an object with get_response(), such as a BaseChatClient."
        raise TypeError(message)
    return given


def _all_tools(tools: Any, in_options: Any) -> list[Any]:
    merged = merge_tools([], tools)
    names = {tool_name(tool) for tool in merged} - {None}
    return merge_tools(merged, [tool for tool in normalize_tools(in_options) if tool_name(tool) not in names])


def _defaults(client: Any, instructions: Any, tools: list[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    text = join_instructions(options.get("instructions") if instructions is None else instructions)
    model = getattr(client, "model", None)
    return {
        **({"instructions": text} if text else {}),
        **({"model": model} if isinstance(model, str) and model else {}),
        "tool_choice": "auto",
        **{key: value for key, value in options.items() if value is not None and key not in {"instructions", "tools"}},
        "tools": tools,
    }


# ---- with layers: middleware and telemetry


class Agent(RawAgent[OptionsCoT], Generic[OptionsCoT]):
    """An agent answers messages with a model, runs the model's tool calls, and keeps the conversation in a session.

    Each run is wrapped by the agent middleware and then by a telemetry span. Errors of the chat client about
    credentials, requests, responses and content filters can also be caught as errors of the agent
    (`except AgentInvalidAuthException`).

    Args:
        client: The chat client that calls the model: any object with a `get_response` method.
        instructions: Instructions for the model; one text or several.
        id: Id of the agent. By default generated at each start of the program.
        name: Author of the agent's messages; also its name in graphs and as a tool.
        description: Description for people and for models that call the agent as a tool.
        tools: Tools that the model may call. Functions become tools.
        tools_tags: Keep only the tools that have one of these tags; see `@tool(tags=...)`.
        default_options: Options of every run, such as `temperature`. Options of a run override them. The arguments
            `instructions` and `tools` override the options with these names.
        context_providers: Providers, including histories; called in order before each run, in reverse order after it.
        middleware: Middleware for runs, model calls and tool calls; the first of each kind is the outermost.
        require_per_service_call_history_persistence: Whether to load and save the history around each model call
            instead of around the whole run, so that a crash loses only one call.
            of around the whole run, so that a crash loses only one call.
        function_invocation_configuration: Limits of the tool loop, overriding the client's; see
            `FunctionInvocationConfiguration`.
        compaction_strategy: Shortens long conversations for the model, overriding the client's strategy.
        tokenizer: Counts tokens for the strategy.
        raise_on_user_input: Whether a run that needs a person's answer raises `UserInputRequiredException`, instead of
            returning a response that lists the `user_input_requests`.
        save_abandoned: Whether a stream that is closed early stores its input and partial answer in the session, and a
            cancelled run its input. If false, nothing is stored, and context providers see a cancellation as an error.
        additional_properties: Additional values that the application stores with the agent.
        chat_client: Alias of `client`.
        otel_agent_provider_name: Provider name of the agent in spans; by default `AGENT_PROVIDER_NAME`.
        otel_provider_name: Alias of `otel_agent_provider_name`.

    Raises:
        TypeError: If the client is missing or has no callable `get_response`, a keyword is unknown, or an argument has
            the wrong type.
        ValueError: If two different tools have the same name, no tool has one of the tags, or the configuration is
            invalid.
        MiddlewareException: If `middleware` contains an object that is not middleware.

    Example:
        def get_weather(city: str) -> str:
            "Tell the weather."
            return f"Fog in {city}."


        client = ScriptedChatClient([Call("get_weather", {"city": "Oslo"}), "It is foggy."])
        agent = Agent(client, "You help with the weather.", name="weather", tools=[get_weather])
        session = agent.create_session()
        response = await agent.run("How is it in Oslo?", session=session)
        print(response.text)
    """

    MAKES_OWN_SPANS: ClassVar[bool] = True
    RUNS_MIDDLEWARE: ClassVar[bool] = True

    def _ab_start(
        self, messages: Any, arguments: Mapping[str, Any], *, stream: bool, middleware: Any = None, raises: bool = False
    ) -> Coroutine[Any, Any, AgentResponse[Any]] | AgentStream:
        """Start a run; with `raises`, user input requests raise after middleware and spans have seen the response."""
        is_traced = is_tracing()
        if not (is_traced or middleware or self.middleware):
            return super()._ab_start(messages, arguments, stream=stream, raises=raises)
        run = partial(run_in_span, self, self._ab_run_inside) if is_traced else self._ab_run_inside
        pending = run_with_middleware(self, run, messages, arguments, stream=stream, middleware=middleware)
        if not stream:
            return _respond(pending, raises=raises)
        streamed: AgentStream = pending
        return streamed.with_result_hook(AgentResponse.raise_for_user_input) if raises else streamed

    def _ab_run_inside(self, messages: Any = None, *, stream: bool = False, **arguments: Any) -> Any:
        """Run inside the layers, with the arguments that the middleware passes on."""
        if unknown := arguments.keys() - AgentRunArguments.__annotations__.keys():
            raise unexpected_run_keyword(self, unknown)
        check_run_arguments(*map(arguments.get, ("session", "options", "function_invocation_kwargs", "client_kwargs")))
        return super()._ab_start(messages, arguments, stream=stream)

    def error_to_raise(self, error: Exception) -> Exception:
        """Return the error to raise: a client error is converted so that it is also an agent error."""
        return as_agent_error(error) if isinstance(error, ChatClientException) else error


async def _respond(pending: Awaitable[Any], *, raises: bool) -> Any:
    response = await pending
    return response.raise_for_user_input() if raises and isinstance(response, AgentResponse) else response


_respond.__qualname__ = "Agent.run"  # Python's warning about a forgotten await shows this name

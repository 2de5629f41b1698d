"""An agent without layers: a client of a model with instructions, tools and what remembers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypedDict, overload

from agentbench._display import Displayable, drawn_by
from agentbench.agents.agent.base_agent import BaseAgent
from agentbench.agents.agent.run import AgentRun, Asked
from agentbench.agents.agent.run_options import joined_instructions, united_tools
from agentbench.agents.agent.run_tools import split_mcp_tools
from agentbench.agents.arguments import check_asked, check_instructions, check_options, unexpected_run_keyword
from agentbench.agents.loop.configuration import check_configuration
from agentbench.agents.tools.collection import normalize_tools, tool_name
from agentbench.messages.response import AgentResponse
from agentbench.messages.stream import ResponseStream
from agentbench.messages.update import AgentResponseUpdate

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from agentbench.agents.sessions.session import AgentSession
    from agentbench.agents.tools.collection import ToolTypes
    from agentbench.messages.inputs import AgentRunInputs

logger = logging.getLogger("agentbench")

AgentStream = ResponseStream[AgentResponseUpdate, AgentResponse[Any]]


class RunArguments(TypedDict, total=False):
    """What a run can be given besides its messages."""

    session: AgentSession | None
    tools: ToolTypes | Callable[..., Any] | Sequence[ToolTypes | Callable[..., Any]] | None
    options: Mapping[str, Any] | None
    compaction_strategy: Any
    tokenizer: Any
    function_invocation_kwargs: Mapping[str, Any] | None
    client_kwargs: Mapping[str, Any] | None
    raise_on_user_input: bool | None


@drawn_by("agentbench.notebook.agent_view:agent_bundle")
class RawAgent(BaseAgent, Displayable):
    """What runs, without agent middleware, telemetry and translation of errors. `Agent` adds these.

    Args:
        client: Calls the model: a chat client, or any object with its `get_response`.
        instructions: What the model is told about its task.
        id: As in `BaseAgent`.
        name: As in `BaseAgent`.
        description: As in `BaseAgent`.
        tools: What the model may call. Functions become tools.
        default_options: Options of every run, such as `temperature`. Those of a run go before them. `tools` and
            `instructions` among them yield to the arguments of these names.
        context_providers: As in `BaseAgent`.
        middleware: Kept, and applied by `Agent` only.
        require_per_service_call_history_persistence: History is loaded and saved around each call of the model, not
            around the whole run.
        function_invocation_configuration: How this agent's tools are called, instead of the client's configuration.
        compaction_strategy: How a long conversation is shortened for the model, instead of the client's strategy.
        tokenizer: Counts tokens for it.
        raise_on_user_input: A run that needs an answer of a person raises `UserInputRequiredException` instead of
            returning a response that lists the `user_input_requests`.
        save_abandoned: A stream that is closed or cancelled before its end saves what was said until then in the
            session, and a cancelled run what it was asked: their providers see the end of a run. Otherwise nothing is
            saved, and providers see a cancellation as an error.
        additional_properties: As in `BaseAgent`.
        chat_client: Another name for `client`.

    Attributes:
        client: As given.
        default_options: A dict without `None`; it has `tools`, and `tool_choice`, by default `"auto"`.
        mcp_tools: Those of the tools that stand for a server, connected to at the first run that needs them.

    Raises:
        TypeError: If there is no client, or one without a callable `get_response`, or if something else is of a wrong
            type.
        ValueError: If two different tools have one name, or the configuration is not valid.
    """

    AGENT_PROVIDER_NAME: ClassVar[str] = "agentbench"

    # Whether a run that needs a person raises here if not told so; with layers around, the outermost one does.
    _raises_here: ClassVar[bool] = True

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
        middleware: Any = None,
        require_per_service_call_history_persistence: bool = False,
        function_invocation_configuration: Mapping[str, Any] | None = None,
        compaction_strategy: Any = None,
        tokenizer: Any = None,
        raise_on_user_input: bool = False,
        save_abandoned: bool = True,
        additional_properties: Mapping[str, Any] | None = None,
        chat_client: Any = None,
    ) -> None:
        super().__init__(
            id=id,
            name=name,
            description=description,
            context_providers=context_providers,
            middleware=middleware,
            additional_properties=additional_properties,
        )
        self.client: Any = _checked_client(client, chat_client)
        check_instructions("instructions", instructions)
        check_options("default_options", default_options)
        check_instructions("The default option instructions", (default_options or {}).get("instructions"))
        if function_invocation_configuration is not None:
            check_configuration(function_invocation_configuration)
        self.require_per_service_call_history_persistence = require_per_service_call_history_persistence
        self.function_invocation_configuration = function_invocation_configuration
        self.compaction_strategy, self.tokenizer = compaction_strategy, tokenizer
        self.raise_on_user_input, self.save_abandoned = raise_on_user_input, save_abandoned
        own, self.mcp_tools = split_mcp_tools(_all_tools(tools, (default_options or {}).get("tools")))
        self.default_options: dict[str, Any] = _defaults(self.client, instructions, own, default_options or {})
        self.connections: list[Any] = []
        self._open = AsyncExitStack()
        self._has_warned = False
        tell = getattr(self.client, "_update_agent_name_and_description", None)
        if callable(tell):
            tell(name, description)

    @property
    def instructions(self) -> str | None:
        """What the model is told about its task."""
        return self.default_options.get("instructions")

    @overload
    def run(
        self,
        messages: AgentRunInputs | None = None,
        *,
        stream: Literal[False] = ...,
        **arguments: Unpack[RunArguments],
    ) -> Coroutine[Any, Any, AgentResponse[Any]]: ...
    @overload
    def run(
        self, messages: AgentRunInputs | None = None, *, stream: Literal[True], **arguments: Unpack[RunArguments]
    ) -> AgentStream: ...
    @overload
    def run(
        self, messages: AgentRunInputs | None = None, *, stream: bool, **arguments: Unpack[RunArguments]
    ) -> Coroutine[Any, Any, AgentResponse[Any]] | AgentStream: ...
    def run(  # noqa: PLR0913 - the given signature
        self,
        messages: AgentRunInputs | None = None,
        *,
        stream: bool = False,
        session: AgentSession | None = None,
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

        The session keeps the turn of a run that comes to its end, and what there is of one that is given up: see
        `save_abandoned`. Of a run that fails it keeps nothing, so that it can be tried again.

        Args:
            messages: What is said to the agent: text, contents, messages, or several of them.
            stream: Whether updates are wanted as they come.
            session: The conversation that this is a turn of. Without one, the agent remembers nothing.
            tools: For this run, besides the agent's.
            options: For this run, over the agent's.
            compaction_strategy: For this run, instead of the agent's.
            tokenizer: For this run, instead of the agent's.
            function_invocation_kwargs: For tools; the model does not see them.
            client_kwargs: For the client.
            raise_on_user_input: For this run, instead of the agent's.
            **unknown: None is taken; each is an error that tells what was meant.

        Returns:
            An awaitable of the response; with `stream=True` a stream of updates that ends in the response.

        Raises:
            UserInputRequiredException: If a person has to answer, and `raise_on_user_input` holds; the turn is saved.
            AgentInvalidRequestException: If the history is to be kept around calls and the service keeps it, too.
            AgentInvalidResponseException: If the client answers with nothing usable.
            TypeError: If an argument is not known, or of a wrong type.
            ValueError: If two different tools have one name.
        """
        if unknown:
            raise unexpected_run_keyword(self, unknown)
        check_asked(session, options, function_invocation_kwargs, client_kwargs)
        raises = self._raises_here and self.raise_on_user_input if raise_on_user_input is None else raise_on_user_input
        run = AgentRun(
            self,
            Asked(
                messages,
                session,
                tools,
                options,
                compaction_strategy,
                tokenizer,
                function_invocation_kwargs,
                client_kwargs,
                raises,
            ),
        )
        if not stream:
            return run.respond()
        streamed: AgentStream = ResponseStream(run.updates(), finalizer=run.final)
        return streamed.with_result_hook(AgentResponse.raise_for_user_input) if raises else streamed

    # ------------------------------------------------------------------------------------------------ open and closed

    async def __aenter__(self) -> Self:
        """Connect the client, and the tools that stand for servers, where they are context managers."""
        try:
            for part in (self.client, *self.mcp_tools):
                if hasattr(part, "__aenter__") and hasattr(part, "__aexit__"):
                    await self._open.enter_async_context(part)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close what the agent has connected. It can be run again afterwards, and connects anew."""
        connections, self.connections = self.connections, []
        async with self._open.pop_all() as stack:
            for server in connections:
                if callable(getattr(server, "close", None)):
                    stack.push_async_callback(server.close)

    def error_to_raise(self, error: Exception) -> Exception:
        """What is raised for an error of the run: the error itself."""
        return error

    def warn_if_tools_are_lost(self) -> None:
        """Say once that the client only hands the calls of tools back, if it is one of those."""
        if self._has_warned or _calls_tools(self.client):
            return
        self._has_warned = True
        logger.warning(
            "%r has tools, but its client %s has no tool loop: calls of the model are handed back and not carried out. "
            "Derive the client from BaseChatClient, or put FunctionInvocationLayer over it.",
            self,
            type(self.client).__name__,
        )

    def __repr__(self) -> str:
        shown = [f"{key}={value!r}" for key in ("id", "name", "description") if (value := getattr(self, key))]
        model = self.default_options.get("model")
        shown.append(f"client={type(self.client).__name__}" + (f"({model!r})" if model else ""))
        shown += [
            f"{key}=[{', '.join(names)}]"
            for key, names in (
                ("tools", [tool_name(tool) or type(tool).__name__ for tool in self.default_options.get("tools") or ()]),
                ("mcp_tools", [tool_name(tool) or type(tool).__name__ for tool in self.mcp_tools]),
                ("context_providers", [type(each).__name__ for each in self.context_providers]),
                ("middleware", [getattr(each, "__name__", type(each).__name__) for each in self.middleware]),
            )
            if names
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def _checked_client(client: Any, chat_client: Any) -> Any:
    if client is not None and chat_client is not None and client is not chat_client:
        message = "client and chat_client are two names of one argument; give one of them."
        raise TypeError(message)
    found = chat_client if client is None else client
    if found is None:
        message = "An agent needs a chat client: OpenAIChatClient(), say, or default_chat_client() to try things out."
        raise TypeError(message)
    if isinstance(found, type) or not callable(getattr(found, "get_response", None)):
        message = f"{found!r} is no chat client. Expected an object with a method get_response, like a BaseChatClient."
        raise TypeError(message)
    return found


def _all_tools(given: Any, in_options: Any) -> list[Any]:
    tools = united_tools([], given)
    names = {tool_name(tool) for tool in tools} - {None}
    return united_tools(tools, [tool for tool in normalize_tools(in_options) if tool_name(tool) not in names])


def _defaults(client: Any, instructions: Any, tools: list[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    told = joined_instructions(given.get("instructions") if instructions is None else instructions)
    model = getattr(client, "model", None)
    return {
        **({"instructions": told} if told else {}),
        **({"model": model} if isinstance(model, str) and model else {}),
        "tool_choice": "auto",
        **{key: value for key, value in given.items() if value is not None and key not in {"instructions", "tools"}},
        "tools": tools,
    }


def _calls_tools(client: Any) -> bool:
    return hasattr(client, "FUNCTION_INVOCATION_ENABLED") or hasattr(client, "function_invocation_configuration")

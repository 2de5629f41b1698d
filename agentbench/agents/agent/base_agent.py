"""What all agents have: id, name and description, sessions, and their forms as a tool and as a server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from agentbench._clock import runtime_defaults
from agentbench.agents.agent.as_tool import resume_messages, run_streamed, tool_name_of, with_conversation
from agentbench.agents.agent.server import serve_tool
from agentbench.agents.arguments import describe
from agentbench.agents.middleware.contexts import INNER_APPROVALS, FunctionInvocationContext
from agentbench.agents.middleware.sorting import flat_middleware
from agentbench.agents.sessions.context_provider import warn_of_shared_sources
from agentbench.agents.sessions.session import AgentSession
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.exceptions import UserInputRequiredException
from agentbench.messages.message import Message

if TYPE_CHECKING:
    from agentbench.messages.update import AgentResponseUpdate


class BaseAgent:
    """The base of agents. A subclass adds `run`; then it is an agent for graphs, tools and servers.

    Args:
        id: Identifies the agent. By default a new one at each start of the program.
        name: Signs the agent's messages; graphs and tools know the agent by it.
        description: What the agent is good for, for people and for models that call it as a tool.
        context_providers: Called before each run in this order, and after it in reverse. One needs no list.
        middleware: Around runs, calls of the model and calls of tools; applied by subclasses.
        additional_properties: Anything that the application wants to store with the agent.

    Attributes:
        id_is_generated: Whether the id is a new one, so that a saved graph would not recognise it.

    Raises:
        TypeError: Something in `context_providers` is no context provider.

    Example:
        class Greeter(BaseAgent):
            async def run(self, messages=None, *, stream=False, session=None, **kwargs):
                return AgentResponse(text="Good morning.")


        response = await Greeter(name="greeter").run("Hello")
    """

    def __init__(
        self,
        *,
        id: str | None = None,  # noqa: A002 - the public name
        name: str | None = None,
        description: str | None = None,
        context_providers: Any = None,
        middleware: Any = None,
        additional_properties: Mapping[str, Any] | None = None,
    ) -> None:
        self.id_is_generated = not id
        self.id: str = id or runtime_defaults().ids.new_id("agent")
        self.name, self.description = name, description
        self.context_providers: list[Any] = _check_providers(context_providers)
        self.middleware: list[Any] = flat_middleware(middleware)
        self.additional_properties: dict[str, Any] = dict(additional_properties or {})
        warn_of_shared_sources(self.context_providers)

    def create_session(self, *, session_id: str | None = None) -> AgentSession:
        """Return a new conversation, by default with a new id."""
        return AgentSession(session_id=session_id)

    def get_session(self, service_session_id: str, *, session_id: str | None = None) -> AgentSession:
        """Return a conversation that the model's service stores under an id; `session_id` is its id here."""
        return AgentSession(service_session_id=service_session_id, session_id=session_id)

    def as_tool(
        self,
        *,
        name: str | None = None,
        description: str | None = None,
        arg_name: str = "task",
        arg_description: str | None = None,
        approval_mode: Literal["always_require", "never_require"] = "never_require",
        stream_callback: Callable[[AgentResponseUpdate], Awaitable[None] | None] | None = None,
        propagate_session: bool = False,
    ) -> FunctionTool:
        """Return this agent as a tool of another one.

        Its questions to a person, such as whether one of its own tools may be called, become questions of the calling
        agent. Once they are answered, this agent continues from there.

        Args:
            name: Of the tool; by default the agent's name, in letters that a model may use.
            description: For the model; by default the agent's.
            arg_name: Name of the only argument, the input of the agent as text.
            arg_description: For the model, about the argument.
            approval_mode: Whether a person has to agree to each call.
            stream_callback: Called, and awaited if need be, with every update of the agent.
            propagate_session: Whether the agent runs in the session of the calling run rather than without one.

        Raises:
            ValueError: If there is no name.
        """
        name = name or tool_name_of(self)
        agent: Any = self

        async def run_agent(context: FunctionInvocationContext, **arguments: Any) -> str:
            extra: dict[str, Any] = {}
            # The session among them is that of the calling run, which `propagate_session` decides about.
            for_tools = {key: value for key, value in context.kwargs.items() if key != "session"}
            if for_tools:
                extra["function_invocation_kwargs"] = for_tools
            if propagate_session and context.session is not None:
                extra["session"] = context.session
            approvals = context.metadata.get(INNER_APPROVALS)
            messages = [Message("user", arguments[arg_name])] if approvals is None else resume_messages(approvals)
            task = messages if approvals else arguments[arg_name]
            response = await run_streamed(agent, task, stream_callback, **extra)
            if requests := response.user_input_requests:
                if "session" not in extra:
                    requests = with_conversation(requests, messages, response)
                raise UserInputRequiredException(requests)
            return response.text

        schema = {"type": "string", "description": arg_description or f"Task for {name}"}
        return FunctionTool(
            run_agent,
            name=name,
            description=description or self.description or "",
            approval_mode=approval_mode,
            input_model={
                "type": "object",
                "properties": {arg_name: schema},
                "required": [arg_name],
                "additionalProperties": False,
            },
        )

    def as_mcp_server(
        self,
        *,
        server_name: str = "Agent",
        version: str | None = None,
        instructions: str | None = None,
        lifespan: Callable[..., Any] | None = None,
    ) -> Any:
        """Return this agent as a server of the Model Context Protocol, with one tool that runs it.

        Args:
            server_name: Name of the server, for its clients.
            version: Of the server, for its clients; by default that of this library.
            instructions: How to use it, for its clients.
            lifespan: `lifespan(server)` returns an async context manager that is open while it serves.

        Returns:
            An `mcp.server.lowlevel.Server`, to be run over any transport.

        Raises:
            MissingExtraError: If the package `mcp` is not installed.
            ValueError: If the agent has no name.
        """
        return serve_tool(self.as_tool(), server_name, version, instructions, lifespan)

    def __repr__(self) -> str:
        facts = [("id", self.id), ("name", self.name), ("description", self.description)]
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in facts if value)})"


def _check_providers(context_providers: Any) -> list[Any]:
    """Return context providers as a list, each with a `source_id`."""
    if context_providers is None:
        return []
    is_one = isinstance(context_providers, (str, Mapping, type)) or not isinstance(context_providers, Iterable)
    providers = [context_providers] if is_one else list(context_providers)
    for provider in providers:
        if isinstance(provider, type):
            message = f"{provider.__name__} is a class. Expected an instance of it: {provider.__name__}(...)."
            raise TypeError(message)
        if not isinstance(getattr(provider, "source_id", None), str):
            message = (
                f"A context provider is {describe(provider)}, which has no source_id. Expected an object of a class "
                "derived from ContextProvider, whose __init__ calls super().__init__(source_id)."
            )
            raise TypeError(message)
    return providers

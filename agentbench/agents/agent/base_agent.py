"""The base class of agents: id, name, description, sessions, and conversion to a tool or a server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from agentbench._clock import runtime_defaults
from agentbench.agents.agent.as_tool import resume_messages, run_streamed, serve_tool, tool_name_of, with_conversation
from agentbench.agents.middleware.contexts import INNER_APPROVALS, FunctionInvocationContext
from agentbench.agents.middleware.sorting import flat_middleware
from agentbench.agents.sessions.agent_protocol import provider_id, warn_of_shared_sources
from agentbench.agents.sessions.session import AgentSession
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.exceptions import UserInputRequiredException
from agentbench.messages.message import Message

if TYPE_CHECKING:
    from agentbench.messages.update import AgentResponseUpdate


class BaseAgent:
    """The base class of agents. A subclass that defines `run` can be used in graphs, as a tool and as a server.

    Args:
        id: Id of the agent. By default generated at each start of the program.
        name: Author of the agent's messages; also its name in graphs and as a tool.
        description: Description for people and for models that call the agent as a tool.
        context_providers: One provider or several, called in this order before each run and in reverse order after it.
        middleware: Middleware for runs, model calls and tool calls; applied by subclasses.
        additional_properties: Additional values that the application stores with the agent.

    Attributes:
        id_is_generated: Whether the id was generated. A saved graph does not recognize a generated id.

    Raises:
        TypeError: `context_providers` contains an object that is not a context provider.

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
        """Create a session for a new conversation, by default with a new id."""
        return AgentSession(session_id=session_id)

    def get_session(self, service_session_id: str, *, session_id: str | None = None) -> AgentSession:
        """Create a session for a conversation that the service stores; `session_id` is its local id."""
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
        """Return this agent as a tool for another agent.

        Its questions to a person, such as approval requests for its own tools, become questions of the calling agent.
        Once they are answered, this agent continues from there.

        Args:
            name: Name of the tool; by default the agent's name, without characters that tool names must not contain.
            description: Description for the model; by default the agent's.
            arg_name: Name of the tool's only argument, the agent's input as text.
            arg_description: Description of the argument for the model.
            approval_mode: Whether a person has to approve each call.
            stream_callback: Sync or async function that is called with every update of the agent.
            propagate_session: Whether the agent runs in the session of the calling run, instead of without a session.

        Raises:
            ValueError: If neither the agent nor the tool has a name.
        """
        name = name or tool_name_of(self)
        agent: Any = self

        async def run_agent(context: FunctionInvocationContext, **arguments: Any) -> str:
            extra: dict[str, Any] = {}
            # These include the session of the calling run; `propagate_session` decides whether it is used.
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
        """Return a Model Context Protocol server with one tool that runs this agent.

        Args:
            server_name: Name of the server.
            version: Version of the server; by default the version of this library.
            instructions: Instructions for clients of the server.
            lifespan: `lifespan(server)` returns an async context manager that is open while the server runs.

        Returns:
            An `mcp.server.lowlevel.Server` that can run over any transport.

        Raises:
            MissingExtraError: If the package `mcp` is not installed.
            ValueError: If the agent has no name.
        """
        return serve_tool(self.as_tool(), server_name, version, instructions, lifespan)

    def __repr__(self) -> str:
        facts = [("id", self.id), ("name", self.name), ("description", self.description)]
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in facts if value)})"


def _check_providers(context_providers: Any) -> list[Any]:
    """Return the context providers as a list, after checking each."""
    if context_providers is None:
        return []
    is_one = isinstance(context_providers, (str, Mapping, type)) or not isinstance(context_providers, Iterable)
    providers = [context_providers] if is_one else list(context_providers)
    for provider in providers:
        if isinstance(provider, type):
            message = f"{provider.__name__} is a class. Expected an instance: {provider.__name__}(...)."
            raise TypeError(message)
        provider_id(provider)  # raises for other objects
    return providers

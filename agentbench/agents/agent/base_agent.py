"""Who an agent is: its id, name and description, its sessions, and the forms that others can call it in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from agentbench._clock import runtime_defaults
from agentbench.agents.agent.as_tool import agent_as_tool
from agentbench.agents.agent.server import agent_as_mcp_server
from agentbench.agents.arguments import told
from agentbench.agents.middleware.sorting import flat_middleware
from agentbench.agents.sessions.context_provider import warn_of_shared_sources
from agentbench.agents.sessions.session import AgentSession

if TYPE_CHECKING:
    from agentbench.agents.tools.function_tool import FunctionTool
    from agentbench.messages.update import AgentResponseUpdate


class BaseAgent:
    """What every agent has. A subclass adds `run`.

    Args:
        id: Its id. One that is made up here is another one at each start of the program.
        name: Its name: what it signs its messages with, and what graphs and tools know it by.
        description: What it is good for.
        context_providers: Called before and after each run, in this order and in the reverse one. Also one alone.
        middleware: Stands around its runs, around the calls of its model and of its tools.
        additional_properties: Anything the application wants to keep with it.

    Attributes:
        id: As given or made up.
        id_is_generated: Whether it was made up.
        name: As given.
        description: As given.
        context_providers: A list.
        middleware: A list.
        additional_properties: A dict.

    Raises:
        TypeError: One of the context providers is none.
    """

    def __init__(
        self,
        *,
        id: str | None = None,  # noqa: A002 - the name of the argument is given
        name: str | None = None,
        description: str | None = None,
        context_providers: Any = None,
        middleware: Any = None,
        additional_properties: Mapping[str, Any] | None = None,
    ) -> None:
        self.id_is_generated = not id
        self.id: str = id or runtime_defaults().ids.new_id("agent")
        self.name, self.description = name, description
        self.context_providers: list[Any] = _providers(context_providers)
        self.middleware: list[Any] = flat_middleware(middleware)
        self.additional_properties: dict[str, Any] = dict(additional_properties or {})
        warn_of_shared_sources(self.context_providers)

    def create_session(self, *, session_id: str | None = None) -> AgentSession:
        """Begin a conversation.

        Args:
            session_id: Its id; made up if not given.
        """
        return AgentSession(session_id=session_id)

    def get_session(self, service_session_id: str, *, session_id: str | None = None) -> AgentSession:
        """The conversation that the model's service keeps.

        Args:
            service_session_id: What the service knows it by.
            session_id: What it is known by here; made up if not given.
        """
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
        """This agent as a tool of another one.

        What it asks a person, such as whether one of its own tools may be called, the calling agent asks. Once that is
        answered it goes on where it asked.

        Args:
            name: Of the tool; by default the agent's name, in letters that a model may use.
            description: What a model reads; by default the agent's.
            arg_name: Name of the only argument, the text that the agent is given.
            arg_description: What a model reads about it.
            approval_mode: Whether a person has to agree to each call.
            stream_callback: Called, and awaited if need be, with every update of the agent.
            propagate_session: Whether the agent works in the session of the calling run rather than without one.

        Raises:
            TypeError: If the agent cannot be run.
            ValueError: If there is no name.
        """
        return agent_as_tool(
            self,
            name=name,
            description=description,
            arg_name=arg_name,
            arg_description=arg_description,
            approval_mode=approval_mode,
            stream_callback=stream_callback,
            propagate_session=propagate_session,
        )

    def as_mcp_server(
        self,
        *,
        server_name: str = "Agent",
        version: str | None = None,
        instructions: str | None = None,
        lifespan: Callable[..., Any] | None = None,
    ) -> Any:
        """This agent as a server of the Model Context Protocol, with one tool that runs it.

        Args:
            server_name: What the server says its name is.
            version: What it says its version is; by default that of this library.
            instructions: What it tells clients about its use.
            lifespan: `lifespan(server)` gives an async context manager that stands around the serving.

        Returns:
            An `mcp.server.lowlevel.Server`, to be run over any transport.

        Raises:
            MissingExtraError: If the package `mcp` is not installed.
            TypeError: If the agent cannot be run.
            ValueError: If the agent has no name.
        """
        return agent_as_mcp_server(
            self, server_name=server_name, version=version, instructions=instructions, lifespan=lifespan
        )

    def __repr__(self) -> str:
        facts = [("id", self.id), ("name", self.name), ("description", self.description)]
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in facts if value)})"


def _providers(given: Any) -> list[Any]:
    if given is None:
        return []
    several = isinstance(given, Iterable) and not isinstance(given, (str, bytes, Mapping, type))
    providers = list(given) if several else [given]
    for provider in providers:
        if isinstance(provider, type):
            message = (
                f"{provider.__name__} is a class. Expected a context provider made of it: {provider.__name__}(...)."
            )
            raise TypeError(message)
        if not isinstance(getattr(provider, "source_id", None), str):
            message = (
                f"A context provider is {told(provider)}, which has no source_id. Expected an object of a class "
                "derived from ContextProvider, whose __init__ calls super().__init__(source_id)."
            )
            raise TypeError(message)
    return providers

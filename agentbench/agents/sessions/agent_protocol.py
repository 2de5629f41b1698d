"""What makes an object an agent, and how an agent is called in a graph."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload, runtime_checkable

if TYPE_CHECKING:
    from agentbench.agents.sessions.session import AgentSession
    from agentbench.messages.inputs import AgentRunInputs
    from agentbench.messages.response import AgentResponse
    from agentbench.messages.stream import ResponseStream
    from agentbench.messages.update import AgentResponseUpdate


@runtime_checkable
class SupportsAgentRun(Protocol):
    """Whatever has these members is an agent; nothing has to be inherited.

    Callers hand over `session`, `function_invocation_kwargs` and `client_kwargs` only when they have a value, so an
    agent of another library whose `run` takes `(messages, *, stream=False)` will do.

    Attributes:
        id: Its id.
        name: Its name, if it has one: what it signs its messages with.
        description: What it is good for, for people and for models that call it as a tool.
    """

    id: str
    name: str | None
    description: str | None

    @overload
    def run(
        self,
        messages: AgentRunInputs | None = None,
        *,
        stream: Literal[False] = ...,
        session: AgentSession | None = None,
        function_invocation_kwargs: Mapping[str, Any] | None = None,
        client_kwargs: Mapping[str, Any] | None = None,
    ) -> Awaitable[AgentResponse[Any]]: ...
    @overload
    def run(
        self,
        messages: AgentRunInputs | None = None,
        *,
        stream: Literal[True],
        session: AgentSession | None = None,
        function_invocation_kwargs: Mapping[str, Any] | None = None,
        client_kwargs: Mapping[str, Any] | None = None,
    ) -> ResponseStream[AgentResponseUpdate, AgentResponse[Any]]: ...
    def run(
        self,
        messages: AgentRunInputs | None = None,
        *,
        stream: bool = False,
        session: AgentSession | None = None,
        function_invocation_kwargs: Mapping[str, Any] | None = None,
        client_kwargs: Mapping[str, Any] | None = None,
    ) -> Awaitable[AgentResponse[Any]] | ResponseStream[AgentResponseUpdate, AgentResponse[Any]]:
        """Answer messages.

        Args:
            messages: What is said to the agent.
            stream: Whether updates are wanted as they come.
            session: The conversation that this is a turn of.
            function_invocation_kwargs: For the agent's tools.
            client_kwargs: For the client of its model.

        Returns:
            An awaitable of the response; a stream of updates that ends in it with `stream=True`.
        """
        ...

    def create_session(self, *, session_id: str | None = None) -> AgentSession:
        """Begin a conversation."""
        ...

    def get_session(self, service_session_id: str, *, session_id: str | None = None) -> AgentSession:
        """The conversation that the model's service keeps under this id."""
        ...


def resolve_agent_id(agent: Any) -> str:
    """The id of an agent in a graph: its name, else the id that it was given.

    An id that was made up does not count: it is another one at each start, and a saved graph would not be recognised.
    An agent of another library counts as having been given its id.

    Raises:
        ValueError: If it has neither.
    """
    name = getattr(agent, "name", None)
    if name:
        return str(name)
    given = getattr(agent, "id", None)
    if given and not getattr(agent, "id_is_generated", False):
        return str(given)
    message = (
        f"{agent!r} has neither a name nor an id that was given to it, so a graph cannot recognise it when it is built "
        "again. Give the agent a name (or an id), or say what it is called here with id=."
    )
    raise ValueError(message)

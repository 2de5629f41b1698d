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
    """An agent: any object with these members, also of another library; it inherits nothing.

    Callers pass `function_invocation_kwargs` and `client_kwargs` only when they have a value, so an agent whose `run`
    takes `(messages, *, stream=False, session=None)` is enough.

    Attributes:
        id: Identifies the agent.
        name: Signs its messages; may be `None`.
        description: What it is good for, for people and for models that call it as a tool.

    Example:
        class Parrot:
            id, name, description = "parrot", "parrot", "Repeats its input."

            async def run(self, messages=None, *, stream=False, session=None):
                return AgentResponse(text=str(messages))

            def create_session(self, *, session_id=None):
                return AgentSession(session_id=session_id)

            def get_session(self, service_session_id, *, session_id=None):
                return AgentSession(service_session_id=service_session_id, session_id=session_id)


        assert isinstance(Parrot(), SupportsAgentRun)
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
        """Return an awaitable of the response; with `stream=True` a stream of updates that ends in it.

        Args:
            messages: The input.
            stream: Whether to return a stream of updates.
            session: The conversation that this is a turn of.
            function_invocation_kwargs: For the agent's tools.
            client_kwargs: For the client of its model.
        """

    def create_session(self, *, session_id: str | None = None) -> AgentSession:
        """Return a new conversation."""

    def get_session(self, service_session_id: str, *, session_id: str | None = None) -> AgentSession:
        """Return the conversation that the model's service stores under this id."""


def resolve_agent_id(agent: Any) -> str:
    """Return the id of an agent in a graph: its name, else the id that its author chose.

    A generated id does not count: it is another one at each start, so a saved graph would not be recognised. The id of
    an agent of another library always counts.

    Raises:
        ValueError: If it has neither.
    """
    name = getattr(agent, "name", None)
    if name:
        return str(name)
    own_id = getattr(agent, "id", None)
    if own_id and not getattr(agent, "id_is_generated", False):
        return str(own_id)
    message = (
        f"{agent!r} has neither a name nor an id of its own, so a graph cannot recognise it when it is built again. "
        "Give the agent a name (or an id), or name it here with id=."
    )
    raise ValueError(message)

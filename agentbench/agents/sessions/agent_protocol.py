"""The protocols of agents and of context providers, and the id of an agent in a graph."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload, runtime_checkable

from agentbench.agents.arguments import describe

if TYPE_CHECKING:
    from agentbench.agents.sessions.session import AgentSession
    from agentbench.agents.sessions.session_context import SessionContext
    from agentbench.messages.inputs import AgentRunInputs
    from agentbench.messages.response import AgentResponse
    from agentbench.messages.stream import ResponseStream
    from agentbench.messages.update import AgentResponseUpdate


@runtime_checkable
class SupportsAgentRun(Protocol):
    """An agent: any object with these members, without inheritance, also from other libraries.

    Callers pass `function_invocation_kwargs` and `client_kwargs` only if they have a value, so a `run` method that
    accepts `(messages, *, stream=False, session=None)` is sufficient.

    Attributes:
        id: Id of the agent.
        name: Author of its messages; may be `None`.
        description: Description for people and for models that call the agent as a tool.

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
        """Return an awaitable of the response; with `stream=True`, a stream of updates.

        Args:
            messages: The input.
            stream: Whether to return a stream of updates.
            session: The session of the conversation.
            function_invocation_kwargs: Values for the agent's tools.
            client_kwargs: Keyword arguments for the agent's chat client.
        """

    def create_session(self, *, session_id: str | None = None) -> AgentSession:
        """Create a session for a new conversation."""

    def get_session(self, service_session_id: str, *, session_id: str | None = None) -> AgentSession:
        """Create a session for a conversation that the service stores under this id."""


def resolve_agent_id(agent: Any) -> str:
    """Return the id of an agent in a graph: its name, or else its explicit id.

    A generated id does not count, because it changes at each start and a saved graph would not be recognized. The id
    of an agent from another library always counts.

    Raises:
        ValueError: If the agent has neither.

    Example:
        from agentbench import Agent, EchoChatClient, resolve_agent_id

        assert resolve_agent_id(Agent(EchoChatClient(), name="writer")) == "writer"
    """
    name = getattr(agent, "name", None)
    if name:
        return str(name)
    own_id = getattr(agent, "id", None)
    if own_id and not getattr(agent, "id_is_generated", False):
        return str(own_id)
    message = (
        f"{agent!r} has neither a name nor an explicit id, so a rebuilt graph cannot recognize it. "
        "Give the agent a name (or an id), or pass id= here."
    )
    raise ValueError(message)


_log = logging.getLogger("agentbench")


class ContextProvider:
    """Adds context to an agent's runs, and stores data from them. Subclasses override the hooks that they need.

    Hooks may be sync functions and may omit arguments that they do not use. A provider may also define
    `on_error(self, *, agent, session, context, state, error)`, which is called instead of `after_run` if the run fails
    after this provider's `before_run`. Cancelling a run or closing its stream early is not a failure: `after_run` gets
    the partial answer, which may be empty, if the agent stores it (`save_abandoned`).

    Args:
        source_id: The id of the provider, unique within an agent. It identifies the provider's messages, and its state
            in the session.

    Example:
        class CurrentTime(ContextProvider):
            def __init__(self):
                super().__init__("current_time")

            async def before_run(self, *, context, **kwargs):
                context.extend_messages(self, [Message("system", [f"It is {datetime.now():%H:%M}."])])
    """

    def __init__(self, source_id: str) -> None:
        self.source_id = source_id

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add to the context of a run before the model is called. Providers are called in order.

        Args:
            agent: The agent that runs.
            session: The session of the conversation, or a temporary one if the run has none.
            context: The context of the run, for the hook to extend.
            state: This provider's state in the session.
        """

    async def after_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Process the context of a run after the model has answered. Providers are called in reverse order.

        All providers are called even if one fails; the first error is raised after the last one. The arguments are the
        same as in `before_run`; the context now has a `response`.
        """

    def __repr__(self) -> str:
        return f"{type(self).__name__}(source_id={getattr(self, 'source_id', None)!r})"


def provider_id(provider: Any) -> str:
    """Return the `source_id` of a context provider; that of another object with its hooks is the name of its class."""
    source_id = getattr(provider, "source_id", None)
    if isinstance(source_id, str):
        return source_id
    has_hooks = hasattr(provider, "before_run") or hasattr(provider, "after_run")
    if isinstance(provider, ContextProvider) or not has_hooks:
        message = (
            f"A context provider is {describe(provider)}, which has no source_id. Expected an instance of a "
            "ContextProvider subclass whose __init__ calls super().__init__(source_id)."
        )
        raise TypeError(message)
    return type(provider).__name__


def warn_of_shared_sources(providers: Iterable[Any]) -> None:
    """Log a warning for each source id that several providers have, because they share one state."""
    first: dict[str, Any] = {}
    for provider in providers:
        earlier = first.setdefault(provider_id(provider), provider)
        if earlier is not provider:
            _log.warning(
                "%s and %s both have the source_id %r, so they share one state. Give each a different one.",
                type(earlier).__name__,
                type(provider).__name__,
                provider_id(provider),
            )

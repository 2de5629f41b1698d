"""Context providers: they add to a run of an agent before it starts, and store something of it afterwards."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentbench.agents.sessions.agent_protocol import SupportsAgentRun
    from agentbench.agents.sessions.session import AgentSession
    from agentbench.agents.sessions.session_context import SessionContext

_log = logging.getLogger("agentbench")


class ContextProvider:
    """Adds context to the runs of an agent, and stores something of them. Subclasses override the hooks they need.

    Hooks may be plain functions, and may leave out the arguments that they do not use. A provider may also have a hook
    `on_error(self, *, agent, session, context, state, error)`: it is called instead of `after_run` when the run
    failed after this provider's `before_run`. A run that was cancelled, or whose stream was closed early, did not fail:
    `after_run` gets the part of its answer that there is, maybe none, if the agent stores that (`save_abandoned`).

    Args:
        source_id: The id of the provider, unique in an agent: the source of its messages, and the key of its state in
            the session.

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
        """Add to the context of a run before the model is called. Providers are called in their order.

        Args:
            agent: The agent that runs.
            session: The session of the conversation; without one, a session for this run alone.
            context: The context of the run, to be extended.
            state: The state of this provider in the session.
        """

    async def after_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Read the context of a run after the model has answered. Providers are called in reverse order.

        All of them are called, also when one fails; the first error is raised when the last one is done. The arguments
        are those of `before_run`; the context has a `response` now.
        """

    def __repr__(self) -> str:
        return f"{type(self).__name__}(source_id={getattr(self, 'source_id', None)!r})"


def warn_of_shared_sources(providers: Iterable[Any]) -> None:
    """Log a warning for each source id that several providers have, since they share one state."""
    first: dict[str, Any] = {}
    for provider in providers:
        known = first.setdefault(provider.source_id, provider)
        if known is not provider:
            _log.warning(
                "%s and %s both have the source_id %r, so they share one state. Give each its own.",
                type(known).__name__,
                type(provider).__name__,
                provider.source_id,
            )

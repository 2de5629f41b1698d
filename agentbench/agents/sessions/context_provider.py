"""Context providers add to an agent's run before it starts, and store something from it afterwards."""

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


def warn_of_shared_sources(providers: Iterable[Any]) -> None:
    """Log a warning for each source id that several providers have, because they share one state."""
    first: dict[str, Any] = {}
    for provider in providers:
        known = first.setdefault(provider.source_id, provider)
        if known is not provider:
            _log.warning(
                "%s and %s both have the source_id %r, so they share one state. Give each a different one.",
                type(known).__name__,
                type(provider).__name__,
                provider.source_id,
            )

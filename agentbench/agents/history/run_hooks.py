"""The hooks of the context providers around one run, or around one call of the model, in their order."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any

from agentbench.agents.history.history import HistoryProvider
from agentbench.agents.sessions.context_provider import call_hook, state_of

if TYPE_CHECKING:
    from agentbench.agents.sessions.session import AgentSession
    from agentbench.agents.sessions.session_context import SessionContext

logger = logging.getLogger("agentbench")


class RunHooks:
    """The hooks of providers around one run.

    Args:
        agent: The agent that runs.
        session: Of the run.
        context: Of the run.
        providers: All of them, in the order of the hooks before the run.
        entered: How many of them `before_run` is over for.
    """

    __slots__ = ("_agent", "_context", "_entered", "_providers", "_session")

    def __init__(
        self, agent: Any, session: AgentSession, context: SessionContext, providers: Sequence[Any], entered: int = 0
    ) -> None:
        self._agent, self._session, self._context, self._providers = agent, session, context, providers
        self._entered = entered

    async def before(self) -> None:
        """Call `before_run` in order; not that of a history which only stores."""
        for provider in self._providers:
            if not isinstance(provider, HistoryProvider) or provider.load_messages:
                await self._call(provider, "before_run")
            self._entered += 1

    async def after(self) -> None:
        """Call `after_run` of those that `before_run` is over for, in reverse order: of all, whatever one of them does.

        Raises:
            BaseException: The first one; or, before it, what is no `Exception`, such as a cancellation.
        """
        first: BaseException | None = None
        for provider in reversed(self._providers[: self._entered]):
            try:
                await self._call(provider, "after_run")
            except GeneratorExit:  # noqa: PERF203 - nobody awaits it any more, so nothing can be awaited here
                raise
            except BaseException as error:  # noqa: BLE001 - raised below, or logged
                if first is None:
                    first = error
                elif isinstance(error, Exception):
                    _log_failure(provider, "after_run", error)
                else:
                    first = error
        if first is not None:
            raise first

    async def failed(self, error: BaseException) -> None:
        """Call `on_error`, where there is one, of those that `before_run` is over for, in reverse order."""
        for provider in reversed(self._providers[: self._entered]):
            try:
                await self._call(provider, "on_error", error=error)
            except Exception as problem:  # noqa: BLE001, PERF203 - the error of the run is the one to be told
                _log_failure(provider, "on_error", problem)

    def _call(self, provider: Any, hook: str, **more: Any) -> Awaitable[None]:
        session = self._session
        state = state_of(session, provider)
        return call_hook(provider, hook, agent=self._agent, session=session, context=self._context, state=state, **more)


def _log_failure(provider: Any, hook: str, error: Exception) -> None:
    logger.error("%s of the context provider %r failed: %s", hook, provider, type(error).__name__)
    logger.debug("%s of the context provider %r failed.", hook, provider, exc_info=error)

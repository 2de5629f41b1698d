"""The context providers of one run: who takes part, and their hooks in order."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from agentbench.agents.sessions.context_provider import call_hook, state_of
from agentbench.agents.sessions.history import HistoryProvider, InMemoryHistoryProvider

logger = logging.getLogger("agentbench")


def loads_history(providers: Sequence[Any]) -> bool:
    """Whether one of the providers remembers what was said before."""
    return any(isinstance(each, HistoryProvider) and each.load_messages for each in providers)


def is_stored_by_service(client: Any, defaults: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
    """Whether the model's service keeps the conversation: the option of the run, else of the agent, else its custom."""
    given = options.get("store")
    if given is None:
        given = defaults.get("store")
    return bool(getattr(client, "STORES_BY_DEFAULT", False) if given is None else given)


def auto_history(providers: Sequence[Any]) -> InMemoryHistoryProvider:
    """The provider that remembers where no other one does. What it remembers is in the session, so one is enough."""
    if providers and any(getattr(each, "source_id", None) == _AUTO.source_id for each in providers):
        # A history that only stores may have the usual name: the two must not write into one list.
        return _SECOND
    return _AUTO


_AUTO, _SECOND = InMemoryHistoryProvider(), InMemoryHistoryProvider("in_memory_auto")


class RunProviders:
    """The providers of one run.

    Args:
        agent: The agent that runs.
        session: Of the run.
        context: Of the run.
        providers: All of them, in the order of the hooks before the run.
    """

    __slots__ = ("_agent", "_context", "_entered", "_providers", "_session")

    def __init__(self, agent: Any, session: Any, context: Any, providers: Sequence[Any]) -> None:
        self._agent, self._session, self._context, self._providers = agent, session, context, providers
        self._entered = 0

    async def before(self) -> None:
        """Call `before_run` in order; not that of a history which only stores."""
        for provider in self._providers:
            if not (isinstance(provider, HistoryProvider) and not provider.load_messages):
                await self._call(provider, "before_run")
            self._entered += 1

    async def after(self) -> None:
        """Call `after_run` in reverse order."""
        for provider in reversed(self._providers):
            await self._call(provider, "after_run")

    async def failed(self, error: BaseException) -> None:
        """Call `on_error`, where there is one, of those that `before_run` is over for, in reverse order."""
        for provider in reversed(self._providers[: self._entered]):
            try:
                await self._call(provider, "on_error", error=error)
            except Exception as problem:  # noqa: PERF203 - the error of the run is the one to be told
                logger.error("on_error of the context provider %r failed: %s", provider, type(problem).__name__)
                logger.debug("on_error of the context provider %r failed.", provider, exc_info=problem)

    async def _call(self, provider: Any, hook: str, **more: Any) -> None:
        session = self._session
        state = state_of(session, provider)
        await call_hook(provider, hook, agent=self._agent, session=session, context=self._context, state=state, **more)

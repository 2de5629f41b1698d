"""Call the hooks of context providers around a run or a model call."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from agentbench.agents.history.history import HistoryProvider
from agentbench.agents.sessions.context_provider import ContextProvider

if TYPE_CHECKING:
    from agentbench.agents.sessions.session import AgentSession
    from agentbench.agents.sessions.session_context import SessionContext

logger = logging.getLogger("agentbench")


class RunHooks:
    """Calls the hooks of providers around one run; `entered` counts the completed `before_run` calls."""

    def __init__(
        self, agent: Any, session: AgentSession, context: SessionContext, providers: Sequence[Any], entered: int = 0
    ) -> None:
        self._agent, self._session, self._context, self._providers = agent, session, context, providers
        self._entered = entered

    async def before(self) -> None:
        """Call `before_run` in order, except for store-only histories."""
        for provider in self._providers:
            if not isinstance(provider, HistoryProvider) or provider.load_messages or provider.ADDS_CONTEXT:
                await self._call(provider, "before_run")
            self._entered += 1

    async def after(self) -> None:
        """Call `after_run` in reverse order; at the end raise a cancellation, or else the first error."""
        first: BaseException | None = None
        for provider in reversed(self._providers[: self._entered]):
            try:
                await self._call(provider, "after_run")
            except GeneratorExit:  # the event loop is gone: nothing can be awaited here
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

    async def on_error(self, error: BaseException) -> None:
        """Call `on_error`, if defined, in reverse order for the providers whose `before_run` has completed."""
        for provider in reversed(self._providers[: self._entered]):
            try:
                await self._call(provider, "on_error", error=error)
            except Exception as problem:  # noqa: BLE001 - the error of the run is the one to raise
                _log_failure(provider, "on_error", problem)

    def _call(self, provider: Any, hook: str, **more: Any) -> Awaitable[None]:
        session = self._session
        state = session.state.setdefault(provider.source_id, {})
        return call_hook(provider, hook, agent=self._agent, session=session, context=self._context, state=state, **more)


def _log_failure(provider: Any, hook: str, error: Exception) -> None:
    logger.error("%s of the context provider %r failed: %s", hook, provider, type(error).__name__)
    logger.debug("%s of the context provider %r failed.", hook, provider, exc_info=error)


async def call_hook(provider: Any, hook: str, **arguments: Any) -> None:
    """Call a provider's hook, if defined, with the arguments that it accepts, and await its result."""
    method = getattr(provider, hook, None)
    if not callable(method):
        return
    function = getattr(method, "__func__", method)
    if function in _NO_HOOKS:
        return
    taken = _parameters_of(function)
    if taken is not None and not taken >= arguments.keys():
        arguments = {name: value for name, value in arguments.items() if name in taken}
    result = method(**arguments)
    if hasattr(result, "__await__"):
        await result


_NO_HOOKS = frozenset({ContextProvider.before_run, ContextProvider.after_run})


def _parameters_of(function: Any) -> frozenset[str] | None:
    """Return the argument names that a hook accepts; `None` if it accepts all.

    They are stored on the function, because a table of functions would keep classes of notebook cells alive.
    """
    try:
        return function._agentbench_parameters  # type: ignore[no-any-return]  # noqa: SLF001 - set below
    except AttributeError:
        pass
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # implemented in C
        return None
    takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters)
    taken = None if takes_all else frozenset(each.name for each in parameters)
    with suppress(AttributeError):  # a callable object may have slots
        function._agentbench_parameters = taken  # noqa: SLF001
    return taken

"""What takes part in the runs of an agent: it adds to a run before it starts, and keeps something of it afterwards."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from agentbench.agents.sessions.agent_protocol import SupportsAgentRun
    from agentbench.agents.sessions.session import AgentSession
    from agentbench.agents.sessions.session_context import SessionContext

_log = logging.getLogger("agentbench")

#: Which of the arguments a hook takes, by its function; `None` for all.
_TAKEN: WeakKeyDictionary[Any, frozenset[str] | None] = WeakKeyDictionary()


class ContextProvider:
    """Takes part in the runs of an agent. Subclasses override what they need.

    Hooks may be plain functions, and may leave out the arguments that they do not use. A provider may also have a hook
    `on_error(self, *, agent, session, context, state, error)`: it is called in the place of `after_run` when the run
    failed after this provider's `before_run`. A run that was cancelled, or whose stream was closed early, did not fail:
    `after_run` gets what there is of its answer, maybe nothing, if the agent saves that (`save_abandoned`).

    Args:
        source_id: By which its messages are told apart, and under which it keeps its state in the session. Unique among
            the providers of an agent.

    Example:
        ```python
        class CurrentTime(ContextProvider):
            def __init__(self):
                super().__init__("current_time")

            async def before_run(self, *, context, **kwargs):
                context.extend_messages(self, [Message("system", [f"It is {datetime.now():%H:%M}."])])
        ```
    """

    def __init__(self, source_id: str) -> None:
        self.source_id = source_id

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add to a run before the model is asked. Providers are called in their order.

        Args:
            agent: That runs.
            session: Of the conversation; one for this run alone if the caller gave none.
            context: What the run has so far, to be extended.
            state: What this provider keeps in the session.
        """

    async def after_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Look at a run after the model has answered. Providers are called in reverse order.

        All of them are called, whatever one raises; the first error is raised when the last one is done.

        Args:
            agent: That ran.
            session: As in `before_run`.
            context: Now with its `response`.
            state: As in `before_run`.
        """

    def __repr__(self) -> str:
        return f"{type(self).__name__}(source_id={getattr(self, 'source_id', None)!r})"


async def call_hook(provider: Any, hook: str, **arguments: Any) -> None:
    """Call a hook of a provider with as many of the arguments as it takes, and await what it returns.

    What a hook takes is looked up once per function. A provider without the hook is passed over.

    Args:
        provider: The provider; need not be a `ContextProvider`.
        hook: `before_run`, `after_run` or `on_error`.
        **arguments: `agent`, `session`, `context`, `state` and, for `on_error`, `error`.

    Raises:
        TypeError: The hook needs an argument of another name.
        Exception: Whatever the hook raises.
    """
    method = getattr(provider, hook, None)
    if not callable(method):
        return
    function = getattr(method, "__func__", method)
    if function in _NO_HOOKS:
        return
    try:
        taken = _TAKEN[function]
    except (KeyError, TypeError):  # not seen before, or not hashable
        taken = _taken_by(provider, hook, method, frozenset(arguments))
        _note(function, taken)
    if taken is not None and len(taken) < len(arguments):
        arguments = {name: value for name, value in arguments.items() if name in taken}
    result = method(**arguments)
    if result is not None and inspect.isawaitable(result):
        await result


_NO_HOOKS = frozenset({ContextProvider.before_run, ContextProvider.after_run})


def _note(function: Any, taken: frozenset[str] | None) -> None:
    try:
        _TAKEN[function] = taken
    except TypeError:  # no weak references to it, or not hashable
        return


def _taken_by(provider: Any, hook: str, method: Callable[..., Any], given: frozenset[str]) -> frozenset[str] | None:
    try:
        parameters = inspect.signature(method).parameters.values()
    except ValueError:  # written in C
        return None
    by_name = [each for each in parameters if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD)]
    required = [
        each.name
        for each in parameters
        if each.default is each.empty
        and (each.kind is each.POSITIONAL_ONLY or (each in by_name and each.name not in given))
    ]
    if required:
        message = (
            f"{type(provider).__name__}.{hook} needs {', '.join(map(repr, required))}, which it is not called with. "
            f"Expected keyword arguments among {', '.join(sorted(given))}."
        )
        raise TypeError(message)
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return None
    return frozenset(each.name for each in by_name) & given


def state_of(session: AgentSession, provider: Any) -> dict[str, Any]:
    """What a provider keeps in a session, begun where it is not there yet."""
    state: dict[str, Any] = session.state.setdefault(provider.source_id, {})
    return state


def warn_of_shared_sources(providers: Iterable[Any]) -> None:
    """Log a warning for every source id that several providers have: they would share one state."""
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

"""History providers: load a conversation before a run, and store new messages afterwards."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Collection, Sequence
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar

from agentbench.agents.sessions.agent_protocol import ContextProvider, provider_id
from agentbench.agents.sessions.session import STAMPED
from agentbench.agents.sessions.session_context import ATTRIBUTION, INJECTION_QUEUE, add_source

if TYPE_CHECKING:
    from agentbench.agents.sessions.agent_protocol import SupportsAgentRun
    from agentbench.agents.sessions.session import AgentSession
    from agentbench.agents.sessions.session_context import SessionContext
    from agentbench.messages.message import Message


class HistoryProvider(ContextProvider):
    """The base class of providers that store conversations.

    Subclasses define `get_messages` and `save_messages`, or override `before_run` and `after_run`. An agent
    with a session and without a provider that loads messages uses an `InMemoryHistoryProvider`.

    Args:
        source_id: The id of the provider, unique within an agent; see `ContextProvider`.
        load_messages: Whether to add the stored messages to runs; if false, the provider only stores messages.
        store_inputs: Whether to store the input of runs.
        store_context_messages: Whether to store the messages that other providers add to runs.
        store_context_from: Source ids of the providers whose messages to store; by default all others.
        store_outputs: Whether to store the answers of the model.

    Raises:
        TypeError: A method that the flags require is missing.

    Example:
        class Notebook(HistoryProvider):
            def __init__(self):
                super().__init__("notebook")
                self.pages = {}

            async def get_messages(self, session_id, *, state=None, **kwargs):
                return list(self.pages.get(session_id, ()))

            async def save_messages(self, session_id, messages, *, state=None, **kwargs):
                self.pages.setdefault(session_id, []).extend(messages)


        agent = Agent(EchoChatClient(), context_providers=[Notebook()])
    """

    ADDS_CONTEXT: ClassVar[bool] = False
    """Whether it adds more than stored messages to runs. If so, its hooks are always called, around whole runs."""

    def __init__(
        self,
        source_id: str,
        *,
        load_messages: bool = True,
        store_inputs: bool = True,
        store_context_messages: bool = False,
        store_context_from: Collection[str] | None = None,
        store_outputs: bool = True,
    ) -> None:
        super().__init__(source_id)
        self.load_messages = load_messages
        self.store_inputs = store_inputs
        self.store_context_messages = store_context_messages
        self.store_context_from = {store_context_from} if isinstance(store_context_from, str) else store_context_from
        self.store_outputs = store_outputs
        stores = store_inputs or store_context_messages or store_outputs
        for needed, method, hook in (
            (load_messages, "get_messages", "before_run"),
            (stores, "save_messages", "after_run"),
        ):
            if needed and all(getattr(type(self), name) is getattr(HistoryProvider, name) for name in (method, hook)):
                message = f"{type(self).__name__} has no {method}(). Define it, or override {hook}()."
                raise TypeError(message)

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """Return the messages of a session, oldest first; `state` is this provider's state in the session."""
        message = f"{type(self).__name__} has no get_messages(). Define it, or override before_run()."
        raise NotImplementedError(message)

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Append messages, oldest first, to a session. Do not change the messages."""
        message = f"{type(self).__name__} has no save_messages(). Define it, or override after_run()."
        raise NotImplementedError(message)

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add the stored messages before the input."""
        context.extend_messages(self, await self.get_messages(context.session_id, state=state))

    async def after_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Store the messages of the run."""
        messages: list[Message] = []
        if self.store_context_messages:
            messages += context.get_messages(sources=self.store_context_from, exclude_sources={self.source_id})
        if self.store_inputs:
            messages += context.stored_inputs
        if self.store_outputs and context.response is not None:
            messages += context.response.messages
        if messages:
            await self.save_messages(context.session_id, messages, state=state)


_replacing = Lock()  # held while a list is replaced by a longer one, because threads may share sessions


class InMemoryHistoryProvider(HistoryProvider):
    """Stores a conversation in the session itself, under `state["messages"]`.

    A message is copied once, when it is stored, and then shared, so the time of a turn does not depend on the length of
    the conversation. Stored messages and their lists are replaced and not changed.

    Args:
        source_id: The id of the provider, unique within an agent; by default `in_memory`.
        load_messages, store_inputs, store_context_messages, store_context_from, store_outputs: See `HistoryProvider`.
        skip_excluded: Whether to skip messages that compaction excluded (`_excluded`).

    Example:
        history = InMemoryHistoryProvider(store_context_messages=True)
        agent = Agent(EchoChatClient(), context_providers=[history])
        session = agent.create_session()
        await agent.run("My name is Ada.", session=session)
        messages = await history.get_messages(session.session_id, state=session.state["in_memory"])
    """

    DEFAULT_SOURCE_ID = "in_memory"

    def __init__(
        self,
        source_id: str | None = None,
        *,
        load_messages: bool = True,
        store_inputs: bool = True,
        store_context_messages: bool = False,
        store_context_from: Collection[str] | None = None,
        store_outputs: bool = True,
        skip_excluded: bool = False,
    ) -> None:
        super().__init__(
            source_id or self.DEFAULT_SOURCE_ID,
            load_messages=load_messages,
            store_inputs=store_inputs,
            store_context_messages=store_context_messages,
            store_context_from=store_context_from,
            store_outputs=store_outputs,
        )
        self.skip_excluded = skip_excluded

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """Return a list of the messages in the state; empty without a state."""
        messages: list[Message] = [] if state is None else state.get("messages") or []
        return not_excluded(messages) if self.skip_excluded else list(messages)

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Append copies of messages to the state; without a state, nothing is stored."""
        if state is None:
            return
        added = add_source(messages, self)
        with _replacing:
            state["messages"] = [*(state.get("messages") or ()), *added]

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add the stored messages before the input."""
        if not self._ab_is_plain():
            await super().before_run(agent=agent, session=session, context=context, state=state)
            return
        stored = state.get("messages") or []
        if not self._ab_is_stamped(session, stored):
            # The user added messages, or the session was just loaded: add attributions, so that later runs find them.
            with _replacing:
                stored = state.get("messages") or []
                if not all(ATTRIBUTION in message.additional_properties for message in stored):
                    stored = state["messages"] = add_source(stored, self)
            self._ab_note(session, stored)
        shared = context.context_messages.setdefault(
            self.source_id, []
        )  # not copied, because stored messages do not change
        shared += not_excluded(stored) if self.skip_excluded else stored

    async def after_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Store the messages of the run."""
        was_stamped = self._ab_is_stamped(session, state.get("messages") or [])
        await super().after_run(agent=agent, session=session, context=context, state=state)
        if was_stamped and self._ab_is_plain():
            self._ab_note(session, state.get("messages") or [])

    def _ab_is_plain(self) -> bool:
        cls = type(self)
        return (
            cls.get_messages is InMemoryHistoryProvider.get_messages
            and cls.save_messages is InMemoryHistoryProvider.save_messages
        )

    def _ab_is_stamped(self, session: AgentSession, stored: list[Message]) -> bool:
        """Return whether all messages of a list are known to have an attribution."""
        stamped, length = vars(session).get(STAMPED, {}).get(self.source_id, (None, 0))
        return not stored or (stamped is stored and length == len(stored))

    def _ab_note(self, session: AgentSession, stored: list[Message]) -> None:
        vars(session).setdefault(STAMPED, {})[self.source_id] = (stored, len(stored))


def not_excluded(messages: Sequence[Message]) -> list[Message]:
    """Return messages without those that compaction excluded."""
    return [message for message in messages if not message.additional_properties.get("_excluded")]


# ---- around a run


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
                if INJECTION_QUEUE in self._session.state:
                    from agentbench.agents.sessions.injection import dequeue_stored  # noqa: PLC0415 - rarely needed

                    dequeue_stored(self._session, self._context.get_messages())
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
        state = session.state.setdefault(provider_id(provider), {})
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
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    taken = None if takes_all else frozenset(parameter.name for parameter in parameters)
    with suppress(AttributeError):  # a callable object may have slots
        function._agentbench_parameters = taken  # noqa: SLF001
    return taken

"""History providers: they load a conversation before a run and store its new messages afterwards."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar

from agentbench.agents.sessions.attribution import ATTRIBUTION, attributed
from agentbench.agents.sessions.context_provider import ContextProvider
from agentbench.agents.sessions.session import STAMPED

if TYPE_CHECKING:
    from agentbench.agents.sessions.agent_protocol import SupportsAgentRun
    from agentbench.agents.sessions.session import AgentSession
    from agentbench.agents.sessions.session_context import SessionContext
    from agentbench.messages.message import Message


class HistoryProvider(ContextProvider):
    """Base of the providers that store conversations.

    Subclasses define `get_messages` and `save_messages`, or override the hooks `before_run` and `after_run`. An agent
    with a session and without a provider that loads messages uses an `InMemoryHistoryProvider`.

    Args:
        source_id: The id of the provider, unique in an agent; see `ContextProvider`.
        load_messages: Whether agents get the stored messages; otherwise new ones are only stored.
        store_inputs: Whether to store the input of runs.
        store_context_messages: Whether to store the messages that other providers add to runs.
        store_context_from: The source ids of the providers whose messages are stored; by default all others.
        store_outputs: Whether to store the answers of the model.

    Raises:
        TypeError: A method that the flags need is missing.

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
    """Whether it adds more to runs than stored messages: then its hooks are called around whole runs, and always."""

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
        """Return the messages of a session, oldest first; `state` is that of this provider in the session."""
        message = f"{type(self).__name__} has no get_messages(). Define it, or override before_run()."
        raise NotImplementedError(message)

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Add messages, oldest first, to those of a session; they are not to be changed."""
        message = f"{type(self).__name__} has no save_messages(). Define it, or override after_run()."
        raise NotImplementedError(message)

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Put the stored messages in front of the input."""
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


_replacing = Lock()  # while a list is replaced by a longer one: sessions may be in several threads


class InMemoryHistoryProvider(HistoryProvider):
    """Stores a conversation in the session itself, under `state["messages"]`.

    A message is copied once, when it is stored, and shared from then on: a turn takes the same time however long the
    conversation is. Stored messages and lists of them are replaced, never changed.

    Args:
        source_id: The id of the provider, unique in an agent; by default `in_memory`.
        load_messages, store_inputs, store_context_messages, store_context_from, store_outputs: See `HistoryProvider`.
        skip_excluded: Whether messages that compaction left out (`_excluded`) are left out here too.

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
        """Return a list of the messages in the state; without a state it is empty."""
        messages: list[Message] = [] if state is None else state.get("messages") or []
        return not_excluded(messages) if self.skip_excluded else list(messages)

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Add copies of messages to the state; without a state nothing is stored."""
        if state is None:
            return
        added = attributed(messages, self)
        with _replacing:
            state["messages"] = [*(state.get("messages") or ()), *added]

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Put the stored messages in front of the input."""
        if not self._is_plain():
            await super().before_run(agent=agent, session=session, context=context, state=state)
            return
        stored = state.get("messages") or []
        if not self._is_stamped(session, stored):
            # The user put messages there, or the session was just read: later runs find them with an attribution.
            with _replacing:
                stored = state.get("messages") or []
                if not all(ATTRIBUTION in message.additional_properties for message in stored):
                    stored = state["messages"] = attributed(stored, self)
            self._note(session, stored)
        shared = context.context_messages.setdefault(self.source_id, [])  # not copied: stored messages never change
        shared += not_excluded(stored) if self.skip_excluded else stored

    async def after_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Store the messages of the run."""
        was_stamped = self._is_stamped(session, state.get("messages") or [])
        await super().after_run(agent=agent, session=session, context=context, state=state)
        if was_stamped and self._is_plain():
            self._note(session, state.get("messages") or [])

    def _is_plain(self) -> bool:
        cls = type(self)
        return (
            cls.get_messages is InMemoryHistoryProvider.get_messages
            and cls.save_messages is InMemoryHistoryProvider.save_messages
        )

    def _is_stamped(self, session: AgentSession, stored: list[Message]) -> bool:
        """Whether all messages of a list are known to carry their attribution."""
        known, length = vars(session).get(STAMPED, {}).get(self.source_id, (None, 0))
        return not stored or (known is stored and length == len(stored))

    def _note(self, session: AgentSession, stored: list[Message]) -> None:
        vars(session).setdefault(STAMPED, {})[self.source_id] = (stored, len(stored))


def not_excluded(messages: Sequence[Message]) -> list[Message]:
    """Return messages without those that compaction has left out."""
    return [message for message in messages if not message.additional_properties.get("_excluded")]

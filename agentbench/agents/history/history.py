"""What was said before, loaded before a run and saved after it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from agentbench.agents.sessions.attribution import ATTRIBUTION, attributed
from agentbench.agents.sessions.context_provider import ContextProvider
from agentbench.agents.sessions.session import STAMPED

if TYPE_CHECKING:
    from agentbench.agents.sessions.agent_protocol import SupportsAgentRun
    from agentbench.agents.sessions.session import AgentSession
    from agentbench.agents.sessions.session_context import SessionContext
    from agentbench.messages.message import Message


class HistoryProvider(ContextProvider):
    """Keeps a conversation. Subclasses say where, by `get_messages` and `save_messages`, or override the hooks.

    Args:
        source_id: See `ContextProvider`.
        load_messages: Whether agents get what was said before; otherwise it is only kept.
        store_inputs: Whether to keep what runs were asked.
        store_context_messages: Whether to keep what other providers added to runs.
        store_context_from: Only of these providers, by source id; by default of all others.
        store_outputs: Whether to keep what the model answered.

    Raises:
        TypeError: `HistoryProvider` itself was called.
    """

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
        if type(self) is HistoryProvider:
            message = (
                "HistoryProvider does not say where messages are kept. Expected a subclass with get_messages() and "
                "save_messages(), such as InMemoryHistoryProvider or FileHistoryProvider."
            )
            raise TypeError(message)
        super().__init__(source_id)
        self.load_messages = load_messages
        self.store_inputs = store_inputs
        self.store_context_messages = store_context_messages
        self.store_context_from = {store_context_from} if isinstance(store_context_from, str) else store_context_from
        self.store_outputs = store_outputs

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """Return the messages of a session, oldest first.

        Args:
            session_id: Of the session.
            state: What this provider keeps in the session.
            **kwargs: For subclasses.

        Raises:
            NotImplementedError: The subclass has none.
        """
        message = f"{type(self).__name__} has no get_messages(). Define it, or override before_run()."
        raise NotImplementedError(message)

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Add messages to those of a session.

        Args:
            session_id: Of the session.
            messages: The new ones, oldest first. They are not to be changed.
            state: What this provider keeps in the session.
            **kwargs: For subclasses.

        Raises:
            NotImplementedError: The subclass has none.
        """
        message = f"{type(self).__name__} has no save_messages(). Define it, or override after_run()."
        raise NotImplementedError(message)

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Put what was said before in front of the input."""
        context.extend_messages(self, await self.get_messages(context.session_id, state=state))

    async def after_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Keep what is to be kept of the run."""
        messages = self._of_run(context)
        if messages:
            await self.save_messages(context.session_id, messages, state=state)

    def _of_run(self, context: SessionContext) -> list[Message]:
        messages: list[Message] = []
        if self.store_context_messages:
            messages += context.get_messages(sources=self.store_context_from, exclude_sources={self.source_id})
        if self.store_inputs:
            messages += context.stored_inputs
        if self.store_outputs and context.response is not None:
            messages += context.response.messages
        return messages


_replacing = Lock()
"""Held while a list is replaced by a longer one, for sessions that are used in several threads."""


class InMemoryHistoryProvider(HistoryProvider):
    """Keeps a conversation in the session itself, under `state["messages"]`.

    A message is copied once, when it is stored, and shared from then on: a turn takes the same time however long the
    conversation is. Stored messages and lists of them are replaced, never changed.

    Args:
        source_id: See `ContextProvider`; by default `in_memory`.
        load_messages: See `HistoryProvider`.
        store_inputs: See `HistoryProvider`.
        store_context_messages: See `HistoryProvider`.
        store_context_from: See `HistoryProvider`.
        store_outputs: See `HistoryProvider`.
        skip_excluded: Whether messages that compaction left out (`_excluded`) are left out here too.
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
        """Return the messages in the state, in a list of the caller's own; without a state none."""
        messages: list[Message] = [] if state is None else state.get("messages") or []
        return not_excluded(messages) if self.skip_excluded else list(messages)

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Add copies of messages to the state; without a state nothing is kept."""
        if state is None:
            return
        added = attributed(messages, self)
        with _replacing:
            state["messages"] = [*(state.get("messages") or ()), *added]

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Put what was said before in front of the input."""
        if not self._keeps_lists_itself():
            await super().before_run(agent=agent, session=session, context=context, state=state)
            return
        stored = state.get("messages") or []
        if not self._is_stamped(session, stored):
            # Put there by somebody else, or just read: later runs find it as this provider stores it.
            with _replacing:
                stored = state.get("messages") or []
                if not all(ATTRIBUTION in message.additional_properties for message in stored):
                    stored = state["messages"] = attributed(stored, self)
            self._note(session, stored)
        context.share_messages(self, not_excluded(stored) if self.skip_excluded else stored)

    async def after_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Keep what is to be kept of the run."""
        was_stamped = self._is_stamped(session, state.get("messages") or [])
        await super().after_run(agent=agent, session=session, context=context, state=state)
        if was_stamped and self._keeps_lists_itself():
            self._note(session, state.get("messages") or [])

    def _keeps_lists_itself(self) -> bool:
        cls = type(self)
        return (
            cls.get_messages is InMemoryHistoryProvider.get_messages
            and cls.save_messages is InMemoryHistoryProvider.save_messages
        )

    def _is_stamped(self, session: AgentSession, stored: list[Message]) -> bool:
        """Whether all of a list carry their attribution, without looking at each of them."""
        known = vars(session).get(STAMPED, {}).get(self.source_id)
        return not stored or (known is not None and known[0] is stored and known[1] == len(stored))

    def _note(self, session: AgentSession, stored: list[Message]) -> None:
        vars(session).setdefault(STAMPED, {})[self.source_id] = (stored, len(stored))


def not_excluded(messages: Sequence[Message]) -> list[Message]:
    """Leave out the messages that compaction has left out."""
    return [message for message in messages if not message.additional_properties.get("_excluded")]

"""Compact an agent's conversations: before the model is called, and in the stored history."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import TYPE_CHECKING, Any

from agentbench.agents.compaction.grouping import (
    EXCLUDED_KEY,
    CompactionStrategy,
    TokenizerProtocol,
    apply_compaction,
    included_messages,
)
from agentbench.agents.middleware.contexts import CallNext, ChatContext, ChatMiddleware
from agentbench.agents.sessions.agent_protocol import ContextProvider
from agentbench.agents.sessions.session import COMPACTED
from agentbench.agents.sessions.session_context import add_source
from agentbench.messages.message import Message, copy_messages

if TYPE_CHECKING:
    from agentbench.agents.sessions.session import AgentSession
    from agentbench.agents.sessions.session_context import SessionContext


class CompactionProvider(ContextProvider):
    """Fits an agent's conversations into the context window of its model. List it after the history provider.

    Before a run, it compacts the messages that earlier providers added, and during the run the growing list of each
    model call. The stored history stays complete: the next run continues with the compacted messages, but a session
    that was saved and loaded starts from the complete history. After a run, it can mark stored messages as excluded:
    they stay in the session, but a history with `skip_excluded=True` no longer loads them.

    Args:
        before_strategy: Compacts the messages for the model; `None` for no compaction.
        after_strategy: Marks stored messages as excluded, except those of the last turn; `None` for no marking.
        tokenizer: Counts tokens before a strategy is applied, for strategies that use the counts.
        source_id: The id of the provider, unique within an agent.
        history_source_id: The id of the history whose messages `after_strategy` marks. It must store them in the
            session.

    Example:
        agent = Agent(
            EchoChatClient(),
            context_providers=[
                InMemoryHistoryProvider(skip_excluded=True),
                CompactionProvider(
                    before_strategy=SlidingWindowStrategy(keep_last_groups=20),
                    after_strategy=ToolResultCompactionStrategy(keep_last_tool_call_groups=2),
                ),
            ],
        )
    """

    def __init__(
        self,
        *,
        before_strategy: CompactionStrategy | None = None,
        after_strategy: CompactionStrategy | None = None,
        tokenizer: TokenizerProtocol | None = None,
        source_id: str = "compaction",
        history_source_id: str = "in_memory",
    ) -> None:
        super().__init__(source_id)
        self.before_strategy, self.after_strategy = before_strategy, after_strategy
        self.tokenizer, self.history_source_id = tokenizer, history_source_id

    async def before_run(
        self, *, agent: Any = None, session: AgentSession | None = None, context: Any, state: Any = None
    ) -> None:
        """Compact the messages of earlier providers, and all later model calls of this run."""
        if self.before_strategy is None:
            return
        sources: dict[str, list[Message]] = context.context_messages
        if any(sources.values()):
            await self._ab_shorten(sources, getattr(context, "input_messages", None) or [], session)
        if hasattr(context, "extend_middleware"):
            later = _CompactCalls(self.before_strategy, self.tokenizer, context)
            context.extend_middleware(self, [later])

    async def _ab_shorten(
        self, sources: dict[str, list[Message]], input_messages: Sequence[Message], session: AgentSession | None
    ) -> None:
        """Replace the message lists of the sources by the compacted lists."""
        copies_by_source: dict[str, _Copies] = {}
        if session is not None:
            copies_by_source = vars(session).setdefault(COMPACTED, {}).setdefault(self.source_id, {})
        working: list[Message] = []
        source_of: dict[int, str] = {}
        for source_id, messages in sources.items():
            copies = copies_by_source.setdefault(source_id, _Copies()).follow(messages)
            working += copies
            source_of.update((id(copy), source_id) for copy in copies)
        inputs = copy_messages(input_messages)  # counted and grouped with the rest; the input itself is not compacted
        working += inputs
        input_ids = {id(message) for message in inputs}
        included = await apply_compaction(working, strategy=self.before_strategy, tokenizer=self.tokenizer)
        shortened: dict[str, list[Message]] = {source_id: [] for source_id in sources}
        waiting: list[Message] = []
        source_id = next(iter(sources))
        for message in included:
            if id(message) in input_ids:
                break
            if id(message) not in source_of:  # a summary comes directly before the messages that it replaces
                waiting += add_source([message], self)
                continue
            source_id = source_of[id(message)]
            shortened[source_id] += [*waiting, message]
            waiting = []
        shortened[source_id] += waiting
        for source_id, messages in shortened.items():
            sources[source_id] = messages
            copies_by_source[source_id].messages = list(messages)

    async def after_run(
        self, *, agent: Any = None, session: AgentSession | None = None, context: Any = None, state: Any = None
    ) -> None:
        """Mark the stored messages: changed messages are replaced by copies, others stay the same objects."""
        history = None if session is None else session.state.get(self.history_source_id)
        stored: list[Message] = history.get("messages") or [] if isinstance(history, dict) else []
        if self.after_strategy is None or not stored:
            return
        originals = included_messages(stored)
        copies = copy_messages(originals)
        original_of = dict(zip(map(id, copies), originals, strict=True))
        working = list(copies)
        await apply_compaction(working, strategy=self.after_strategy, tokenizer=self.tokenizer)
        changed: dict[int, list[Message]] = {}  # by original: the summaries before it, and its replacement
        waiting: list[Message] = []
        for message in working:
            original = original_of.get(id(message))
            if original is None:
                waiting += add_source([message], self)
            elif waiting or message.additional_properties.get(EXCLUDED_KEY):
                changed[id(original)] = [*waiting, message]
                waiting = []
        if changed or waiting:
            replaced = [new for message in stored for new in changed.get(id(message), (message,))]
            history["messages"] = replaced + waiting  # type: ignore[index]


class _Copies:
    """Copies of a growing list, without excluded messages, which need not be processed again."""

    def __init__(self) -> None:
        self._followed: list[Message] = []
        self.messages: list[Message] = []

    def follow(self, messages: Sequence[Message]) -> list[Message]:
        """Return the copies, including those of new messages."""
        followed = self._followed
        if len(followed) > len(messages) or not all(map(is_, followed, messages)):
            followed, self.messages = [], []
        self.messages += copy_messages(messages[len(followed) :])
        self._followed = list(messages)
        return self.messages


class _CompactCalls(ChatMiddleware):
    """Compacts the model calls of one run; the first call has already been compacted by the provider."""

    def __init__(
        self, strategy: CompactionStrategy, tokenizer: TokenizerProtocol | None, context: SessionContext
    ) -> None:
        self._strategy, self._tokenizer, self._context = strategy, tokenizer, context
        self._copies = _Copies()
        self._has_begun = False

    async def process(self, context: ChatContext, call_next: CallNext) -> None:
        messages = context.messages
        is_first, self._has_begun = not self._has_begun, True
        compacted = self._context.get_messages(include_input=True) if is_first else []
        is_done = is_first and len(compacted) == len(messages) and all(map(is_, compacted, messages))
        if not is_done and messages and not context.options.get("conversation_id"):
            working = list(self._copies.follow(messages))
            context.messages = await apply_compaction(working, strategy=self._strategy, tokenizer=self._tokenizer)
            self._copies.messages = context.messages
        await call_next()

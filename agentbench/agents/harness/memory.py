"""A memory that outlasts sessions: facts by topic, and searchable transcripts."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from agentbench._clock import runtime_defaults
from agentbench._limits import require_limit
from agentbench._workers import run_in_thread
from agentbench.agents.compaction.grouping import group_messages
from agentbench.agents.harness.memory_store import (
    JsonDumps,
    JsonLoads,
    MemoryIndexEntry,
    MemoryStore,
    MemoryTopicRecord,
    without_repetitions,
)
from agentbench.agents.history.file_history import FileHistoryProvider
from agentbench.agents.history.history import HistoryProvider
from agentbench.agents.middleware.contexts import FunctionInvocationContext
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.exceptions import ChatClientException
from agentbench.messages.message import Message

if TYPE_CHECKING:
    from agentbench.agents.sessions.agent_protocol import SupportsAgentRun
    from agentbench.agents.sessions.session import AgentSession
    from agentbench.agents.sessions.session_context import SessionContext

logger = logging.getLogger("agentbench")

EXTRACTION_PROMPT: Final = (
    "Read the end of a conversation, and pick what will still matter in later conversations: facts about the user, "
    "wishes that last, decisions, ways of working. Leave out what only mattered now. Say each in one sentence, under a "
    'topic of one to three words; use a topic again where it fits. Answer with JSON alone: {"memories": [{"topic": '
    '"...", "memory": "..."}]}, with an empty list if nothing is worth it.'
)
CONSOLIDATION_PROMPT: Final = (
    "Here is all that is remembered about one topic. Join what says the same, drop what is out of date, keep the rest. "
    'Answer with JSON alone: {"summary": "one sentence", "memories": ["...", "..."]}.'
)

_FENCE = re.compile(r"\A\s*```[a-zA-Z]*\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)
_TRANSIENT = (ChatClientException, TimeoutError, OSError)


class Extracted(NamedTuple):
    """An extracted fact and its topic."""

    topic: str
    memory: str


async def extract_memories(client: Any, prompt: str, messages: Sequence[Message], limit: int) -> list[Extracted]:
    """Let a model extract lasting facts from a conversation; return none if the call fails or the answer is not JSON.

    Args:
        client: The chat client.
        prompt: The instructions.
        messages: The conversation.
        limit: The maximum number of facts.
    """
    transcript = "\n".join(f"{message.role}: {message.text}" for message in messages if message.text)
    answer = await _ask(client, prompt, transcript)
    facts: list[Extracted] = []
    items = answer.get("memories")
    for item in items if isinstance(items, list) else []:
        topic, memory = (item.get("topic"), item.get("memory")) if isinstance(item, Mapping) else (None, None)
        if isinstance(topic, str) and isinstance(memory, str) and topic.strip() and memory.strip():
            facts.append(Extracted(topic, memory))
        else:
            logger.warning("The model returned an invalid memory, which is ignored.")
    return facts[:limit]


async def consolidate(client: Any, prompt: str, record: MemoryTopicRecord) -> tuple[str, list[str]] | None:
    """Return a shorter summary and shorter facts of a topic; None if the call fails or the answer is invalid.

    Args:
        client: The chat client; without one only repetitions are removed.
        prompt: The instructions.
        record: The topic.
    """
    if client is None:
        return record.summary, without_repetitions(record.memories)
    answer = await _ask(client, prompt, record.to_markdown())
    summary, memories = answer.get("summary"), answer.get("memories")
    if (
        not isinstance(summary, str)
        or not isinstance(memories, list)
        or not all(isinstance(memory, str) for memory in memories)
    ):
        logger.warning(
            "The model returned an invalid consolidation of the topic %r, which stays unchanged.", record.topic
        )
        return None
    return summary, memories


async def _ask(client: Any, prompt: str, text: str) -> Mapping[str, Any]:
    """Return the JSON object that a model answers; empty if the call fails or the answer is something else."""
    try:
        answer = client.get_response([Message("user", [text])], options={"instructions": prompt})
        response = await answer if inspect.isawaitable(answer) else answer
    except _TRANSIENT:
        logger.warning("The model call for a memory failed; nothing is remembered this time.", exc_info=True)
        return {}
    fenced = _FENCE.match(response.text)
    try:
        data = json.loads(fenced[1] if fenced else response.text)
    except ValueError:
        logger.warning("The answer of the model for a memory is not JSON; nothing is remembered this time.")
        return {}
    return data if isinstance(data, Mapping) else {}


# ---- the provider


DEFAULT_MEMORY_SOURCE_ID: Final = "memory"

_INSTRUCTIONS: Final = (
    "You have a memory that lasts longer than this conversation. Its index, and the topics that seem to matter now, "
    "are shown to you at the beginning of every run. Read other topics when you need them, write down what should "
    "last, delete what is no longer true, and search earlier conversations when the user refers to them."
)
_WORD = re.compile(r"\w{3,}")


class MemoryContextProvider(HistoryProvider):
    """Gives an agent a memory that all sessions of one owner share.

    Each run shows the model the index of the memory and the topics that match the input. After a run, the conversation
    is added to a transcript, and the model of the agent extracts facts worth remembering. After enough sessions and
    time, each topic is consolidated: rewritten more briefly. The model also has tools: `list_memory_topics`,
    `read_memory_topic`, `write_memory`, `delete_memory_topic`, `search_memory_transcripts`, `consolidate_memories`.

    Args:
        recent_turns: The number of turns of the session's transcript to load before each run.
        load_tool_turns: Whether to load tool calls and their results with these turns.
        store: Stores the memory.
        source_id: The id of the provider, unique in an agent.
        context_prompt: Instructions for the model, instead of the default ones.
        index_line_limit: The maximum number of lines of the index.
        index_line_length: The maximum number of characters in a line of the index.
        selection_limit: The maximum number of topics to show in full.
        max_extractions: The maximum number of facts to extract after a run; 0 disables extraction.
        consolidation_interval: The minimum time between two consolidations.
        consolidation_min_sessions: The minimum number of sessions between two consolidations.
        extraction_prompt: Instructions for the model that extracts facts.
        consolidation_prompt: Instructions for the model that consolidates.
        consolidation_client: The chat client for consolidation; by default the agent's.
        history_message_filter: Returns the message to store in the transcript; `None` omits the message.
        history_dumps: Serializes a message of the transcript to one line.
        history_loads: Parses such a line.
        extract_every: The number of turns after which facts are extracted, from all of these turns.

    Raises:
        ValueError: A limit is too small, or `consolidation_interval` is negative.

    Example:
        memory = MemoryContextProvider(store=MemoryFileStore("memories", owner_state_key="user"))
        agent = Agent(EchoChatClient(), context_providers=[memory])
    """

    ADDS_CONTEXT = True

    def __init__(  # noqa: PLR0913 - the public signature
        self,
        recent_turns: int = 0,
        load_tool_turns: bool = True,
        *,
        store: MemoryStore,
        source_id: str = DEFAULT_MEMORY_SOURCE_ID,
        context_prompt: str | None = None,
        index_line_limit: int = 200,
        index_line_length: int = 150,
        selection_limit: int = 3,
        max_extractions: int = 5,
        consolidation_interval: timedelta = timedelta(hours=24),
        consolidation_min_sessions: int = 5,
        extraction_prompt: str = EXTRACTION_PROMPT,
        consolidation_prompt: str = CONSOLIDATION_PROMPT,
        consolidation_client: Any = None,
        history_message_filter: Callable[[Message], Message | None] | None = None,
        history_dumps: JsonDumps | None = None,
        history_loads: JsonLoads | None = None,
        extract_every: int = 1,
    ) -> None:
        limits = {
            "recent_turns": (recent_turns, 0),
            "index_line_limit": (index_line_limit, 1),
            "index_line_length": (index_line_length, 1),
            "selection_limit": (selection_limit, 0),
            "max_extractions": (max_extractions, 0),
            "consolidation_min_sessions": (consolidation_min_sessions, 1),
            "extract_every": (extract_every, 1),
        }
        for name, (value, least) in limits.items():
            require_limit(name, value, least=least)
        if consolidation_interval < timedelta(0):
            message = f"consolidation_interval is {consolidation_interval!r}. Expected a duration that is not negative."
            raise ValueError(message)
        super().__init__(source_id, load_messages=recent_turns > 0)
        self.recent_turns, self.load_tool_turns = recent_turns, load_tool_turns
        self.store, self.context_prompt = store, _INSTRUCTIONS if context_prompt is None else context_prompt
        self.index_line_limit, self.index_line_length = index_line_limit, index_line_length
        self.selection_limit, self.max_extractions = selection_limit, max_extractions
        self.consolidation_interval = consolidation_interval
        self.consolidation_min_sessions = consolidation_min_sessions
        self.extraction_prompt, self.consolidation_prompt = extraction_prompt, consolidation_prompt
        self.consolidation_client = consolidation_client
        self.history_message_filter = history_message_filter
        self.extract_every = extract_every
        self._ab_line_format: dict[str, Any] = {"dumps": history_dumps, "loads": history_loads}
        self._ab_locks: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str | None, asyncio.Lock]] = (
            WeakKeyDictionary()
        )
        functions = (
            self.list_memory_topics,
            self.read_memory_topic,
            self.write_memory,
            self.delete_memory_topic,
            self.search_memory_transcripts,
        )
        self._ab_tools = [FunctionTool(function) for function in functions]

    # ------------------------------------------------------------------------------------------------------ a run

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add the index, the topics that match the input, the recent turns, and the tools."""
        question = " ".join(message.text for message in context.input_messages)
        overview = await run_in_thread(self._ab_overview, session, question)
        if self.recent_turns:
            context.extend_messages(
                self, self._ab_last_turns(await self.get_messages(session.session_id, session=session))
            )
        context.extend_instructions(self, self.context_prompt)
        client = self.consolidation_client or getattr(agent, "client", None)

        async def consolidate_memories() -> str:
            """Rewrite your whole memory more briefly."""
            return json.dumps({"consolidated_topics": await self._ab_consolidate_all(session, client)})

        context.extend_tools(self, [*self._ab_tools, FunctionTool(consolidate_memories)])
        context.extend_messages(self, [Message("user", overview)])

    def _ab_overview(self, session: AgentSession, question: str) -> str:
        limits = {"line_limit": self.index_line_limit, "line_length": self.index_line_length}
        entries = self.store.rebuild_index(session, source_id=self.source_id, **limits)
        index = self.store.get_index_text(session, source_id=self.source_id, index_entries=entries, **limits)
        chosen = _best(entries, question)[: self.selection_limit]
        topics = [self.store.get_topic(session, source_id=self.source_id, topic=entry.topic) for entry in chosen]
        return "\n\n".join([index.strip(), *(topic.to_markdown().strip() for topic in topics)])

    def _ab_last_turns(self, messages: list[Message]) -> list[Message]:
        """Return the last turns. A turn begins with a message of the user."""
        begins = [index for index, message in enumerate(messages) if message.role == "user"]
        recent = messages[begins[-self.recent_turns] :] if len(begins) > self.recent_turns else messages
        if self.load_tool_turns:
            return recent
        groups = (group for group in group_messages(recent) if group.kind != "tool_call")
        return [recent[index] for group in groups for index in group.indices]

    async def after_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add the turn to the transcript, extract facts, and consolidate the memory if it is due."""
        messages = [*context.stored_inputs, *(context.response.messages if context.response is not None else ())]
        if self.history_message_filter is not None:
            messages = [shown for message in messages if (shown := self.history_message_filter(message)) is not None]
        if not messages:
            return
        await self.save_messages(session.session_id, messages, session=session)
        turns = state.get("turns_since_extraction", 0) + 1
        state["turns_since_extraction"] = turns % self.extract_every
        client = getattr(agent, "client", None)
        if client is not None and self.max_extractions and turns >= self.extract_every:
            if turns > 1:
                stored = await self.get_messages(session.session_id, session=session)
                begins = [index for index, message in enumerate(stored) if message.role == "user"]
                messages = stored[begins[-turns] if len(begins) >= turns else 0 :]
            for topic, memory in await extract_memories(client, self.extraction_prompt, messages, self.max_extractions):
                await self._ab_add(session, topic, memory)
        if await self._ab_is_time_to_consolidate(session):
            await self._ab_consolidate_all(session, self.consolidation_client or client)

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """Return the transcript of a session, oldest message first. The keyword `session` determines the owner."""
        folder = self.store.get_transcripts_directory(kwargs["session"], source_id=self.source_id)
        if not await run_in_thread(folder.is_dir):
            return []
        return await FileHistoryProvider(folder, **self._ab_line_format).get_messages(session_id)

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Add messages to the transcript of a session. The keyword `session` determines the owner."""
        folder = self.store.get_transcripts_directory(kwargs["session"], source_id=self.source_id)
        history = await run_in_thread(lambda: FileHistoryProvider(folder, **self._ab_line_format))
        await history.save_messages(session_id, messages)

    # ------------------------------------------------------------------------------------------------------ tools

    async def list_memory_topics(self, context: FunctionInvocationContext) -> str:
        """List the topics of your memory, with a summary of each."""
        records = await run_in_thread(self.store.list_topics, context.session, source_id=self.source_id)
        return json.dumps([MemoryIndexEntry.from_topic_record(record).to_dict() for record in records])

    async def read_memory_topic(self, context: FunctionInvocationContext, topic: str) -> str:
        """Read everything that you remember about a topic."""
        record = await run_in_thread(self.store.get_topic, context.session, source_id=self.source_id, topic=topic)
        return json.dumps(record.to_dict())

    async def write_memory(self, context: FunctionInvocationContext, topic: str, memory: str) -> str:
        """Remember a fact under a topic, which is created if it is new."""
        return json.dumps((await self._ab_add(context.session, topic, memory)).to_dict())

    async def delete_memory_topic(self, context: FunctionInvocationContext, topic: str) -> str:
        """Delete a topic from your memory."""
        async with self._ab_lock(context.session):
            await run_in_thread(self.store.delete_topic, context.session, source_id=self.source_id, topic=topic)
        return json.dumps({"deleted": topic})

    async def search_memory_transcripts(
        self, context: FunctionInvocationContext, query: str, session_id: str | None = None, limit: int = 20
    ) -> str:
        """Find the messages of earlier conversations that contain a text."""
        found = await run_in_thread(
            self.store.search_transcripts,
            context.session,
            source_id=self.source_id,
            query=query,
            session_id=session_id,
            limit=limit,
        )
        return json.dumps(found, ensure_ascii=False)

    # ------------------------------------------------------------------------------------------------- the memory

    def _ab_lock(self, session: AgentSession) -> asyncio.Lock:
        """Return the lock of an owner's memory."""
        locks = self._ab_locks.setdefault(asyncio.get_running_loop(), {})
        return locks.setdefault(self.store.get_owner_id(session), asyncio.Lock())

    async def _ab_add(self, session: AgentSession, topic: str, memory: str) -> MemoryTopicRecord:
        if not topic.strip() or not memory.strip():
            message = f"The topic is {topic!r} and the memory is {memory!r}. Expected non-blank text for both."
            raise ValueError(message)

        def add() -> MemoryTopicRecord:
            try:
                before = self.store.get_topic(session, source_id=self.source_id, topic=topic)
            except FileNotFoundError:
                before = MemoryTopicRecord(topic=topic, summary=memory, memories=(), updated_at="")
            record = MemoryTopicRecord(
                topic=before.topic,
                summary=before.summary,
                memories=[*before.memories, memory],
                updated_at=_now().isoformat(),
                session_ids=[*before.session_ids, session.session_id],
            )
            self.store.write_topic(session, record, source_id=self.source_id)
            return record

        async with self._ab_lock(session):
            return await run_in_thread(add)

    async def _ab_is_time_to_consolidate(self, session: AgentSession) -> bool:
        def register() -> dict[str, Any]:
            state = self.store.read_state(session, source_id=self.source_id)
            sessions = list(state.get("sessions_since_consolidation") or ())
            if session.session_id not in sessions:
                state["sessions_since_consolidation"] = [*sessions, session.session_id]
                self.store.write_state(session, state, source_id=self.source_id)
            return state

        async with self._ab_lock(session):
            state = await run_in_thread(register)
        last = state.get("last_consolidated_at")
        is_due = last is None or _now() - datetime.fromisoformat(last) >= self.consolidation_interval
        return is_due and len(state["sessions_since_consolidation"]) >= self.consolidation_min_sessions

    async def _ab_consolidate_all(self, session: AgentSession, client: Any) -> int:
        """Consolidate all topics and return the number of rewritten ones. Topics that changed meanwhile are skipped."""
        records = await run_in_thread(self.store.list_topics, session, source_id=self.source_id)
        count = 0
        for record in records:
            consolidated = await consolidate(client, self.consolidation_prompt, record)
            if consolidated is not None:
                async with self._ab_lock(session):
                    count += await run_in_thread(self._ab_replace_topic, session, record, *consolidated)
        if count:
            state = {"last_consolidated_at": _now().isoformat(), "sessions_since_consolidation": []}
            async with self._ab_lock(session):
                await run_in_thread(self.store.write_state, session, state, source_id=self.source_id)
        return count

    def _ab_replace_topic(
        self, session: AgentSession, before: MemoryTopicRecord, summary: str, memories: Sequence[str]
    ) -> bool:
        try:
            now = self.store.get_topic(session, source_id=self.source_id, topic=before.topic)
        except FileNotFoundError:
            return False
        if now != before:
            return False
        record = MemoryTopicRecord(
            topic=before.topic,
            summary=summary,
            memories=memories,
            updated_at=_now().isoformat(),
            session_ids=before.session_ids,
        )
        self.store.write_topic(session, record, source_id=self.source_id)
        return True


def _best(entries: Sequence[MemoryIndexEntry], question: str) -> list[MemoryIndexEntry]:
    """Return the entries that share words with a question; those that share most come first."""
    words = set(_WORD.findall(question.casefold()))
    scores = [
        (len(words & set(_WORD.findall(f"{entry.topic} {entry.summary}".casefold()))), entry) for entry in entries
    ]
    return [entry for score, entry in sorted(scores, key=lambda scored: -scored[0]) if score]


def _now() -> datetime:
    return datetime.fromtimestamp(runtime_defaults().clock.time_ns() / 1e9, tz=UTC)

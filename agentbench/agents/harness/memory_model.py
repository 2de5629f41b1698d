"""Model calls for a memory: extraction of facts from conversations, and consolidation of topics."""

from __future__ import annotations

import inspect
import json
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from agentbench.agents.harness.memory_records import MemoryTopicRecord, without_repetitions
from agentbench.exceptions import ChatClientException
from agentbench.messages.message import Message

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
    items = answer.get("memories") if isinstance(answer, Mapping) else None
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
    summary = answer.get("summary") if isinstance(answer, Mapping) else None
    memories = answer.get("memories") if isinstance(answer, Mapping) else None
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


async def _ask(client: Any, prompt: str, text: str) -> Any:
    """Return the JSON answer of a model; None if the call fails or the answer is not JSON."""
    try:
        answer = client.get_response([Message("user", [text])], options={"instructions": prompt})
        response = await answer if inspect.isawaitable(answer) else answer
    except _TRANSIENT:
        logger.warning("The model call for a memory failed; nothing is remembered this time.", exc_info=True)
        return None
    fenced = _FENCE.match(response.text)
    try:
        return json.loads(fenced[1] if fenced else response.text)
    except ValueError:
        logger.warning("The answer of the model for a memory is not JSON; nothing is remembered this time.")
        return None

"""The projection of a marked conversation: the messages that a model gets."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from agentbench.agents.compaction.grouping import annotate_message_groups, group_messages
from agentbench.agents.compaction.protocols import (
    EXCLUDE_REASON_KEY,
    EXCLUDED_KEY,
    GROUP_ANNOTATION_KEY,
    GROUP_TOKEN_COUNT_KEY,
    CompactionStrategy,
    TokenizerProtocol,
)

if TYPE_CHECKING:
    from agentbench.messages.message import Message

logger = logging.getLogger("agentbench")


def included_messages(messages: Iterable[Message]) -> list[Message]:
    """Return the messages that are not excluded.

    Example:
        ```python
        left_out = Message("user", ["old"], additional_properties={"_excluded": True})
        assert included_messages([left_out]) == []
        ```
    """
    return [message for message in messages if not message.additional_properties.get(EXCLUDED_KEY)]


def included_token_count(messages: Iterable[Message]) -> int:
    """Return the sum of the counts known of the messages that are not excluded.

    Units: tokens, as the tokenizer that annotated them counts.
    """
    return sum(map(_known_count, included_messages(messages)))


def _known_count(message: Message) -> int:
    group = message.additional_properties.get(GROUP_ANNOTATION_KEY)
    count = group.get(GROUP_TOKEN_COUNT_KEY) if isinstance(group, dict) else None
    return count if isinstance(count, int) else 0


def project_included_messages(messages: list[Message]) -> list[Message]:
    """Return what a model is sent: the messages that are not excluded, and in any case the open turn.

    A turn is open when the list ends with a user or tool message. Its last user group, and its last tool-call group
    if it has one, are then included again, with a warning: without them the model would not know the question.
    An empty list is never sent: the last group stays.
    """
    _include_again(messages)
    return included_messages(messages)


def _include_again(messages: list[Message]) -> None:
    excluded = [bool(message.additional_properties.get(EXCLUDED_KEY)) for message in messages]
    if not any(excluded):
        return
    needed = [index for index in _open_turn(messages) if excluded[index]]
    if not needed and all(excluded):
        needed = group_messages(messages)[-1].indices
    for index in needed:
        properties = messages[index].additional_properties
        properties[EXCLUDED_KEY] = False
        properties.pop(EXCLUDE_REASON_KEY, None)
    if needed:
        logger.warning(
            "Compaction left out %d message(s) that the model needs to answer; they are sent all the same.", len(needed)
        )


def _open_turn(messages: list[Message]) -> list[int]:
    """Return the positions of the messages without which the model cannot answer."""
    if messages[-1].role not in ("user", "tool"):
        return []
    needed: list[int] = []
    for group in reversed(group_messages(messages)):
        if group.kind == "user":
            return needed + group.indices
        if group.kind == "tool_call" and not needed:
            needed = group.indices
    return needed


async def apply_compaction(
    messages: list[Message], *, strategy: CompactionStrategy | None, tokenizer: TokenizerProtocol | None = None
) -> list[Message]:
    """Annotate a conversation, let a strategy mark it, and return what the model gets.

    Args:
        messages: The conversation, marked in place; a strategy may insert summaries. Pass copies of shared messages.
        strategy: Marks the messages to leave out. `None` leaves out none: the list itself is returned.
        tokenizer: Counts tokens before the strategy runs; without a strategy nothing else happens.

    Example:
        ```python
        async def last_two(messages: list[Message]) -> bool:
            for message in messages[:-2]:
                message.additional_properties["_excluded"] = True
            return len(messages) > 2


        messages = [Message("user", [text]) for text in ("a", "b", "c")]
        assert [message.text for message in await apply_compaction(messages, strategy=last_two)] == ["b", "c"]
        ```
    """
    if strategy is None:
        if tokenizer is not None:
            annotate_message_groups(messages, tokenizer=tokenizer)
        return messages
    if not messages:
        return messages
    annotate_message_groups(messages, tokenizer=tokenizer)
    await strategy(messages)
    return project_included_messages(messages)

"""The projection of a marked conversation: the messages that a model gets."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from agentbench.agents.compaction.grouping import annotate_message_groups, group_messages, group_of
from agentbench.agents.compaction.protocols import (
    EXCLUDE_REASON_KEY,
    EXCLUDED_KEY,
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
        left_out = Message("user", ["old"], additional_properties={"_excluded": True})
        assert included_messages([left_out]) == []
    """
    return [message for message in messages if not message.additional_properties.get(EXCLUDED_KEY)]


def included_token_count(messages: Iterable[Message]) -> int:
    """Return the sum of the tokens counted for the messages that are not excluded, as their tokenizer counts."""
    counts = [group_of(message).get(GROUP_TOKEN_COUNT_KEY) for message in included_messages(messages)]
    return sum(count for count in counts if isinstance(count, int))


def project_included_messages(messages: list[Message]) -> list[Message]:
    """Return what a model is sent: the messages that are not excluded, and in any case the open turn.

    A turn is open when the list ends with a user or tool message. Its last user group, and its last tool-call group
    if it has one, are then included again, with a warning: without them the model would not know the question.
    An empty list is never sent: the last group stays.
    """
    included = included_messages(messages)
    if len(included) == len(messages):
        return included
    needed = [index for index in _open_turn(messages) if messages[index].additional_properties.get(EXCLUDED_KEY)]
    if not needed and not included:
        needed = group_messages(messages)[-1].indices
    if not needed:
        return included
    for index in needed:
        messages[index].additional_properties[EXCLUDED_KEY] = False
        messages[index].additional_properties.pop(EXCLUDE_REASON_KEY, None)
    logger.warning(
        "Compaction left out %d message(s) that the model needs to answer; they are sent all the same.", len(needed)
    )
    return included_messages(messages)


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
        async def last_two(messages: list[Message]) -> bool:
            for message in messages[:-2]:
                message.additional_properties["_excluded"] = True
            return len(messages) > 2


        messages = [Message("user", [text]) for text in ("a", "b", "c")]
        assert [message.text for message in await apply_compaction(messages, strategy=last_two)] == ["b", "c"]
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

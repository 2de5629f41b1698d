"""Projection of a marked conversation to the messages that are sent to a model."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from agentbench.agents.compaction.grouping import annotate_message_groups, group_messages, group_of
from agentbench.agents.compaction.protocols import (
    EXCLUDE_REASON_KEY,
    EXCLUDED_KEY,
    GROUP_TOKEN_COUNT_KEY,
    SUMMARIZED_BY_SUMMARY_ID_KEY,
    SUMMARY_OF_GROUP_IDS_KEY,
    CompactionStrategy,
    TokenizerProtocol,
)

if TYPE_CHECKING:
    from agentbench.messages.message import Message

logger = logging.getLogger("agentbench")


def included_messages(messages: Iterable[Message]) -> list[Message]:
    """Return the messages that are not excluded.

    Example:
        excluded = Message("user", ["old"], additional_properties={"_excluded": True})
        assert included_messages([excluded]) == []
    """
    return [message for message in messages if not message.additional_properties.get(EXCLUDED_KEY)]


def included_token_count(messages: Iterable[Message]) -> int:
    """Return the sum of the token counts in the annotations of the messages that are not excluded.

    Example:
        from agentbench import CharacterEstimatorTokenizer, Message, annotate_message_groups, included_token_count

        messages = [Message("user", ["Hello"])]
        annotate_message_groups(messages, tokenizer=CharacterEstimatorTokenizer())
        assert included_token_count(messages) > 0
    """
    counts = [group_of(message).get(GROUP_TOKEN_COUNT_KEY) for message in included_messages(messages)]
    return sum(count for count in counts if isinstance(count, int))


def project_included_messages(messages: list[Message]) -> list[Message]:
    """Return the messages to send to a model: those that are not excluded, and always those of an open turn.

    A turn is open if the list ends with a user message or a tool call. Then the last message of the user is included
    again, with the last tool call after it and the approval responses to that call, and a warning is logged. Without
    them the model would not know what to answer. An empty list is never sent: the last group is always included.
    """
    included = included_messages(messages)
    if len(included) == len(messages):
        return included
    needed = [index for index in _open_turn(messages) if messages[index].additional_properties.get(EXCLUDED_KEY)]
    if not needed and not included:
        needed = group_messages(messages)[-1].indices
    if not needed:
        return included
    summaries = set()
    for index in needed:
        properties = messages[index].additional_properties
        properties[EXCLUDED_KEY] = False
        properties.pop(EXCLUDE_REASON_KEY, None)
        summaries.add(group_of(messages[index]).get(SUMMARIZED_BY_SUMMARY_ID_KEY))
    for message in messages:  # a summary of a single group would repeat what is included again
        if message.message_id in summaries and len(group_of(message).get(SUMMARY_OF_GROUP_IDS_KEY) or ()) == 1:
            message.additional_properties[EXCLUDED_KEY] = True
    logger.warning(
        "Compaction excluded %d message(s) that the model needs to answer; they are sent anyway.", len(needed)
    )
    return included_messages(messages)


def _open_turn(messages: list[Message]) -> list[int]:
    """Return the positions of the messages that the model needs to answer."""
    groups = group_messages(messages)
    if not groups or groups[-1].kind not in ("user", "tool_call"):
        return []
    needed: list[int] = []
    has_call = False
    for group in reversed(groups):
        if group.kind == "user":
            needed += group.indices
            contents = [one for index in group.indices for one in messages[index].contents]
            if not contents or any(one.type != "function_approval_response" for one in contents):
                return needed
        elif group.kind == "tool_call" and not has_call:
            needed += group.indices
            has_call = True
    return needed


async def apply_compaction(
    messages: list[Message], *, strategy: CompactionStrategy | None, tokenizer: TokenizerProtocol | None = None
) -> list[Message]:
    """Annotate a conversation, apply a strategy, and return the messages for the model.

    Args:
        messages: The conversation. It is marked in place, and a strategy may insert summaries. Pass copies of messages
            that are shared.
        strategy: Marks the messages to exclude. With `None`, the list itself is returned.
        tokenizer: Counts tokens before the strategy runs.

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

"""What compaction works on: groups of messages that belong together, what is left out of them, and the protocols."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from agentbench import _clock

if TYPE_CHECKING:
    from agentbench.messages.message import Message

GROUP_ANNOTATION_KEY = "_group"
"""The key of a dict with the keys below. The messages of a group are included or excluded together."""

GROUP_ID_KEY = "id"
GROUP_KIND_KEY = "kind"
GROUP_INDEX_KEY = "index"
GROUP_HAS_REASONING_KEY = "has_reasoning"
GROUP_TOKEN_COUNT_KEY = "token_count"
SUMMARY_OF_MESSAGE_IDS_KEY = "_summary_of_message_ids"
SUMMARY_OF_GROUP_IDS_KEY = "_summary_of_group_ids"
SUMMARIZED_BY_SUMMARY_ID_KEY = "_summarized_by_summary_id"

EXCLUDED_KEY = "_excluded"
"""The key of a mark that is true if the message is not sent to the model. It is not part of the group dict."""

EXCLUDE_REASON_KEY = "_exclude_reason"
COMPACTION_STATE_KEY = "_compaction_messages"


@runtime_checkable
class TokenizerProtocol(Protocol):
    """Counts the tokens of a text.

    Example:
        from agentbench import TokenizerProtocol

        class Words:
            def count_tokens(self, text: str) -> int:
                return len(text.split())

        assert isinstance(Words(), TokenizerProtocol)
    """

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a text."""


@runtime_checkable
class CompactionStrategy(Protocol):
    """Decides which messages of a conversation are sent to a model.

    A strategy marks messages in place (`_excluded`) and may insert summaries. It never edits the contents of a message.

    Example:
        class KeepLast:
            async def __call__(self, messages):
                for message in messages[:-10]:
                    message.additional_properties["_excluded"] = True
                return len(messages) > 10
    """

    async def __call__(self, messages: list[Message]) -> bool:
        """Mark messages of the list and return whether anything changed."""


class CharacterEstimatorTokenizer:
    """Estimates tokens without a vocabulary: four characters count as one token, and every text has at least one.

    Example:
        assert CharacterEstimatorTokenizer().count_tokens("twelve chars") == 3
    """

    __slots__ = ()

    def count_tokens(self, text: str) -> int:
        """Return a quarter of the number of characters, but at least 1."""
        return max(1, len(text) // 4)

    def __repr__(self) -> str:
        return "CharacterEstimatorTokenizer()"


# ---- groups


GroupKind: TypeAlias = Literal["system", "user", "assistant_text", "tool_call"]

_KIND_OF_ROLE: dict[str, GroupKind] = {"system": "system", "developer": "system", "user": "user"}


class MessageGroup(NamedTuple):
    """Messages that are included or excluded together, by their ascending positions; these are mostly adjacent."""

    kind: GroupKind
    indices: list[int]


def group_messages(messages: Sequence[Message]) -> list[MessageGroup]:
    """Divide a conversation into groups, ordered by their first message.

    A `tool_call` group contains the reasoning-only messages directly before the calling message, that message, the
    reasoning-only messages after it, and all tool messages that follow. A result further away also belongs to the group
    of its call. A tool message whose call is not in the list is a separate `tool_call` group.
    """
    return divide(messages)[0]


def divide(messages: Sequence[Message]) -> tuple[list[MessageGroup], set[int]]:
    """Return the groups of a conversation, and the positions where one begins while no earlier call waits for a result.

    Messages from such a position on do not join an earlier group.
    """
    independent: set[int] = set()
    groups: list[MessageGroup] = []
    waiting: dict[str, MessageGroup] = {}
    index = 0
    while index < len(messages):
        if not waiting:
            independent.add(index)
        kind, end = _next_group(messages, index)
        group = MessageGroup(kind, list(range(index, end)))
        groups.append(group)
        if kind == "tool_call":
            _join_with_callers(groups, waiting, messages)
        index = end
    return groups, independent


def _next_group(messages: Sequence[Message], start: int) -> tuple[GroupKind, int]:
    """Return the kind of the group that begins at a message, and the position after its adjacent messages."""
    role = messages[start].role
    if role not in ("assistant", "tool"):
        return _KIND_OF_ROLE.get(role, "user"), start + 1
    end = start
    if role == "assistant":
        caller = _end_of_reasoning(messages, start)
        if caller == len(messages) or not _calls(messages[caller]):
            return "assistant_text", start + 1
        end = _end_of_reasoning(messages, caller + 1)
    while end < len(messages) and messages[end].role == "tool":
        end += 1
    return "tool_call", end


def _end_of_reasoning(messages: Sequence[Message], start: int) -> int:
    for index in range(start, len(messages)):
        role, contents = messages[index].role, messages[index].contents
        if role != "assistant" or not contents or any(one.type != "text_reasoning" for one in contents):
            return index
    return len(messages)


def _calls(message: Message) -> list[str]:
    if message.role != "assistant":
        return []
    return [one.call_id or "" for one in message.contents if one.type == "function_call"]


def _join_with_callers(
    groups: list[MessageGroup], waiting: dict[str, MessageGroup], messages: Sequence[Message]
) -> None:
    """Merge the newest group with earlier ones whose calls it answers, and record its unanswered calls."""
    newest = groups[-1]
    members = [messages[index] for index in newest.indices]
    opened = {call_id for message in members for call_id in _calls(message)}
    contents = [one for message in members for one in message.contents]
    answered = {one.call_id or "" for one in contents if one.type == "function_result"}
    callers = [waiting.pop(call_id) for call_id in sorted(answered - opened) if call_id in waiting]
    for caller in sorted(callers, key=lambda group: group.indices[0]):
        if caller is newest:
            continue
        # Merge into the earliest caller, because one message answers the calls of all of them.
        first, second = sorted((caller, newest), key=lambda group: group.indices[0])
        first.indices[:] = sorted({*first.indices, *second.indices})
        groups[:] = [group for group in groups if group is not second]
        for call_id, group in waiting.items():
            if group is second:
                waiting[call_id] = first
        newest = first
    for call_id in opened - answered:
        waiting[call_id] = newest


def annotate_message_groups(
    messages: list[Message],
    *,
    from_index: int | None = None,
    force_reannotate: bool = False,
    tokenizer: TokenizerProtocol | None = None,
) -> list[str]:
    """Annotate every message with its group, in place, and return the ids of all groups.

    Messages without an `_excluded` mark get `_excluded=False`. A group keeps its id when messages are added to it or
    before it.

    Args:
        messages: The conversation. The dicts of annotations are replaced, not edited, so copies of a message do not
            change.
        from_index: The index of a message; groups before the group of this message are not annotated again.
        force_reannotate: Whether to give every group a new id and count tokens again.
        tokenizer: Counts the tokens of messages that have no count; without one, tokens are not counted.

    Example:
        messages = [Message("user", ["hi"]), Message("assistant", ["hello"])]
        ids = annotate_message_groups(messages)
        assert [message.additional_properties["_group"]["id"] for message in messages] == ids
    """
    group_ids = [group_of(message).get(GROUP_ID_KEY) for message in messages]
    taken = set(group_ids)
    used: set[str] = set()
    new_id = _clock.runtime_defaults().ids.new_id
    ids: list[str] = []
    for index, group in enumerate(group_messages(messages)):
        earlier = () if force_reannotate else (group_ids[at] for at in group.indices)
        group_id = next((one for one in earlier if one and one not in used), "")
        if not group_id:  # a restarted source of ids may repeat ids that are in use
            while (group_id := new_id("group")) in taken:
                pass
            taken.add(group_id)
        used.add(group_id)
        ids.append(group_id)
        if from_index is None or group.indices[-1] >= from_index:
            _mark([messages[at] for at in group.indices], group.kind, group_id, index, forget=force_reannotate)
    if tokenizer is not None:
        for message in messages[from_index or 0 :]:
            marks = group_of(message)
            if not isinstance(marks.get(GROUP_TOKEN_COUNT_KEY), int):
                count = tokenizer.count_tokens(_as_text(message))
                message.additional_properties[GROUP_ANNOTATION_KEY] = {**marks, GROUP_TOKEN_COUNT_KEY: count}
    return ids


def _mark(members: list[Message], kind: GroupKind, group_id: str, index: int, *, forget: bool) -> None:
    has_reasoning = any(one.type == "text_reasoning" for message in members for one in message.contents)
    for message in members:
        group = {
            **group_of(message),
            GROUP_ID_KEY: group_id,
            GROUP_KIND_KEY: kind,
            GROUP_INDEX_KEY: index,
            GROUP_HAS_REASONING_KEY: has_reasoning,
        }
        if forget:
            group.pop(GROUP_TOKEN_COUNT_KEY, None)
        message.additional_properties[GROUP_ANNOTATION_KEY] = group
        message.additional_properties.setdefault(EXCLUDED_KEY, False)


def group_of(message: Message) -> dict[str, Any]:
    """Return the group annotation of a message; empty if the message was not annotated."""
    group = message.additional_properties.get(GROUP_ANNOTATION_KEY)
    return group if isinstance(group, dict) else {}


def _as_text(message: Message) -> str:
    """Return as JSON the parts of a message that a model reads, with the text of a result only once."""
    contents = []
    for one in message.contents:
        plain = one.to_dict(exclude={"additional_properties"})
        if plain.get("result"):
            plain["items"] = [item for item in plain.get("items") or () if item.get("type") != "text"]
        contents.append(plain)
    plain_message = {"role": message.role, "message_id": message.message_id, "contents": contents}
    return json.dumps(plain_message, ensure_ascii=False, default=str)


# ---- what is included


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
            if begins_turn(messages[group.indices[0]]):
                return needed
        elif group.kind == "tool_call" and not has_call:
            needed += group.indices
            has_call = True
    return needed


def begins_turn(message: Message) -> bool:
    """Return whether this is a message of the user that does more than answer approval requests."""
    if message.role == "assistant" or message.role == "tool" or _KIND_OF_ROLE.get(message.role) == "system":
        return False
    contents = message.contents
    return not contents or any(one.type != "function_approval_response" for one in contents)


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

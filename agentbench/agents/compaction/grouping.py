"""Groups of messages that belong together: a call of a tool is never separated from its result."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from agentbench import _clock
from agentbench.agents.compaction.protocols import (
    EXCLUDED_KEY,
    GROUP_ANNOTATION_KEY,
    GROUP_HAS_REASONING_KEY,
    GROUP_ID_KEY,
    GROUP_INDEX_KEY,
    GROUP_KIND_KEY,
    GROUP_TOKEN_COUNT_KEY,
    TokenizerProtocol,
)

if TYPE_CHECKING:
    from agentbench.messages.message import Message

GroupKind: TypeAlias = Literal["system", "user", "assistant_text", "tool_call"]

_KIND_OF_ROLE: dict[str, GroupKind] = {"system": "system", "developer": "system", "user": "user"}


class MessageGroup(NamedTuple):
    """Messages that are included or left out together.

    Attributes:
        kind: The kind of the group.
        indices: The positions of its messages in the list, ascending; mostly, but not always, side by side.
    """

    kind: GroupKind
    indices: list[int]


def group_messages(messages: Sequence[Message]) -> list[MessageGroup]:
    """Divide a conversation into groups, ordered by their first message.

    A `tool_call` group holds the reasoning-only messages directly before the calling message, that message, the
    reasoning-only messages after it and all tool messages that follow. A result further away belongs to
    the group of its call too; a tool message whose call is not in the list is a `tool_call` group of its own.
    """
    groups: list[MessageGroup] = []
    waiting: dict[str, MessageGroup] = {}
    index = 0
    while index < len(messages):
        kind, end = _next_group(messages, index)
        group = MessageGroup(kind, list(range(index, end)))
        groups.append(group)
        if kind == "tool_call":
            _join_with_callers(groups, waiting, messages)
        index = end
    return groups


def _next_group(messages: Sequence[Message], start: int) -> tuple[GroupKind, int]:
    """Return the kind of the group that begins at a message, and where its neighbours begin."""
    role = messages[start].role
    if role == "tool":
        return "tool_call", _end_of(messages, start, _is_tool)
    if role != "assistant":
        return _KIND_OF_ROLE.get(role, "user"), start + 1
    caller = _end_of(messages, start, _is_reasoning)
    if caller == len(messages) or not _calls(messages[caller]):
        return "assistant_text", start + 1
    return "tool_call", _end_of(messages, _end_of(messages, caller + 1, _is_reasoning), _is_tool)


def _end_of(messages: Sequence[Message], start: int, belongs: Any) -> int:
    while start < len(messages) and belongs(messages[start]):
        start += 1
    return start


def _is_tool(message: Message) -> bool:
    return message.role == "tool"


def _is_reasoning(message: Message) -> bool:
    contents = message.contents
    return message.role == "assistant" and bool(contents) and all(one.type == "text_reasoning" for one in contents)


def _calls(message: Message) -> list[str]:
    if message.role != "assistant":
        return []
    return [one.call_id or "" for one in message.contents if one.type == "function_call"]


def _join_with_callers(
    groups: list[MessageGroup], waiting: dict[str, MessageGroup], messages: Sequence[Message]
) -> None:
    """Unite the newest group with earlier ones whose calls it answers; note the calls that it leaves open."""
    newest = groups[-1]
    answered: set[str] = set()
    opened: set[str] = set()
    for index in newest.indices:
        opened.update(_calls(messages[index]))
        answered.update(one.call_id or "" for one in messages[index].contents if one.type == "function_result")
    callers = [waiting.pop(call_id) for call_id in sorted(answered - opened) if call_id in waiting]
    for caller in sorted(callers, key=lambda group: group.indices[0]):
        if caller is newest:
            continue
        # The earliest caller takes the others in: their calls are answered by one and the same message.
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
    """Mark every message with its group, in place, and with `_excluded=False` if it has no such mark.

    A group retains its id, also when messages were added to it or in front of it.

    Args:
        messages: The conversation. The dicts of marks are replaced, not edited: copies of a message do not change.
        from_index: Index of a message; the groups in front of its group stay as they are.
        force_reannotate: Whether every group gets a new id, and tokens are counted anew.
        tokenizer: Counts the tokens of messages without a count; by default none are counted.

    Returns:
        The ids of all groups, in order.

    Example:
        ```python
        messages = [Message("user", ["hi"]), Message("assistant", ["hello"])]
        ids = annotate_message_groups(messages)
        assert [message.additional_properties["_group"]["id"] for message in messages] == ids
        ```
    """
    groups = group_messages(messages)
    taken = _known_ids(messages)
    used: set[str] = set()
    ids: list[str] = []
    for index, group in enumerate(groups):
        members = [messages[at] for at in group.indices]
        group_id = None if force_reannotate else next((i for i in map(_id_of, members) if i and i not in used), None)
        if group_id is None:
            group_id = _new_id(taken)
        used.add(group_id)
        ids.append(group_id)
        if from_index is None or group.indices[-1] >= from_index:
            _mark(members, group.kind, group_id, index, forget=force_reannotate)
    if tokenizer is not None:
        annotate_token_counts(messages, tokenizer=tokenizer, from_index=from_index)
    return ids


def _mark(members: list[Message], kind: GroupKind, group_id: str, index: int, *, forget: bool) -> None:
    has_reasoning = any(one.type == "text_reasoning" for message in members for one in message.contents)
    for message in members:
        properties = message.additional_properties
        group = dict(properties.get(GROUP_ANNOTATION_KEY) or ())
        if forget:
            group.pop(GROUP_TOKEN_COUNT_KEY, None)
        group[GROUP_ID_KEY] = group_id
        group[GROUP_KIND_KEY] = kind
        group[GROUP_INDEX_KEY] = index
        group[GROUP_HAS_REASONING_KEY] = has_reasoning
        properties[GROUP_ANNOTATION_KEY] = group
        properties.setdefault(EXCLUDED_KEY, False)


def _id_of(message: Message) -> str | None:
    group = message.additional_properties.get(GROUP_ANNOTATION_KEY)
    group_id = group.get(GROUP_ID_KEY) if isinstance(group, dict) else None
    return group_id if isinstance(group_id, str) else None


def _known_ids(messages: Iterable[Message]) -> set[str]:
    return {group_id for message in messages if (group_id := _id_of(message))}


def _new_id(taken: set[str]) -> str:
    """Return an id that no group of this list has, also if the source of ids was restarted since it was saved."""
    ids = _clock.runtime_defaults().ids
    while (group_id := ids.new_id("group")) in taken:
        pass
    taken.add(group_id)
    return group_id


def annotate_token_counts(
    messages: list[Message], *, tokenizer: TokenizerProtocol, from_index: int | None = None, force: bool = False
) -> None:
    """Mark every annotated message with its number of tokens; known counts stay unless `force` is set."""
    for message in messages[from_index or 0 :]:
        group = dict(message.additional_properties.get(GROUP_ANNOTATION_KEY) or ())
        if force or not isinstance(group.get(GROUP_TOKEN_COUNT_KEY), int):
            group[GROUP_TOKEN_COUNT_KEY] = tokenizer.count_tokens(_as_text(message))
            message.additional_properties[GROUP_ANNOTATION_KEY] = group


def _as_text(message: Message) -> str:
    """Return the parts of a message that a model reads as JSON, with the text of a result once."""
    contents = []
    for one in message.contents:
        plain = one.to_dict(exclude={"additional_properties"})
        if plain.get("result"):
            plain["items"] = [item for item in plain.get("items") or () if item.get("type") != "text"]
        contents.append(plain)
    plain_message = {"role": message.role, "message_id": message.message_id, "contents": contents}
    return json.dumps(plain_message, ensure_ascii=False, default=str)


def extend_compaction_messages(
    messages: list[Message], new: Iterable[Message], *, tokenizer: TokenizerProtocol | None = None
) -> None:
    """Append messages and annotate them; results join the group of their call."""
    start = len(messages)
    messages.extend(new)
    annotate_message_groups(messages, from_index=start, tokenizer=tokenizer)


def append_compaction_message(
    messages: list[Message], message: Message, *, tokenizer: TokenizerProtocol | None = None
) -> None:
    """Append one message and annotate it."""
    extend_compaction_messages(messages, (message,), tokenizer=tokenizer)

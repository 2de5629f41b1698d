"""Continues with a conversation where its last turn ended, instead of working through all of it again."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any, Final, NamedTuple

from agentbench.agents.compaction.grouping import (
    EXCLUDED_KEY,
    GROUP_ANNOTATION_KEY,
    GROUP_INDEX_KEY,
    begins_turn,
    divide,
    group_messages,
    group_of,
)
from agentbench.agents.compaction.strategies import SlidingWindowStrategy
from agentbench.messages.message import Message

_FEWEST: Final = 16
"""Fewer excluded messages are worked through again, because remembering them takes longer."""


class _Start(NamedTuple):
    """The start of a conversation that is settled: whatever follows, the strategy excludes all of it but `kept`."""

    settings: object = None
    messages: Sequence[Message] = ()
    marks: Sequence[Any] = ()
    """Which of the messages were excluded by somebody else."""
    kept: Sequence[int] = ()
    """Positions of the system messages that stay."""
    indexes: Sequence[int] = ()
    """Indexes of their groups."""
    n_groups: int = 0


class ContinuedWindow:
    """A `SlidingWindowStrategy` for one run. It does not see again what a run before it excluded for good.

    That changes nothing in the messages that the model gets: a window never moves back while a conversation grows. The
    strategy starts over if the conversation does not begin with the same messages, with the same exclusion marks, or
    if what follows fits into the window, for example because messages were removed.

    Args:
        strategy: The strategy.
        memory: Outlasts the run, with the conversation.
    """

    def __init__(self, strategy: SlidingWindowStrategy, memory: dict[Any, Any]) -> None:
        self._strategy, self._memory = strategy, memory
        self._settings = (strategy.keep_last_groups, strategy.preserve_system)
        self._conversation: list[Message] = []
        self._start = _Start()
        self._has_begun = False

    def begin(self, conversation: list[Message]) -> list[Message]:
        """Return the messages of a conversation that the strategy has to see."""
        self._conversation = conversation
        start: _Start = self._memory.get(ContinuedWindow, self._start)
        if self._continues(start, conversation):
            rest = [*[conversation[at] for at in start.kept], *conversation[len(start.messages) :]]
            if self._exceeds_window(rest):
                self._start = start
                return rest
        return conversation

    def _continues(self, start: _Start, conversation: list[Message]) -> bool:
        length = len(start.messages)
        return (
            start.settings == self._settings
            and len(conversation) > length
            and all(map(is_, start.messages, conversation))
            and _marks_of(start.messages) == start.marks
            and begins_turn(conversation[length])
        )

    def _exceeds_window(self, messages: list[Message]) -> bool:
        count = 0
        for group in group_messages(messages):
            if group.kind != "system" and not all(_is_excluded(messages[at]) for at in group.indices):
                count += 1
        return count > self._strategy.keep_last_groups

    async def __call__(self, messages: list[Message]) -> bool:
        """Apply the strategy to the messages of `begin` and those that the run added."""
        changed = await self._strategy(messages)
        start = self._start
        for message in messages if start.n_groups else ():
            group = group_of(message)
            index = group[GROUP_INDEX_KEY]
            kept = len(start.indexes)
            index = start.indexes[index] if index < kept else index - kept + start.n_groups
            message.additional_properties[GROUP_ANNOTATION_KEY] = {**group, GROUP_INDEX_KEY: index}
        if not self._has_begun:
            self._has_begun = True
            if sum(map(_is_excluded, messages)) >= _FEWEST:
                self._remember(messages)
        return changed

    def _remember(self, messages: list[Message]) -> None:
        """Remember the longest settled start; it ends before a message of the user.

        There the grouping of what is before ends, whatever follows, and the open turn begins there or later.
        """
        start, end = self._start, 0
        groups, independent = divide(messages)
        for group in groups:
            first = group.indices[0]
            if first in independent and begins_turn(messages[first]):
                end = first
            if group.kind != "system" and not all(_is_excluded(messages[at]) for at in group.indices):
                break
        kept, length = len(start.kept), len(start.messages)
        if end <= kept:
            return
        settled = self._conversation[: end - kept + length]
        places = [at for at in range(end) if not _is_excluded(messages[at])]
        self._memory[ContinuedWindow] = _Start(
            self._settings,
            settled,
            _marks_of(settled),
            [start.kept[at] if at < kept else at - kept + length for at in places],
            [group_of(messages[at])[GROUP_INDEX_KEY] for at in places],
            group_of(messages[end])[GROUP_INDEX_KEY],
        )


def _marks_of(messages: Sequence[Message]) -> list[Any]:
    return [message.additional_properties.get(EXCLUDED_KEY) for message in messages]


def _is_excluded(message: Message) -> bool:
    return bool(message.additional_properties.get(EXCLUDED_KEY))

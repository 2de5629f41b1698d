"""Continues with a conversation where its last turn ended, instead of working through all of it again."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any, Final, NamedTuple

from agentbench.agents.compaction.grouping import (
    EXCLUDED_KEY,
    GROUP_ANNOTATION_KEY,
    GROUP_INDEX_KEY,
    GROUP_KIND_KEY,
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
    """The start of a conversation that is before the window, whatever follows and whatever is marked."""

    settings: object = None
    messages: Sequence[Message] = ()
    systems: Sequence[tuple[int, int]] = ()
    """Positions of its system messages, which may stay, and the indexes of their groups."""
    n_groups: int = 0


class ContinuedWindow:
    """A `SlidingWindowStrategy` for one run. It does not see again what was before the window in an earlier run.

    That changes nothing in the messages that the model gets: a window never moves back while a conversation grows. The
    strategy starts over if the conversation does not begin with the same messages, or if what follows fits into the
    window, for example because messages were removed or marked. `memory` outlasts the run, with the conversation.
    """

    def __init__(self, strategy: SlidingWindowStrategy, memory: dict[Any, Any]) -> None:
        self._strategy, self._memory = strategy, memory
        self._settings = (strategy.keep_last_groups, strategy.preserve_system)
        self._conversation: list[Message] = []
        self._start = _Start()
        self._kept: list[tuple[int, int]] = []
        """Of the system messages of the start, those that stay."""
        self._has_begun = False

    def begin(self, conversation: list[Message]) -> list[Message]:
        """Return the messages of a conversation that the strategy has to see."""
        self._conversation = conversation
        start: _Start = self._memory.get(ContinuedWindow, self._start)
        length = len(start.messages)
        if (
            start.settings != self._settings
            or len(conversation) <= length
            or not all(map(is_, start.messages, conversation))
            or not begins_turn(conversation[length])
            or not self._exceeds_window(rest := conversation[length:])
        ):
            return conversation
        self._start = start
        if self._strategy.preserve_system:
            self._kept = [system for system in start.systems if not _is_excluded(conversation[system[0]])]
        return [*[conversation[at] for at, _ in self._kept], *rest]

    def _exceeds_window(self, messages: list[Message]) -> bool:
        groups = [group.indices for group in group_messages(messages) if group.kind != "system"]
        included = [group for group in groups if not all(_is_excluded(messages[at]) for at in group)]
        return len(included) > self._strategy.keep_last_groups

    async def __call__(self, messages: list[Message]) -> bool:
        """Apply the strategy to the messages of `begin` and those that the run added."""
        changed = await self._strategy(messages)
        if self._start.messages:
            kept, more = len(self._kept), self._start.n_groups - len(self._kept)
            for message in messages:
                group = group_of(message)
                index = group[GROUP_INDEX_KEY]
                index = self._kept[index][1] if index < kept else index + more
                message.additional_properties[GROUP_ANNOTATION_KEY] = {**group, GROUP_INDEX_KEY: index}
        if not self._has_begun:
            self._has_begun = True
            if sum(map(_is_excluded, messages)) >= _FEWEST:
                self._remember(messages)
        return changed

    def _remember(self, messages: list[Message]) -> None:
        """Remember the longest start of which all but the system messages are excluded.

        It ends before a message of the user, because no group contains messages from both sides of that.
        """
        start, end = self._start, 0
        groups, independent = divide(messages)
        for group in groups:
            first = group.indices[0]
            if first in independent and begins_turn(messages[first]):
                end = first
            if group.kind != "system" and not all(_is_excluded(messages[at]) for at in group.indices):
                break
        kept, length = len(self._kept), len(start.messages)
        if end <= kept:
            return
        new = messages[kept:end]
        indexes = [group_of(message)[GROUP_INDEX_KEY] for message in new]
        systems = [at for at, message in enumerate(new) if group_of(message)[GROUP_KIND_KEY] == "system"]
        self._memory[ContinuedWindow] = _Start(
            self._settings,
            self._conversation[: length + len(new)],
            [*start.systems, *[(length + at, indexes[at]) for at in systems]],
            group_of(messages[end])[GROUP_INDEX_KEY],
        )


def _is_excluded(message: Message) -> bool:
    return bool(message.additional_properties.get(EXCLUDED_KEY))

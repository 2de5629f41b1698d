"""Whether an event loop has come round, so that a run whose handlers wait need not give it a turn."""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary


class LoopTurns:
    """Counts the rounds of one event loop, but only those that a run has asked to be counted."""

    __slots__ = ("_is_asked", "count")

    def __init__(self) -> None:
        self.count = 0
        self._is_asked = False

    def ask(self, loop: asyncio.AbstractEventLoop) -> int:
        """Have the next round counted, once for all runs that ask during this one; return the count so far."""
        if not self._is_asked:
            self._is_asked = True
            loop.call_soon(self._count)
        return self.count

    def _count(self) -> None:
        self._is_asked = False
        self.count += 1


_OF_LOOPS: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopTurns] = WeakKeyDictionary()


def turns_of(loop: asyncio.AbstractEventLoop) -> LoopTurns:
    """Return the counter of a loop, which all runs on it share."""
    turns = _OF_LOOPS.get(loop)
    if turns is None:
        turns = _OF_LOOPS[loop] = LoopTurns()
    return turns

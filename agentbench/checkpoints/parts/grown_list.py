"""Lists that only grow along a chain, kept once: in memory, the counterpart of parts.

A conversation is in every checkpoint of its chain, each time a little longer. Its entries are written down once, in a
log; a checkpoint notes how many of them it has.
"""

from __future__ import annotations

from operator import is_
from typing import Any, Final

from agentbench._copying import is_atomic

#: Shorter lists are copied: nothing would be won.
_SHORTEST: Final = 32
#: How far dictionaries are looked into for such lists: state, executor state, the state of one executor.
_DEEPEST: Final = 3


class GrownList:
    """A list of immutable entries, as the beginning of a log. A copy of it is the list."""

    __slots__ = ("length", "log")

    def __init__(self, log: list[Any], length: int) -> None:
        self.log = log
        self.length = length

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        found = memo[id(self)] = self.log[: self.length]
        return found


class GrowthLogs:
    """The logs of one chain."""

    __slots__ = ("_logs",)

    def __init__(self) -> None:
        #: By the identity of the first entry, which the log keeps alive.
        self._logs: dict[int, list[Any]] = {}

    def note(self, value: object, depth: int = _DEEPEST) -> dict[int, GrownList]:
        """Write down what is new in the long lists of a value.

        Args:
            value: A dictionary; others have no lists to look for.
            depth: How far to look into it.

        Returns:
            What stands for these lists, by their identity.
        """
        found: dict[int, GrownList] = {}
        logs = self._logs
        self._logs = {}
        self._note(value, depth, logs, found)
        return found

    def _note(self, value: object, depth: int, logs: dict[int, list[Any]], found: dict[int, GrownList]) -> None:
        if type(value) is not dict:
            return
        for item in value.values():
            if type(item) is list:
                if len(item) >= _SHORTEST and (grown := self._grown(item, logs)) is not None:
                    found[id(item)] = grown
            elif depth > 1 and type(item) is dict:
                self._note(item, depth - 1, logs, found)

    def _grown(self, entries: list[Any], logs: dict[int, list[Any]]) -> GrownList | None:
        first = id(entries[0])
        log = self._logs.get(first) or logs.get(first)
        if log is None or not all(map(is_, log, entries)):
            log = []
        new = entries[len(log) :]
        if not all(map(is_atomic, new)):
            return None
        log.extend(new)
        self._logs[first] = log
        return GrownList(log, len(entries))

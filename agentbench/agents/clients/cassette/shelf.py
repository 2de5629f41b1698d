"""Which recorded call answers a request, and which have been used: pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentbench.agents.clients.cassette.recorded import RecordedCall
from agentbench.agents.clients.cassette.tape import Tape

__all__ = ["Shelf"]


class Shelf:
    """The calls of a tape, by their requests.

    Args:
        key_of: The key under which a request, as it was sent, is found.
        repeat: Whether the last of equal requests is served again and again.
    """

    def __init__(self, key_of: Callable[[dict[str, Any]], str], *, repeat: bool) -> None:
        self._key_of = key_of
        self._repeat = repeat
        self._tape: Tape | None = None
        self._known = 0
        self._places: dict[str, list[int]] = {}
        self._used: set[int] = set()

    def take_in(self, tape: Tape) -> None:
        """Sort in what has come; another tape than before starts anew."""
        if tape is not self._tape:
            self._tape, self._known = tape, 0
            self._places, self._used = {}, set()
        for place in range(self._known, len(tape.calls)):
            self._places.setdefault(self._key_of(tape.calls[place].request), []).append(place)
            self._known = place + 1

    def serve(self, key: str) -> RecordedCall | None:
        """The next call with this request, in recorded order; then, where calls repeat, the last one again."""
        places = self._places.get(key, [])
        place = next((place for place in places if place not in self._used), None)
        if place is None and self._repeat and places:
            place = places[-1]
        return None if place is None else self._use(place)

    def use_last(self) -> RecordedCall:
        """Count the newest call as used, since it was just recorded, and return it."""
        return self._use(len(self._calls) - 1)

    def use_all(self) -> None:
        """Count every call as used."""
        self._used = set(range(self._known))

    @property
    def used(self) -> list[RecordedCall]:
        """The calls that were served or recorded, in the order of the file."""
        return [call for place, call in enumerate(self._calls) if place in self._used]

    @property
    def unused(self) -> list[RecordedCall]:
        """The others, in the order of the file."""
        return [call for place, call in enumerate(self._calls) if place not in self._used]

    def count(self, key: str) -> int:
        """How many calls there are with this request."""
        return len(self._places.get(key, []))

    @property
    def _calls(self) -> list[RecordedCall]:
        return [] if self._tape is None else self._tape.calls

    def _use(self, place: int) -> RecordedCall:
        self._used.add(place)
        return self._calls[place]

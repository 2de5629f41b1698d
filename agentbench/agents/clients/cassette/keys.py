"""The keys under which requests are found, made message by message: a long conversation grows only at its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from agentbench.agents.clients.cassette.plain import Plain
from agentbench.agents.clients.cassette.request import canonical_message, canonical_request, key_of

__all__ = ["RequestKeys"]

_MOST = 20_000
"""How many messages are remembered; one more, and all are forgotten."""


class _Key(NamedTuple):
    """What one message adds to a key.

    Attributes:
        text: Of the message as it is compared, its calls numbered as if it stood alone.
        ids: Of those calls, by number.
    """

    text: str
    ids: tuple[str, ...]


class RequestKeys:
    """A function of plain requests: its keys are equal where the requests are, in the form that is compared.

    The calls of a request are numbered from its first message on, so a message alone does not know their numbers. Its
    own numbering, and the numbers that these calls have in the request, say as much.

    Args:
        prepare: Changes whatever is compared, before it is.
    """

    def __init__(self, prepare: Callable[[Any], Any]) -> None:
        self._prepare = prepare
        self._known: dict[int, tuple[Plain, _Key]] = {}

    def __call__(self, request: Plain) -> str:
        """Return the key. The messages of the request must not change afterwards."""
        numbers: dict[str, int] = {}
        messages = [
            (key.text, *[numbers.setdefault(call_id, len(numbers)) for call_id in key.ids])
            for key in map(self._key, request["messages"])
        ]
        rest = self._prepare({"messages": [], "tools": request["tools"], "options": request["options"]})
        return key_of({**canonical_request(rest), "messages": messages})

    def _key(self, message: Plain) -> _Key:
        known = self._known.get(id(message))
        if known is not None:
            return known[1]
        ids: dict[str, str] = {}
        key = _Key(key_of(canonical_message(self._prepare(message), ids)), tuple(ids))
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[id(message)] = message, key  # as long as the message is kept, no other one has its id
        return key

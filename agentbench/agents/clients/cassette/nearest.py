"""The recorded call that is most like a request which was not found: pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from agentbench.agents.clients.cassette.difference import Difference, first_difference
from agentbench.agents.clients.cassette.recorded import RecordedCall
from agentbench.agents.clients.cassette.request import prompt_of

__all__ = ["Nearest", "nearest_call"]

_COMPARED = 400
"""How many characters of two prompts are compared."""


class Nearest(NamedTuple):
    """A recorded call, and the first thing that sets a request apart from it.

    Attributes:
        call: The call.
        difference: `None` if the requests are equal.
    """

    call: RecordedCall
    difference: Difference | None


def nearest_call(
    request: dict[str, Any], calls: Sequence[RecordedCall], canonical: Callable[[dict[str, Any]], dict[str, Any]]
) -> Nearest | None:
    """Find the call with the longest common run of messages; then the same tools count, then the prompt, then age.

    Args:
        request: In the form that is compared.
        calls: Where to look; of calls that are equally near the newest is taken.
        canonical: Brings the request of a call into that form.
    """
    if not calls:
        return None
    texts, tools = _texts(request.get("messages")), _text(request.get("tools"))
    forms = [canonical(call.request) for call in calls]
    runs = [_longest_run(_texts(form.get("messages")), texts) for form in forms]
    ranks = [(run, _text(form.get("tools")) == tools) for run, form in zip(runs, forms, strict=True)]
    best = max(ranks)
    rest = [place for place, rank in enumerate(ranks) if rank == best]
    place = max(rest, key=lambda place: (_likeness(forms[place], request), place))
    return Nearest(calls[place], first_difference(forms[place], request))


def _texts(messages: Any) -> list[str]:
    return [_text(message) for message in messages] if isinstance(messages, list) else []


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _longest_run(recorded: list[str], now: list[str]) -> int:
    matcher = SequenceMatcher(None, recorded, now, autojunk=False)
    return matcher.find_longest_match(0, len(recorded), 0, len(now)).size


def _likeness(form: dict[str, Any], request: dict[str, Any]) -> tuple[float, int]:
    recorded, now = (prompt_of(either)[:_COMPARED] for either in (form, request))
    lengths = abs(len(form.get("messages") or ()) - len(request.get("messages") or ()))
    return SequenceMatcher(None, recorded, now).quick_ratio(), -lengths

"""The error for a request without a recorded answer: it shows the nearest call and the first difference."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, Literal

from agentbench.agents.clients.cassette.cassette import Cassette, Request
from agentbench.agents.clients.cassette.lines import StoredCall
from agentbench.agents.clients.cassette.request import Plain, prompt_of
from agentbench.agents.clients.cassette.secrets import Redaction, redact_secrets
from agentbench.exceptions import CassetteMissError
from agentbench.serialization.plain import are_equal

Reason = Literal["replay", "no client", "offline"]

_REMEDIES: dict[Reason, str] = {
    "replay": "pass a client and mode='auto', which adds missing calls, or mode='record', which starts a new file",
    "no client": "pass a client or a function that makes one; mode='record' starts a new file",
    "offline": "unset AGENTBENCH_OFFLINE, because recording needs the network",
}

_MOST_COMPARED = 400  # characters of two prompts
_MOST_CHARACTERS = 200
_LEAD = 40  # common characters of two long texts that are shown before the first difference
_ABSENT = object()


def miss_error(cassette: Cassette, request: Request, *, reason: Reason, secrets: Collection[str]) -> CassetteMissError:
    """Return the error with the nearest recorded call, the first difference and a remedy; secrets are masked."""
    canonical = cassette.matcher.canonical
    sent, equal = canonical(request.sent), cassette.count(request)
    messages = len(sent.get("messages") or ())
    lines = [f"No recorded answer in {cassette.path} to a request of {messages} message{'' if messages == 1 else 's'}."]
    nearest, difference = nearest_call(sent, cassette.lines.calls, canonical), None
    if equal:
        times = "once" if equal == 1 else f"{equal} times"
        lines.append(f"It was recorded and served {times}. Pass on_repeat='last' to serve the last answer again.")
    elif nearest is None:
        lines.append("The file contains no calls.")
    else:
        lines.append(f"The nearest call is call {nearest.number} in line {nearest.line}.")
        difference = first_difference(canonical(nearest.request), sent)
        if difference is not None:
            difference = redact_secrets(difference, secrets)
            lines.append(f"First difference: {difference}")
    lines.append(f"To record it, {_REMEDIES[reason]}.")
    return CassetteMissError(
        redact_secrets("\n".join(lines), secrets),
        path=cassette.path,
        request=Redaction(secrets).value(sent),
        nearest=nearest,
        difference=difference,
    )


def nearest_call(request: Plain, calls: Sequence[StoredCall], canonical: Callable[[Plain], Plain]) -> StoredCall | None:
    """Return the call with the longest common run of messages; ties are broken by tools, prompt and age."""
    messages, tools, prompt = _texts(request.get("messages")), request.get("tools"), prompt_of(request)[:_MOST_COMPARED]

    def likeness(call: StoredCall) -> tuple[int, bool, float, int, int]:
        form = canonical(call.request)
        recorded = _texts(form.get("messages"))
        run = SequenceMatcher(None, recorded, messages, autojunk=False).find_longest_match().size
        ratio = SequenceMatcher(None, prompt_of(form)[:_MOST_COMPARED], prompt).quick_ratio()
        return run, form.get("tools") == tools, ratio, -abs(len(recorded) - len(messages)), call.line

    return max(calls, key=likeness, default=None)


def _texts(values: Any) -> list[str]:
    return [json.dumps(value, sort_keys=True, default=str) for value in values or ()]


def first_difference(recorded: Any, now: Any) -> str | None:
    """Return the first difference of two plain values as a path and shortened values; `None` if equal."""
    first = next(_differences(recorded, now, ""), None)
    if first is None:
        return None
    path, *values = first
    texts = ["(absent)" if each is _ABSENT else json.dumps(each, ensure_ascii=False, default=repr) for each in values]
    common = len(os.path.commonprefix(texts))  # noqa: RUF071 - of characters
    start = common - _LEAD if max(map(len, texts)) > _MOST_CHARACTERS and common > _MOST_CHARACTERS // 2 else 0
    texts = [f"…{text[start + 1 :]}" if start else text for text in texts]
    texts = [text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…" for text in texts]
    return f"{path or 'the request'}\n  recorded: {texts[0]}\n  now:      {texts[1]}"


def _differences(recorded: Any, now: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(recorded, Mapping) and isinstance(now, Mapping):
        for name in {**recorded, **now}:
            place = name if name.isidentifier() else f"[{json.dumps(name, ensure_ascii=False)}]"
            dot = "." if path and name.isidentifier() else ""
            yield from _differences(recorded.get(name, _ABSENT), now.get(name, _ABSENT), f"{path}{dot}{place}")
    elif isinstance(recorded, list) and isinstance(now, list):
        for index, (before, after) in enumerate(zip_longest(recorded, now, fillvalue=_ABSENT)):
            yield from _differences(before, after, f"{path}[{index}]")
    elif not are_equal(recorded, now):
        yield path, recorded, now

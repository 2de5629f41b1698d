"""Where two plain values first differ, as a path with both values: pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

__all__ = ["ABSENT", "Difference", "first_difference"]

_LIMIT = 200
_LEAD = 40
"""How much of what two long texts have in common stands before the place where they part."""


class _Absent:
    def __repr__(self) -> str:
        return "(absent)"


ABSENT = _Absent()


class Difference(NamedTuple):
    """The first place where a recorded value and a present one differ.

    Attributes:
        path: Where: `messages[2].contents[0].result`.
        recorded: What was recorded there.
        now: What is there now.
    """

    path: str
    recorded: Any
    now: Any

    def __str__(self) -> str:
        recorded, now = _both_cut(self.recorded, self.now)
        return f"{self.path or 'the request'}\n  recorded: {recorded}\n  now:      {now}"


def first_difference(recorded: Any, now: Any) -> Difference | None:
    """Find the first difference in reading order, or `None` between equal values. `1` and `1.0` are equal."""
    return next(_differences(recorded, now, ""), None)


def _differences(recorded: Any, now: Any, path: str) -> Iterator[Difference]:
    if isinstance(recorded, Mapping) and isinstance(now, Mapping):
        for name in [*recorded, *(name for name in now if name not in recorded)]:
            yield from _differences(recorded.get(name, ABSENT), now.get(name, ABSENT), _below(path, name))
    elif isinstance(recorded, list) and isinstance(now, list):
        for index in range(max(len(recorded), len(now))):
            yield from _differences(_item(recorded, index), _item(now, index), f"{path}[{index}]")
    elif not _same(recorded, now):
        yield Difference(path, recorded, now)


def _same(recorded: Any, now: Any) -> bool:
    if isinstance(recorded, bool) or isinstance(now, bool):
        return recorded is now
    return bool(recorded == now) or (recorded != recorded and now != now)


def _item(values: list[Any], index: int) -> Any:
    return values[index] if index < len(values) else ABSENT


def _below(path: str, name: object) -> str:
    if not (isinstance(name, str) and name.isidentifier()):
        return f"{path}[{json.dumps(str(name), ensure_ascii=False)}]"
    return f"{path}.{name}" if path else name


def _both_cut(recorded: Any, now: Any) -> tuple[str, str]:
    shown = [_shown(value) for value in (recorded, now)]
    if max(map(len, shown)) <= _LIMIT:
        return shown[0], shown[1]
    pairs = zip(*shown, strict=False)
    common = next((index for index, (left, right) in enumerate(pairs) if left != right), min(map(len, shown)))
    start = max(0, common - _LEAD) if common > _LIMIT // 2 else 0
    cut = [_cut(text, start) for text in shown]
    return cut[0], cut[1]


def _cut(text: str, start: int) -> str:
    """At most 200 characters of a text, marks of the cuts included."""
    text = f"…{text[start + 1 :]}" if start else text
    return text if len(text) <= _LIMIT else f"{text[: _LIMIT - 1]}…"


def _shown(value: Any) -> str:
    return repr(value) if value is ABSENT else json.dumps(value, ensure_ascii=False, default=repr)

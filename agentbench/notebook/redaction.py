"""Copies of values in which secrets are masked, for tables and questions that people see and save."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from agentbench.notebook.escaping import MASK, esc, is_secret_name, preview

__all__ = ["fields_of", "line_preview", "mask_secrets"]

_PLAIN = frozenset({str, int, float, bool, bytes, type(None)})
_DEPTH = 50
_CUT = "…"

_SHORT = frozenset({int, float, bool, type(None)})
_SHORT_TEXT = 200
_FEW = 20


def mask_secrets(value: object, *, key: object = None) -> object:
    """Return `value` with every secret in it replaced by `•••`.

    Secret is what sits under a key or field whose name says so, and every object that hides itself behind
    `get_secret_value`. What holds no secret is returned itself, not a copy; containers that do are copied, and other
    objects that do become their text. Values inside themselves, or 50 levels deep, are shown as `…`.

    Args:
        value: Anything.
        key: The name under which the value is kept, if it has one.
    """
    if key is not None and value is not None and _names_secret(key):
        return MASK
    return value if type(value) in _PLAIN else _Masker().masked(value, _DEPTH)


def line_preview(value: object, limit: int = 120) -> str:
    """Return a value as one line of at most `limit` characters, secrets masked, cut with `…`.

    Line ends and tabs become spaces; control, bidirectional and invisible characters are spelled out.
    """
    if type(value) is str:
        text = value
    elif _is_short_and_plain(value):
        text = repr(value)
    else:
        text = preview(mask_secrets(value), limit=limit)
    if not text.isprintable():
        text = esc(" ".join(text[: 4 * limit].split()), into="line", limit=None)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _is_short_and_plain(value: object) -> bool:
    """Whether a value's `repr` is cheap and shows no secret; most values in tables are like that."""
    kind = type(value)
    if kind is dict:
        items: Iterable[object] = value.values()  # type: ignore[attr-defined]
        if len(value) > _FEW or any(map(_names_secret, value)):  # type: ignore[arg-type, call-overload]
            return False
    elif kind is list or kind is tuple:
        items = value  # type: ignore[assignment]
        if len(value) > _FEW:  # type: ignore[arg-type]
            return False
    else:
        return kind in _PLAIN and kind is not bytes
    return all(type(item) in _SHORT or (type(item) is str and len(item) < _SHORT_TEXT) for item in items)


@lru_cache(maxsize=2048)
def _names_secret(key: object) -> bool:
    return is_secret_name(key)


def fields_of(value: object) -> Iterator[tuple[str, object]]:
    """Yield names and values of a mapping, dataclass, pydantic model or plain object; nothing for other values."""
    if isinstance(value, Mapping):
        yield from ((str(name), item) for name, item in value.items())
        return
    names = _field_names(value)
    if names is None and hasattr(value, "__dict__") and not isinstance(value, type):
        names = [name for name in vars(value) if not name.startswith("_")]
    for name in names or ():
        # A field may be declared and never set.
        if hasattr(value, name):
            yield name, getattr(value, name)


def _field_names(value: object) -> list[str] | None:
    if isinstance(value, type):
        return None
    if dataclasses.is_dataclass(value):
        return [field.name for field in dataclasses.fields(value) if field.repr]
    declared = getattr(type(value), "model_fields", None)
    return list(declared) if isinstance(declared, Mapping) else None


class _Masker:
    """One walk over a value. What is met twice is masked once, so that shared parts cost nothing."""

    def __init__(self) -> None:
        self._seen: dict[int, object] = {}

    def masked(self, value: object, depth: int) -> object:
        if type(value) in _PLAIN:
            return value
        if callable(getattr(type(value), "get_secret_value", None)):
            return MASK
        if depth == 0:
            return _CUT
        if id(value) not in self._seen:
            self._seen[id(value)] = _CUT  # what is found here on the way down is inside itself
            self._seen[id(value)] = self._inside(value, depth - 1)
        return self._seen[id(value)]

    def _inside(self, value: object, depth: int) -> object:
        if isinstance(value, Mapping):
            return self._mapping(value, depth)
        if isinstance(value, (list, tuple)):
            return self._sequence(value, depth)
        names = _field_names(value)
        if names is None:
            return value
        before = {name: getattr(value, name, None) for name in names}
        after = self._mapping(before, depth)
        if after is before:
            return value
        return f"{type(value).__name__}({', '.join(f'{name}={preview(item)}' for name, item in after.items())})"

    def _mapping(self, value: Mapping[Any, object], depth: int) -> Mapping[Any, object]:
        changed = {
            name: MASK if item is not None and _names_secret(name) else self.masked(item, depth)
            for name, item in value.items()
        }
        return changed if any(changed[name] is not item for name, item in value.items()) else value

    def _sequence(self, value: "list[object] | tuple[object, ...]", depth: int) -> object:
        changed = [self.masked(item, depth) for item in value]
        if all(new is old for new, old in zip(changed, value, strict=True)):
            return value
        return changed if isinstance(value, list) else tuple(changed)

"""Values as plain JSON values, one way only: for a person, a model, a log or a service. `json_text` has both ways."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Mapping, Set
from enum import Enum
from itertools import islice
from typing import Any, Final, NamedTuple

from agentbench._lazy import public_path
from agentbench._secrets import MASK, field_names, find_secret, is_secret, is_secret_name, mask_secrets, mask_text
from agentbench.serialization.callable_text import CallableText, plain_if_callable

OMIT: Final = object()
"""The result of `convert` for an object that should be left out of its list or dictionary."""

_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
_ADDRESS: Final = re.compile(r" at 0x[0-9A-Fa-f]+")
_AS_PYDANTIC: Final = frozenset({"datetime", "decimal", "ipaddress", "pathlib", "re", "uuid"})
"""Packages whose values pydantic writes as text; named instead of imported, since most programs never load them."""
_OF_ARRAYS: Final = frozenset({"numpy", "pandas"})
_MISSING: Final = frozenset({"NaTType", "NAType"})


class Limits(NamedTuple):
    """How much of a value is written: levels, entries of each container, characters of each text."""

    depth: int = 100
    items: int | None = None
    text: int | None = None


WHOLE: Final = Limits()
OF_LOGS: Final = Limits(8, 1000, 20_000)
"""The limits of a log line."""


def text_of(value: object) -> str:
    """Return the text of an object without its memory address, which differs from run to run."""
    if isinstance(value, type):
        return public_path(value) or f"{value.__module__}.{value.__qualname__}"
    cls: Any = type(value)
    if cls.__repr__ is object.__repr__ and cls.__str__ is object.__str__:
        return f"<{cls.__qualname__}>"
    try:
        return _ADDRESS.sub("", str(value))
    except Exception:  # noqa: BLE001 - a broken __str__ of user code must not break what only reports it
        return f"<{cls.__qualname__}>"


def to_plain(value: Any, *, mask: bool = False, limits: Limits = WHOLE, other: Callable[[Any], Any] = text_of) -> Any:
    """Return any value as new texts, numbers, lists and dictionaries, in pydantic's JSON form.

    A secret object such as a `SecretString` is never revealed. A value that contains itself, or is below the last
    level, becomes the name of its class.

    Args:
        value: The value. Numbers that JSON lacks become `None`.
        mask: Also mask values under secret names, as `mask_secrets` does: for people and logs, not for models.
        limits: How much of the value is written.
        other: Returns the plain value of an object without one.
    """
    return value if type(value) is int else _Conversion(mask, limits, other).plain(value, 0)


class _Conversion:
    __slots__ = ("_around", "_changes_texts", "_limits", "_mask", "_other")

    def __init__(self, mask: bool, limits: Limits, other: Callable[[Any], Any]) -> None:
        self._mask, self._limits, self._other = mask, limits, other
        self._changes_texts = mask or limits.text is not None
        self._around: set[int] = set()  # ids of the values that are being written

    def plain(self, value: Any, depth: int) -> Any:
        cls = type(value)
        if cls is str:
            return self._text(value) if self._changes_texts else value
        if cls is int or cls is bool or value is None:
            return value
        if cls is not dict and cls is not list:
            if isinstance(value, float):
                return float(value) if math.isfinite(value) else None
            if isinstance(value, Enum):
                return self.plain(value.value, depth)
            if is_secret(value):
                return MASK
            if isinstance(value, str):
                return self._text(str.__str__(value))
            if isinstance(value, int):
                return int(value)
        ref = id(value)
        if depth >= self._limits.depth or ref in self._around:
            return f"<{type(value).__name__}>"
        self._around.add(ref)
        try:
            return self._composite(value, depth + 1)
        finally:
            self._around.discard(ref)

    def _composite(self, value: Any, depth: int) -> Any:
        if type(value) is dict:
            return self._mapping(value, depth)
        if self._mask and isinstance(value, tuple) and (names := field_names(value)):
            return list(self._mapping(dict(zip(names, value, strict=False)), depth).values())
        if isinstance(value, (list, tuple, deque)):
            return [self.plain(item, depth) for item in islice(value, self._limits.items)]
        if isinstance(value, Mapping):
            return self._mapping(value, depth)
        if isinstance(value, Set):
            return sorted((self.plain(item, depth) for item in islice(value, self._limits.items)), key=repr)
        if not isinstance(value, type):
            if isinstance(value, BaseException):
                return {"error_type": type(value).__name__, "message": self._object_text(text_of(value))}
            for convert in (self._own_form, self._known_form):
                plain = convert(value, depth)
                if plain is not OMIT:
                    return plain
        found = self._other(value)
        return self._object_text(found) if isinstance(found, str) else found

    def _own_form(self, value: Any, depth: int) -> Any:
        """Return an object's own plain form, or its fields."""
        cls = type(value)
        try:
            if callable(getattr(cls, "model_dump", None)):
                if find_secret(value) is None:
                    return self.plain(value.model_dump(mode="json"), depth - 1)
                extra = getattr(value, "__pydantic_extra__", None) or {}
                return self._mapping({**{name: getattr(value, name) for name in cls.model_fields}, **extra}, depth)
            if callable(getattr(cls, "to_dict", None)):
                return self.plain(value.to_dict(), depth - 1)
        except Exception:  # noqa: BLE001 - methods of anybody
            return OMIT
        if dataclasses.is_dataclass(cls):
            fields = {item.name: getattr(value, item.name, None) for item in dataclasses.fields(cls)}
            return self._mapping(fields, depth)
        return OMIT

    def _known_form(self, value: Any, depth: int) -> Any:
        """Return the form of a value of Python's own types, or of an array."""
        if isinstance(value, (bytes, bytearray)):
            try:
                return self._text(value.decode())
            except UnicodeDecodeError:
                return b64encode(value).decode()
        packages = {cls.__module__.partition(".")[0] for cls in type(value).__mro__}
        try:
            if type(value).__name__ in _MISSING:
                return None
            if not packages.isdisjoint(_OF_ARRAYS):
                return self.plain(value.tolist(), depth - 1)
            if not packages.isdisjoint(_AS_PYDANTIC):
                from pydantic_core import to_jsonable_python  # noqa: PLC0415 - most programs have no such values

                return to_jsonable_python(value)
        except Exception:  # noqa: BLE001 - such as a time zone, or a time that is none
            return OMIT
        return OMIT

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        written = {}
        if not self._mask and self._limits.items is None:
            plain = self.plain
            return {key if type(key) is str else self._key(key): plain(item, depth) for key, item in value.items()}
        for key, item in islice(value.items(), self._limits.items):
            name = key if type(key) is str else self._key(key)
            if self._mask and item is not None and is_secret_name(key):
                written[name] = MASK
            elif self._mask and name == "arguments" and isinstance(item, str):
                written[name] = self._cut(str(mask_secrets(str(item), key=name)))
            else:
                written[name] = self.plain(item, depth)
        return written

    def _key(self, key: Any) -> str:
        plain = self.plain(key, 0)
        return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)

    def _text(self, text: str) -> str:
        return self._cut(str(mask_secrets(text)) if self._mask else text)

    def _object_text(self, text: str) -> str:
        return self._cut(mask_text(text) if self._mask else text)

    def _cut(self, text: str) -> str:
        longest = self._limits.text
        return text if longest is None or len(text) <= longest else f"{text[:longest]}… ({len(text)} characters)"


write_plain: Final = json.JSONEncoder(ensure_ascii=False).encode
"""The JSON text of a plain value, with non-ASCII letters unescaped."""


def copy_plain(value: Any, convert: Callable[[Any], Any]) -> Any:
    """Return the `to_dict` form of a field: new lists and dictionaries, objects by `convert`, which may `OMIT` them."""
    cls = type(value)
    if cls in _SCALARS:
        return value
    if not hasattr(cls, "to_dict"):
        if cls is CallableText:
            return plain_if_callable(value)
        if isinstance(value, (list, tuple)):
            return [plain for item in value if (plain := copy_plain(item, convert)) is not OMIT]
        if cls is dict or isinstance(value, Mapping):
            return {
                key if type(key) is str else str(key.value if isinstance(key, Enum) else key): plain
                for key, item in value.items()
                if (plain := copy_plain(item, convert)) is not OMIT
            }
    return convert(value)


def are_equal(one: Any, other: Any) -> bool:
    """Return whether two values are equal as data: NaN equals NaN, `True` is not 1, a failing `==` means unequal."""
    if one is other:
        return True
    if isinstance(one, bool) is not isinstance(other, bool):
        return False
    try:
        return bool(one == other) or (bool(one != one) and bool(other != other))
    except Exception:  # noqa: BLE001 - `==` is user code, and that of arrays has no truth value
        return False

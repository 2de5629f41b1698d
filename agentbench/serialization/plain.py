"""Values as plain JSON values, one way only: for a person, a model, a log or a service. `json_text` has both ways."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from datetime import date, time
from enum import Enum
from typing import Any, Final

from agentbench._secrets import is_secret

#: What `convert` returns for an object that is to be left out of its list or dictionary.
OMIT: Final = object()
#: What takes the place of a secret.
MASKED: Final = "**********"

_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
_ADDRESS: Final = re.compile(r" at 0x[0-9A-Fa-f]+")


def to_plain(value: Any, convert: Callable[[Any], Any] | None = None) -> Any:
    """Return a value as new texts, numbers, lists and dictionaries; `convert` returns that of an object, or `OMIT`."""
    cls = type(value)
    if cls in _SCALARS:
        return value
    if hasattr(cls, "to_dict"):
        return object_to_plain(value) if convert is None else convert(value)
    if isinstance(value, (list, tuple)):
        return [plain for item in value if (plain := to_plain(item, convert)) is not OMIT]
    if cls is dict or isinstance(value, Mapping):
        return {
            key if type(key) is str else _key(key): plain
            for key, item in value.items()
            if (plain := to_plain(item, convert)) is not OMIT
        }
    return object_to_plain(value) if convert is None else convert(value)


def object_to_plain(
    value: Any, convert: Callable[[Any], Any] | None = None, other: Callable[[Any], Any] | None = None
) -> Any:
    """Return an object as a plain value, secrets masked; `other` is for one without such a form, else its text."""
    if isinstance(value, Enum):
        return to_plain(value.value, convert)
    if is_secret(value):
        return MASKED
    if isinstance(value, (str, int, float)):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, (set, frozenset)):
        return sorted((to_plain(item, convert) for item in value), key=repr)
    if isinstance(value, (date, time)):
        return value.isoformat()
    if not isinstance(value, type):
        for method in ("to_dict", "model_dump"):
            dump = getattr(value, method, None)
            if callable(dump):
                return to_plain(dump(), convert)
        if dataclasses.is_dataclass(value):
            return {item.name: to_plain(getattr(value, item.name), convert) for item in dataclasses.fields(value)}
    return text_of(value) if other is None else other(value)


def text_of(value: object) -> str:
    """Return the text of an object without its address in memory, which differs from run to run."""
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    cls: Any = type(value)
    if cls.__repr__ is object.__repr__ and cls.__str__ is object.__str__:
        return f"<{cls.__qualname__}>"
    return _ADDRESS.sub("", str(value))


def are_equal(one: Any, other: Any) -> bool:
    """Return whether two values are equal as data: NaN equals NaN, `True` is not 1, and an `==` that fails says no."""
    if one is other:
        return True
    if isinstance(one, bool) is not isinstance(other, bool):
        return False
    try:
        return bool(one == other) or (bool(one != one) and bool(other != other))
    except Exception:  # noqa: BLE001 - `==` is user code, and that of arrays has no truth value
        return False


def _key(key: Any) -> str:
    return str(key.value if isinstance(key, Enum) else key)

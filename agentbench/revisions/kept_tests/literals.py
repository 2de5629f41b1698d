"""Python source for a value: an input or an answer as a person would write it in a test."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import math
import pathlib
import pprint
import uuid
from typing import Any, Final

from agentbench._secrets import mask_text
from agentbench.exceptions import KeepTestError
from agentbench.serialization.plain import to_plain

_BY_REPR: Final = (
    datetime.date,
    datetime.time,
    datetime.timedelta,
    datetime.timezone,
    decimal.Decimal,
    pathlib.PurePath,
    uuid.UUID,
)
_WIDTH: Final = 100


class Literals:
    """Writes values and collects what the source needs.

    Attributes:
        imports: The import lines.
        names: The names of classes that were defined in cells, whose source the test has to contain.
    """

    def __init__(self) -> None:
        self.imports: set[str] = set()
        self.names: set[str] = set()

    def write(self, value: Any, what: str) -> str:
        """Return the source of a value; `KeepTestError` names `what` if the value has none, or contains a secret."""
        plain = to_plain(value)
        if to_plain(value, mask=True) != plain or mask_text(str(plain)) != str(plain):
            msg = f"{what} contains a secret, which must not be written to a test. Run with an input without it."
            raise KeepTestError(msg)
        return self._source(value, what)

    def _source(self, value: Any, what: str) -> str:
        cls = type(value)
        if isinstance(value, enum.Enum):
            return f"{self._name_of(cls, what)}.{value.name}"
        if value is None or cls in (str, int, bool, bytes) or (cls is float and math.isfinite(value)):
            return repr(value)
        if cls is float:
            return f"float({str(value)!r})"
        if cls in (list, tuple, set, frozenset):
            ordered = sorted(value, key=repr) if cls in (set, frozenset) else value
            items = f"[{', '.join(self._source(item, what) for item in ordered)}]"
            return items if cls is list else f"{cls.__name__}({items})"
        if cls is dict:
            pairs = [f"{self._source(key, what)}: {self._source(item, what)}" for key, item in value.items()]
            return f"{{{', '.join(pairs)}}}"
        return self._by_repr(value) if isinstance(value, _BY_REPR) else self._call(value, what)

    def _call(self, value: Any, what: str) -> str:
        """Return the call that makes an object again."""
        cls = type(value)
        fields = _fields_of(value)
        if fields is not None:
            written = ", ".join(f"{name}={self._source(item, what)}" for name, item in fields.items())
            return f"{self._name_of(cls, what)}({written})"
        if callable(getattr(value, "to_dict", None)) and callable(getattr(cls, "from_dict", None)):
            return f"{self._name_of(cls, what)}.from_dict({self._source(value.to_dict(), what)})"
        msg = (
            f"{what} contains a {cls.__qualname__}, which cannot be written as source. Expected texts, numbers, "
            "lists, dictionaries, dataclasses, pydantic models, enums, dates, or objects with to_dict and from_dict."
        )
        raise KeepTestError(msg, names=[cls.__qualname__])

    def _by_repr(self, value: Any) -> str:
        if isinstance(value, pathlib.PurePath):
            self.imports.add("import pathlib")
            return f"pathlib.{type(value).__name__}({str(value)!r})"
        module = type(value).__module__
        self.imports.add(f"import {module}")
        text = repr(value)
        return text if text.startswith(module) else f"{module}.{text}"

    def _name_of(self, cls: type, what: str) -> str:
        name = cls.__name__
        if "." in cls.__qualname__:  # a class inside a function or another class has no name of its own
            msg = f"{what} is a {cls.__qualname__}, which cannot be imported. Define the class at the top level."
            raise KeepTestError(msg, names=[cls.__qualname__])
        if cls.__module__ == "__main__":
            self.names.add(name)
        else:
            from agentbench._lazy import public_path  # noqa: PLC0415 - only objects of the library have one

            module, _, _ = (public_path(cls) or f"{cls.__module__}.{name}").rpartition(".")
            self.imports.add(f"from {module} import {name}")
        return name


def _fields_of(value: Any) -> dict[str, Any] | None:
    """Return the arguments that make a dataclass or a pydantic model again; `None` for other values."""
    if isinstance(value, type):
        return None
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
    fields = getattr(type(value), "model_fields", None)
    return {name: getattr(value, name) for name in fields} if isinstance(fields, dict) else None


def expected_source(value: Any, indent: int) -> str:
    """Return the source of an expected plain value, on several lines if it is long."""
    text = pprint.pformat(value, width=_WIDTH - indent, sort_dicts=False)
    return text.replace("\n", "\n" + " " * indent)

"""Whether a value fits a field: a Python value by its type, a JSON value by what the fields can display."""

from collections.abc import Mapping
from typing import Any

from agentbench.notebook.forms.fields import Field, json_of
from agentbench.notebook.forms.text_values import FieldError

__all__ = ["fits", "holds_json", "same_json"]


def fits(field: Field, value: object) -> bool:
    """Whether a value has the type of a field, or all its parts have."""
    if field.is_leaf or field.check is not None:
        return (value is None and field.nullable) or field.accepts(value)
    return _holds(field, value, fits)


def holds_json(field: Field, value: Any) -> bool:
    """Whether a field can display a value that was read from JSON; a text must be one of its kind."""
    if value is None and field.nullable:
        return True
    if field.kind == "choice":
        return any(same_json(json_of(option.value), value) for option in field.options)
    if field.kind == "number":
        return isinstance(value, int if field.whole else (int, float)) and not isinstance(value, bool)
    if not field.is_leaf:
        return _holds(field, value, holds_json)
    if field.kind in ("json", "text"):
        return field.kind == "json" or isinstance(value, str)
    try:
        return isinstance(value, str) and (field.parse(value) or True) is not None
    except FieldError:
        return False


def _holds(field: Field, value: Any, inner: Any) -> bool:
    if value is None and field.nullable:
        return True
    if field.kind == "const":
        return same_json(json_of(field.options[0].value), value)
    if field.kind == "union":
        return any(inner(part.field(), value) for part in field.parts())
    if field.kind == "rows":
        return isinstance(value, (list, tuple, set, frozenset)) and all(inner(field.item(), each) for each in value)  # type: ignore[misc]
    if field.kind == "pairs":
        item = field.item().parts()[1].field()  # type: ignore[misc]
        return isinstance(value, Mapping) and all(inner(item, each) for each in value.values())
    parts = field.parts()
    if field.makes is not dict:
        return isinstance(value, (list, tuple)) and len(value) == len(parts) and all(
            inner(part.field(), each) for part, each in zip(parts, value, strict=True)
        )  # fmt: skip
    if not isinstance(value, Mapping):
        return False
    known = {part.key: part.field() for part in parts}
    needed = all(key in value for key, each in known.items() if each.required)
    return needed and all(inner(known[key], each) if key in known else field.open_ended for key, each in value.items())


def same_json(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same, types, order and written digits included."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same_json(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return bool(getattr(one, "text", one) == getattr(other, "text", other))

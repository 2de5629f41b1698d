"""Whether a value fits a field: a Python value by its type, a JSON value by what the fields can display."""

from collections.abc import Mapping
from typing import Any

from agentbench.notebook.forms.fields import Field, json_of
from agentbench.notebook.forms.text_values import FieldError

__all__ = ["fits", "holds_json", "same_json"]


def fits(field: Field, value: object) -> bool:
    """Whether a value has the type of a field; values of a JSON Schema are JSON values."""
    if not field.is_leaf and field.check is None:
        return holds_json(field, value)
    return (value is None and field.nullable) or field.accepts(value)


def holds_json(field: Field, value: Any) -> bool:
    """Whether a field can display a value that was read from JSON; a text must be one of its kind."""
    kind = field.kind
    if (value is None and field.nullable) or kind == "json":
        return True
    if kind in ("choice", "const"):
        return any(same_json(json_of(option.value), value) for option in field.options)
    if kind == "number":
        return isinstance(value, int if field.whole else (int, float)) and not isinstance(value, bool)
    if kind == "union":
        return any(holds_json(part.field(), value) for part in field.parts())
    if field.item is not None:
        item = field.item()
        if kind == "rows":
            return isinstance(value, (list, tuple, set, frozenset)) and all(holds_json(item, each) for each in value)
        return isinstance(value, Mapping) and all(holds_json(item.parts()[1].field(), each) for each in value.values())
    if kind == "group":
        return _group_holds(field, value)
    try:
        return isinstance(value, str) and (kind == "text" or bool(field.parse(value) or True))
    except FieldError:
        return False


def _group_holds(field: Field, value: Any) -> bool:
    known = {part.key: part.field() for part in field.parts()}
    if field.makes is not dict:
        if not isinstance(value, (list, tuple)) or len(value) != len(known):
            return False
        value = dict(zip(known, value, strict=True))
    if not isinstance(value, Mapping) or any(each.required and key not in value for key, each in known.items()):
        return False
    return all(holds_json(known[key], item) if key in known else field.open_ended for key, item in value.items())


def same_json(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same, types, order and written digits included."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same_json(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return bool(getattr(one, "text", one) == getattr(other, "text", other))

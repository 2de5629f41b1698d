"""Whether a value fits a shape: a Python value by its type, a JSON value by the fields of the shape."""

from collections.abc import Mapping
from enum import Enum
from typing import Any

from agentbench.notebook.forms.fields.shapes import Const, Group, Leaf, OneOf, Pairs, Rows, Shape

__all__ = ["fits", "holds_json", "json_of"]


def fits(shape: Shape, value: object) -> bool:
    """Whether a value has the type of a shape, or all its parts have."""
    if value is None and shape.nullable:
        return True
    if isinstance(shape, Leaf):
        return shape.field.accepts(value)
    if shape.check is not None:
        return shape.check.accepts(value)
    return _holds(shape, value, fits)


def holds_json(shape: Shape, value: Any) -> bool:
    """Whether a shape has fields for a value that was read from JSON; a text must be one of its kind."""
    if value is None and shape.nullable:
        return True
    return _leaf_holds(shape, value) if isinstance(shape, Leaf) else _holds(shape, value, holds_json)


def _holds(shape: Shape, value: Any, inner: Any) -> bool:
    if isinstance(shape, Const):
        return bool(json_of(shape.value) == value and type(json_of(shape.value)) is type(value))
    if isinstance(shape, OneOf):
        return any(inner(member.shape(), value) for member in shape.members)
    if isinstance(shape, Rows):
        return isinstance(value, (list, tuple, set, frozenset)) and all(inner(shape.item(), each) for each in value)
    if isinstance(shape, Pairs):
        return isinstance(value, Mapping) and all(inner(shape.item(), each) for each in value.values())
    return isinstance(shape, Group) and _group_holds(shape, value, inner)


def _group_holds(shape: Group, value: Any, inner: Any) -> bool:
    parts = shape.parts()
    if shape.makes != "dict":
        if not isinstance(value, (list, tuple)) or len(value) != len(parts):
            return False
        return all(inner(part.shape, each) for part, each in zip(parts, value, strict=True))
    if not isinstance(value, Mapping):
        return False
    known = {part.key: part.shape for part in parts}
    needed = all(part.key in value for part in parts if part.shape.required)
    return needed and all(inner(known[key], each) if key in known else shape.open_ended for key, each in value.items())


def _leaf_holds(leaf: Leaf, value: Any) -> bool:
    field = leaf.field
    if field.kind == "choice":
        return any(
            json_of(option.value) == value and type(json_of(option.value)) is type(value) for option in field.options
        )
    if field.kind == "number":
        return isinstance(value, int if field.whole else (int, float)) and not isinstance(value, bool)
    if field.kind == "json":
        return True
    if not isinstance(value, str) or field.kind == "text":
        return isinstance(value, str)
    try:
        field.parse(value)
    except ValueError:
        return False
    return True


def json_of(value: object) -> object:
    """Return a constant as a JSON value: of a member of an `Enum` its value."""
    return value.value if isinstance(value, Enum) else value

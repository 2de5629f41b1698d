"""The help of a field: limits and examples from a JSON Schema."""

from collections.abc import Mapping
from typing import Any

__all__ = ["example_text", "help_text"]

_LIMITS = (
    ("minimum", "at least {}"),
    ("exclusiveMinimum", "more than {}"),
    ("maximum", "at most {}"),
    ("exclusiveMaximum", "less than {}"),
    ("multipleOf", "a multiple of {}"),
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("pattern", "matching {}"),
)

_EXAMPLES = {
    "object": '{"key": "value"}',
    "array": '["a", "b"]',
    "string": '"text"',
    "integer": "1",
    "number": "1.5",
    "boolean": "true",
}


def help_text(schema: Mapping[str, Any]) -> str:
    """Return the description and the limits of a value, as a sentence or two; empty if there are none."""
    limits = [text.format(schema[key]) for key, text in _LIMITS if key in schema]
    described = [schema["description"]] if isinstance(schema.get("description"), str) else []
    text = ". ".join([*(each.rstrip(".") for each in described), *([", ".join(limits)] if limits else [])])
    return text[:1].upper() + text[1:]


def example_text(schema: Mapping[str, Any], depth: int = 0) -> str:
    """Return a short example value of a schema, as JSON."""
    items = schema.get("items")
    if schema.get("type") == "array" and isinstance(items, dict):
        return f"[{example_text(items, depth + 1)}]"
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not properties or depth > 0:
        return _EXAMPLES.get(str(schema.get("type")), '"text", 1, true or {"key": "value"}' if depth == 0 else "…")
    inner = ", ".join(f'"{name}": {example_text(each, depth + 1)}' for name, each in list(properties.items())[:6])
    return "{" + inner + "}"

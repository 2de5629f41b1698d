"""Structured output: convert a response format to a JSON schema that services accept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_READY = ("json_schema", "json_object", "text")  # formats that are sent unchanged
_NAMED = ("properties", "$defs", "definitions")  # keywords with schemas by name
_VALUES = ("const", "enum", "examples")  # keywords with values, which are not schemas


def chat_response_format(response_format: Any) -> dict[str, Any]:
    """Return the field `response_format` of Chat Completions."""
    json_schema = _named_schema(response_format)
    if json_schema is None:
        return dict(response_format)
    if not json_schema["strict"]:
        del json_schema["strict"]
    return {"type": "json_schema", "json_schema": json_schema}


def responses_text_format(response_format: Any) -> dict[str, Any]:
    """Return the field `text.format` of the Responses API, which also accepts the formats of Chat Completions."""
    json_schema = _named_schema(response_format) or response_format.get("json_schema")
    return {"type": "json_schema", **json_schema} if isinstance(json_schema, Mapping) else dict(response_format)


def _named_schema(response_format: Any) -> dict[str, Any] | None:
    """Return the name, schema and strictness of a model class or JSON schema; `None` for a ready format."""
    if isinstance(response_format, Mapping):
        if response_format.get("type") in _READY:
            return None
        schema = {"additionalProperties": False, **response_format}
        title = schema.get("title")
    else:
        make_schema = getattr(response_format, "model_json_schema", None)
        if not isinstance(response_format, type) or not callable(make_schema):
            message = f"response_format is {response_format!r}. Expected a pydantic model class or a JSON schema."
            raise TypeError(message)
        schema, title = strict_schema(make_schema()), response_format.__name__
    name = re.sub(r"[^a-zA-Z0-9_-]+", "_", title).strip("_")[:64] if isinstance(title, str) else ""
    return {"name": name or "response", "schema": schema, "strict": is_strict(schema)}


def strict_schema(schema: Any) -> Any:
    """Make a schema strict for services: no optional or additional properties, and no defaults."""
    if isinstance(schema, list):
        return [strict_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _NAMED and isinstance(value, dict):
            made[key] = {name: strict_schema(part) for name, part in value.items()}
        elif key != "default":
            made[key] = value if key in _VALUES else strict_schema(value)
    if "properties" in made:
        made.setdefault("additionalProperties", False)
        made["required"] = list(made["properties"])
    if "$ref" in made and len(made) > 1:
        # Next to a reference, no other keyword is allowed.
        made = {"$ref": made["$ref"]}
    return made


def is_strict(schema: Any) -> bool:
    """Return whether a schema is strict: objects require all properties and allow no others."""
    if isinstance(schema, list):
        return all(map(is_strict, schema))
    if not isinstance(schema, Mapping):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(properties):
            return False
    return all(
        all(map(is_strict, value.values())) if key in _NAMED else is_strict(value)
        for key, value in schema.items()
        if key not in (*_VALUES, "required")
    )

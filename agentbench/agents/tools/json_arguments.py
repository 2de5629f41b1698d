"""Arguments checked against a JSON schema that was given as it is, without pydantic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentbench._copying import isolate
from agentbench.agents.tools.arguments import shown, told
from agentbench.agents.tools.signature import ToolSignature

_JSON_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict, Mapping),
    "null": (type(None),),
}


class JsonSchema:
    """A JSON schema as it was given: checked at the top level only, nothing is converted."""

    __slots__ = ("_accepted", "_closed", "_json", "_properties", "_quick", "_required", "names")

    model = None

    def __init__(self, schema: Mapping[str, Any], signature: ToolSignature | None = None) -> None:
        self._json = dict(schema)
        properties = schema.get("properties")
        self._properties: Mapping[str, Any] = properties if isinstance(properties, Mapping) else {}
        self._quick = {name: _fitting_types(part) for name, part in self._properties.items()}
        self._required = tuple(schema.get("required") or ())
        self._closed = schema.get("additionalProperties") is False
        self._accepted = None if signature is None or signature.takes_any_keyword else _names_of(signature)
        self.names: frozenset[str] = frozenset(self._properties)

    def json(self) -> dict[str, Any]:
        """Return the JSON schema; a copy."""
        return isolate(self._json)

    def validate(self, tool_name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the function is called with.

        Raises:
            TypeError: The arguments do not fit.
        """
        problems = [f"{name}: required, but not given" for name in self._required if name not in arguments]
        for name, value in arguments.items():
            if type(value) in self._quick.get(name, ()):
                continue
            if name in self._properties:
                problems += _problems_of(name, value, self._properties[name])
            elif self._closed:
                problems.append(f"{name}: no such argument; there are {', '.join(self._properties) or 'none'}")
        if problems:
            raise TypeError(told(tool_name, problems))
        if self._accepted is None:
            return dict(arguments)
        return {name: value for name, value in arguments.items() if name in self._accepted or name in self._properties}


def _fitting_types(schema: object) -> frozenset[type]:
    """Return exact types all of whose values fit, so that most values need no closer look."""
    if not isinstance(schema, Mapping) or "enum" in schema or not isinstance(schema.get("type"), str):
        return frozenset()
    return frozenset(_JSON_TYPES.get(schema["type"], ())) - {Mapping}


def _names_of(signature: ToolSignature) -> frozenset[str]:
    return frozenset(parameter.name for parameter in signature.parameters)


def _problems_of(name: str, value: object, schema: object) -> list[str]:
    if not isinstance(schema, Mapping):
        return []
    problems = []
    allowed = schema.get("type")
    types = [allowed] if isinstance(allowed, str) else list(allowed or ())
    if types and not any(_is_of(value, type_) for type_ in types):
        problems.append(f"{name}: expected {' or '.join(types)}, not {shown(value)}")
    if "enum" in schema and not any(_same(value, choice) for choice in schema["enum"]):
        problems.append(f"{name}: expected one of {', '.join(map(repr, schema['enum']))}, not {shown(value)}")
    return problems


def _is_of(value: object, type_: str) -> bool:
    classes = _JSON_TYPES.get(type_)
    if classes is None:
        return True
    if isinstance(value, bool):
        return type_ == "boolean"
    if type_ == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, classes)


def _same(value: object, choice: object) -> bool:
    return value == choice and isinstance(value, bool) == isinstance(choice, bool)

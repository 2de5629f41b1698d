"""Arguments checked against a tool's schema, and turned into what its function is called with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, SupportsIndex

from agentbench._copying import isolate
from agentbench.agents.tools.schema import derive_model
from agentbench.agents.tools.signature import ToolSignature


class ValidArguments(dict[str, Any]):
    """Arguments that passed a schema. They need not pass it again unless somebody changed them since."""

    __slots__ = ("_as_validated", "_schema")

    _schema: InputSchema
    _as_validated: dict[str, Any]

    @classmethod
    def of(cls, schema: InputSchema, valid: dict[str, Any]) -> ValidArguments:
        """Keep what a schema has just validated; the dictionary is taken over."""
        made = cls(valid)
        made._schema, made._as_validated = schema, valid
        for name, value in made.items():
            if type(value) in _CONTAINERS:
                valid[name] = _copied(value)
        return made

    def still_pass(self, schema: InputSchema) -> bool:
        """Whether they passed this very schema and are unchanged."""
        before = self._as_validated
        if self._schema is not schema or len(self) != len(before):
            return False
        for name, value in self.items():  # noqa: SIM110 - faster than all()
            if not _is_unchanged(value, before.get(name, _ABSENT)):
                return False
        return True

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return dict, (dict(self),)  # a copy has passed nothing


_CONTAINERS = frozenset({dict, list, set})
_ABSENT = object()


def _copied(value: Any) -> Any:
    """Return plain containers as copies, to any depth, with the very same values in them."""
    if type(value) is dict:
        return {name: _copied(item) for name, item in value.items()}
    if type(value) is list:
        return [_copied(item) for item in value]
    return value.copy() if type(value) is set else value


def _is_unchanged(value: Any, before: Any) -> bool:
    """Whether plain containers hold the very same values as their copies; values are not compared, as `1 == True`."""
    if value is before:
        return True
    if type(value) is not type(before):
        return False
    if type(value) is dict:
        return value.keys() == before.keys() and all(_is_unchanged(item, before[name]) for name, item in value.items())
    if type(value) is list:
        return len(value) == len(before) and all(map(_is_unchanged, value, before))
    return type(value) is set and bool(value == before)


class InputSchema(Protocol):
    """What a tool may be called with."""

    @property
    def model(self) -> Any:
        """The pydantic model class, or `None` for a plain JSON schema."""

    @property
    def names(self) -> frozenset[str]:
        """Names of the arguments that it knows."""

    def json(self) -> dict[str, Any]:
        """Return the JSON schema; a copy."""

    def validate(self, tool_name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the function is called with.

        Raises:
            TypeError: The arguments do not fit.
        """


class ModelSchema:
    """A pydantic model, derived from a signature or given."""

    __slots__ = ("_json", "_keep_none", "_leave_out_unset", "_parameter_of", "_validate", "model", "names")

    def __init__(
        self,
        model: Any,
        schema: dict[str, Any],
        *,
        parameter_of: Mapping[str, str],
        keep_none: frozenset[str],
        leave_out_unset: frozenset[str],
    ) -> None:
        self.model = model
        self._validate = model.__pydantic_validator__.validate_python
        self._parameter_of = parameter_of
        self._keep_none, self._leave_out_unset = keep_none, leave_out_unset
        self._json = schema
        self.names: frozenset[str] = frozenset(self._json.get("properties", ()))

    @classmethod
    def of_signature(cls, tool_name: str, signature: ToolSignature) -> ModelSchema:
        """Make the schema of a function's parameters."""
        derived = derive_model(tool_name, signature)
        return cls(
            derived.model,
            derived.schema,
            parameter_of=derived.parameter_of,
            keep_none=frozenset(derived.model.model_fields) - derived.own_defaults,
            leave_out_unset=derived.own_defaults,
        )

    @classmethod
    def of_model(cls, model: Any, signature: ToolSignature | None) -> ModelSchema:
        """Take a model that the user gave, whose defaults count rather than the function's."""
        keep_none = signature.without_default if signature else frozenset[str]()
        return cls(model, model.model_json_schema(), parameter_of={}, keep_none=keep_none, leave_out_unset=frozenset())

    def json(self) -> dict[str, Any]:
        """Return the JSON schema; a copy."""
        return isolate(self._json)

    def validate(self, tool_name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the function is called with, converted where that is possible.

        Raises:
            TypeError: The arguments do not fit.
        """
        try:
            instance = self._validate(arguments)
        except ValueError as error:
            instance = self._validated_without_nulls(arguments)
            if instance is None:
                raise TypeError(told(tool_name, _findings(error))) from error
        given = instance.__pydantic_fields_set__
        valid: dict[str, Any] = {}
        for name, value in instance.__dict__.items():
            if (value is None and name not in self._keep_none) or (name in self._leave_out_unset and name not in given):
                continue  # the function has a default of its own
            valid[name] = value
        if instance.__pydantic_extra__:
            valid.update(instance.__pydantic_extra__)
        if self._parameter_of:
            return {self._parameter_of.get(name, name): value for name, value in valid.items()}
        return valid

    def _validated_without_nulls(self, arguments: Mapping[str, Any]) -> Any:
        """Try once more without the nulls that models write for what they leave out."""
        kept = {
            name: value for name, value in arguments.items() if value is not None or name not in self._leave_out_unset
        }
        if len(kept) == len(arguments):
            return None
        try:
            return self._validate(kept)
        except ValueError:
            return None


def _findings(error: Any) -> list[str]:
    """Return what pydantic found: where, what, and what was given."""
    problems = []
    for found in error.errors(include_url=False, include_context=False):
        where = ".".join(map(str, found["loc"]))
        given = "" if found["type"] == "missing" else f", not {shown(found['input'])}"
        problems.append(f"{where}: {found['msg']}{given}" if where else f"{found['msg']}{given}")
    return problems


def told(tool_name: str, problems: list[str]) -> str:
    """Put what is wrong with arguments into one line."""
    return f"Invalid arguments for tool {tool_name!r}: {'; '.join(problems)}."


def shown(value: object) -> str:
    """Return a value as text of at most 80 characters."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."

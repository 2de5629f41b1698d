"""The schema of a tool's arguments, made on first use, and the check of arguments against it."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from types import FunctionType
from typing import Any, SupportsIndex, TypeAlias

from agentbench._copying import isolate
from agentbench.agents.tools.plain_schema import PlainSchema, plain_parameters
from agentbench.agents.tools.signature import ToolSignature, read_signature
from agentbench.exceptions import ToolArgumentsError

InputModel: TypeAlias = type[Any] | Mapping[str, Any] | None
"""A pydantic model class, a JSON schema, or `None` to use the signature."""

Problem: TypeAlias = tuple[str, str]
"""A problem of an argument, and the actual value, which may be private."""

_LONGEST = 80
_CONTAINERS = frozenset({dict, list, set})

_of_functions: weakref.WeakKeyDictionary[Callable[..., Any], LazySchema] = weakref.WeakKeyDictionary()
"""A weak cache of function schemas; weak because notebook cells that run again define new functions."""


def schema_of(func: Callable[..., Any] | None, tool_name: str, input_model: InputModel) -> LazySchema:
    """Return the schema of a tool. Tools with the same name and function share it, because it is costly to make."""
    if func is None:
        return LazySchema(tool_name, input_model, None)
    if input_model is not None or not isinstance(func, FunctionType):
        return LazySchema(tool_name, input_model, read_signature(func, ctx_is_context=input_model is not None))
    schema = _of_functions.get(func)
    if schema is None or schema.tool_name != tool_name:
        signature = read_signature(func)
        schema = LazySchema(tool_name, None, signature)
        if signature.pending is None:
            _of_functions[func] = schema
    return schema


class LazySchema:
    """The schema of a tool, shared by its copies. Making it loads pydantic, unless all parameters are plain."""

    __slots__ = ("_schema", "input_model", "signature", "tool_name")

    def __init__(self, tool_name: str, input_model: InputModel, signature: ToolSignature | None) -> None:
        if input_model is not None and not isinstance(input_model, Mapping) and not _is_model_class(input_model):
            message = (
                f"input_model={input_model!r} of tool {tool_name!r} does not describe arguments. "
                "Expected a pydantic model class, a JSON schema as a dict, or None to use the function's signature."
            )
            raise TypeError(message)
        self.tool_name, self.signature = tool_name, signature
        self.input_model = isolate(dict(input_model)) if isinstance(input_model, Mapping) else input_model
        self._schema: JsonSchema | ModelSchema | PlainSchema | None = None

    def get(self) -> JsonSchema | ModelSchema | PlainSchema:
        """Return the schema."""
        if self._schema is None:
            self._schema = self._make()
        return self._schema

    def _make(self) -> JsonSchema | ModelSchema | PlainSchema:
        signature = self.signature
        if isinstance(self.input_model, Mapping):
            return JsonSchema(self.input_model, signature)
        if self.input_model is not None:
            # The defaults of the model apply, not those of the function.
            keep_none = signature.without_default if signature else frozenset[str]()
            return ModelSchema(self.input_model, self.input_model.model_json_schema(), keep_none=keep_none)
        if signature is None:
            return JsonSchema({"properties": {}, "title": f"{self.tool_name}_input", "type": "object"})
        make_model = partial(_derived_schema, self.tool_name, signature)
        plain = plain_parameters(signature)
        return make_model() if plain is None else PlainSchema(self.tool_name, plain, make_model)

    def __reduce__(self) -> tuple[Any, ...]:
        # The schema contains parts that cannot be pickled, so it is made again.
        return LazySchema, (self.tool_name, self.input_model, self.signature)


def _derived_schema(tool_name: str, signature: ToolSignature) -> ModelSchema:
    from agentbench.agents.tools.signature_model import derive_model  # noqa: PLC0415 - not needed for plain parameters

    derived = derive_model(tool_name, signature)
    return ModelSchema(
        derived.model,
        derived.schema,
        keep_none=frozenset(derived.model.model_fields) - derived.own_defaults,
        leave_out_unset=derived.own_defaults,
        parameter_of=derived.parameter_of,
    )


def _is_model_class(value: object) -> bool:
    """Return whether a value is a pydantic model class, without loading pydantic."""
    return isinstance(value, type) and hasattr(value, "model_json_schema") and hasattr(value, "model_validate")


class ModelSchema:
    """The schema of a pydantic model, which converts arguments if possible."""

    __slots__ = (
        "_json",
        "_keep_none",
        "_leave_out_unset",
        "_parameter_of",
        "_takes_all",
        "_validate",
        "model",
        "names",
    )

    def __init__(
        self,
        model: Any,
        schema: dict[str, Any],
        *,
        keep_none: frozenset[str],
        leave_out_unset: frozenset[str] = frozenset(),
        parameter_of: Mapping[str, str] | None = None,
    ) -> None:
        self.model = model
        self._json = schema
        self._validate = model.__pydantic_validator__.validate_python
        self._keep_none, self._leave_out_unset = keep_none, leave_out_unset
        self._parameter_of = parameter_of
        self._takes_all = keep_none >= model.model_fields.keys()
        self.names: frozenset[str] = frozenset(schema.get("properties", ()))

    def json(self) -> dict[str, Any]:
        """Return a copy of the JSON schema."""
        return isolate(self._json)

    def validate(self, tool_name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Validate and convert the arguments for the function."""
        try:
            instance = self._validate(arguments)
        except ValueError as error:
            instance = self._validate_without_nulls(arguments)
            if instance is None:
                raise _misfit(tool_name, _problems_of_model(error)) from error
        if self._takes_all:
            valid = dict(instance.__dict__)
        else:  # the function has its own defaults
            unset = self._leave_out_unset - instance.__pydantic_fields_set__
            valid = {
                name: value
                for name, value in instance.__dict__.items()
                if name not in unset and (value is not None or name in self._keep_none)
            }
        if instance.__pydantic_extra__:
            valid.update(instance.__pydantic_extra__)
        if self._parameter_of:
            return {self._parameter_of.get(name, name): value for name, value in valid.items()}
        return valid

    def _validate_without_nulls(self, arguments: Mapping[str, Any]) -> Any:
        """Validate without the nulls that models send for missing values; `None` if that also fails."""
        without_nulls = {
            name: value for name, value in arguments.items() if value is not None or name not in self._leave_out_unset
        }
        with contextlib.suppress(ValueError):
            return self._validate(without_nulls) if len(without_nulls) < len(arguments) else None
        return None


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
    """A JSON schema written by the author of a tool. Only the top level is checked, and nothing is converted."""

    __slots__ = ("_accepted", "_is_closed", "_json", "_properties", "_required", "names")

    model = None

    def __init__(self, schema: Mapping[str, Any], signature: ToolSignature | None = None) -> None:
        self._json = dict(schema)
        properties = schema.get("properties")
        self._properties: Mapping[str, Any] = properties if isinstance(properties, Mapping) else {}
        self._required = tuple(schema.get("required") or ())
        self._is_closed = schema.get("additionalProperties") is False
        self._accepted: frozenset[str] | None = None
        if signature is not None and not signature.takes_any_keyword:
            self._accepted = frozenset(parameter.name for parameter in signature.parameters)
        self.names: frozenset[str] = frozenset(self._properties)

    def json(self) -> dict[str, Any]:
        """Return a copy of the JSON schema."""
        return isolate(self._json)

    def validate(self, tool_name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Check the arguments for the function."""
        problems: list[Problem] = [
            (f"{name}: required, but missing", "") for name in self._required if name not in arguments
        ]
        for name, value in arguments.items():
            if name in self._properties:
                problems += _problems_of_value(name, value, self._properties[name])
            elif self._is_closed:
                problems.append(
                    (f"{name}: unknown argument; expected one of {', '.join(self._properties) or 'none'}", "")
                )
        if problems:
            raise _misfit(tool_name, problems)
        if self._accepted is None:
            return dict(arguments)
        return {name: value for name, value in arguments.items() if name in self._accepted or name in self._properties}


def _problems_of_value(name: str, value: object, schema: object) -> list[Problem]:
    if not isinstance(schema, Mapping):
        return []
    problems = []
    allowed = schema.get("type")
    types = [allowed] if isinstance(allowed, str) else list(allowed or ())
    if types and not any(_is_of_type(value, type_) for type_ in types):
        problems.append((f"{name}: expected {' or '.join(types)}", f", not {_shorten(value)}"))
    choices = schema.get("enum")
    if choices is not None and not any(value == one and (value is True) == (one is True) for one in choices):
        problems.append((f"{name}: expected one of {', '.join(map(repr, choices))}", f", not {_shorten(value)}"))
    return problems


def _is_of_type(value: object, type_: str) -> bool:
    classes = _JSON_TYPES.get(type_)
    if classes is None:
        return True
    if isinstance(value, bool):
        return type_ == "boolean"
    if type_ == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, classes)


def _problems_of_model(error: Any) -> list[Problem]:
    """Convert pydantic's errors to problems."""
    problems = []
    for problem in error.errors(include_url=False, include_context=False):
        where = ".".join(map(str, problem["loc"]))
        value = "" if problem["type"] == "missing" else f", not {_shorten(problem['input'])}"
        problems.append((f"{where}: {problem['msg']}" if where else problem["msg"], value))
    return problems


def _misfit(tool_name: str, problems: list[Problem]) -> ToolArgumentsError:
    described = "; ".join(problem + value for problem, value in problems)
    message = f"Invalid arguments for tool {tool_name!r}: {described}."
    return ToolArgumentsError(message, [problem for problem, _ in problems])


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


class ValidArguments(dict[str, Any]):
    """Arguments that a schema has validated. They need not be validated again unless a middleware changed them."""

    __slots__ = ("_schema", "_validated")

    _schema: object
    _validated: dict[str, Any]

    @classmethod
    def of(cls, schema: object, valid: dict[str, Any]) -> ValidArguments:
        """Wrap arguments that a schema has just validated; their dictionary becomes the snapshot."""
        arguments = cls(valid)
        arguments._schema, arguments._validated = schema, valid
        for name, value in arguments.items():
            if type(value) in _CONTAINERS:
                valid[name] = _copy_containers(value)
        return arguments

    def are_valid_for(self, schema: object) -> bool:
        """Return whether exactly this schema validated them and they are unchanged."""
        return self._schema is schema and self == self._validated

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return dict, (dict(self),)  # a copy counts as not validated


def _copy_containers(value: Any) -> Any:
    """Copy plain containers recursively, with the same values in them."""
    if type(value) is dict:
        return {name: _copy_containers(item) for name, item in value.items()}
    if type(value) is list:
        return [_copy_containers(item) for item in value]
    return value.copy() if type(value) is set else value

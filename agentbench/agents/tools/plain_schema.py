"""The schema of a function with plain parameters, made without pydantic.

Loading pydantic takes longer than a hundred turns of an agent. It is loaded for arguments that are not exactly of the
declared types, because it can convert them or say what is wrong with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

from agentbench._copying import isolate
from agentbench._signatures.forms import TypeLike, origin_of
from agentbench.agents.tools.signature import NO_VALUE, ToolSignature

if TYPE_CHECKING:
    from agentbench.agents.tools.input_schema import ModelSchema

_JSON_NAMES: Final[Mapping[Any, str]] = {str: "string", int: "integer", float: "number", bool: "boolean"}

_TAKEN: Final = frozenset(
    {"construct", "copy", "dict", "from_orm", "json", "mro", "parse_file", "parse_obj", "parse_raw", "register"}
    | {"schema", "schema_json", "update_forward_refs", "validate"}
)
"""Names of attributes of pydantic models: such a parameter becomes a field with another name."""

_LARGEST_INT: Final = 2**63
"""Larger numbers are left to pydantic, because not every JSON library reads them."""


class PlainParameter(NamedTuple):
    """A parameter whose type is text, a number or a truth value."""

    name: str
    type_: type
    description: str | None
    default: Any

    def json(self) -> dict[str, Any]:
        """Return its JSON schema, with the keys in pydantic's order."""
        default = {} if self.default is NO_VALUE else {"default": self.default}
        description = {} if self.description is None else {"description": self.description}
        title = self.name.replace("_", " ").title().strip()
        return {**default, **description, "title": title, "type": _JSON_NAMES[self.type_]}


def plain_parameters(signature: ToolSignature) -> list[PlainParameter] | None:
    """Return the parameters if all are plain, each with a default of its own type or none; otherwise `None`."""
    found = []
    for parameter in signature.parameters:
        name, default = parameter.name, parameter.default
        if name in _TAKEN or name.startswith(("_", "model_")) or parameter.annotation is NO_VALUE:
            return None
        type_, description = _type_and_description(signature.type_of(parameter))
        if type_ not in _JSON_NAMES or not (default is NO_VALUE or (type(default) is type_ and _is_json(default))):
            return None
        found.append(PlainParameter(name, type_, description, default))
    return found


class PlainSchema:
    """Accepts arguments that have exactly the declared types, and leaves all others to the pydantic model."""

    __slots__ = ("_json", "_make_model", "_model", "_required", "_types", "names")

    def __init__(self, tool_name: str, parameters: list[PlainParameter], make_model: Callable[[], ModelSchema]) -> None:
        self._make_model = make_model
        self._model: ModelSchema | None = None
        self._types = {each.name: each.type_ for each in parameters}
        self._required = frozenset(each.name for each in parameters if each.default is NO_VALUE)
        required = [each.name for each in parameters if each.name in self._required]
        self._json: dict[str, Any] = {
            "properties": {each.name: each.json() for each in parameters},
            **({"required": required} if required else {}),
            "title": f"{tool_name}_input",
            "type": "object",
        }
        self.names: frozenset[str] = frozenset(self._types)

    @property
    def model(self) -> Any:
        """The pydantic model class."""
        return self._model_schema().model

    def json(self) -> dict[str, Any]:
        """Return a copy of the JSON schema."""
        return isolate(self._json)

    def validate(self, tool_name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Validate the arguments for the function, and convert them if necessary."""
        valid = {}
        for name, type_ in self._types.items():
            value = arguments.get(name, NO_VALUE)
            if type(value) is type_ and (type_ is not str or _is_text(value)):
                valid[name] = value
            elif value is not NO_VALUE or name in self._required:
                break
        else:
            if len(valid) == len(arguments):
                return valid
        return self._model_schema().validate(tool_name, arguments)

    def _model_schema(self) -> ModelSchema:
        if self._model is None:
            self._model = self._make_model()
        return self._model


def _type_and_description(annotation: TypeLike) -> tuple[Any, str | None]:
    """Return the type, and the text of `Annotated[type, "text"]`; the type is `None` for other forms."""
    description = None
    if origin_of(annotation) is Annotated:
        if len(annotation.__metadata__) != 1 or type(annotation.__metadata__[0]) is not str:
            return None, None
        annotation, (description,) = annotation.__origin__, annotation.__metadata__
    return (annotation if isinstance(annotation, type) else None), description


def _is_json(default: Any) -> bool:
    """Return whether the schema can contain a default for sure; other defaults are left to pydantic."""
    if isinstance(default, str):
        return _is_text(default)
    return math.isfinite(default) if isinstance(default, float) else abs(default) < _LARGEST_INT


def _is_text(value: Any) -> bool:
    """Return whether a string is without halves of surrogate pairs, which pydantic refuses."""
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            return False
    return True

"""The pydantic model of a function's parameters. Pydantic is loaded on first use."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Any, NamedTuple, NoReturn, Optional

from agentbench._signatures.forms import TypeLike, origin_of, type_name
from agentbench._signatures.reading import readable_by_pydantic
from agentbench.agents.tools.signature import NO_VALUE, ToolParameter, ToolSignature

_TYPES_OF_DEFAULTS = (bool, int, float, str, list, dict, tuple, set)


class DerivedModel(NamedTuple):
    """A pydantic model made from a signature."""

    model: Any
    schema: dict[str, Any]
    parameter_of: Mapping[str, str]
    """The parameter by field name, if the two differ."""
    own_defaults: frozenset[str]
    """Fields whose defaults the function itself sets."""


def derive_model(tool_name: str, signature: ToolSignature) -> DerivedModel:
    """Make a pydantic model from the parameters that the model fills."""
    from pydantic import ConfigDict, create_model
    from pydantic.fields import FieldInfo

    fields: dict[str, Any] = {}
    parameter_of: dict[str, str] = {}
    own_defaults: set[str] = set()
    for index, parameter in enumerate(signature.parameters):
        field = _field_name(parameter.name, index)
        if field != parameter.name:
            parameter_of[field] = parameter.name
        if parameter.default is not NO_VALUE and not isinstance(parameter.default, FieldInfo):
            own_defaults.add(field)
        fields[field] = _field(parameter, signature.type_of(parameter), renamed=field != parameter.name)
    config = ConfigDict(protected_namespaces=(), arbitrary_types_allowed=False)
    try:
        model: Any = create_model(f"{tool_name}_input", __config__=config, **fields)
        schema = model.model_json_schema(schema_generator=_quiet_generator())
    except Exception as error:  # noqa: BLE001 - types bring their own schemas, which raise anything
        _explain(tool_name, signature, error)
    return DerivedModel(model, schema, parameter_of, frozenset(own_defaults))


@functools.cache
def _quiet_generator() -> Any:
    from pydantic.json_schema import GenerateJsonSchema

    class QuietGenerator(GenerateJsonSchema):
        """Omits, without a warning, defaults and alternatives that JSON cannot represent."""

        ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - as in its base

    return QuietGenerator


def _field_name(name: str, index: int) -> str:
    """Return a valid field name for a pydantic model: not `schema`, `copy` or `_private`."""
    from pydantic import BaseModel

    return f"parameter_{index}" if name.startswith("_") or hasattr(BaseModel, name) else name


def _field(parameter: ToolParameter, annotation: TypeLike, *, renamed: bool) -> tuple[Any, Any]:
    from pydantic import Field
    from pydantic.fields import FieldInfo

    if annotation is NO_VALUE:
        type_ = _type_of_default(parameter.default)
    else:
        type_ = _with_description(readable_by_pydantic(annotation))
    if renamed:
        title = parameter.name.strip("_").replace("_", " ").title()
        type_ = Annotated[type_, Field(alias=parameter.name, title=title)]
    default = parameter.default
    if default is NO_VALUE:
        return type_, ...
    if isinstance(default, FieldInfo) or _is_json(default):
        return type_, default
    return type_, Field(default_factory=lambda: default)  # no longer required, and not in the schema


def _with_description(annotation: TypeLike) -> TypeLike:
    """Use a text in an `Annotated` annotation as the description of the parameter."""
    from pydantic import Field

    extras = annotation.__metadata__ if origin_of(annotation) is Annotated else ()
    texts = [extra for extra in extras if isinstance(extra, str)]
    if not texts or any(getattr(extra, "description", None) for extra in extras):
        return annotation
    return Annotated[annotation, Field(description=texts[0])]


def _type_of_default(default: object) -> TypeLike:
    """Return the type of a parameter without annotation."""
    if default is None:
        return Optional[str]  # noqa: UP045 - a value, not an annotation
    if isinstance(default, Enum) or type(default) in _TYPES_OF_DEFAULTS:
        return type(default)
    return str


def _is_json(value: object) -> bool:
    from pydantic_core import to_jsonable_python  # noqa: PLC0415

    try:
        json.dumps(to_jsonable_python(value))
    except (TypeError, ValueError):
        return False
    return True


def _explain(tool_name: str, signature: ToolSignature, error: Exception) -> NoReturn:
    """Raise an error that names the parameter without a schema."""
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticSchemaGenerationError

    # Pydantic's advice for unknown classes is about models, not about functions.
    why = "" if isinstance(error, PydanticSchemaGenerationError) else f" ({str(error).splitlines()[0]})"
    for parameter in signature.parameters:
        annotation = signature.type_of(parameter)
        if annotation is NO_VALUE:
            continue
        try:
            TypeAdapter(readable_by_pydantic(annotation)).json_schema()
        except Exception:  # noqa: BLE001 - as above
            message = (
                f"Parameter {parameter.name!r} of tool {tool_name!r} has the type {type_name(annotation)}, which has "
                f"no JSON schema{why}, so a model cannot fill it. Expected plain types, dataclasses or pydantic "
                "models. Bind the value with functools.partial, pass it in the run's function_invocation_kwargs and "
                "read it from a FunctionInvocationContext parameter, or describe the arguments with input_model=."
            )
            raise TypeError(message) from error
    message = f"The parameters of tool {tool_name!r} have no JSON schema{why}. Describe them with input_model=."
    raise TypeError(message) from error

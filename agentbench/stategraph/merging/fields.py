"""A field of a state: its reducer, and how its values are validated."""

from __future__ import annotations

import copy
import inspect
import operator
from collections import abc
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from annotated_types import BaseMetadata, GroupedMetadata
from pydantic import BaseModel, ConfigDict, InstanceOf, PydanticUserError, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import SchemaValidator, core_schema
from typing_extensions import is_typeddict

from agentbench._signatures.reading import readable_by_pydantic
from agentbench.exceptions import GraphError
from agentbench.serialization.plain import are_equal
from agentbench.stategraph.reducers import (
    Reducer,
    add_messages,
    append_items,
    remove_tool_messages,
    replace_messages,
    replace_value,
    upsert_messages,
)

# These reducers change neither argument, so the value that they merge into need not be copied.
_PURE = (operator.add, add_messages, append_items, replace_messages, replace_value, upsert_messages)
# The results of these reducers begin with the unchanged items of the left list.
_APPENDING = (operator.add, add_messages, append_items)
MESSAGE_REDUCERS = (add_messages, replace_messages, upsert_messages)
"""Marks the field that holds the conversation."""
_CONCRETE: Mapping[Any, type] = {
    abc.Sequence: list, abc.MutableSequence: list, abc.Collection: list, abc.Iterable: list, abc.Set: set,
    abc.MutableSet: set, abc.Mapping: dict, abc.MutableMapping: dict,
}  # fmt: skip

ABSENT: Any = object()
"""The value of a field that has none."""


@dataclass(slots=True)
class StateField:
    """A field of a state class.

    `validate` returns a value as converted by its validators, given the values of the other fields; `items` validates
    the new items of a list that updates only append to; `empty` creates the first value of a field with a reducer.
    """

    name: str
    reducer: Callable[[Any, Any], Any] | None
    items: SchemaValidator | None
    validate: Callable[[Any, Mapping[str, Any]], Any]
    empty: Callable[[], Any]
    is_appended_to: bool = field(init=False)
    """Whether an update only appends, so that only the new items need to be validated."""

    def __post_init__(self) -> None:
        self.is_appended_to = self.items is not None and self.reducer in _APPENDING

    def merge(self, left: Any, right: Any) -> Any:
        """Return the reducer's result; its `left` argument is a copy of the committed value, unless it is pure."""
        reducer = self.reducer
        assert reducer is not None
        if isinstance(left, (list, dict, set)) and reducer not in _PURE:
            left = left.copy()
        return reducer(left, right)

    def merge_checked(self, left: Any, right: Any) -> Any:
        """Return the reducer's result; `ValueError` if the reducer changes `left`."""
        assert self.reducer is not None
        before = copy.deepcopy(left)
        reduced = self.reducer(copied := copy.deepcopy(left), right)
        if not are_equal(before, copied):
            message = "it changes its first argument. Return a new value"
            raise ValueError(message)
        return reduced


def model_fields(cls: type[BaseModel], names: Iterable[str]) -> dict[str, StateField]:
    """Return the fields of a pydantic model, with its validators for each.

    Raises:
        GraphError: `GRAPH_008`, a field cannot be declared like this.
    """
    core, definitions = _fields_schema(cls)
    # For the fields without the model: validators of the model run once, when all fields have been merged.
    validator = SchemaValidator(_with(core, definitions))
    whole = {
        name for decorator in cls.__pydantic_decorators__.field_validators.values() for name in decorator.info.fields
    }

    def validate(name: str, value: Any, values: Mapping[str, Any]) -> Any:
        validated: Any = validator.validate_assignment(dict(values), name, value)
        return validated[0][name]

    def validate_in(name: str) -> Callable[[Any, Mapping[str, Any]], Any]:
        declared = core["fields"][name]
        if definitions or declared.get("frozen") or _reads_others(declared["schema"]):
            return partial(validate, name)
        alone = SchemaValidator(declared["schema"]).validate_python

        def validate_alone(value: Any, values: Mapping[str, Any]) -> Any:
            try:
                return alone(value)
            except ValidationError:
                return validate(name, value, values)  # its error names the field

        return validate_alone

    return {
        name: StateField(
            name, _reducer(name, cls.model_fields[name]),
            None if name in whole or "*" in whole else _items_validator(core["fields"][name]["schema"], definitions),
            validate_in(name), partial(_empty, cls.model_fields[name].annotation),
        )
        for name in names
    }  # fmt: skip


def _reads_others(schema: Any) -> bool:
    """Return whether a validator in a schema gets pydantic's info, in which it finds the other fields."""
    if isinstance(schema, Mapping):
        if schema.get("type") == "with-info" or schema.get("default_factory_takes_data"):
            return True
        return any(_reads_others(part) for key, part in schema.items() if key != "metadata")
    return isinstance(schema, (list, tuple)) and any(map(_reads_others, schema))


def annotated_field(name: str, annotation: Any) -> StateField:
    """Return the field that an annotation declares, without a model; see `model_fields`."""
    info = FieldInfo.from_annotation(annotation)
    adapter = _adapter(readable_by_pydantic(annotation))
    schema: Any = adapter.core_schema
    definitions = schema.get("definitions", []) if schema["type"] == "definitions" else []
    return StateField(
        name, _reducer(name, info), _items_validator(schema["schema"] if definitions else schema, definitions),
        lambda value, values: adapter.validate_python(value), partial(_empty, info.annotation),
    )  # fmt: skip


def _adapter(annotation: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(annotation, config=ConfigDict(arbitrary_types_allowed=True))
    except PydanticUserError:  # some types have their own configuration
        pass
    try:
        return TypeAdapter(annotation)
    except PydanticUserError:  # pydantic cannot validate its contents
        kind: Any = get_origin(annotation) or annotation
        return TypeAdapter(dict if is_typeddict(kind) else InstanceOf[kind] if isinstance(kind, type) else Any)


def _empty(annotation: Any) -> Any:
    """Return the empty value of an annotation's type, or `ABSENT` if it has none."""
    kind: Any = get_origin(annotation) or annotation
    try:
        return _CONCRETE.get(kind, kind)()
    except Exception:  # noqa: BLE001 - types are code of the user
        return ABSENT


def _fields_schema(cls: type[BaseModel]) -> tuple[Any, list[Any]]:
    """Return pydantic's schema of the fields of a class, and the definitions to which it refers."""
    schema: Any = cls.__pydantic_core_schema__
    definitions: list[Any] = []
    while schema["type"] != "model-fields":
        if schema["type"] == "definition-ref":
            schema = next(definition for definition in definitions if definition["ref"] == schema["schema_ref"])
        else:
            definitions = schema.get("definitions", definitions)
            schema = schema["schema"]
    return schema, definitions


def _with(schema: Any, definitions: list[Any]) -> Any:
    return core_schema.definitions_schema(schema, definitions) if definitions else schema


def _items_validator(schema: Any, definitions: list[Any]) -> SchemaValidator | None:
    """Return the validator for a plain list's items; `None` if the list as a whole is validated too."""
    if schema["type"] == "default":
        schema = schema["schema"]
    if schema["type"] != "list" or set(schema) - {"type", "items_schema", "metadata"}:
        return None
    return SchemaValidator(
        _with({"type": "list", "items_schema": schema.get("items_schema", {"type": "any"})}, definitions)
    )


def _reducer(name: str, info: FieldInfo) -> Callable[[Any, Any], Any] | None:
    reducers = [item for item in info.metadata if _is_reducer(item)]
    if len(reducers) > 1:
        raise declared_wrongly(name, f"it has {len(reducers)} reducers. Name one: Annotated[list[str], operator.add].")
    if not reducers:
        _refuse_hidden_reducer(name, info.annotation)
        return None
    reducer = reducers[0]
    function = reducer.fn if isinstance(reducer, Reducer) else reducer
    if function is remove_tool_messages:
        raise declared_wrongly(
            name,
            "remove_tool_messages is not a reducer. In a node: {'context': Overwrite(remove_tool_messages(...))}.",
        )
    if inspect.iscoroutinefunction(function):
        raise declared_wrongly(name, f"its reducer {function.__name__} is async. Make it a plain function.")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # functions written in C may have none
        return function
    try:
        signature.bind(None, None)
    except TypeError:
        shown = getattr(function, "__name__", repr(function))
        raise declared_wrongly(
            name, f"its reducer {shown}{signature} must take two values: the old and the new."
        ) from None
    return function


def _is_reducer(metadata: Any) -> bool:
    if not callable(metadata) or isinstance(metadata, (type, BaseMetadata, GroupedMetadata)):
        return False
    return not type(metadata).__module__.startswith("pydantic")


def _refuse_hidden_reducer(name: str, annotation: Any) -> None:
    """Reject a reducer inside a union: pydantic does not report it, so it would never be called."""
    if get_origin(annotation) not in (Union, UnionType):
        return
    for member in get_args(annotation):
        if get_origin(member) is Annotated and any(map(_is_reducer, member.__metadata__)):
            raise declared_wrongly(
                name, "its reducer is inside a union. Write Annotated[list | None, reducer] around it."
            )


def declared_wrongly(name: str, problem: str) -> GraphError:
    """Return the error for a field that cannot be declared like this."""
    return GraphError(f"Field {name!r} cannot be used: {problem}", "GRAPH_008", {"field": name}, field=name)

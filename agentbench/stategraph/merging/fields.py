"""What a state class declares: its fields, their reducers, and how their values are validated."""

from __future__ import annotations

import copy
import inspect
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from annotated_types import BaseMetadata, GroupedMetadata
from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, SchemaValidator, core_schema

from agentbench._copying import isolate
from agentbench.exceptions import GraphError, StateValidationError
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
from agentbench.stategraph.state import AgentState, ExecutionState

# They change neither argument, so the value that they merge into need not be copied.
_PURE = (operator.add, add_messages, append_items, replace_messages, replace_value, upsert_messages)
# What they return begins with the items of the left list, as they are.
_APPENDING = (operator.add, add_messages, append_items)


@dataclass(frozen=True, slots=True)
class StateField:
    """A field of a state class; `items` validates the new items of a list to which they are only appended."""

    name: str
    reducer: Callable[[Any, Any], Any] | None
    items: SchemaValidator | None

    def merge(self, left: Any, right: Any) -> Any:
        """Return the reducer's result; the value that it gets as `left` is not the committed one, unless it is pure."""
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

    @property
    def is_appended_to(self) -> bool:
        """Whether an update only appends, so that only its items need to be validated."""
        return self.items is not None and self.reducer in _APPENDING


class StateFields:
    """The fields of a state class, read once when a `StateGraph` is made.

    Raises:
        GraphError: `GRAPH_008`, a field cannot be declared like this.
    """

    def __init__(self, cls: type[AgentState]) -> None:
        self.cls = cls
        core, definitions = _fields_schema(cls)
        # Of the fields without the model around them: validators of the model run once, when all fields are merged.
        self._validator = SchemaValidator(_with(core, definitions))
        validators = cls.__pydantic_decorators__
        whole = {name for each in validators.field_validators.values() for name in each.info.fields}
        self._after = [each.func for each in validators.model_validators.values() if each.info.mode == "after"]
        self.by_name = {
            name: StateField(
                name, _reducer(cls, name, info),
                None if name in whole or "*" in whole else _items_validator(core["fields"][name], definitions),
            )
            for name, info in cls.model_fields.items()
            if name != "execution_meta"
        }  # fmt: skip
        if cls.model_fields["execution_meta"].annotation is not ExecutionState:
            raise _declared_wrongly("execution_meta", f"{cls.__name__} must leave it as it is: the graph writes it.")
        for name in cls.model_fields:
            if callable(getattr(AgentState, name, None)):
                raise _declared_wrongly(
                    name, f"AgentState has a method of that name. Rename the field of {cls.__name__}."
                )

    def initial(self, template: AgentState | None) -> dict[str, Any]:
        """Return the values of a new thread: those of the template, else the defaults of the class."""
        if template is not None:
            return {name: isolate(getattr(template, name)) for name in self.by_name}
        values: dict[str, Any] = {}
        for name in self.by_name:
            default = self.cls.model_fields[name].get_default(call_default_factory=True, validated_data=values)
            if default is not PydanticUndefined:
                values[name] = default
        return values

    def require_all(self, values: Mapping[str, Any]) -> None:
        """Raise `StateValidationError` if a field without a default has no value."""
        for name in self.by_name:
            if name not in values:
                message = (
                    f"Field {name!r} of {self.cls.__name__} has no value and no default. Supply it with the input: "
                    f"app.invoke({{'state': {{{name!r}: ...}}}}, config), or give it a default."
                )
                raise StateValidationError(message, field=name)

    def validate(self, name: str, value: Any, values: Mapping[str, Any]) -> Any:
        """Return a value as the field's validators make it; `pydantic.ValidationError` if it does not fit."""
        found: Any = self._validator.validate_assignment(dict(values), name, value)
        return found[0][name]

    def check(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run the validators of the model that come after those of the fields, and return what they leave."""
        if not self._after:
            return values
        candidate: Any = self.cls.model_construct(**values)
        for validate in self._after:
            candidate = validate(candidate)
        return {name: candidate.__dict__[name] for name in values}


def _fields_schema(cls: type[AgentState]) -> tuple[Any, list[Any]]:
    """Return pydantic's schema of the fields of a class, and the definitions that it refers to."""
    schema: Any = cls.__pydantic_core_schema__
    definitions: list[Any] = []
    while schema["type"] != "model-fields":
        if schema["type"] == "definition-ref":
            schema = next(each for each in definitions if each["ref"] == schema["schema_ref"])
        else:
            definitions = schema.get("definitions", definitions)
            schema = schema["schema"]
    return schema, definitions


def _with(schema: Any, definitions: list[Any]) -> Any:
    return core_schema.definitions_schema(schema, definitions) if definitions else schema


def _items_validator(field: Any, definitions: list[Any]) -> SchemaValidator | None:
    """Return the validator of a plain list's items; `None` where something concerns the list as a whole."""
    schema = field["schema"]
    if schema["type"] == "default":
        schema = schema["schema"]
    if schema["type"] != "list" or set(schema) - {"type", "items_schema", "metadata"}:
        return None
    return SchemaValidator(
        _with({"type": "list", "items_schema": schema.get("items_schema", {"type": "any"})}, definitions)
    )


def _reducer(cls: type[AgentState], name: str, info: FieldInfo) -> Callable[[Any, Any], Any] | None:
    found = [each for each in info.metadata if _is_reducer(each)]
    if len(found) > 1:
        raise _declared_wrongly(name, f"it has {len(found)} reducers. Name one: Annotated[list[str], operator.add].")
    if not found:
        _refuse_hidden_reducer(name, info.annotation)
        return None
    reducer = found[0]
    function = reducer.fn if isinstance(reducer, Reducer) else reducer
    if function is remove_tool_messages:
        raise _declared_wrongly(
            name,
            "remove_tool_messages is no reducer. Call it in a node: {'context': Overwrite(remove_tool_messages(...))}.",
        )
    if inspect.iscoroutinefunction(function):
        raise _declared_wrongly(name, f"its reducer {function.__name__} is async. Make it a plain function.")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # functions written in C may have none
        return function
    try:
        signature.bind(None, None)
    except TypeError:
        shown = getattr(function, "__name__", repr(function))
        raise _declared_wrongly(
            name, f"its reducer {shown}{signature} must take two values: the old and the new."
        ) from None
    return function


def _is_reducer(metadata: Any) -> bool:
    if not callable(metadata) or isinstance(metadata, (type, BaseMetadata, GroupedMetadata)):
        return False
    return not type(metadata).__module__.startswith("pydantic")


def _refuse_hidden_reducer(name: str, annotation: Any) -> None:
    """Pydantic does not report what is annotated inside a union, so a reducer there would never be called."""
    if get_origin(annotation) not in (Union, UnionType):
        return
    for member in get_args(annotation):
        if get_origin(member) is Annotated and any(map(_is_reducer, member.__metadata__)):
            raise _declared_wrongly(
                name, "its reducer is inside a union. Write Annotated[list | None, reducer] around it."
            )


def _declared_wrongly(name: str, problem: str) -> GraphError:
    return GraphError(f"Field {name!r} cannot be used: {problem}", "GRAPH_008", {"field": name}, field=name)


__all__ = ["StateField", "StateFields", "ValidationError"]

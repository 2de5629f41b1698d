"""The fields of a state, and how nodes, conditions and results see their values."""

from __future__ import annotations

import copy
import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Annotated, Any, ClassVar, NotRequired, Required, TypeGuard, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticUndefined
from typing_extensions import ReadOnly, is_typeddict

from agentbench._copying import isolate
from agentbench._signatures.class_cache import cached_on_class
from agentbench.exceptions import StateValidationError
from agentbench.messages.message import Message
from agentbench.stategraph.merging.fields import (
    ABSENT,
    MESSAGE_REDUCERS,
    StateField,
    annotated_field,
    declared_wrongly,
    model_fields,
)
from agentbench.stategraph.state import AgentState, ExecutionState

_DICT: Any = BaseModel.__dict__["__dict__"]


def node_state(
    cls: type[AgentState], read_field: Callable[[str], Any], stop_probe: Callable[[], bool] | None = None
) -> AgentState:
    """Return a state of a class; `read_field(name)` is called on first access to a field, and returns its value."""
    lazy, assign = _lazy_class(cls), object.__setattr__
    state: AgentState = lazy.__new__(lazy)
    assign(state, "__pydantic_fields_set__", set())
    assign(state, "__pydantic_extra__", None)
    assign(state, "__pydantic_private__", {"_stop_probe": stop_probe, "_read_field": read_field})
    return state


def fields_read(state: AgentState) -> dict[str, Any]:
    """Return the fields of a `node_state` that have been read or set."""
    return _DICT.__get__(state)  # type: ignore[no-any-return]


@cached_on_class
def _lazy_class(cls: Any) -> Any:
    """Return a class whose instances are of `cls` for all purposes, and read a field on first access.

    Python itself looks attributes up in the dictionary of an instance and calls `__getattr__` for missing ones. Code
    that accesses `__dict__` by name, as pydantic does to serialize, compare or copy a model, gets all fields.
    """
    names_of_fields = frozenset(cls.model_fields)  # asking pydantic takes longer than reading the field

    def read(self: Any, name: str) -> Any:
        if name not in names_of_fields:
            return super(lazy, self).__getattr__(name)
        value = _DICT.__get__(self)[name] = self.__pydantic_private__["_read_field"](name)
        return value

    def read_all(self: Any) -> dict[str, Any]:
        for name in cls.model_fields:
            getattr(self, name)
        return _DICT.__get__(self)  # type: ignore[no-any-return]

    def equal(self: Any, other: object) -> bool:
        # Private attributes differ, and are not compared.
        return isinstance(other, cls) and read_all(self) == other.__dict__

    names = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "__class__": property(lambda self: cls),
        "__dict__": property(read_all, _DICT.__set__),
        "__getattr__": read,
        "__eq__": equal,
        "__hash__": cls.__hash__,
    }
    lazy: Any = type(cls)(cls.__name__, (cls,), names)
    return lazy


# ---- the fields


Copy = Callable[[Any], Any]
Meta = Callable[[], ExecutionState]


class StateFields(ABC):
    """The fields of a state class, read once when a `StateGraph` is created.

    Attributes:
        cls: The state class.
        names: The declared fields.
        by_name: These fields, and the ones that only views of nodes declare.
        conversation: The field that holds the messages, if there is one.
        required: The fields without which an instance cannot be created.
        views: The fields of other classes: of those with which nodes are annotated, and of the input and the result.
        inputs: The fields that an input may write.
        outputs: The fields in results.

    Raises:
        GraphError: `GRAPH_008`, a field cannot be declared like this.
    """

    is_agent_state: ClassVar[bool] = False
    """Whether calls of the graph follow the rules of `AgentState` for results, inputs, errors and `Send`."""

    def __init__(self, cls: Any, declared: Mapping[str, StateField], required: Iterable[str] = ()) -> None:
        self.cls = cls
        self.names = tuple(declared)
        self.required = tuple(required)
        self.by_name: Mapping[str, StateField] = declared
        talks = (name for name, field in declared.items() if field.reducer in MESSAGE_REDUCERS)
        self.conversation: str | None = next(talks, None)
        self.views: Mapping[Any, StateFields] = {}
        self.inputs: Collection[str] = self.names
        self.outputs: Collection[str] = self.names

    # ---- views -------------------------------------------------------------------------------------------------------

    def view_of(self, annotation: Any) -> StateFields:
        """Return the fields of the state class with which a node or condition is annotated, or else these."""
        if annotation in (self.cls, BaseModel) or not is_state_class(annotation):
            return self
        view = self.views.get(annotation) or state_fields(annotation)
        return self if view.is_agent_state else view

    def with_view(self, view: StateFields) -> StateFields:
        """Return these fields and those of a view, which nodes may write too.

        Raises:
            GraphError: `GRAPH_008`, the view has a different reducer for a field.
        """
        if view is self or view.cls in self.views:
            return self
        for name, field in view.by_name.items():
            own_field = self.by_name.get(name, field)
            if field.reducer is not None and field.reducer != own_field.reducer:
                problem = f"{view.cls.__name__} and {self.cls.__name__} have different reducers for it. Use one."
                raise declared_wrongly(name, problem)
        more = copy.copy(self)
        more.by_name = {**self.by_name, **view.by_name, **self.by_name}  # in the order of the state, then of the view
        more.views = {**self.views, view.cls: view}
        return more

    def with_schemas(self, input_schema: Any, output_schema: Any) -> StateFields:
        """Return these fields with the classes that declare the input and the result, if they are not None.

        Raises:
            TypeError: A schema is not a class that can declare a state.
            GraphError: `GRAPH_008`, a schema has a different reducer for a field.
        """
        more = self
        for name, schema in (("inputs", input_schema), ("outputs", output_schema)):
            if schema is None:
                continue
            if not is_state_class(schema):
                message = f"The schema is {schema!r}; expected a TypedDict, a dataclass or a pydantic model."
                raise TypeError(message)
            view = self.view_of(schema)
            more = copy.copy(more.with_view(view))
            setattr(more, name, view.names)
        return more

    def owner_of(self, value: object) -> StateFields | None:
        """Return those of these fields, and of the views, of whose class a value is an instance."""
        return next((fields for fields in (self, *self.views.values()) if fields.is_instance(value)), None)

    @abstractmethod
    def view(
        self, values: Mapping[str, Any], copied: Copy, meta: Meta, stop_probe: Callable[[], bool] | None = None
    ) -> Any:
        """Return the state for a node or a condition.

        Args:
            values: The committed values, which stay unchanged.
            copied: Copies a value.
            meta: Creates the facts of the execution.
            stop_probe: Whether a stop was requested.

        Raises:
            StateValidationError: A field without a default has no value.
        """

    def read(self, state: Any, names: Iterable[str] | None = None) -> dict[str, Any]:
        """Return the values of fields in a node's state, as far as it has them; by default of all fields."""
        names = self.names if names is None else names
        if isinstance(state, Mapping):
            return {name: state[name] for name in names if name in state}
        return {name: getattr(state, name) for name in names if hasattr(state, name)}

    def messages_in(self, state: Any) -> list[Message]:
        """Return the conversation in a node's state."""
        return [] if self.conversation is None else self.read(state, [self.conversation]).get(self.conversation) or []

    def values_to_compare(self, state: Any) -> dict[str, Any]:
        """Return the values in a node's state that it may have changed."""
        return self.read(state)

    # ---- values ------------------------------------------------------------------------------------------------------

    def initial(self, template: Any) -> dict[str, Any]:
        """Return the values of a new thread: those of the template; a field with a reducer always has one."""
        values = {
            name: value
            for name, field in self.by_name.items()
            if field.reducer is not None and (value := field.empty()) is not ABSENT
        }
        return values if template is None else {**values, **isolate(self.values_of(template))}

    def require_all(self, values: Mapping[str, Any]) -> None:
        """Raise `StateValidationError` if a field without a default has no value."""
        for name in self.required:
            if name not in values:
                message = (
                    f"Field {name!r} of {self.cls.__name__} has no value and no default. Supply it with the input: "
                    f"app.invoke({{{name!r}: ...}}, config), or give it a default."
                )
                raise StateValidationError(message, field=name)

    def is_instance(self, value: object) -> bool:
        """Whether this is an instance of the state class, and not a dictionary of fields."""
        return isinstance(value, self.cls)

    def values_of(self, state: Any) -> dict[str, Any]:
        """Return the values that an instance of the class writes."""
        return self.read(state)

    def to_display(self, values: Mapping[str, Any], meta: ExecutionState) -> Any:
        """Return values as displayed in results, snapshots and streams, without validating them again."""
        return dict(values)

    def public(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of the fields in results."""
        return {name: values[name] for name in self.outputs if name in values}

    def validate(self, name: str, value: Any, values: Mapping[str, Any]) -> Any:
        """Return a value as converted by the field's validators; `pydantic.ValidationError` if it does not fit."""
        return self.by_name[name].validate(value, values)

    def check(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run the validators that come after those of the fields, and return the resulting values."""
        return values

    def misfit(self, values: Mapping[str, Any]) -> ValidationError | None:
        """Return the reason why stored values do not fit the class."""
        for name, value in values.items():
            try:
                self.validate(name, value, values)
            except ValidationError as error:
                return error
        return None


class TypedDictFields(StateFields):
    """The fields of a `TypedDict`. A node gets a dictionary of those that have a value."""

    def __init__(self, cls: Any) -> None:
        hints = _hints(cls)
        super().__init__(cls, {name: annotated_field(name, _strip_qualifiers(hint)) for name, hint in hints.items()})

    def view(
        self, values: Mapping[str, Any], copied: Copy, meta: Meta, stop_probe: Callable[[], bool] | None = None
    ) -> dict[str, Any]:
        """Return a dictionary."""
        return {name: copied(values[name]) for name in self.names if name in values}

    def is_instance(self, value: object) -> bool:
        """Return False, since instances of a `TypedDict` are plain dictionaries."""
        return False


class DataclassFields(StateFields):
    """The fields of a dataclass. A node gets an instance, in which fields without a value have their defaults."""

    def __init__(self, cls: Any) -> None:
        hints = _hints(cls)
        # Defaults of a pydantic dataclass may have constraints: n: int = Field(ge=0).
        of_pydantic = getattr(cls, "__pydantic_fields__", {})
        hints |= {name: Annotated[info.annotation, info] for name, info in of_pydantic.items()}
        declared = dataclasses.fields(cls)
        self._later = frozenset(field.name for field in declared if not field.init)
        required = [
            field.name
            for field in declared
            if field.init and field.default is field.default_factory is dataclasses.MISSING
        ]
        by_name = {field.name: annotated_field(field.name, hints[field.name]) for field in declared}
        super().__init__(cls, by_name, required)

    def view(
        self, values: Mapping[str, Any], copied: Copy, meta: Meta, stop_probe: Callable[[], bool] | None = None
    ) -> Any:
        """Return an instance."""
        self.require_all(values)
        given = {name: copied(values[name]) for name in self.names if name in values}
        state = self.cls(**{name: value for name, value in given.items() if name not in self._later})
        for name in self._later & given.keys():
            object.__setattr__(state, name, given[name])
        return state


class ModelFields(StateFields):
    """The fields of a pydantic model. A node gets an instance, in which fields without a value have their defaults."""

    def __init__(self, cls: Any, names: Iterable[str] | None = None) -> None:
        names = [*(cls.model_fields if names is None else names)]
        required = [name for name in names if cls.model_fields[name].is_required()]
        super().__init__(cls, model_fields(cls, names), required)
        validators = cls.__pydantic_decorators__.model_validators.values()
        self._after = [validator.func for validator in validators if validator.info.mode == "after"]

    def view(
        self, values: Mapping[str, Any], copied: Copy, meta: Meta, stop_probe: Callable[[], bool] | None = None
    ) -> Any:
        """Return an instance."""
        self.require_all(values)
        return self.cls.model_construct(**{name: copied(values[name]) for name in self.names if name in values})

    def check(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run the validators of the model, once all fields without defaults have a value."""
        if not self._after or not all(name in values for name in self.required):
            return values
        candidate: Any = self.cls.model_construct(**self.read(values))
        for validate in self._after:
            candidate = validate(candidate)
        return {**values, **{name: candidate.__dict__[name] for name in self.names if name in values}}


class AgentStateFields(ModelFields):
    """The fields of an `AgentState`. A node gets a copy that copies each field on first access."""

    is_agent_state = True

    def __init__(self, cls: type[AgentState]) -> None:
        super().__init__(cls, [name for name in cls.model_fields if name != "execution_meta"])
        self.conversation = "context"
        # Pydantic inspects the signature of a factory at each call.
        self._factories: dict[str, Any] = {
            name: field.default_factory
            for name, field in cls.model_fields.items()
            if field.default_factory is not None and not field.default_factory_takes_validated_data
        }
        if cls.model_fields["execution_meta"].annotation is not ExecutionState:
            raise declared_wrongly("execution_meta", f"{cls.__name__} must not change it, because the graph writes it.")
        for name in cls.model_fields:
            if callable(getattr(AgentState, name, None)):
                raise declared_wrongly(
                    name, f"AgentState has a method of this name. Rename the field of {cls.__name__}."
                )

    def view_of(self, annotation: Any) -> StateFields:
        """Return these fields: every node gets all of them."""
        return self

    def view(
        self, values: Mapping[str, Any], copied: Copy, meta: Meta, stop_probe: Callable[[], bool] | None = None
    ) -> AgentState:
        """Return an instance."""
        return node_state(
            self.cls, lambda name: meta() if name == "execution_meta" else copied(values[name]), stop_probe
        )

    def values_to_compare(self, state: AgentState) -> dict[str, Any]:
        """Return the fields that have been read or set."""
        return fields_read(state)

    def initial(self, template: AgentState | None) -> dict[str, Any]:
        """Return the values of a new thread: those of the template, or else the defaults of the class."""
        if template is not None:
            return {name: isolate(getattr(template, name)) for name in self.names}
        values: dict[str, Any] = {}
        for name in self.names:
            if name in self._factories:
                values[name] = self._factories[name]()
                continue
            default = self.cls.model_fields[name].get_default(call_default_factory=True, validated_data=values)
            if default is not PydanticUndefined:
                values[name] = default
        return values

    def values_of(self, state: AgentState) -> dict[str, Any]:
        """Return the fields that were set."""
        return {name: getattr(state, name) for name in state.model_fields_set if name != "execution_meta"}

    def to_display(self, values: Mapping[str, Any], meta: ExecutionState) -> AgentState:
        """Return an instance."""
        state: AgentState = self.cls.model_construct(**{**values, "execution_meta": meta})
        return state

    def misfit(self, values: Mapping[str, Any]) -> ValidationError | None:
        """Return the reason why stored values do not fit the class; all fields without defaults are required."""
        try:
            self.cls.model_validate(dict(values))
        except ValidationError as error:
            return error
        return None


def is_state_class(cls: Any) -> TypeGuard[type]:
    """Whether a class can declare a state: an `AgentState`, another pydantic model, a dataclass or a `TypedDict`."""
    return is_typeddict(cls) or (
        isinstance(cls, type) and (dataclasses.is_dataclass(cls) or issubclass(cls, BaseModel))
    )


def state_fields(cls: Any) -> StateFields:
    """Return the fields of a state class.

    Raises:
        GraphError: `GRAPH_008`, a field cannot be declared like this.
    """
    if is_typeddict(cls):
        return TypedDictFields(cls)
    if not issubclass(cls, BaseModel):
        return DataclassFields(cls)
    return AgentStateFields(cls) if issubclass(cls, AgentState) else ModelFields(cls)


def _hints(cls: Any) -> dict[str, Any]:
    try:
        return get_type_hints(cls, include_extras=True)
    except NameError as error:
        problem = f"the annotations of {cls.__name__} cannot be read: {error}. Define that name in the same module."
        raise declared_wrongly(str(error.name), problem) from error


def _strip_qualifiers(hint: Any) -> Any:
    """Return the annotation of a key without `Required`, `NotRequired` and `ReadOnly`."""
    origin = get_origin(hint)
    if origin in (Required, NotRequired, ReadOnly):
        return _strip_qualifiers(get_args(hint)[0])
    if origin is Annotated:
        return Annotated[(_strip_qualifiers(hint.__origin__), *hint.__metadata__)]
    return hint

"""How instances of user classes are stored: dataclasses, named tuples, enums and pydantic models.

Fields are stored by name. Reading runs no constructor and no validator, and sets only declared fields.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum, Flag
from functools import cached_property
from typing import Any, Final

from agentbench._signatures.class_cache import cached_on_class
from agentbench.exceptions import UnknownStoredTypeError, UnstorableValueError
from agentbench.serialization.class_names import as_plain, class_name, find_class, stored_type
from agentbench.serialization.registry import StateType, of_kind

_HEAP_TYPE: Final = 1 << 9  # Py_TPFLAGS_HEAPTYPE: created by a class statement, not written in C


def find_class_type(cls: type) -> StateType | None:
    """Return how instances of exactly this class are stored, if it is of a kind that this module handles."""
    if issubclass(cls, Enum):
        return _enum_type(cls)
    if _is_named_tuple(cls):
        return _named_tuple_type(cls)
    if is_model(cls):
        return _model_type(cls)
    return _dataclass_type(cls) if is_dataclass(cls) else None


class_type = cached_on_class(find_class_type)


def _enum_type(cls: type[Enum]) -> StateType:
    name = stored_type(cls)
    if issubclass(cls, Flag):
        return StateType(cls, "flag", lambda member: member._value_, CLASS_DECODERS["flag"], name)

    def encode(member: Enum) -> str:
        if cls.__members__.get(member._name_) is not member:
            raise UnstorableValueError(cls, f"{member!r} is not one of its members.")
        return member._name_

    return StateType(cls, "enum", encode, CLASS_DECODERS["enum"], name)


def _read_flag(cls: type[Flag], value: Any) -> Flag:
    return cls(of_kind(int, value))  # a user's constructor could accept anything


def _is_named_tuple(cls: Any) -> bool:
    names = getattr(cls, "_fields", None)
    return issubclass(cls, tuple) and isinstance(names, tuple) and all(type(name) is str for name in names)


def _named_tuple_type(cls: Any) -> StateType:
    name = stored_type(cls)
    names = cls._fields

    def encode(instance: Any) -> dict[str, Any]:
        if len(instance) != len(names) or getattr(instance, "__dict__", None):
            raise UnstorableValueError(cls, "It contains more than its fields. Pass it to register_state_type().")
        return dict(zip(names, instance, strict=True))

    return StateType(cls, "namedtuple", encode, CLASS_DECODERS["namedtuple"], name)


def _read_named_tuple(cls: Any, values: Any) -> Any:
    _refuse_unknown(cls, values, cls._fields)
    known = {**cls._field_defaults, **values}
    for key in cls._fields:
        if key not in known:
            raise _no_default(cls, key)
    return tuple.__new__(cls, [known[key] for key in cls._fields])


def _dataclass_type(cls: Any) -> StateType:
    if any(not base.__flags__ & _HEAP_TYPE for base in cls.__mro__[:-1]):
        raise UnstorableValueError(cls, "It has more than its fields. Pass it to register_state_type() with encode.")
    name = stored_type(cls)
    names = tuple(field.name for field in fields(cls))
    # Fields without a default that are not parameters of the constructor.
    may_be_unset = {
        field.name for field in fields(cls) if not field.init and field.default is field.default_factory is MISSING
    }
    expected = {*names, *_cached_names(cls), "__orig_class__"}

    def encode(instance: Any) -> dict[str, Any]:
        attributes = getattr(instance, "__dict__", {})
        if len(attributes) == len(names):
            try:
                return {key: attributes[key] for key in names}
            except KeyError:
                pass
        if not attributes.keys() <= expected:
            raise _holds_more(cls, attributes.keys() - expected)
        try:
            return {key: getattr(instance, key) for key in names}
        except AttributeError:
            unset = [key for key in names if not hasattr(instance, key)]
            if not may_be_unset.issuperset(unset):
                reason = f"Its fields {', '.join(map(repr, unset))} are not set. Set them, or give them defaults."
                raise UnstorableValueError(cls, reason) from None
            return {key: getattr(instance, key) for key in names if key not in unset}

    return StateType(cls, "dataclass", encode, CLASS_DECODERS["dataclass"], name)


def _cached_names(cls: type) -> set[str]:
    """Return the names of cached properties, which are stored as attributes and recomputed when needed."""
    return {name for base in cls.__mro__ for name, found in vars(base).items() if isinstance(found, cached_property)}


def _read_dataclass(cls: Any, values: Any) -> Any:
    known: tuple[Field[Any], ...] = fields(cls)
    missing = [field for field in known if field.name not in of_kind(dict, values)]
    if len(values) + len(missing) != len(known):
        _refuse_unknown(cls, values, {field.name for field in known})
    instance, assign = object.__new__(cls), object.__setattr__
    for key, value in values.items():
        assign(instance, key, value)
    for field in missing:
        if field.default is not MISSING:
            assign(instance, field.name, field.default)
        elif field.default_factory is not MISSING:
            assign(instance, field.name, field.default_factory())
        elif field.init:
            raise _no_default(cls, field.name)
    return instance


def is_model(cls: type) -> bool:
    """Return whether this is a pydantic model class; there are none until pydantic is loaded."""
    base = vars(sys.modules.get("pydantic.main", sys)).get("BaseModel")
    return base is not None and issubclass(cls, base)


def _model_type(cls: Any) -> StateType:
    name = stored_type(cls)
    names = tuple(cls.model_fields)
    # In root models these two are attributes; other models have slots for them.
    expected = {*names, *_cached_names(cls), "__pydantic_extra__", "__pydantic_private__"}

    def encode(model: Any) -> dict[str, Any]:
        attributes = model.__dict__
        if not attributes.keys() <= expected:
            raise _holds_more(cls, attributes.keys() - expected)
        values = {key: attributes[key] for key in names if key in attributes}
        found: dict[str, Any] = {"fields": values}
        if len(values) != len(names):
            found["unset"] = [key for key in names if key not in values]
        if model.__pydantic_fields_set__ != values.keys():
            found["set"] = sorted(model.__pydantic_fields_set__)
        if model.__pydantic_extra__ is not None:
            found["extra"] = model.__pydantic_extra__
        if model.__pydantic_private__:
            found["private"] = _without_undefined(model.__pydantic_private__)
        return found

    return StateType(cls, "model", encode, CLASS_DECODERS["model"], name)


def _read_model(cls: Any, state: Any) -> Any:
    values, extra, private = state["fields"], state.get("extra"), state.get("private", {})
    known = cls.model_fields
    _refuse_unknown(cls, values, known)
    _refuse_unknown(cls, private, cls.__private_attributes__)
    if extra is not None:
        _refuse_unknown(cls, extra, extra if cls.model_config.get("extra") == "allow" else ())
    model = cls.__new__(cls)
    expected = {key: field for key, field in known.items() if key not in of_kind(list, state.get("unset", []))}
    object.__setattr__(model, "__dict__", _with_defaults(cls, expected, values))
    object.__setattr__(model, "__pydantic_fields_set__", set(of_kind(list, state.get("set", [*values]))))
    declared = cls.__private_attributes__
    unset = {key: attribute.get_default() for key, attribute in declared.items() if key not in private}
    every = {**private, **_without_undefined(unset)} if declared else None
    for key, value in (("__pydantic_extra__", extra), ("__pydantic_private__", every)):
        if value is not None or not cls.__pydantic_root_model__:
            object.__setattr__(model, key, value)
    return model


def _without_undefined(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in values.items() if type(item).__name__ != "PydanticUndefinedType"}


def _with_defaults(cls: type, known: Mapping[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    complete: dict[str, Any] = {}
    for key, field in known.items():
        if key in values:
            complete[key] = values[key]
        elif field.is_required():
            raise _no_default(cls, key)
        else:
            takes_others = getattr(field, "default_factory_takes_validated_data", False)  # absent before pydantic 2.10
            needed = {"validated_data": complete} if takes_others else {}
            complete[key] = field.get_default(call_default_factory=True, **needed)
    return complete


def _refuse_unknown(cls: type, values: Any, known: Any) -> None:
    unknown = sorted(repr(key) for key in of_kind(dict, values) if key not in known)
    if unknown:
        problem = f"which has no fields {', '.join(unknown)} here. Load the version that has them"
        raise UnknownStoredTypeError(class_name(cls), problem)


def _no_default(cls: type, key: str) -> UnknownStoredTypeError:
    problem = f"whose field {key!r} has no default here and was not stored. Set a default for it"
    return UnknownStoredTypeError(class_name(cls), problem)


def _holds_more(cls: type, names: Any) -> UnstorableValueError:
    listed = ", ".join(map(repr, sorted(names)))
    reason = f"It contains {listed} besides its fields. Declare fields for that, or pass it to register_state_type()."
    return UnstorableValueError(cls, reason)


def _decoder(tag: str, kind: str, fits: Callable[[Any], bool], read: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    def decode(found: Any) -> Any:
        name, content = found
        try:
            cls = find_class(name)
            if not fits(cls):
                raise UnknownStoredTypeError(str(name), f"which is not a {kind} here. Load the module that defined it")
            return read(cls, content)
        except UnknownStoredTypeError as error:
            return as_plain(error, tag, name, content)

    return decode


CLASS_DECODERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "dataclass": _decoder("dataclass", "dataclass", is_dataclass, _read_dataclass),
    "enum": _decoder("enum", "enum", lambda cls: issubclass(cls, Enum), lambda cls, name: cls.__members__[name]),
    "flag": _decoder("flag", "flag", lambda cls: issubclass(cls, Flag), _read_flag),
    "model": _decoder("model", "pydantic model", is_model, _read_model),
    "namedtuple": _decoder("namedtuple", "named tuple", _is_named_tuple, _read_named_tuple),
}

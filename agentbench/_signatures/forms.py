"""Type expressions: their kind, in any spelling and Python version, and their name as text."""

from __future__ import annotations

import functools
import operator
import types
import typing
from collections.abc import Iterator
from typing import Annotated, Any, ForwardRef, Literal, TypeVar, Union, get_args, get_origin

from agentbench._lazy import public_path

TypeLike = Any
"""Any object that an annotation may be; typing has no static name for that before Python 3.15."""

NoneType = type(None)

_TYPING_MODULES = frozenset({"typing", "typing_extensions"})
_UNIONS = frozenset({Union, types.UnionType})
_QUALIFIERS = frozenset({"ClassVar", "Final", "NotRequired", "ReadOnly", "Required"})
_NEVER = frozenset({"Never", "NoReturn"})
_TYPES_WITHOUT_ORIGIN = _NEVER | {"Any", "LiteralString", "Self"}


def origin_of(type_: TypeLike) -> TypeLike:
    """Return the origin of a generic: `list` for `list[int]`, `Union` or `UnionType` for unions, otherwise None."""
    return get_origin(type_)


def special_name(type_: TypeLike) -> str | None:
    """Return the name of a typing construct such as `Any` or `Never`, or None for everything else."""
    # Compared by name, because typing and typing_extensions may each have their own object.
    if isinstance(type_, type):
        return "Any" if type_.__name__ == "Any" and type_.__module__ in _TYPING_MODULES else None
    if type(type_).__module__ not in _TYPING_MODULES:
        return None
    name = getattr(type_, "_name", None)
    return name if isinstance(name, str) else None


def is_any(type_: TypeLike) -> bool:
    """Whether this is `Any`."""
    return type_ is Any or special_name(type_) == "Any"


def is_never(type_: TypeLike) -> bool:
    """Whether this is `Never` or `NoReturn`, of typing or of typing_extensions."""
    return origin_of(type_) is None and special_name(type_) in _NEVER


def is_union(type_: TypeLike) -> bool:
    """Whether this is a union in either spelling."""
    return origin_of(type_) in _UNIONS


def is_alias(type_: TypeLike) -> bool:
    """Whether this is a `type X = ...` alias, possibly with arguments. Only such an alias may refer to itself."""
    return type(origin_of(type_) or type_).__name__ == "TypeAliasType"


def is_typed_dict(type_: TypeLike) -> bool:
    """Whether this is a `TypedDict` class."""
    return isinstance(type_, type) and hasattr(type_, "__required_keys__") and hasattr(type_, "__total__")


def is_protocol(type_: TypeLike) -> bool:
    """Whether this is a protocol itself, not a class that implements one."""
    return isinstance(type_, type) and bool(getattr(type_, "_is_protocol", False))


def is_static_protocol(type_: TypeLike) -> bool:
    """Whether this is a protocol that `isinstance` rejects."""
    return is_protocol(type_) and not getattr(type_, "_is_runtime_protocol", False)


def is_type_form(value: object) -> bool:
    """Whether an annotation may be this object, apart from text and forward references."""
    if value is None or isinstance(value, (type, TypeVar, typing.NewType)):
        return True
    return origin_of(value) is not None or is_alias(value) or special_name(value) in _TYPES_WITHOUT_ORIGIN


def unwrap(type_: TypeLike) -> TypeLike:
    """Strip what is irrelevant for values: `Annotated`, `NewType`, `Required`, aliases (`Any` if not evaluable)."""
    while (inner := _one_layer_off(type_)) is not type_:
        type_ = inner
    return type_


def type_arguments(type_: TypeLike) -> tuple[TypeLike, ...] | None:
    """Return the arguments of a generic, or None if it has none (`list`, `typing.List`); `tuple[()]` has `()`."""
    if not hasattr(type_, "__args__") or origin_of(type_) is None:
        return None
    return get_args(type_)


def fields_of(cls: TypeLike) -> dict[str, TypeLike]:
    """Return the annotated fields of a typed dict or dataclass; none at all if a name cannot be resolved."""
    try:
        return typing.get_type_hints(cls)
    except (AttributeError, NameError, TypeError):
        return {}


def required_keys_of(typed_dict: TypeLike) -> frozenset[str]:
    """Return the required keys of a typed dict, even if its annotations are postponed."""
    required: frozenset[str] = typed_dict.__required_keys__
    try:
        hints = typing.get_type_hints(typed_dict, include_extras=True)
    except (AttributeError, NameError, TypeError):
        return required
    # Python reads postponed annotations as plain text and treats every key of such a class as required.
    marks = {name: special_name(origin_of(hint)) for name, hint in hints.items()}
    optional = {name for name, mark in marks.items() if mark == "NotRequired"}
    return (required - optional) | {name for name, mark in marks.items() if mark == "Required"}


def flatten_union(type_: TypeLike) -> tuple[TypeLike, ...]:
    """Return the members of a union as written; `()` for `Never`; any other type alone, including a `NewType`."""
    members: list[TypeLike] = []
    for member in _members(type_):
        if member not in members:
            members.append(member)
    return tuple(members)


def _members(type_: TypeLike) -> Iterator[TypeLike]:
    if origin_of(type_) is Annotated or is_alias(type_):
        yield from _members(_one_layer_off(type_))
    elif is_union(type_):
        for member in get_args(type_):
            yield from _members(member)
    elif not is_never(type_):
        yield NoneType if type_ is None else type_


def _one_layer_off(type_: TypeLike) -> TypeLike:
    if type_ is None:
        return NoneType
    if isinstance(type_, typing.NewType):
        return type_.__supertype__
    if origin_of(type_) is Annotated:
        return type_.__origin__
    if is_alias(type_):
        try:
            value = (origin_of(type_) or type_).__value__
            return value[get_args(type_)] if get_args(type_) else value
        except (NameError, TypeError):
            return Any
    if special_name(origin_of(type_)) in _QUALIFIERS:
        return get_args(type_)[0]
    return type_


def union_of(members: tuple[TypeLike, ...]) -> TypeLike:
    """Return the union of types, written `A | B` if all of them allow it."""
    try:
        return functools.reduce(operator.or_, members)
    except TypeError:  # such as forward references, which lack `|` on older Pythons
        return operator.getitem(Union, members)


def type_address(type_: TypeLike) -> str:
    """Return the text that identifies a type without arguments; TypeError if it has no name.

    It is the public path of a class of the library (`agentbench.Message`), otherwise module and qualified name.
    """
    path = public_path(type_) if isinstance(type_, type) else None
    return path or f"{type_.__module__}.{qualified_name(type_)}"


def qualified_name(type_: TypeLike) -> str:
    """Return the qualified name of a type without arguments; TypeError if it has none."""
    name = getattr(type_, "__qualname__", None) or getattr(type_, "__name__", None) or getattr(type_, "_name", None)
    if not isinstance(name, str):
        message = f"{type_!r} has no name. Expected a class or another named type."
        raise TypeError(message)
    return name


def type_name(type_: TypeLike) -> str:
    """Return a short readable name: `int`, `list[str]`, `int | None`, `Literal['a', 'b']`."""
    if type_ is None or type_ is NoneType:
        return "None"
    if type_ is Ellipsis:
        return "..."
    if isinstance(type_, str):
        return type_
    if isinstance(type_, ForwardRef):
        return type_.__forward_arg__
    if isinstance(type_, list):
        return f"[{', '.join(map(type_name, type_))}]"
    origin, args = origin_of(type_), type_arguments(type_)
    if origin is None or args is None:
        return _own_name(origin or type_)
    if origin is Annotated:
        return type_name(args[0])
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, args))}]"
    parts = list(map(type_name, args))
    return " | ".join(parts) if is_union(type_) else f"{_own_name(origin)}[{', '.join(parts) or '()'}]"


def type_of(value: object) -> str:
    """Return the name of a value's type; for a list, with those of its items: `list[str | int]`.

    Types of numpy and pandas are prefixed with their package: `numpy.bool` is not `bool`.
    """
    cls = type(value)
    package = cls.__module__.partition(".")[0]
    name = f"{package}.{cls.__name__}" if package in ("numpy", "pandas") else cls.__name__
    if not isinstance(value, list) or not value:
        return name
    return f"{name}[{' | '.join(dict.fromkeys(map(type_of, value)))}]"


def _own_name(type_: TypeLike) -> str:
    try:
        return qualified_name(type_).rpartition("<locals>.")[2]
    except TypeError:
        return repr(type_)

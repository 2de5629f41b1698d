"""`typing.TypedDict` for pydantic, which on Python 3.11 supports only the one of `typing_extensions`."""

from __future__ import annotations

import functools
import operator
import sys
import types
from typing import Annotated, NotRequired, Required, get_args, get_type_hints
from weakref import WeakKeyDictionary

from agentbench._signatures.forms import TypeLike, is_typed_dict, is_union, origin_of, required_keys_of

_readable_copies: WeakKeyDictionary[type, type] = WeakKeyDictionary()


def readable_by_pydantic(annotation: TypeLike) -> TypeLike:
    """Return a type in which every `typing.TypedDict` class is replaced by an equal one that pydantic supports."""
    if sys.version_info >= (3, 12):
        return annotation
    if is_typed_dict(annotation):
        return _readable_copy(annotation)
    arguments = get_args(annotation)
    if not arguments or not any(isinstance(one, type) or get_args(one) for one in arguments):
        return annotation
    if origin_of(annotation) is Annotated:
        return Annotated[(readable_by_pydantic(arguments[0]), *arguments[1:])]
    changed = tuple(readable_by_pydantic(one) for one in arguments)
    if all(map(operator.is_, changed, arguments)):
        return annotation
    if isinstance(annotation, types.UnionType) or is_union(annotation):
        return functools.reduce(operator.or_, changed)
    return annotation.copy_with(changed) if hasattr(annotation, "copy_with") else origin_of(annotation)[changed]


def _readable_copy(cls: TypeLike) -> TypeLike:
    if type(cls).__module__ != "typing":
        return cls
    readable: TypeLike = _readable_copies.get(cls)
    if readable is None:
        from typing_extensions import TypedDict

        # It is registered before its fields are known, since they may refer to the class itself.
        _readable_copies[cls] = readable = TypedDict(cls.__name__, {})  # type: ignore[operator]
        readable.__doc__, readable.__module__ = cls.__doc__, cls.__module__
        hints, required = get_type_hints(cls, include_extras=True), required_keys_of(cls)
        readable.__required_keys__, readable.__optional_keys__ = required, frozenset(hints) - required
        readable.__annotations__ = {
            name: (Required if name in required else NotRequired)[readable_by_pydantic(_strip_requirement(type_))]
            for name, type_ in hints.items()
        }
    return readable


def _strip_requirement(type_: TypeLike) -> TypeLike:
    return get_args(type_)[0] if origin_of(type_) in (Required, NotRequired) else type_

"""Types as text: short for people, qualified for files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, ForwardRef, Literal, get_args

from agentbench._signatures.forms import NoneType, TypeLike, is_union, origin_of, type_arguments


def type_name(type_: TypeLike) -> str:
    """Return a short readable name: `int`, `list[str]`, `int | None`, `Literal['a', 'b']`."""
    return _render(type_, _short)


def qualified_name(type_: TypeLike) -> str:
    """Return `"module.qualname"`, also inside generics and unions: `builtins.list[builtins.str]`."""
    return _render(type_, lambda leaf: ".".join(leaf_address(leaf)))


def leaf_address(type_: TypeLike) -> tuple[str, str]:
    """Return module and qualified name of a type without arguments.

    Raises:
        TypeError: The object has no name, so it is not a type.
    """
    name = getattr(type_, "__qualname__", None) or getattr(type_, "__name__", None) or getattr(type_, "_name", None)
    if not isinstance(name, str):
        message = f"{type_!r} has no name to write it by. Expected a class or another named type."
        raise TypeError(message)
    return type_.__module__, name


def _render(type_: TypeLike, leaf: Callable[[TypeLike], str]) -> str:
    if type_ is None or type_ is NoneType:
        return leaf(NoneType)
    if type_ is Ellipsis:
        return "..."
    if isinstance(type_, str):
        return type_
    if isinstance(type_, ForwardRef):
        return type_.__forward_arg__
    if isinstance(type_, list):
        return f"[{', '.join(_render(item, leaf) for item in type_)}]"
    return _render_generic(type_, leaf)


def _render_generic(type_: TypeLike, leaf: Callable[[TypeLike], str]) -> str:
    origin, args = origin_of(type_), type_arguments(type_)
    if origin is None:
        return leaf(type_)
    if args is None:
        return leaf(origin)
    if origin is Annotated:
        return _render(get_args(type_)[0], leaf)
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, args))}]"
    parts = [_render(arg, leaf) for arg in args]
    return " | ".join(parts) if is_union(type_) else f"{leaf(origin)}[{', '.join(parts) or '()'}]"


def _short(type_: TypeLike) -> str:
    if type_ is NoneType:
        return "None"
    try:
        return leaf_address(type_)[1].rpartition("<locals>.")[2]
    except TypeError:
        return repr(type_)

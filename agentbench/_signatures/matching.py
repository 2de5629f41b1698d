"""Checks whether a value fits a type, and converts responses from outside to a type.

Every message is checked, so each type is compiled once into a check.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Iterable, Mapping
from types import UnionType
from typing import Literal, TypeVar, Union, cast, get_args

from agentbench._secrets import mask_secrets, masked_repr
from agentbench._signatures.class_cache import cached_on_class
from agentbench._signatures.equivalence import NUMBERS, stands_for
from agentbench._signatures.forms import (
    TypeLike,
    fields_of,
    flatten_union,
    is_alias,
    is_any,
    is_never,
    is_protocol,
    is_static_protocol,
    is_typed_dict,
    is_union,
    origin_of,
    required_keys_of,
    special_name,
    type_arguments,
    type_name,
    union_of,
    unwrap,
)

Check = Callable[[object], bool]


def is_instance_of(value: object, type_: TypeLike) -> bool:
    """Return whether a value fits a type, including the contents of lists, sets, tuples and dicts.

    `int` fits `float`, as for type checkers, and so do the replacements named by `stands_for`, such as numpy scalars.
    If a type cannot be checked at run time, every value fits.
    """
    return check_for(type_)(value)


def check_for(type_: TypeLike, *, exact: bool = False) -> Check:
    """Return the compiled check of a type: `check_for(t)(v)` equals `is_instance_of(v, t)`.

    With `exact`, only `isinstance` counts: no other class replaces those of the type.
    """
    if isinstance(type_, type) and not is_alias(type_):
        return _exact_check_of_class(type_) if exact else _check_of_class(type_)
    return _compile(type_, exact)


def decided_by_class(type_: TypeLike) -> bool:
    """Return whether `is_instance_of(value, type_)` depends on `type(value)` alone, so that a table can cache it."""
    form = unwrap(type_)
    if is_union(form):
        return all(decided_by_class(member) for member in get_args(form))
    if is_any(form) or is_never(form):
        return True
    if not isinstance(form, type) or origin_of(form) is not None or is_protocol(form) or is_typed_dict(form):
        return False
    check = type(form).__instancecheck__
    if check in (type.__instancecheck__, abc.ABCMeta.__instancecheck__):
        return True
    return str(getattr(check, "__module__", "")).partition(".")[0] == "pydantic"


@cached_on_class
def _check_of_class(cls: type) -> Check:
    return _compile(cls, exact=False)


@cached_on_class
def _exact_check_of_class(cls: type) -> Check:
    return _compile(cls, exact=True)


def _compile(type_: TypeLike, exact: bool) -> Check:
    if is_alias(type_):  # may refer to itself, so its value is compiled on first use
        return lambda value: check_for(unwrap(type_), exact=exact)(value)
    form = unwrap(type_)
    origin, args = origin_of(form), type_arguments(form)
    if origin is None:
        return _check_leaf(form, exact)
    if args is None:
        return _check_leaf(origin, exact)
    make = _BY_ORIGIN.get(origin)
    return _check_leaf(origin, exact) if make is None else make(origin, args, exact)


def _accept(_: object) -> bool:
    return True


def _reject(_: object) -> bool:
    return False


def _check_leaf(form: TypeLike, exact: bool) -> Check:
    if is_any(form):
        return _accept
    if is_never(form):
        return _reject
    if isinstance(form, TypeVar):
        if form.__constraints__:
            return _check_any(None, form.__constraints__, exact)
        return _accept if form.__bound__ is None else check_for(form.__bound__, exact=exact)
    if is_typed_dict(form):
        return _check_typed_dict(form, exact)
    if not isinstance(form, type):
        return _check_class((str,), exact) if special_name(form) == "LiteralString" else _accept
    return _accept if is_static_protocol(form) else _check_class((form,), exact)


def _check_class(classes: tuple[type, ...], exact: bool) -> Check:
    if exact:
        return lambda value: isinstance(value, classes)
    return lambda value: isinstance(value, classes) or stands_for(type(value), classes)


def _check_typed_dict(form: TypeLike, exact: bool) -> Check:
    required, fields = required_keys_of(form), fields_of(form)
    checks: dict[str, Check] = {}

    def check(value: object) -> bool:
        if not isinstance(value, Mapping) or not required <= value.keys():
            return False
        for name in fields.keys() & value.keys():
            if name not in checks:  # created on use, because a typed dict may contain itself
                checks[name] = check_for(fields[name], exact=exact)
            if not checks[name](value[name]):
                return False
        return True

    return check


def _check_any(_: TypeLike, members: tuple[TypeLike, ...], exact: bool) -> Check:
    union = union_of(members)
    classes = _deciding_classes(union)
    if classes is not None:
        return _check_class(classes, exact)
    checks = tuple(check_for(member, exact=exact) for member in members)
    return lambda value: any(check(value) for check in checks)


def _deciding_classes(type_: TypeLike) -> tuple[type, ...] | None:
    """Return the classes whose instances fit, if the class alone decides."""
    members = tuple(unwrap(member) for member in flatten_union(type_))
    return None if any(map(is_any, members)) or not decided_by_class(type_) else members


def _check_literal(_: TypeLike, allowed: tuple[object, ...], exact: bool) -> Check:
    def same(value: object, choice: object) -> bool:
        is_of_class = isinstance(value, type(choice)) and isinstance(value, bool) == isinstance(choice, bool)
        return is_of_class and value == choice  # True equals 1, but Literal[1] does not mean True

    return lambda value: any(same(value, choice) for choice in allowed)


def _check_elements(origin: type, args: tuple[TypeLike, ...], exact: bool) -> Check:
    every = _check_every(args[0], exact)
    return lambda value: isinstance(value, origin) and every(cast("Iterable[object]", value))


def _check_entries(origin: type, args: tuple[TypeLike, ...], exact: bool) -> Check:
    if len(args) != 2:
        return _check_class((origin,), exact)
    every_key, every_value = (_check_every(arg, exact) for arg in args)

    def check(value: object) -> bool:
        return isinstance(value, dict) and every_key(value) and every_value(value.values())

    return check


def _check_items(_: TypeLike, args: tuple[TypeLike, ...], exact: bool) -> Check:
    if any(map(_is_unpacked, args)):
        return _check_class((tuple,), exact)
    if len(args) == 2 and args[1] is Ellipsis:
        every = _check_every(args[0], exact)
        return lambda value: isinstance(value, tuple) and every(value)
    checks = tuple(check_for(arg, exact=exact) for arg in args)

    def check(value: object) -> bool:
        if not isinstance(value, tuple) or len(value) != len(checks):
            return False
        return all(fits(item) for fits, item in zip(checks, value, strict=True))

    return check


def _is_unpacked(arg: TypeLike) -> bool:
    return bool(getattr(arg, "__unpacked__", False)) or special_name(origin_of(arg)) == "Unpack"


def _check_every(type_: TypeLike, exact: bool) -> Callable[[Iterable[object]], bool]:
    """Return a check of all items of a container; items of exactly the right class cost next to nothing."""
    check = check_for(type_, exact=exact)
    if check is _accept:
        return _accept
    classes = _deciding_classes(type_)
    if classes is None:
        return lambda items: all(map(check, items))

    listed = frozenset(classes)

    def every(items: Iterable[object]) -> bool:
        return listed.issuperset(map(type, items)) or all(map(check, items))

    return every


_BY_ORIGIN: dict[TypeLike, Callable[[TypeLike, tuple[TypeLike, ...], bool], Check]] = {
    Union: _check_any,
    UnionType: _check_any,
    Literal: _check_literal,
    list: _check_elements,
    set: _check_elements,
    tuple: _check_items,
    dict: _check_entries,
}


def coerce_answer(value: object, type_: TypeLike) -> object:
    """Convert a response from outside to the requested type if that is safe; otherwise return it unchanged.

    `int` becomes `float`, a numpy scalar the number it represents, a `dict` a dataclass or a model, and a text an
    instance that the class creates from it (`_from_text_`), such as a message, or a list of one. For a union, the first
    member that fits wins.
    """
    if check_for(type_, exact=True)(value):
        return value
    for member in flatten_union(type_):
        converted = _convert(value, member)
        if check_for(member, exact=True)(converted):
            return converted
    return value


def _convert(value: object, member: TypeLike) -> object:
    form = unwrap(member)
    target = origin_of(form) or form
    if target in NUMBERS and stands_for(type(value), (target,)):
        return target(value)
    if isinstance(value, str) and value.strip() and (make := text_reader(member)) is not None:
        return make(value)
    if not isinstance(value, dict) or not isinstance(target, type):
        return value
    try:
        if hasattr(target, "model_validate"):
            return target.model_validate(value)
        if not dataclasses.is_dataclass(target) or find_misfits(value, target):
            return value
        hints = fields_of(target)
        return target(**{name: coerce_answer(item, hints.get(name, object)) for name, item in value.items()})
    except Exception:  # noqa: BLE001  constructors and validators are user code; a refusal means "does not fit"
        return value


def text_reader(member: TypeLike) -> Callable[[str], object] | None:
    """Return a function that creates a value of this type from typed text; None if the type has no such method."""
    form = unwrap(member)
    make = getattr(origin_of(form) or form, "_from_text_", None)
    if make is None and origin_of(form) is list:
        make_item = text_reader(get_args(form)[0])
        return None if make_item is None else lambda text: [make_item(text)]
    return make


def find_misfits(answer: object, type_: TypeLike) -> list[str]:
    """Return the problems in the fields of a dict as a response of this type; empty if there are none."""
    models = [m for m in flatten_union(type_) if hasattr(m, "model_validate") or dataclasses.is_dataclass(m)]
    if not isinstance(answer, dict) or len(models) != 1:
        return []
    (target,) = models
    if not dataclasses.is_dataclass(target):
        return _misfits_of_model(answer, target)
    fields, hints = {field.name: field for field in dataclasses.fields(target) if field.init}, fields_of(target)
    missing = dataclasses.MISSING
    required = [name for name, field in fields.items() if field.default is field.default_factory is missing]
    found = [f"field {name!r} is missing" for name in required if name not in answer]
    for name, item in answer.items():
        expected = hints.get(name, object)
        if name not in fields:
            found.append(f"unknown field {name!r}; fields: {', '.join(map(repr, fields))}")
        elif not is_instance_of(coerce_answer(item, expected), expected):
            inner = find_misfits(item, expected)
            is_ = f"is {masked_repr(mask_secrets(item, key=name))}; expected {type_name(expected)}"
            found.append(f"field {name!r}: {inner[0]}" if inner else f"field {name!r} {is_}")
    return found


def _misfits_of_model(answer: object, model: TypeLike) -> list[str]:
    try:
        model.model_validate(answer)
    except Exception as error:  # noqa: BLE001 - validators are user code
        errors = error.errors() if hasattr(error, "errors") else [{"loc": (), "msg": str(error)}]
        return [f"field {'.'.join(map(str, each['loc']))!r}: {each['msg']}" for each in errors]
    return []

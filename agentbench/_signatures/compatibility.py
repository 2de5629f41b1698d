"""Whether values declared as one type can be passed where another type is declared; used while building graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar, get_args

from agentbench._signatures.equivalence import stands_for
from agentbench._signatures.forms import (
    TypeLike,
    fields_of,
    is_alias,
    is_any,
    is_never,
    is_static_protocol,
    is_typed_dict,
    is_union,
    origin_of,
    required_keys_of,
    type_arguments,
    unwrap,
)
from agentbench._signatures.matching import is_instance_of


def is_type_compatible(source: TypeLike, target: TypeLike) -> bool:
    """Return whether values declared as `source` can be passed where `target` is declared.

    Arguments are covariant. An `int` can be passed as a `float`, as can other replacements that `is_instance_of`
    accepts.
    `Any` and missing arguments are trusted, because messages are checked again at run time.
    """
    return _Comparison(trusting=True).fits(source, target)


def always_fits(source: TypeLike, target: TypeLike) -> bool:
    """Return whether every value that matches `source` is certain to match `target`; `Any` is not trusted here."""
    return _Comparison(trusting=False).fits(source, target)


class _Comparison:
    """Compares two types and their parts; a pair that recurs inside itself fits, since aliases may be recursive."""

    def __init__(self, *, trusting: bool) -> None:
        self._trusting = trusting
        self._comparing: list[tuple[TypeLike, TypeLike]] = []

    def fits(self, source: TypeLike, target: TypeLike) -> bool:
        if source == target:
            return True
        if not (is_alias(source) or is_alias(target)):
            return self._values_fit(unwrap(source), unwrap(target))
        if (source, target) in self._comparing:
            return True
        self._comparing.append((source, target))
        fits = self._values_fit(unwrap(source), unwrap(target))
        self._comparing.pop()
        return fits

    def _values_fit(self, source: TypeLike, target: TypeLike) -> bool:
        if source == target or target is object or _is_open(target) or is_never(source):
            return True
        if _is_open(source):
            return self._trusting
        if isinstance(source, TypeVar) or is_union(source):
            return all(self.fits(member, target) for member in _alternatives(source))
        if origin_of(source) is Literal:
            # The values are known, so they can be checked as at run time.
            return all(is_instance_of(value, target) for value in get_args(source))
        if isinstance(target, TypeVar) or is_union(target):
            return any(self.fits(source, member) for member in _alternatives(target))
        if origin_of(target) is Literal:
            return self._trusting and any(self.fits(source, type(value)) for value in get_args(target))
        return self._classes_fit(source, target)

    def _classes_fit(self, source: TypeLike, target: TypeLike) -> bool:
        if is_typed_dict(target):
            return self._fits_typed_dict(source, target)
        if is_typed_dict(source):
            return self._typed_dict_fits(source, target)
        source_args, target_args = type_arguments(source), type_arguments(target)
        source_class, target_class = origin_of(source) or source, origin_of(target) or target
        if not self._is_subclass(source_class, target_class):
            return False
        if target_args is None or source_args is None:
            return target_args is None or self._trusting
        if source_class is tuple:
            return self._tuple_fits(source_args, target_class, target_args)
        return self._arguments_fit(source_args, target_args)

    def _tuple_fits(self, source: tuple[TypeLike, ...], target_class: type, target: tuple[TypeLike, ...]) -> bool:
        items = source[:1] if _is_variadic(source) else source
        if target_class is not tuple:
            return all(self.fits(item, target[0]) for item in items) if len(target) == 1 else True
        if _is_variadic(target):
            return all(self.fits(item, target[0]) for item in items)
        return not _is_variadic(source) and len(source) == len(target) and self._arguments_fit(source, target)

    def _arguments_fit(self, source: tuple[TypeLike, ...], target: tuple[TypeLike, ...]) -> bool:
        # dict[K, V] as Iterable[K]: the remaining arguments say nothing about the target.
        return all(self.fits(one, other) for one, other in zip(source, target, strict=False))

    def _fits_typed_dict(self, source: TypeLike, target: TypeLike) -> bool:
        fields = fields_of(target)
        if is_typed_dict(source):
            present = fields_of(source)
            if not required_keys_of(target) <= required_keys_of(source):
                return False
            return all(self.fits(present[name], hint) for name, hint in fields.items() if name in present)
        args = type_arguments(source)
        if not self._trusting or not self._is_subclass(origin_of(source) or source, Mapping):
            return False
        return args is None or len(args) != 2 or self.fits(args[0], str)

    def _typed_dict_fits(self, source: TypeLike, target: TypeLike) -> bool:
        values = tuple(fields_of(source).values())
        args = type_arguments(target) or ()
        if not self._is_subclass(dict, origin_of(target) or target):
            return False
        if args and not self.fits(str, args[0]):
            return False
        return len(args) != 2 or all(self.fits(value, args[1]) for value in values)

    def _is_subclass(self, source: TypeLike, target: TypeLike) -> bool:
        if is_never(target):
            return False
        if is_static_protocol(target):
            return True
        try:
            return issubclass(source, target) or (self._trusting and stands_for(source, (target,)))
        except TypeError:  # protocols with data members and other things that only values can be compared with
            return self._trusting


def _is_open(type_: TypeLike) -> bool:
    """Return whether nothing is known about a type before its values arrive."""
    if is_any(type_):
        return True
    return not isinstance(type_, (type, TypeVar)) and origin_of(type_) is None and not is_never(type_)


def _alternatives(type_: TypeLike) -> tuple[TypeLike, ...]:
    if not isinstance(type_, TypeVar):
        return get_args(type_)
    return type_.__constraints__ or (Any if type_.__bound__ is None else type_.__bound__,)


def _is_variadic(args: tuple[TypeLike, ...]) -> bool:
    return len(args) == 2 and args[1] is Ellipsis

"""May values declared as one type be given to something declared as another? Asked while a graph is built."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, TypeVar, get_args, get_origin

from agentbench._signatures.forms import (
    TypeLike,
    is_alias,
    is_any,
    is_never,
    is_protocol,
    is_runtime_protocol,
    is_typed_dict,
    is_union,
    type_arguments,
    unwrap,
)
from agentbench._signatures.matching import is_instance_of, typed_dict_fields


def is_type_compatible(source: TypeLike, target: TypeLike) -> bool:
    """Tell whether values declared as `source` may be given to something that takes `target`.

    Every member of a source union must fit some member of a target union. Arguments are compared pairwise and
    covariantly; where only one side has arguments the other one is trusted, as is `Any` on either side: messages are
    checked again at run time. A class fits a `Literal` if it fits the class of one of its values.
    """
    try:
        return _cached_verdict(source, target)
    except TypeError:  # an unhashable type, such as Literal[[1]]
        return _verdict(source, target)


def _verdict(source: TypeLike, target: TypeLike) -> bool:
    return _Comparison().fits(source, target)


_cached_verdict = lru_cache(maxsize=4096)(_verdict)


class _Comparison:
    """One question and the sub-questions it leads to.

    A `type` alias may refer to itself. A pair of types that comes up again while it is being compared is therefore
    taken to fit, as is usual for recursive types.
    """

    __slots__ = ("_verdicts",)

    def __init__(self) -> None:
        self._verdicts: list[list[TypeLike]] = []

    def fits(self, source: TypeLike, target: TypeLike) -> bool:
        if source == target:
            return True
        if not (is_alias(source) or is_alias(target)):
            return self._values_fit(unwrap(source), unwrap(target))
        for known_source, known_target, verdict in self._verdicts:
            if known_source == source and known_target == target:
                return bool(verdict)
        entry = [source, target, True]
        self._verdicts.append(entry)
        entry[2] = self._values_fit(unwrap(source), unwrap(target))
        return bool(entry[2])

    def _values_fit(self, source: TypeLike, target: TypeLike) -> bool:
        if source == target or target is object or _is_open(source) or _is_open(target) or is_never(source):
            return True
        if isinstance(source, TypeVar) or is_union(source):
            return all(self.fits(member, target) for member in _alternatives(source))
        if get_origin(source) is Literal:
            return self._literal_fits(get_args(source), target)
        if isinstance(target, TypeVar) or is_union(target):
            return any(self.fits(source, member) for member in _alternatives(target))
        if get_origin(target) is Literal:
            return any(self.fits(source, type(value)) for value in get_args(target))
        return self._classes_fit(source, target)

    def _literal_fits(self, values: tuple[object, ...], target: TypeLike) -> bool:
        # The values are known here and now, so the run-time question can be asked about most targets.
        return all(is_instance_of(value, target) for value in values)

    def _classes_fit(self, source: TypeLike, target: TypeLike) -> bool:
        if is_typed_dict(target):
            return self._fits_typed_dict(source, target)
        if is_typed_dict(source):
            return self._typed_dict_fits(source, target)
        source_args, target_args = type_arguments(source), type_arguments(target)
        source_class, target_class = get_origin(source) or source, get_origin(target) or target
        if not _is_subclass(source_class, target_class):
            return False
        if source_args is None or target_args is None:
            return True
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
        # dict[K, V] as Iterable[K]: the spare arguments say nothing about the target.
        return all(self.fits(one, other) for one, other in zip(source, target, strict=False))

    def _fits_typed_dict(self, source: TypeLike, target: TypeLike) -> bool:
        fields = typed_dict_fields(target)
        if is_typed_dict(source):
            given = typed_dict_fields(source)
            if not target.__required_keys__ <= source.__required_keys__:
                return False
            return all(self.fits(given[name], hint) for name, hint in fields.items() if name in given)
        args = type_arguments(source)
        if not _is_subclass(get_origin(source) or source, Mapping):
            return False
        return args is None or len(args) != 2 or self.fits(args[0], str)

    def _typed_dict_fits(self, source: TypeLike, target: TypeLike) -> bool:
        values = tuple(typed_dict_fields(source).values())
        args = type_arguments(target) or ()
        if not _is_subclass(dict, get_origin(target) or target):
            return False
        if args and not self.fits(str, args[0]):
            return False
        return len(args) != 2 or all(self.fits(value, args[1]) for value in values)


def _is_open(type_: TypeLike) -> bool:
    """Whether nothing is known about a type before its values arrive."""
    if is_any(type_):
        return True
    return not isinstance(type_, (type, TypeVar)) and get_origin(type_) is None and not is_never(type_)


def _alternatives(type_: TypeLike) -> tuple[TypeLike, ...]:
    if not isinstance(type_, TypeVar):
        return get_args(type_)
    return type_.__constraints__ or (Any if type_.__bound__ is None else type_.__bound__,)


def _is_variadic(args: tuple[TypeLike, ...]) -> bool:
    return len(args) == 2 and args[1] is Ellipsis


def _is_subclass(source: TypeLike, target: TypeLike) -> bool:
    if is_never(target):
        return False
    if is_protocol(target) and not is_runtime_protocol(target):
        return True
    try:
        return issubclass(source, target)
    except TypeError:  # protocols with data members and other constructs that only values can be held against
        return True

"""What holds for all types and values."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
from typing import Any, Literal, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from agentbench._signatures import (
    always_fits,
    check_for,
    coerce_answer,
    decided_by_class,
    flatten_union,
    is_instance_of,
    is_type_compatible,
    type_from_dict,
    type_name,
    type_to_dict,
)


class Animal: ...


class Dog(Animal): ...


class Puppy(Dog): ...


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: float


class Pair(NamedTuple):
    left: int
    right: str


CLASSES: list[type] = [int, bool, float, str, bytes, type(None), Animal, Dog, Puppy, Point, Pair, object]

VALUES: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(),
    bool: st.booleans(),
    float: st.floats(allow_nan=False),
    str: st.text(max_size=5),
    bytes: st.binary(max_size=5),
    type(None): st.none(),
    Animal: st.builds(Animal) | st.builds(Dog),
    Dog: st.builds(Dog) | st.builds(Puppy),
    Puppy: st.builds(Puppy),
    Point: st.builds(Point, st.integers(), st.floats(allow_nan=False)),
    Pair: st.builds(Pair, st.integers(), st.text(max_size=3)),
    object: st.builds(object) | st.integers(),
    Any: st.builds(object) | st.text(max_size=3),
}


class Typed(NamedTuple):
    """A type together with the values that it has."""

    type_: Any
    values: st.SearchStrategy[Any]


def _of(origin: Any, *args: Any) -> Any:
    return origin[args]


def _union(members: list[Typed]) -> Typed:
    return Typed(functools.reduce(operator.or_, (m.type_ for m in members)), st.one_of([m.values for m in members]))


def _fixed_tuple(items: list[Typed]) -> Typed:
    return Typed(_of(tuple, *(item.type_ for item in items)), st.tuples(*(item.values for item in items)))


def _literal(values: list[Any]) -> Typed:
    return Typed(_of(Literal, *values), st.sampled_from(values))


def _list(items: Typed) -> Typed:
    return Typed(_of(list, items.type_), st.lists(items.values, max_size=3))


def _set(items: Typed) -> Typed:
    return Typed(_of(set, items.type_), st.sets(items.values, max_size=3))


def _tuple(items: Typed) -> Typed:
    return Typed(_of(tuple, items.type_, ...), st.lists(items.values, max_size=3).map(tuple))


def _dict(keys: Typed, values: Typed) -> Typed:
    return Typed(_of(dict, keys.type_, values.type_), st.dictionaries(keys.values, values.values, max_size=3))


leaves = st.sampled_from([Typed(type_, values) for type_, values in VALUES.items()])
literals = st.lists(st.integers(-3, 3) | st.sampled_from("abc"), min_size=1, max_size=3).map(_literal)


def _nested(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    hashable = st.sampled_from([int, str, bytes, bool]).map(lambda type_: Typed(type_, VALUES[type_]))
    return st.one_of(
        inner.map(_list),
        hashable.map(_set),
        inner.map(_tuple),
        st.lists(inner, min_size=1, max_size=3).map(_fixed_tuple),
        st.builds(_dict, hashable, inner),
        st.lists(inner, min_size=2, max_size=3).map(_union),
    )


typed = st.recursive(leaves | literals, _nested, max_leaves=6)
types = typed.map(lambda t: t.type_)
values = typed.flatmap(lambda t: t.values)


@given(st.data(), typed)
def test_a_value_of_a_type_matches_it(data, pair):
    assert is_instance_of(data.draw(pair.values), pair.type_)


@given(st.data(), typed, types)
def test_a_value_of_a_type_matches_what_that_type_always_fits(data, pair, target):
    if always_fits(pair.type_, target):
        assert is_instance_of(data.draw(pair.values), target)


@given(values, types)
def test_a_union_matches_what_one_of_its_members_matches(value, type_):
    members = flatten_union(type_)
    assert is_instance_of(value, type_) == any(is_instance_of(value, member) for member in members)


@given(st.data(), types)
def test_where_the_class_decides_all_values_of_a_class_get_the_same_verdict(data, type_):
    if not decided_by_class(type_):
        return
    cls = data.draw(st.sampled_from([cls for cls in CLASSES if cls is not object]))
    drawn = [value for value in data.draw(st.lists(VALUES[cls], min_size=2)) if type(value) is cls]
    assert len({check_for(type_)(value) for value in drawn}) <= 1


@given(types)
def test_every_type_is_compatible_with_itself(type_):
    assert is_type_compatible(type_, type_)
    assert always_fits(type_, type_)


@given(types, types)
def test_what_always_fits_is_compatible(source, target):
    assert is_type_compatible(source, target) or not always_fits(source, target)


@given(types)
def test_every_type_is_compatible_with_any_and_object_and_with_a_wider_union(type_):
    assert is_type_compatible(type_, Any)
    assert is_type_compatible(Any, type_)
    assert is_type_compatible(type_, object)
    assert is_type_compatible(type_, type_ | None)
    assert is_type_compatible(_of(list, type_), list)


def test_classes_are_compatible_along_inheritance():
    for source, target in itertools.product(CLASSES, CLASSES):
        assert always_fits(source, target) == issubclass(source, target)
        assert is_type_compatible(source, target) == (issubclass(source, target) or (source, target) == (int, float))


classes = st.sampled_from(CLASSES)
unions = st.lists(classes, min_size=1, max_size=3).map(lambda members: functools.reduce(operator.or_, members))


@given(unions, unions, unions)
def test_compatibility_of_classes_and_their_unions_is_transitive(first, second, third):
    if is_type_compatible(first, second) and is_type_compatible(second, third):
        assert is_type_compatible(first, third)


@given(types)
def test_a_type_that_was_written_is_read_back(type_):
    assert type_from_dict(type_to_dict(type_)) == type_


@given(types)
def test_every_type_has_a_name(type_):
    assert type_name(type_)


@given(values, types)
def test_a_coerced_answer_fits_or_is_untouched(value, type_):
    coerced = coerce_answer(value, type_)
    assert coerced is value or is_instance_of(coerced, type_)


@given(st.data())
def test_a_dataclass_is_made_from_its_own_dictionary(data):
    point = data.draw(VALUES[Point])
    assert coerce_answer(dataclasses.asdict(point), Point | str) == point

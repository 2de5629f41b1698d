"""Objects that write themselves as dictionaries: what is written, what is injected, by which names they go."""

from __future__ import annotations

import copy
import json
import logging
from datetime import date, datetime
from typing import Any, ClassVar

import pytest

from agentbench.serialization.mixin import SerializationMixin, type_identifiers
from tests.parts.errors import raises


class Foo(SerializationMixin):
    DEFAULT_EXCLUDE: ClassVar[set[str]] = {"hidden"}
    INJECTABLE: ClassVar[set[str]] = {"cl"}

    def __init__(self, a: Any = None, b: Any = None, cl: Any = None) -> None:
        self.a, self.b, self.cl = a, b, cl
        self.hidden = "hidden"
        self._private = "private"


class HTTPThing(SerializationMixin):
    def __init__(self, url: str = "") -> None:
        self.url = url


class Named(SerializationMixin):
    type = "my_name"


class NamedLoud(SerializationMixin):
    TYPE = "MY_NAME"


class Slotted(SerializationMixin):
    __slots__ = ("raw_representation", "x")

    def __init__(self, x: Any = None) -> None:
        self.x = x
        self.raw_representation = object()


class Foreign:
    """Has the two methods, and nothing of the mixin."""

    def to_dict(self, **_: Any) -> dict[str, Any]:
        return {"foreign": True}

    @classmethod
    def from_dict(cls, data: Any, /, **_: Any) -> Foreign:
        return cls()


# ----------------------------------------------------------------------------------------------------------- writing


def test_public_attributes_are_written_and_excluded_private_injectable_and_absent_ones_are_not() -> None:
    assert Foo("x", cl=object()).to_dict() == {"type": "foo", "a": "x"}
    assert Foo("x").to_dict(exclude={"a"}, exclude_none=False) == {"type": "foo", "b": None}
    assert Foo("x").to_dict(exclude={"type"}) == {"a": "x"}
    assert Slotted(1).to_dict() == {"type": "slotted", "x": 1}


def test_what_can_be_written_is_written_also_within_lists_and_dictionaries() -> None:
    inner = Foo("i")
    found = Foo([inner, 1, Foreign()], {"k": inner, "at": datetime(2024, 1, 2), "on": date(2024, 1, 2)}).to_dict()
    assert found == {
        "type": "foo",
        "a": [{"type": "foo", "a": "i"}, 1, {"foreign": True}],
        "b": {"k": {"type": "foo", "a": "i"}, "at": "2024-01-02 00:00:00", "on": "2024-01-02"},
    }
    assert Foo((1, 2)).to_dict()["a"] == [1, 2]
    assert Foo(Foo(None)).to_dict(exclude_none=False)["a"] == {"type": "foo", "a": None, "b": None}


def test_what_cannot_be_written_is_left_out_and_the_rest_stays(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "agentbench")
    assert Foo([1, object(), 2], {"a": object(), "b": 3, 4: 5}).to_dict() == {
        "type": "foo",
        "a": [1, 2],
        "b": {"b": 3, "4": 5},
    }
    assert caplog.records == []
    assert Foo(object()).to_dict() == {"type": "foo"}
    assert "Foo.a is a object and is not written" in caplog.text


def test_json() -> None:
    assert json.loads(Foo("é").to_json()) == {"type": "foo", "a": "é"}
    assert Foo("é").to_json(ensure_ascii=False, exclude={"type"}) == '{"a": "é"}'
    assert Foo.from_json('{"a": 1}').a == 1
    assert Foo.from_json(b'{"type": "foo", "a": 1}', dependencies={"foo": {"cl": 9}}).cl == 9


# ----------------------------------------------------------------------------------------------------------- reading


def test_the_constructor_is_called_with_the_keys() -> None:
    data = {"type": "foo", "a": 1, "b": [2]}
    foo = Foo.from_dict(data)
    assert (foo.a, foo.b, foo.cl) == (1, [2], None)
    assert data == {"type": "foo", "a": 1, "b": [2]}
    with raises(TypeError, "zzz"):
        Foo.from_dict({"zzz": 1})


@pytest.mark.parametrize(
    ("data", "dependencies", "cl"),
    [
        ({"type": "foo", "a": "z"}, {"foo": {"a:z": {"cl": 9}}}, 9),
        ({"type": "foo", "a": "y"}, {"foo": {"a:z": {"cl": 9}}}, None),
        ({"type": "foo", "a": 5}, {"foo": {"a:5": {"cl": 9}}}, 9),
        ({"type": "foo", "a": "x:y"}, {"foo": {"a:x:y": {"cl": 9}}}, 9),
        ({"a": "z"}, {"foo": {"cl": 9}}, 9),
        ({"a": "z"}, {"foo": {"a:z": {"cl": 1}, "cl": 9}}, 1),
        ({"a": "z"}, {"bar": {"cl": 9}}, None),
        ({}, {"foo": {"a:z": {"cl": 9}}}, None),
        ({"cl": {"x": 1, "y": 1}}, {"foo": {"cl": {"y": 2}}}, {"x": 1, "y": 2}),
        ({"cl": 1}, {"foo": {"cl": {"y": 2}}}, {"y": 2}),
        ({}, None, None),
    ],
)
def test_dependencies_are_handed_in_by_type_and_by_instance(data: Any, dependencies: Any, cl: Any) -> None:
    assert Foo.from_dict(data, dependencies=dependencies).cl == cl


def test_a_dependency_that_is_not_declared_is_passed_with_a_note(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "agentbench")
    assert Foo.from_dict({}, dependencies={"foo": {"b": 7}}).b == 7
    assert "'b', which is not among its INJECTABLE" in caplog.text


# ------------------------------------------------------------------------------------------------------------- names


def test_the_name_is_that_of_the_class_or_of_its_attribute_and_former_spellings_are_read() -> None:
    assert HTTPThing("u").to_dict() == {"type": "http_thing", "url": "u"}
    assert HTTPThing.from_dict({"type": "h_t_t_p_thing", "url": "u"}).url == "u"
    assert Named().to_dict()["type"] == Named._get_type_identifier() == "my_name"
    assert NamedLoud().to_dict()["type"] == "MY_NAME"
    assert type_identifiers(Named) == ("my_name", "named")
    assert HTTPThing.from_dict({"type": "h_t_t_p_thing"}, dependencies={"http_thing": {"url": "u"}}).url == "u"


@pytest.mark.parametrize("given", ["bar", "", 5, ["foo"]])
def test_data_of_another_type_are_refused(given: Any) -> None:
    with raises(ValueError, "'foo'"):
        Foo.from_dict({"type": given})


# ------------------------------------------------------------------------------------------------- protocol, copies


def test_a_deep_copy_shares_what_the_service_sent() -> None:
    foo = Foo([1], cl={"x": [1]})
    foo.raw_representation = object()  # type: ignore[attr-defined]
    twin = copy.deepcopy(foo)
    assert twin.raw_representation is foo.raw_representation  # type: ignore[attr-defined]
    assert twin.a == foo.a
    assert twin.a is not foo.a
    assert twin._private == "private"
    slotted = Slotted([1])
    copied = copy.deepcopy(slotted)
    assert copied.raw_representation is slotted.raw_representation
    assert copied.x == [1]
    assert copied.x is not slotted.x

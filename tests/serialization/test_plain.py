"""Plain values: what JSON holds, from anything."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, datetime, timezone
from enum import Enum
from types import MappingProxyType
from typing import Any

import pytest

from agentbench import Content, SecretString
from agentbench.serialization.plain import OMIT, are_equal, to_plain


class Color(Enum):
    RED = "red"


class Size(str, Enum):
    LARGE = "large"


@dataclass
class Point:
    x: int
    label: Any


class Opaque:
    pass


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": (1, [2.5, None, True])}, {"a": [1, [2.5, None, True]]}),
        (MappingProxyType({1: "one", Color.RED: 2}), {"1": "one", "red": 2}),
        ([Color.RED, Size.LARGE], ["red", "large"]),
        ({3, 1, 2}, [1, 2, 3]),
        ([date(2024, 1, 2), datetime(2024, 1, 2, tzinfo=timezone.utc)], ["2024-01-02", "2024-01-02T00:00:00+00:00"]),
        (Point(1, Color.RED), {"x": 1, "label": "red"}),
        (Content.from_text("Hi"), {"type": "text", "text": "Hi", "additional_properties": {}}),
        ({"key": SecretString("sk-1234")}, {"key": "**********"}),
        (Opaque(), "<Opaque>"),
        (dict, "builtins.dict"),
        (ValueError("no"), "no"),
    ],
    ids=[
        "containers",
        "mapping",
        "enums",
        "set",
        "dates",
        "dataclass",
        "to_dict",
        "secret",
        "object",
        "class",
        "error",
    ],
)
def test_any_value_has_a_plain_form_that_json_writes(value: Any, expected: Any) -> None:
    found = to_plain(value)
    assert found == expected
    assert json.loads(json.dumps(found)) == expected


def test_containers_are_new() -> None:
    inner: list[int] = [1]
    found = to_plain({"a": inner})
    inner.append(2)
    assert found == {"a": [1]}


def test_a_caller_converts_objects_its_own_way_or_leaves_them_out() -> None:
    def convert(value: object) -> object:
        return OMIT if isinstance(value, Opaque) else "?"

    assert to_plain({"a": [1, Opaque(), 2j], "b": Opaque()}, convert) == {"a": [1, "?"]}


class Raises:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (1, 1.0, True),
        (True, 1, False),
        (float("nan"), float("nan"), True),
        ([1], [1], True),
        (Raises(), Raises(), False),
    ],
)
def test_values_are_equal_as_data(one: object, other: object, expected: bool) -> None:
    assert are_equal(one, other) is expected

"""Plain values: what JSON holds, from anything."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, TypeAdapter

from agentbench import Content, SecretString
from agentbench.serialization.plain import OMIT, Limits, are_equal, copy_plain, to_plain
from tests.ids import steady


class Color(Enum):
    RED = "red"


class Size(StrEnum):
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
        ([date(2024, 1, 2), datetime(2024, 1, 2, tzinfo=UTC)], ["2024-01-02", "2024-01-02T00:00:00Z"]),
        (Point(1, Color.RED), {"x": 1, "label": "red"}),
        (Content.from_text("Hi"), {"type": "text", "text": "Hi", "additional_properties": {}}),
        ({"key": SecretString("sk-1234")}, {"key": "•••"}),
        (Opaque(), "<Opaque>"),
        (dict, "builtins.dict"),
        (ValueError("no"), {"error_type": "ValueError", "message": "no"}),
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


def test_a_caller_converts_objects_its_own_way_or_leaves_them_out() -> None:
    def convert(value: object) -> object:
        return OMIT if isinstance(value, Opaque) else "?"

    assert copy_plain({"a": [1, Opaque(), 2j], "b": Opaque()}, convert) == {"a": [1, "?"]}


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


class Step(IntEnum):
    SMALL = 1


class Reading(BaseModel):
    at: datetime
    values: set[int]
    of: Point


@pytest.mark.parametrize(
    "value",
    [
        date(2026, 1, 2),
        datetime(2026, 1, 2, 3, 4, 5, 6),
        datetime(2026, 1, 2, tzinfo=UTC),
        time(3, 4),
        timedelta(days=1, seconds=3),
        UUID(int=7),
        Decimal("1.50"),
        ip_address("10.0.0.1"),
        Path("a/b"),
        b"text",
        Step.SMALL,
        Color.RED,
        float("nan"),
        Point(1, [Color.RED, {date(2026, 1, 2): (1,)}]),
        Reading(at=datetime(2026, 1, 2), values={3}, of=Point(1, None)),
        {2: "a", True: 2.5, date(2026, 1, 2): 1},
    ],
    ids=steady,
)
def test_values_are_written_as_pydantic_writes_them(value: Any) -> None:
    assert to_plain(value) == json.loads(TypeAdapter(type(value)).dump_json(value))


def test_values_of_numpy_and_pandas_are_numbers_and_lists() -> None:
    np, pd = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    value = {"a": np.arange(3), "b": np.float32(1.5), "c": np.bool_(True), "d": [np.int64(2), np.nan, pd.NaT, pd.NA]}
    assert to_plain(value) == {"a": [0, 1, 2], "b": 1.5, "c": True, "d": [2, None, None, None]}
    assert to_plain(pd.DataFrame({"x": [1]})) == {"x": {"0": 1}}
    assert to_plain(pd.Series([1.5], name="x")) == {"0": 1.5}


def test_values_inside_themselves_and_long_ones_end() -> None:
    loop: list[Any] = [1]
    loop.append({"me": loop, "again": [1]})
    assert to_plain(loop) == [1, {"me": "<list>", "again": [1]}]
    shared = [1]
    assert to_plain([shared, shared]) == [[1], [1]]
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    assert json.dumps(to_plain(deep)).count("[") == Limits().depth
    assert to_plain({"a": "xyz", "b": [1, 2, 3], "c": 0}, limits=Limits(1, 2, 2)) == {
        "a": "xy… (3 characters)",
        "b": "<list>",
    }


def test_secret_names_are_masked_for_people_and_not_for_models() -> None:
    value = {"token": "t", "text": '{"pin": 3}', "of": Point(1, {"password": None, "api_key": 4})}
    assert to_plain(value) == {**value, "of": {"x": 1, "label": {"password": None, "api_key": 4}}}
    assert to_plain(value, mask=True) == {
        "token": "•••",
        "text": '{"pin": "•••"}',
        "of": {"x": 1, "label": {"password": None, "api_key": "•••"}},
    }


def test_objects_whose_methods_fail_are_their_text() -> None:
    class Broken:
        def to_dict(self) -> Any:
            raise RuntimeError

        def __str__(self) -> str:
            return "broken"

    assert to_plain([Broken()]) == ["broken"]

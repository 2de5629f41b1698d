"""Pandas frames, series, indexes and scalars in checkpoints."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest

from agentbench.exceptions import UnstorableValueError, WorkflowCheckpointException
from agentbench.serialization.json_text import from_json, to_json
from tests.ids import steady

pytest.importorskip("pandas", reason="pandas is not installed (extra notebook)")

import numpy as np
import pandas as pd
import pandas.testing as same

FRAME = pd.DataFrame(
    {
        "int": [1, 2],
        "small": np.array([1, 2], "u1"),
        "float": [1.0, np.nan],
        "bool": [True, False],
        "text": ["a", None],
        "object": np.array(["x", (1, {2})], object),
        "time": pd.to_datetime(["2026-01-01", "NaT"]),
        "zoned": pd.to_datetime(["2026-10-25 00:30", "2026-10-25 01:30"], utc=True).tz_convert("Europe/Berlin"),
        "offset": pd.to_datetime(["2026-01-01", "2026-01-02"]).tz_localize(
            datetime.timezone(datetime.timedelta(hours=1))
        ),
        "delta": pd.to_timedelta([1, 2], "s"),
        "category": pd.Categorical(["b", None], categories=["b", "a"], ordered=True),
        "Int64": pd.array([1, None], "Int64"),
        "UInt8": pd.array([1, None], "UInt8"),
        "Float32": pd.array([1.5, None], "Float32"),
        "boolean": pd.array([True, None], "boolean"),
        "string": pd.array(["a", None], "string"),
        "period": pd.period_range("2026", periods=2, freq="M"),
        "interval": pd.interval_range(0, 2, closed="both"),
    }
)
FRAMES: dict[str, Any] = {
    "all types": FRAME,
    "no rows": FRAME.iloc[:0],
    "rows twice": FRAME.iloc[[0, 0, 1]],
    "transposed": FRAME[["int", "float"]].T,
    "empty": pd.DataFrame(),
    "only an index": pd.DataFrame(index=[1, 2]),
    "only columns": pd.DataFrame(columns=["a"]),
    "by time": FRAME[["int"]].set_index(pd.date_range("2026", periods=2, freq="h", tz="UTC")),
    "several indexes": FRAME.set_index(["category", "zoned"]),
    "columns twice": pd.concat([FRAME[["int"]], FRAME[["int", "text"]]], axis=1),
    "odd columns": pd.DataFrame({1: [1], "a": [2], (1, 2): [3], None: [4]}),
    "several columns": FRAME.groupby("int").agg({"float": ["sum", "mean"]}),
    "unique labels": FRAME.set_flags(allows_duplicate_labels=False),
    "named axes": FRAME.rename_axis(index="row", columns="column"),
}
INDEXES: dict[str, Any] = {
    "range": pd.RangeIndex(1, 9, 2, name="x"),
    "text": pd.Index(["a", None]),
    "object": pd.Index(["a", 1], dtype=object, name=("a", 1)),
    "hourly": pd.date_range("2026", periods=3, freq="h"),
    "zoned": pd.date_range("2026-03-28", periods=3, freq="D", tz="Europe/Berlin"),
    "delta": pd.timedelta_range(0, periods=3, freq="s"),
    "period": pd.period_range("2026", periods=3, freq="Q"),
    "category": pd.CategoricalIndex(["a", "b", "a"]),
    "interval": pd.interval_range(0, 3),
    "nullable": pd.Index([1, None], dtype="Int64"),
    "several": pd.MultiIndex.from_product([["a", "b"], [1.0, np.nan]], names=["x", None]),
    "several empty": pd.MultiIndex.from_arrays([[], []]),
}
SCALARS: list[Any] = [
    pd.Timestamp("2026-01-01 01:02:03.123456789"),
    pd.Timestamp("2026-01-01").as_unit("s"),
    pd.Timestamp("2026-10-25 00:30", tz="UTC").tz_convert("Europe/Berlin"),
    pd.Timestamp("2026-10-25 01:30", tz="UTC").tz_convert("Europe/Berlin"),
    pd.Timedelta("1s"),
    pd.NaT,
    pd.NA,
    pd.Period("2026", "M"),
    pd.Interval(0, 1, "left"),
    pd.Interval(pd.Timestamp("2026"), pd.Timestamp("2027")),
]


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_a_frame_comes_back_as_it_was(frame: pd.DataFrame) -> None:
    text = to_json([frame])
    found = from_json(text)[0]
    same.assert_frame_equal(
        found, frame, check_exact=True, check_freq=True, check_flags=True, check_index_type=True, check_column_type=True
    )
    assert to_json([found]) == text


@pytest.mark.parametrize("name", FRAME.columns)
def test_a_series_and_its_array_come_back_as_they_were(name: str) -> None:
    same.assert_series_equal(from_json(to_json(FRAME[name])), FRAME[name], check_exact=True, check_flags=True)
    if isinstance(FRAME[name].dtype, pd.api.extensions.ExtensionDtype):
        same.assert_extension_array_equal(from_json(to_json(FRAME[name].array)), FRAME[name].array)


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
def test_an_index_comes_back_as_it_was(index: Any) -> None:
    found = from_json(to_json(index))
    same.assert_index_equal(found, index, exact=True, check_exact=True)
    assert found.names == index.names
    assert getattr(found, "freq", None) == getattr(index, "freq", None)


@pytest.mark.parametrize("scalar", SCALARS, ids=steady)
def test_a_scalar_comes_back_as_it_was(scalar: Any) -> None:
    found = from_json(to_json({"a": (scalar,)}))["a"][0]
    assert type(found) is type(scalar)
    assert found is scalar or found == scalar
    assert repr(found) == repr(scalar)
    assert getattr(found, "unit", None) == getattr(scalar, "unit", None)


def test_attributes_come_back_with_their_types() -> None:
    frame = FRAME[["int"]].copy()
    frame.attrs = {"source": (1, {2})}
    assert from_json(to_json(frame)).attrs == frame.attrs
    assert from_json(to_json(frame["int"])).attrs == frame["int"].attrs


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (pd.Series(pd.arrays.SparseArray([0, 1])), r"\['a'\].*dtype Sparse.*astype"),
        (pd.DataFrame({"x": [object()]}), r"\['a'\].values\[0\]"),
        (type("Special", (pd.DataFrame,), {})(), "Special"),
    ],
    ids=["sparse", "objects", "subclass"],
)
def test_what_cannot_be_stored_says_so(value: Any, words: str) -> None:
    with pytest.raises(UnstorableValueError, match=words):
        to_json({"a": value})


def test_a_frequency_without_a_name_is_refused() -> None:
    holidays = pd.offsets.CustomBusinessDay(holidays=["2026-01-05"])
    with pytest.raises(UnstorableValueError):
        to_json(pd.date_range("2026", periods=3, freq=holidays))


def test_intervals_between_the_numbers_of_a_range_come_back() -> None:
    found = from_json(to_json(pd.arrays.IntervalArray.from_breaks(pd.RangeIndex(4))))
    assert found.left.tolist() == [0, 1, 2]


INDEX = json.loads(to_json(pd.RangeIndex(10**8)))


@pytest.mark.parametrize(
    ("tag", "found"),
    [
        ("series", {"index": INDEX, "name": None, "values": json.loads(to_json(np.float64(1)))}),
        ("series", {"index": INDEX, "name": None, "values": json.loads(to_json(np.arange(2)))}),
        ("dataframe", {"index": INDEX, "columns": INDEX, "values": [1]}),
        ("dataframe", {}),
        ("pandas_index", {"values": [1], "name": None}),
        ("pandas_index", {"range": [0, 1, 0], "name": None}),
        ("pandas_index", {"levels": [], "codes": [], "names": []}),
        ("pandas_array", {"kind": "category", "codes": [5], "of": ["a"], "ordered": False}),
        ("pandas_array", {"kind": "nothing"}),
        ("pandas_array", {"kind": "string", "storage": "os", "nan": False, "items": []}),
        ("pandas_array", {"kind": "interval", "left": INDEX, "right": INDEX, "closed": "left"}),
        (
            "pandas_index",
            {"levels": [INDEX] * 3, "codes": [json.loads(to_json(np.zeros(1, int)))] * 3, "names": [1, 2, 3]},
        ),
        ("pandas_scalar", ["period", 1, "9" * 100_000]),
        ("pandas_scalar", ["eval", "1"]),
        ("pandas_scalar", ["timestamp", "2026", "dateutil//etc/passwd"]),
        ("pandas_scalar", ["timestamp", "2026", "../../etc/passwd"]),
        ("pandas_scalar", 5),
    ],
    ids=str,
)
def test_made_up_values_are_refused(tag: str, found: Any) -> None:
    with pytest.raises(WorkflowCheckpointException):
        from_json(json.dumps({"__t__": tag, "v": found}))

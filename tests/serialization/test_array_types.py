"""Numpy arrays and scalars in checkpoints."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.exceptions import UnstorableValueError, WorkflowCheckpointException
from agentbench.serialization.json_text import from_json, to_json
from tests.ids import steady

pytest.importorskip("numpy", reason="numpy is not installed (extra notebook)")

import numpy as np
from hypothesis.extra import numpy as arrays

STRUCTURED = np.dtype([("a", "i4"), ("b", "f8", (2,)), ("c", [("d", "U3")])])
ARRAYS: list[Any] = [
    np.arange(6).reshape(2, 3),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(24).reshape(2, 3, 4).transpose(1, 0, 2),
    np.array(["a", "bb", ""]),
    np.zeros(3, "U0"),
    np.array([b"a\0", b"b"]),
    np.array(["2026-01-01", "NaT"], "M8[D]"),
    np.array([1, 2], "m8[ms]"),
    np.zeros(2, STRUCTURED),
    np.zeros(2, np.dtype([("a", "i1"), ("b", "f8")], align=True)),
    np.array([1, "a", None, [1], (2,), {"x": {3}}], object),
    np.array([[1, [2]], [None, {}]], object),
    np.asfortranarray(np.array([[1, [2]], [None, {}]], object)),
    np.array(1, object),
]
SCALARS: list[Any] = [
    np.float64(1.5),
    np.float64("nan"),
    np.longdouble(1.1),
    np.uint64(2**64 - 1),
    np.bool_(True),
    np.str_("a\0"),
    np.bytes_(b"x\0"),
    np.datetime64("2026", "D"),
    np.datetime64("NaT"),
    np.timedelta64(3, "s"),
    np.complex64(1 + 2j),
    np.zeros(1, [("a", "i4")])[0],
]


def assert_same_array(found: Any, array: Any) -> None:
    assert type(found) is type(array)
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(found, array)
    assert found.flags.writeable


@pytest.mark.parametrize("array", ARRAYS, ids=range(len(ARRAYS)))
def test_an_array_comes_back_as_it_was(array: Any) -> None:
    text = to_json({"a": array})
    found = from_json(text)["a"]
    assert_same_array(found, array)
    assert to_json({"a": found}) == text
    if array.flags.f_contiguous:
        assert found.flags.f_contiguous


@pytest.mark.parametrize("scalar", SCALARS, ids=steady)
def test_a_scalar_comes_back_as_it_was(scalar: Any) -> None:
    found = from_json(to_json([scalar]))[0]
    assert type(found) is type(scalar)
    assert found.dtype == scalar.dtype
    assert found == scalar or (found != found and scalar != scalar)


@given(
    arrays.arrays(
        arrays.scalar_dtypes() | arrays.array_dtypes() | arrays.nested_dtypes(max_itemsize=64),
        arrays.array_shapes(min_dims=0, min_side=0, max_dims=3, max_side=4),
    )
)
def test_arrays_of_every_type_and_shape_come_back(array: Any) -> None:
    found = from_json(to_json(array))
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert found.tobytes() == array.tobytes()


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.ma.masked_array([1], [True]), "MaskedArray"),
        (np.zeros(1, [("a", "O")]), "fields that are Python objects"),
        (np.array([object()], object), r"\['a'\].items\[0\]"),
    ],
    ids=steady,
)
def test_what_cannot_be_stored_says_so(array: Any, words: str) -> None:
    with pytest.raises(UnstorableValueError, match=words):
        to_json({"a": array})


BYTES = b64encode(bytes(8)).decode()


@pytest.mark.parametrize(
    "found",
    [
        {"dtype": "<i8", "shape": [2], "bytes": BYTES},
        {"dtype": "<i8", "shape": [-1], "bytes": BYTES},
        {"dtype": "<i8", "shape": [10**30], "bytes": BYTES},
        {"dtype": "O", "shape": [1], "bytes": BYTES},
        {"dtype": [["a", "O"]], "shape": [1], "bytes": BYTES},
        {"dtype": {"__t__": "tuple", "v": ["O", [1]]}, "shape": [1], "bytes": BYTES},
        {"dtype": "O", "shape": [10**12], "items": [1]},
        {"dtype": "O", "shape": [1], "items": {"__t__": "range", "v": [0, 10**12, 1]}},
        {"dtype": "<i8", "shape": [1], "bytes": BYTES, "order": "Z"},
        None,
    ],
    ids=str,
)
def test_a_made_up_array_is_refused(found: Any) -> None:
    with pytest.raises(WorkflowCheckpointException):
        from_json(json.dumps({"__t__": "ndarray", "v": found}))


@pytest.mark.parametrize(
    "found", [["V", 10**12], ["O", 1], ["<i8", [1]], ["<i8", "x"], ["<f8", None], "ab", [1]], ids=str
)
def test_a_made_up_scalar_is_refused(found: Any) -> None:
    with pytest.raises(WorkflowCheckpointException):
        from_json(json.dumps({"__t__": "numpy_scalar", "v": found}))


@given(st.recursive(st.none() | st.integers() | st.text(max_size=3), st.lists, max_leaves=4))
def test_no_description_of_a_type_does_harm(description: Any) -> None:
    for tag, found in (
        ("ndarray", {"dtype": description, "shape": [1], "bytes": BYTES}),
        ("numpy_scalar", [description, 1]),
    ):
        try:
            value = from_json(json.dumps({"__t__": tag, "v": found}))
        except WorkflowCheckpointException:
            continue
        assert not value.dtype.hasobject

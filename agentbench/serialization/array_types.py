"""How numpy arrays and scalars are stored: type, shape and bytes; arrays of Python objects item by item. No pickle."""

from __future__ import annotations

import math
import sys
from base64 import b64decode, b64encode
from typing import Any, Final

import numpy as np

from agentbench.exceptions import UnstorableValueError
from agentbench.serialization.registry import of_kind, register_type

_PLAIN: Final = frozenset({"?", "b", "B", "h", "H", "i", "I", "l", "L", "q", "Q", "e", "f", "d"})
"""Scalars that a Python number or text represents exactly."""

_ITEM_BY_ITEM: Final = frozenset({"O", "T"})
"""Kinds of arrays that contain Python objects, or texts of any length."""
_MOST_EMPTY: Final = 1 << 16


def _write_array(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    dtype = array.dtype
    found: dict[str, Any] = {"dtype": _write_dtype(dtype), "shape": list(array.shape)}
    if array.flags.f_contiguous and not array.flags.c_contiguous:
        found["order"] = "F"
        array = array.T
    if dtype.kind in _ITEM_BY_ITEM:
        found["items"] = array.ravel().tolist()
    else:
        found["bytes"] = b64encode(array.tobytes()).decode()
    return found


def _write_dtype(dtype: np.dtype[Any]) -> Any:
    if dtype.hasobject and dtype.kind not in _ITEM_BY_ITEM:
        reason = "It has fields that are Python objects. Store each of them in a separate array."
        raise UnstorableValueError(np.ndarray, reason)
    if dtype.kind == "T":
        if dtype != np.dtypes.StringDType():
            raise UnstorableValueError(np.ndarray, "Its text type defines a missing value. Use an array of objects.")
        return "T"
    return dtype.str if dtype.names is None and dtype.subdtype is None else np.lib.format.dtype_to_descr(dtype)


def _read_array(found: dict[str, Any]) -> np.ndarray[Any, Any]:
    dtype, order = _read_dtype(found["dtype"]), found.get("order", "C")
    shape = tuple(of_kind(int, length) for length in of_kind(list, found["shape"]))
    if dtype.kind not in _ITEM_BY_ITEM:
        buffer = bytearray(b64decode(of_kind(str, found["bytes"]), validate=True))
        _require_size(len(buffer), dtype.itemsize * math.prod(shape))
        if not dtype.itemsize:  # any number of such items takes no space
            _require_size(min(math.prod(shape), _MOST_EMPTY), math.prod(shape))
        array = np.ndarray(shape, dtype, buffer, order=order)
        _require_texts(array)
        return array
    items = of_kind(list, found["items"])
    _require_size(len(items), math.prod(shape))
    flat = np.empty(len(items), dtype)
    for place, item in enumerate(items):  # one by one, because lists would otherwise become rows
        flat[place] = item
    return flat.reshape(shape, order=order) if order == "C" else flat.reshape(shape[::-1]).T


def _read_dtype(description: Any) -> np.dtype[Any]:
    if not isinstance(description, (list, tuple)):
        of_kind(str, description)
    if description == "T":
        return np.dtypes.StringDType()
    dtype = np.lib.format.descr_to_dtype(description)
    if dtype.hasobject and dtype.kind != "O":  # its bytes would be used as addresses
        message = f"an array of {dtype} is never written"
        raise ValueError(message)
    return dtype


def _require_texts(array: np.ndarray[Any, Any]) -> None:
    """Reject numbers that are not characters, from which numpy would make invalid texts."""
    for name in array.dtype.names or ():
        _require_texts(array[name])
    if array.dtype.kind == "U" and array.size:
        numbers = np.frombuffer(array.tobytes(), array.dtype.byteorder.replace("|", "=") + "u4")
        if numbers.max() > sys.maxunicode:
            message = "its texts contain invalid characters"
            raise ValueError(message)


def _require_size(found: int, expected: int) -> None:
    if found != expected:
        message = f"{found} bytes or items, expected {expected}"
        raise ValueError(message)


def _write_scalar(scalar: Any) -> list[Any]:
    dtype = scalar.dtype
    if dtype.char in _PLAIN:
        return [dtype.str, scalar.item()]
    if dtype.char == "U":
        return ["U", "".join((scalar,))]  # str() would drop trailing zeros
    if dtype.char == "S":
        return ["S", b"".join((scalar,))]
    return [_write_dtype(dtype), {"bytes": b64encode(np.asarray(scalar).tobytes()).decode()}]


def _read_scalar(found: Any) -> Any:
    description, item = found
    if isinstance(item, dict):
        return _read_array({"dtype": description, "shape": [], **item})[()]
    dtype = np.dtype(of_kind(str, description))
    if dtype.char not in _PLAIN | {"U", "S"} or not isinstance(item, (bool, int, float, str, bytes)):
        message = f"a scalar of {dtype} is never written like this"
        raise ValueError(message)
    return dtype.type(item)


register_type(np.ndarray, "ndarray", _write_array, _read_array)
for _cls in {*np.sctypeDict.values()} - {np.object_}:
    register_type(_cls, "numpy_scalar", _write_scalar, _read_scalar, frozen=_cls is not np.void)

"""How pandas frames, series, indexes, arrays and scalars are stored: by their parts, down to numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timezone, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray, ExtensionDtype

import agentbench.serialization.array_types  # noqa: F401 - registers what frames are made of
from agentbench.exceptions import UnstorableValueError
from agentbench.serialization.registry import of_kind, register_type
from agentbench.serialization.standard_types import require_spread, zone_name

_LONGEST: Final = 1 << 28
_LONGEST_NAME: Final = 100


def _write_frame(frame: pd.DataFrame) -> dict[str, Any]:
    columns = [_values_of(frame.iloc[:, place]) for place in range(frame.shape[1])]
    return {"index": frame.index, "columns": frame.columns, "values": columns, **_extras_of(frame)}


def _read_frame(found: dict[str, Any]) -> pd.DataFrame:
    index, names = _index(found["index"]), _index(found["columns"])
    values = [_array(each, len(index)) for each in of_kind(list, found["values"])]
    _require(len(names) == len(values), "as many names as columns")
    frame = pd.DataFrame({place: pd.Series(each, index, each.dtype) for place, each in enumerate(values)}, index)
    frame.columns = names
    _add_extras(frame, found)
    return frame


def _write_series(series: pd.Series[Any]) -> dict[str, Any]:
    return {"index": series.index, "name": series.name, "values": _values_of(series), **_extras_of(series)}


def _read_series(found: dict[str, Any]) -> pd.Series[Any]:
    index = _index(found["index"])
    values = _array(found["values"], len(index))
    series = pd.Series(values, index, values.dtype, found["name"])
    _add_extras(series, found)
    return series


def _values_of(owner: Any) -> Any:
    if not isinstance(owner.dtype, ExtensionDtype):
        return owner.to_numpy()
    if type(owner.array) not in _ARRAY_WRITERS:
        reason = f"Its dtype {owner.dtype} cannot be stored. Convert it with astype() to a dtype of pandas or numpy."
        raise UnstorableValueError(type(owner), reason)
    return owner.array


# All arguments are checked before pandas is called: other kinds may make it run endlessly, or crash the process.


def _require(is_right: bool, expected: str) -> None:
    if not is_right:
        message = f"expected {expected}"
        raise ValueError(message)


def _name(text: Any) -> Any:
    _require(len(of_kind(str, text)) <= _LONGEST_NAME, f"at most {_LONGEST_NAME} characters")
    return text


def _array(values: Any, length: int | None = None) -> Any:
    _require(isinstance(values, (np.ndarray, ExtensionArray)) and values.ndim == 1, "an array of one dimension")
    _require(length in (None, len(values)), f"an array of length {length}")
    return values


def _numbers(values: Any, kinds: str) -> np.ndarray[Any, Any]:
    right = isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in kinds
    _require(right and values.dtype.isnative, f"a native numpy array of kind {kinds}")
    found: np.ndarray[Any, Any] = values
    return found


def _index(values: Any) -> Any:
    _require(isinstance(values, pd.Index), "an index")
    return values


def _extras_of(owner: Any) -> dict[str, Any]:
    extras: dict[str, Any] = {}
    if owner.attrs:
        extras["attrs"] = owner.attrs
    if not owner.flags.allows_duplicate_labels:
        extras["unique_labels"] = True
    return extras


def _add_extras(owner: Any, found: dict[str, Any]) -> None:
    owner.attrs = found.get("attrs", {})
    owner.flags.allows_duplicate_labels = not found.get("unique_labels", False)


def _write_index(index: Any) -> dict[str, Any]:
    if isinstance(index, pd.RangeIndex):
        if len(index) > _LONGEST:
            raise UnstorableValueError(type(index), f"It has more than {_LONGEST:,} numbers.")
        return {"range": [index.start, index.stop, index.step], "name": index.name}
    if isinstance(index, pd.MultiIndex):
        return {"levels": list(index.levels), "codes": list(index.codes), "names": list(index.names)}
    found = {"values": _values_of(index), "name": index.name}
    freq = getattr(index, "freq", None)
    if freq is not None and not isinstance(index, pd.PeriodIndex):
        found["freq"] = freq.freqstr
        if pd.tseries.frequencies.to_offset(freq.freqstr) != freq:
            reason = f"Its frequency {freq!r} has no name. Set freq to None first."
            raise UnstorableValueError(type(index), reason)
    return found


def _read_index(found: dict[str, Any]) -> Any:
    if "range" in of_kind(dict, found):
        start, stop, step = [of_kind(int, each) for each in of_kind(list, found["range"])]
        _require(len(range(start, stop, step)) <= _LONGEST, f"a range of at most {_LONGEST:,} numbers")
        return pd.RangeIndex(start, stop, step, name=found["name"])
    if "levels" in found:
        levels = [_index(each) for each in of_kind(list, found["levels"])]
        _require(sum(map(len, levels)) <= _LONGEST, f"levels of at most {_LONGEST:,} values")
        codes: Any = [_numbers(each, "iu") for each in of_kind(list, found["codes"])]
        return pd.MultiIndex(levels, codes, names=of_kind(list, found["names"]))
    values = _array(found["values"])
    index: Any = pd.Index(values, values.dtype, name=found["name"])
    if "freq" in found:
        index.freq = _name(found["freq"])
    return index


def _write_zoned(array: Any) -> dict[str, Any]:
    if array.tz is None:
        return {"kind": "zoned", "values": array.to_numpy(), "zone": None}
    return {"kind": "zoned", "values": array.tz_convert(None).to_numpy(), "zone": _write_zone(array.tz)}


def _write_zone(zone: Any) -> Any:
    if type(zone) in {ZoneInfo, timezone}:
        return zone
    name = str(zone)
    try:
        found = _read_zone(name)
    except Exception:  # noqa: BLE001 - a foreign zone may have any name
        found = None
    if found != zone:
        raise UnstorableValueError(type(zone), f"The time zone {name} has no name that pandas knows. Use a ZoneInfo.")
    return name


def _read_zone(zone: Any) -> Any:
    # pandas also accepts file paths
    return pd.DatetimeTZDtype("ns", zone if isinstance(zone, tzinfo) else zone_name(zone)).tz


def _write_masked(array: Any) -> dict[str, Any]:
    mask = array.isna()
    return {"kind": "masked", "values": array.to_numpy(array.dtype.numpy_dtype, na_value=0), "mask": mask}


def _write_strings(array: Any) -> dict[str, Any]:
    missing = array.isna()
    items = [None if absent else item for item, absent in zip(array, missing, strict=True)]
    dtype = array.dtype
    return {"kind": "string", "storage": dtype.storage, "nan": dtype.na_value is not pd.NA, "items": items}


def _read_zoned(found: dict[str, Any]) -> Any:
    values, zone = _numbers(found["values"], "M"), found["zone"]
    if zone is None:
        return pd.DatetimeIndex(values).array
    return pd.DatetimeIndex(values, tz="UTC").tz_convert(_read_zone(zone)).array


def _read_masked(found: dict[str, Any]) -> Any:
    values, mask = _numbers(found["values"], "biuf"), _numbers(found["mask"], "b")
    _require(len(values) == len(mask), "as many values as marks")
    make = {"b": pd.arrays.BooleanArray, "f": pd.arrays.FloatingArray}.get(values.dtype.kind, pd.arrays.IntegerArray)
    return make(values, mask)


def _read_strings(found: dict[str, Any]) -> Any:
    missing = {"na_value": float("nan")} if found["nan"] else {}
    items = of_kind(list, found["items"])
    _require({str, type(None)}.issuperset(map(type, items)), "texts")
    storage: Any = of_kind(str, found["storage"])
    return pd.array(items, dtype=pd.StringDtype(storage, **missing))


def _read_category(found: dict[str, Any]) -> Any:
    names = _index(found["of"])
    if names.dtype == object:
        require_spread(list(names))
    return pd.Categorical.from_codes(_numbers(found["codes"], "iu"), names, of_kind(bool, found["ordered"]))


def _read_period(found: dict[str, Any]) -> Any:
    ordinals = _numbers(found["ordinals"], "i")
    _require(ordinals.dtype == np.int64, "numbers of 64 bits")
    return pd.arrays.PeriodArray(ordinals, dtype=pd.PeriodDtype(_name(found["dtype"])))


def _read_interval(found: dict[str, Any]) -> Any:
    left, right = _index(found["left"]), _index(found["right"])
    _require(len(left) == len(right), "as many left ends as right ends")
    _require(not isinstance(left, pd.RangeIndex) or len(left) <= 1 << 16, "ends one by one")
    closed: Any = of_kind(str, found["closed"])
    return pd.arrays.IntervalArray.from_arrays(left, right, closed)


_READERS: Final[Mapping[str, Callable[[dict[str, Any]], Any]]] = {
    "category": _read_category,
    "zoned": _read_zoned,
    "period": _read_period,
    "interval": _read_interval,
    "masked": _read_masked,
    "string": _read_strings,
}


def _write_timestamp(stamp: pd.Timestamp) -> list[Any]:
    utc = stamp if stamp.tz is None else stamp.tz_convert(None)
    return ["timestamp", utc.to_datetime64(), None if stamp.tz is None else _write_zone(stamp.tz)]


def _read_timestamp(utc: Any, zone: Any) -> Any:
    stamp = pd.Timestamp(utc)
    return stamp if zone is None else stamp.tz_localize("UTC").tz_convert(_read_zone(zone))


_SCALARS: Final[Mapping[str, Callable[..., Any]]] = {
    "timestamp": _read_timestamp,
    "timedelta": pd.Timedelta,
    "period": lambda ordinal, freq: pd.Period(ordinal=of_kind(int, ordinal), freq=_name(freq)),
    "interval": pd.Interval,
    "NaT": lambda: pd.NaT,
    "NA": lambda: pd.NA,
}


_INDEXES: Final[tuple[Any, ...]] = (
    *(pd.Index, pd.RangeIndex, pd.MultiIndex, pd.DatetimeIndex, pd.TimedeltaIndex),
    *(pd.CategoricalIndex, pd.IntervalIndex, pd.PeriodIndex),
)
_ARRAY_WRITERS: Final[Mapping[Any, Callable[[Any], Any]]] = {
    pd.Categorical: lambda it: {"kind": "category", "codes": it.codes, "of": it.categories, "ordered": it.ordered},
    pd.arrays.DatetimeArray: _write_zoned,
    pd.arrays.PeriodArray: lambda it: {"kind": "period", "ordinals": it.asi8, "dtype": str(it.dtype)},
    pd.arrays.IntervalArray: lambda it: {"kind": "interval", "left": it.left, "right": it.right, "closed": it.closed},
    pd.arrays.IntegerArray: _write_masked,
    pd.arrays.FloatingArray: _write_masked,
    pd.arrays.BooleanArray: _write_masked,
    pd.arrays.StringArray: _write_strings,
    pd.arrays.ArrowStringArray: _write_strings,
}
_SCALAR_WRITERS: Final[Mapping[Any, Callable[[Any], Any]]] = {
    pd.Timestamp: _write_timestamp,
    pd.Timedelta: lambda delta: ["timedelta", delta.to_timedelta64()],
    pd.Period: lambda period: ["period", period.ordinal, period.freqstr],
    pd.Interval: lambda interval: ["interval", interval.left, interval.right, interval.closed],
    type(pd.NaT): lambda _: ["NaT"],
    type(pd.NA): lambda _: ["NA"],
}

register_type(pd.DataFrame, "dataframe", _write_frame, _read_frame)
register_type(pd.Series, "series", _write_series, _read_series)
for _cls in _INDEXES:
    register_type(_cls, "pandas_index", _write_index, _read_index)
for _cls, _write in _ARRAY_WRITERS.items():
    register_type(_cls, "pandas_array", _write, lambda found: _READERS[found["kind"]](found))
for _cls, _write in _SCALAR_WRITERS.items():
    register_type(_cls, "pandas_scalar", _write, lambda found: _SCALARS[found[0]](*found[1:]), frozen=True)

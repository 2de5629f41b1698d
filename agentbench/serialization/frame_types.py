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
from agentbench.serialization.registry import register_type
from agentbench.serialization.standard_types import zone_name

# ------------------------------------------------------------------------------------------------- frames and series


def _write_frame(frame: pd.DataFrame) -> dict[str, Any]:
    columns = [_values_of(frame.iloc[:, place]) for place in range(frame.shape[1])]
    return {"index": frame.index, "columns": frame.columns, "values": columns, **_extras_of(frame)}


def _read_frame(found: dict[str, Any]) -> pd.DataFrame:
    index = found["index"]
    columns = {place: pd.Series(_array(values), index, values.dtype) for place, values in enumerate(found["values"])}
    frame = pd.DataFrame(columns, index)
    frame.columns = found["columns"]
    _add_extras(frame, found)
    return frame


def _write_series(series: pd.Series[Any]) -> dict[str, Any]:
    return {"index": series.index, "name": series.name, "values": _values_of(series), **_extras_of(series)}


def _read_series(found: dict[str, Any]) -> pd.Series[Any]:
    values = _array(found["values"])
    series = pd.Series(values, found["index"], values.dtype, found["name"])
    _add_extras(series, found)
    return series


def _values_of(owner: Any) -> Any:
    if not isinstance(owner.dtype, ExtensionDtype):
        return owner.to_numpy()
    if type(owner.array) not in _ARRAY_WRITERS:
        reason = f"Its dtype {owner.dtype} cannot be stored. Convert it with astype() to a dtype of pandas or numpy."
        raise UnstorableValueError(type(owner), reason)
    return owner.array


def _array(values: Any) -> Any:
    if not isinstance(values, (np.ndarray, ExtensionArray)):  # a single one would be repeated, without end
        message = f"found a {type(values).__name__} in the place of an array"
        raise TypeError(message)
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


# ------------------------------------------------------------------------------------------------------------ indexes


def _write_index(index: Any) -> dict[str, Any]:
    if isinstance(index, pd.RangeIndex):
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
    if "range" in found:
        return pd.RangeIndex(range(*found["range"]), name=found["name"])
    if "levels" in found:
        return pd.MultiIndex(found["levels"], found["codes"], names=found["names"])
    values = _array(found["values"])
    index: Any = pd.Index(values, values.dtype, name=found["name"])
    if "freq" in found:
        index.freq = found["freq"]
    return index


# ------------------------------------------------------------------------------------------------------------- arrays


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
    # pandas takes paths of files, too
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
    values, zone = found["values"], found["zone"]
    if zone is None:
        return pd.DatetimeIndex(values).array
    return pd.DatetimeIndex(values, tz="UTC").tz_convert(_read_zone(zone)).array


def _read_masked(found: dict[str, Any]) -> Any:
    values, mask = found["values"], found["mask"]
    make = {"b": pd.arrays.BooleanArray, "f": pd.arrays.FloatingArray}.get(values.dtype.kind, pd.arrays.IntegerArray)
    return make(values, mask)


def _read_strings(found: dict[str, Any]) -> Any:
    missing = {"na_value": float("nan")} if found["nan"] else {}
    return pd.array(found["items"], dtype=pd.StringDtype(found["storage"], **missing))


_READERS: Final[Mapping[str, Callable[[dict[str, Any]], Any]]] = {
    "category": lambda found: pd.Categorical.from_codes(found["codes"], found["of"], found["ordered"]),
    "zoned": _read_zoned,
    "period": lambda found: pd.arrays.PeriodArray(found["ordinals"], dtype=pd.PeriodDtype(found["dtype"])),
    "interval": lambda found: pd.arrays.IntervalArray.from_arrays(found["left"], found["right"], found["closed"]),
    "masked": _read_masked,
    "string": _read_strings,
}


# ------------------------------------------------------------------------------------------------------------ scalars


def _write_timestamp(stamp: pd.Timestamp) -> list[Any]:
    utc = stamp if stamp.tz is None else stamp.tz_convert(None)
    return ["timestamp", utc.to_datetime64(), None if stamp.tz is None else _write_zone(stamp.tz)]


def _read_timestamp(utc: Any, zone: Any) -> Any:
    stamp = pd.Timestamp(utc)
    return stamp if zone is None else stamp.tz_localize("UTC").tz_convert(_read_zone(zone))


_SCALARS: Final[Mapping[str, Callable[..., Any]]] = {
    "timestamp": _read_timestamp,
    "timedelta": pd.Timedelta,
    "period": lambda ordinal, freq: pd.Period(ordinal=ordinal, freq=freq),
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

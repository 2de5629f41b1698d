"""Builds data frames from columns, with the same dtypes with and without rows."""

import functools
import re
import sys
import weakref
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from agentbench._extras import require
from agentbench.notebook.history.requests import UNKNOWN
from agentbench.notebook.history.sources import Chosen, time_ns

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["string", "category", "int64", "float64", "Int64", "UInt64", "Float64", "bool", "object", "time"]
"""The kind of a column. `time` is datetime64[ns, UTC], from nanoseconds, ISO 8601 text or `None`."""
Column = tuple[Kind, Sequence[Any]]

_MANY_ROWS = 50_000
_SHORT = 8  # characters of a long id
_LONG_ID = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){6,}")  # a UUID or a digest
_UUID = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_UUID_CELL = re.compile(f"(?<=>){_UUID.pattern}(?=<)")
_MORE_IDS = ("forked_from", "graph_hash")  # columns of ids without `id` at the end of their name
_NAT = -(2**63)


def build_frame(
    table: str,
    columns: Mapping[str, Column],
    *,
    index: Sequence[str] = (),
    key: str | None = None,
    chosen: Chosen,
    full: bool = False,
    run_ids: Iterable[str | None] = (),
) -> "pd.DataFrame":
    """Build a frame; its `attrs` contain table, filter and runs (by default those of the column `run_id`).

    Without `full`, columns without a value are omitted, and long ids are shortened if they stay distinct. Ids in the
    index and in the column `key`, which are used for look-ups, stay whole.
    """
    require("pandas", extra="notebook", purpose=f"tabulate {table}")
    import pandas as pd

    _, ids_of_rows = columns.get("run_id", ("string", ()))
    rows = len(next(iter(columns.values()))[1])
    if rows > _MANY_ROWS:
        sys.stdout.write(f"{table}: building {rows:,} rows; use limit= and since= to reduce them\n")
    if not full:
        columns = _with_short_ids(columns, {*index, key})
    arrays = {name: build_array(kind, values) for name, (kind, values) in columns.items()}
    if rows and not full:
        arrays = {name: array for name, array in arrays.items() if name in index or not pd.isna(array).all()}
    frame = pd.DataFrame(arrays, copy=False)
    if index:
        frame = frame.set_index(list(index))
    ids = list(dict.fromkeys(run_id for run_id in run_ids or ids_of_rows if run_id is not None))
    frame.attrs["agentbench"] = {
        "kind": table,
        "run_id": ids[0] if len(ids) == 1 else (ids or None),
        "workflow_name": chosen.workflow_name,
        "since": chosen.since,
        "limit": chosen.limit,
    }
    vars(frame)["_repr_html_"] = functools.partial(_html, weakref.ref(frame), full)
    return frame


def _with_short_ids(columns: Mapping[str, Column], kept: Collection[str | None]) -> dict[str, Column]:
    """Shorten long ids to their first characters, unless two of them would become equal."""
    names = [name for name in columns if name.endswith("_id") or name in _MORE_IDS]
    known = {each for name in names for each in columns[name][1] if each is not None}
    long = [each for each in known if _LONG_ID.fullmatch(each)]
    counts = Counter(each[:_SHORT] for each in known)
    short = {each: each[:_SHORT] for each in long if counts[each[:_SHORT]] == 1}
    return {
        name: (kind, [short.get(each, each) for each in values] if name in names and name not in kept else values)
        for name, (kind, values) in columns.items()
    }


def _html(reference: "weakref.ref[pd.DataFrame]", full: bool) -> str | None:
    """Return the HTML of a frame without line breaks in ids, which pages would break at hyphens."""
    frame: Any = reference()
    html: str | None = type(frame)._repr_html_(frame)
    if html and not full:
        return _UUID_CELL.sub(lambda found: f'<span title="{found[0]}">{found[0][:_SHORT]}…</span>', html)
    return html and _UUID.sub(r'<span style="white-space:nowrap">\g<0></span>', html)


def build_array(kind: Kind, values: Sequence[Any]) -> Any:
    """Return the values of a column as an array or a series of its dtype."""
    import numpy as np
    import pandas as pd

    if kind == "string":
        return pd.array(values, dtype="string")
    if kind == "category":
        return pd.Categorical(pd.array(values, dtype="string"))
    if kind == "time":
        known = [time_ns(value) if isinstance(value, str) else value for value in values]
        ticks = np.array([_NAT if value is None else value for value in known], dtype="int64")
        return pd.DatetimeIndex(ticks.view("datetime64[ns]")).tz_localize("UTC")
    if kind == "object":
        array = np.empty(len(values), dtype=object)
        for place, value in enumerate(values):  # numpy would split lists of equal length
            array[place] = pd.NA if value is UNKNOWN else value
        # pandas 3 would convert an array of objects to a text column if all are texts.
        return pd.Series(array, dtype=object)
    if kind in ("Int64", "UInt64", "Float64"):
        return pd.array(values, dtype=kind)
    return np.asarray(values, dtype=kind)

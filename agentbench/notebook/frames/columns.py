"""Data frames from columns: one `DataFrame` from whole lists, with the same dtypes with rows and without."""

import functools
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from agentbench._extras import require
from agentbench.notebook.history.requests import UNKNOWN
from agentbench.notebook.history.sources import Chosen, time_ns

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Column", "Kind", "build_frame"]

#: The kind of a column. `time` is datetime64[ns, UTC], from nanoseconds, ISO 8601 text or `None`.
Kind = Literal["string", "category", "int64", "float64", "Int64", "Float64", "bool", "object", "time"]
Column = tuple[Kind, Sequence[Any]]

_MANY_ROWS = 50_000
_UUID = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_NAT = -(2**63)


def build_frame(
    table: str,
    columns: Mapping[str, Column],
    *,
    index: Sequence[str] = (),
    chosen: Chosen,
    run_ids: Iterable[str | None] = (),
) -> "pd.DataFrame":
    """Return a frame; `attrs` names its table, its filter and its runs, by default those of the column `run_id`."""
    require("pandas", extra="notebook", purpose=f"tabulate {table}")
    import pandas as pd

    _, ids_of_rows = columns.get("run_id", ("string", ()))
    rows = len(next(iter(columns.values()))[1])
    if rows > _MANY_ROWS:
        sys.stdout.write(f"{table}: building {rows:,} rows; limit= and since= make it fewer\n")
    arrays = {name: _array(kind, values) for name, (kind, values) in columns.items()}
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
    vars(frame)["_repr_html_"] = functools.partial(_html, frame)
    return frame


def _html(frame: "pd.DataFrame") -> str | None:
    """Return the HTML of a frame, its ids in one line each: a page breaks them at their hyphens, into five."""
    html = type(frame)._repr_html_(frame)  # type: ignore[attr-defined]
    return html and _UUID.sub(r'<span style="white-space:nowrap">\g<0></span>', html)


def _array(kind: Kind, values: Sequence[Any]) -> Any:
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
        for place, value in enumerate(values):  # numpy would take lists of equal length apart
            array[place] = pd.NA if value is UNKNOWN else value
        # pandas 3 would make a text column of an array of objects that happen to be text.
        return pd.Series(array, dtype=object)
    if kind in ("Int64", "Float64"):
        return pd.array(values, dtype=kind)
    return np.asarray(values, dtype=kind)

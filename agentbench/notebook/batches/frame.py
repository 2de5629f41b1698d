"""The rows of a batch as a data frame with proper dtypes; secrets masked."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentbench._extras import require
from agentbench._secrets import mask_secrets, mask_text
from agentbench._text.redact import fields_of
from agentbench.batch.rows import BatchRow
from agentbench.notebook.frames.columns import Column, build_array

if TYPE_CHECKING:
    import pandas as pd

_EXPANDABLE = ("input", "output")
# Values of one of these types have a dtype of their own; other columns hold objects.
_PLAIN = (bool, int, float, str, datetime.datetime)


def batch_frame(batch: Any, *, status: str | None = None, expand: str | Sequence[str] | None = None) -> pd.DataFrame:
    """Tabulate the rows of a batch, one per input and in input order; `Batch.frame` documents the columns.

    Args:
        batch: The batch.
        status: Only rows with this status; by default all.
        expand: `"input"`, `"output"` or both in a list: the fields of mappings, dataclasses and pydantic models become
            columns such as `input.text`. The column itself is omitted if all of its values have fields.

    Returns:
        The frame. It has all columns, whether or not they have values. A repeated input repeats the row of its result
        at its own position; `duplicate_of` is the position of that result.

    Raises:
        ValueError: `expand` names something else.
        MissingExtraError: pandas, which comes with the extra `notebook`, is not installed.

    Example:
        frame = batch_frame(batch, expand="input")
        frame.groupby("input.language")["seconds"].median()
    """
    require("pandas", extra="notebook", purpose="tabulate a batch")
    import pandas as pd

    expanded = [expand] if isinstance(expand, str) else list(expand or ())
    if unknown := set(expanded).difference(_EXPANDABLE):
        msg = f'expand={expand!r} is not possible: {min(unknown)!r} has no fields. Use "input", "output" or both.'
        raise ValueError(msg)
    first = {row.key: row for row in batch.rows(status)}
    placed = [(row.position, row.duplicate_of, row) for row in first.values()]
    for position, key in batch.repeats().items():
        if key in first:
            placed.append((position, first[key].position, first[key]))
    placed.sort(key=lambda each: each[0])
    arrays: dict[str, Any] = {}
    for name, (kind, values) in _columns(placed).items():
        arrays |= _fields(name, values) if name in expanded else {name: build_array(kind, values)}
    frame = pd.DataFrame(arrays, copy=False)
    frame.attrs["agentbench"] = {
        "kind": "batch",
        "batch": batch.name,
        "status": None if status is None else str(status),
    }
    return frame


def _columns(placed: Sequence[tuple[int, int | None, BatchRow]]) -> dict[str, Column]:
    rows = [row for _, _, row in placed]
    errors = [row.error for row in rows]
    return {
        "key": ("string", [row.key for row in rows]),
        "position": ("UInt64", [position for position, _, _ in placed]),
        "input": ("object", [mask_secrets(row.input) for row in rows]),
        "status": ("category", [str(row.status) for row in rows]),
        "output": ("object", [mask_secrets(row.output) for row in rows]),
        "error_type": ("category", [error and error.type for error in errors]),
        "error_message": ("string", [error and mask_text(error.message) for error in errors]),
        "error_location": ("string", [error and error.location for error in errors]),
        "attempts": ("UInt64", [row.attempts for row in rows]),
        "supersteps": ("UInt64", [row.supersteps for row in rows]),
        "path": ("category", [row.path for row in rows]),
        "tokens_in": ("UInt64", [row.tokens_in for row in rows]),
        "tokens_out": ("UInt64", [row.tokens_out for row in rows]),
        "cost": ("Float64", [row.cost for row in rows]),
        "started": ("time", [None if row.started is None else round(row.started * 1e6) * 1000 for row in rows]),
        "seconds": ("Float64", [row.seconds for row in rows]),
        "queued_seconds": ("Float64", [row.queued_seconds for row in rows]),
        "run_id": ("string", [row.run_id for row in rows]),
        "checkpoint_id": ("string", [row.checkpoint_id for row in rows]),
        "graph_hash": ("category", [row.graph_hash for row in rows]),
        "worker": ("category", [row.worker for row in rows]),
        "duplicate_of": ("UInt64", [duplicate_of for _, duplicate_of, _ in placed]),
    }


def _fields(name: str, values: Sequence[Any]) -> dict[str, Any]:
    """Return the columns of the fields of values, and first the values themselves if some of them have no fields."""
    import pandas as pd

    parts = [dict(fields_of(value)) for value in values]
    columns: dict[str, Any] = {}
    if not all(part or value is None for part, value in zip(parts, values, strict=True)):
        columns[name] = build_array("object", values)
    for field in dict.fromkeys(field for part in parts for field in part):
        cells = [mask_secrets(part.get(field), key=field) for part in parts]
        types = {type(cell) for cell in cells if cell is not None}
        is_plain = types <= {int, float} or (len(types) == 1 and types.issubset(_PLAIN))
        columns[f"{name}.{field}"] = pd.array(cells) if types and is_plain else build_array("object", cells)
    return columns

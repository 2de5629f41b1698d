"""The queries of an evaluation with their values, and the rows of batches that answer them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentbench._workers import run_in_thread
from agentbench.batch.rows import BatchRow, RowStatus
from agentbench.exceptions import BatchError, RunFailedError

if TYPE_CHECKING:
    from agentbench.batch.batch import Batch


def as_list(values: Any, single: tuple[type, ...]) -> list[Any]:
    """Return one or more values as a list, empty for `None`. An instance of the classes `single` is one value."""
    if values is None:
        return []
    return [values] if isinstance(values, single) else list(values)


def per_query(name: str, values: Any, single: tuple[type, ...], queries: Sequence[Any]) -> list[Any]:
    """Return a value for each query, `None` if there are no values; raise ValueError if the numbers differ."""
    if values is None:
        return [None] * len(queries)
    listed = as_list(values, single)
    if len(listed) != len(queries):
        msg = f"{name} has {len(listed)} values for {len(queries)} queries; expected one for each query."
        raise ValueError(msg)
    return listed


async def rows_of(batch: Batch, **others: Any) -> list[BatchRow]:
    """Return the rows of a batch in the order of its inputs.

    Args:
        batch: The batch, which is not run.
        **others: Arguments that cannot be combined with a batch. ValueError: one of them is not None.
    """
    for name, value in others.items():
        if value is not None:
            msg = f"batch= has its own queries and answers. Leave out {name}=."
            raise ValueError(msg)
    return await run_in_thread(batch.rows)


def error_of(row: BatchRow) -> Exception | None:
    """Return the reason why a row has no answer to score; None if it has one."""
    if row.error is not None:
        return RunFailedError(row.error.message, row.error.type, row.error.location, row.error.traceback)
    if row.status is not RowStatus.FINISHED:
        return BatchError(f"Row {row.key!r} is {row.status}, so it has no output yet.")
    return ValueError("The run has no output.") if row.output is None else None

"""Parts of a batch as a person reads them: rows of one status, and open questions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentbench.batch.rows import BatchRow, RowStatus

if TYPE_CHECKING:
    import pandas as pd

    from agentbench.batch.batch import Batch


@dataclass(frozen=True)
class Question:
    """An open question of a run.

    Attributes:
        key: The key of the row.
        request: The request, as an event of the run; answer it under its `request_id`.

    Example:
        for question in batch.questions():
            print(question.key, question.request.data)
    """

    key: str
    request: Any


class RowView:
    """The rows of a batch that have one status: `batch.failed`, `batch.waiting`.

    Example:
        print(len(batch.failed), batch.failed.inputs)
        await batch.failed.retry()
    """

    def __init__(self, batch: Batch, status: RowStatus) -> None:
        self._batch, self._status = batch, status

    def __len__(self) -> int:
        return self._batch.store.totals().get(self._status, (0,))[0]

    def __iter__(self) -> Iterator[BatchRow]:
        return iter(self.rows())

    def rows(self) -> list[BatchRow]:
        """Return the rows, in the order of the inputs."""
        return self._batch.rows(self._status)

    @property
    def inputs(self) -> list[Any]:
        """The inputs of the rows."""
        return [row.input for row in self.rows()]

    def frame(self, **options: Any) -> pd.DataFrame:
        """Return the rows as a DataFrame; see `Batch.frame`."""
        return self._batch.frame(status=self._status, **options)

    def retry(self) -> Batch:
        """Run these rows again, failed ones from their last checkpoints; await the batch for the outcome."""
        return self._batch.retry(self._status)

    def __repr__(self) -> str:
        return f"RowView({len(self)} {self._status} rows of {self._batch.name!r})"

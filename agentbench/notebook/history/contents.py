"""The content of checkpoints, for frames: loaded on demand, as far as it can be read."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentbench.checkpoints.access import list_infos, load_checkpoint
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.metadata import RUN_ID, SOURCE, WRITERS
from agentbench.checkpoints.storage import CheckpointStorage
from agentbench.exceptions import CheckpointNotFoundError, WorkflowCheckpointException
from agentbench.notebook.history.loop_bound import run_on_engine

__all__ = ["Contents", "Everything", "Pages"]

_PAGE = 64


class Contents(ABC):
    """Checkpoints with their content, as far as it can be read."""

    def __init__(self) -> None:
        self._problems: dict[str, WorkflowCheckpointException] = {}
        self._n_read = 0

    @abstractmethod
    def newest_first(self) -> Iterator[WorkflowCheckpoint]:
        """Return the checkpoints of a frame, the last one first; their content is loaded on demand."""

    @abstractmethod
    def find(self, checkpoint_id: str | None) -> WorkflowCheckpoint | None:
        """Return one of them, or one of their ancestors; `None` if there is none."""

    def can_read(self, checkpoint: WorkflowCheckpoint) -> bool:
        """Load the content of a checkpoint; return whether that is possible, and record the problem if not."""
        if checkpoint.checkpoint_id in self._problems:
            return False
        try:
            checkpoint.state  # noqa: B018 - loads the content
        except WorkflowCheckpointException as error:
            self._problems[checkpoint.checkpoint_id] = error
            return False
        self._n_read += 1
        return True

    def warn_about_problems(self) -> None:
        """Emit one warning about checkpoints that cannot be read.

        Raises:
            WorkflowCheckpointException: None could be read.
        """
        if not self._problems:
            return
        first = next(iter(self._problems.values()))
        if not self._n_read:
            raise first
        count = len(self._problems)
        what = "One checkpoint is left out." if count == 1 else f"{count:,} checkpoints are left out. The first:"
        warnings.warn(f"{what} {first}", stacklevel=3)


class Everything(Contents):
    """Checkpoints that are listed already.

    Attributes:
        rows: The checkpoints of a frame, in the order of their storage.
        by_id: These and the others of their chains.
    """

    def __init__(self, rows: Sequence[WorkflowCheckpoint], by_id: Mapping[str, WorkflowCheckpoint]) -> None:
        super().__init__()
        self.rows = rows
        self.by_id = by_id

    def newest_first(self) -> Iterator[WorkflowCheckpoint]:
        """See `Contents`."""
        return reversed(self.rows)

    def find(self, checkpoint_id: str | None) -> WorkflowCheckpoint | None:
        """See `Contents`."""
        return self.by_id.get(checkpoint_id or "")


class Pages(Contents):
    """Checkpoints of a storage, listed page by page from the end.

    Args:
        storage: Lists infos.
        chains: Chains in their order, each with the run whose checkpoints are listed, `None` for all.
    """

    def __init__(self, storage: CheckpointStorage, chains: Sequence[tuple[str, str | None]]) -> None:
        super().__init__()
        self._storage = storage
        self._pages = self._all_pages(chains)
        self._listed: list[WorkflowCheckpoint] = []
        self._known: dict[str, WorkflowCheckpoint | None] = {}

    def newest_first(self) -> Iterator[WorkflowCheckpoint]:
        """See `Contents`."""
        at = 0
        while at < len(self._listed) or self._list_more():
            yield self._listed[at]
            at += 1

    def find(self, checkpoint_id: str | None) -> WorkflowCheckpoint | None:
        """See `Contents`. A checkpoint that is not on the next page is loaded by its id."""
        if checkpoint_id is None:
            return None
        if checkpoint_id not in self._known:
            self._list_more()
        if checkpoint_id not in self._known:
            self._known[checkpoint_id] = self._load(checkpoint_id)
        return self._known[checkpoint_id]

    def _list_more(self) -> bool:
        page = next(self._pages, None)
        for info in reversed(page or ()):
            checkpoint = _read_later(self._storage, info)
            self._listed.append(checkpoint)
            self._known[info.checkpoint_id] = checkpoint
        return page is not None

    def _all_pages(self, chains: Sequence[tuple[str, str | None]]) -> Iterator[list[CheckpointInfo]]:
        for chain, run_id in reversed(chains):
            before: str | None = None
            while True:
                listing = list_infos(self._storage, workflow_name=chain, run_id=run_id, before=before, limit=_PAGE)
                page = run_on_engine(listing, self._storage)
                if page:
                    yield page
                if len(page) < _PAGE:
                    break
                before = page[0].checkpoint_id

    def _load(self, checkpoint_id: str) -> WorkflowCheckpoint | None:
        try:
            return run_on_engine(load_checkpoint(self._storage, checkpoint_id), self._storage)
        except CheckpointNotFoundError:
            return None
        except WorkflowCheckpointException as error:
            self._problems[checkpoint_id] = error
            return None


def _read_later(storage: CheckpointStorage, info: CheckpointInfo) -> WorkflowCheckpoint:
    """Return a checkpoint from its info, whose content is loaded on demand."""
    known = {
        "workflow_name": info.workflow_name,
        "checkpoint_id": info.checkpoint_id,
        "graph_signature_hash": info.graph_signature_hash,
        "previous_checkpoint_id": info.previous_checkpoint_id,
        "timestamp": info.timestamp,
        "iteration_count": info.iteration,
        "metadata": {**info.metadata, RUN_ID: info.run_id, SOURCE: info.source, WRITERS: list(info.writers)},
    }

    def read(_: str) -> Mapping[str, Any]:
        found = run_on_engine(load_checkpoint(storage, info.checkpoint_id), storage).to_dict()
        return {name: value for name, value in found.items() if name not in known}

    return WorkflowCheckpoint.read_later(known, read)

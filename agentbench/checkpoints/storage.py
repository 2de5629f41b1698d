"""The protocol of checkpoint storages, its optional capabilities, and the rules that all storages share.

Six methods make a storage; no base class is needed. Additional methods provide capabilities, which are detected by
`isinstance`. The functions of `agentbench.checkpoints.access` use a capability if there is one, else the six methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from agentbench._display import Displayable
from agentbench._limits import require_limit
from agentbench.checkpoints.checkpoint import CheckpointID, WorkflowCheckpoint
from agentbench.checkpoints.info import CheckpointInfo, select_infos
from agentbench.checkpoints.metadata import is_recorded_chain
from agentbench.exceptions import WorkflowBusyError


@runtime_checkable
class CheckpointStorage(Protocol):
    """A storage for checkpoints: any class with these six methods.

    A storage must save and load copies, because a run continues to change its state after a save. A class that copies
    declares `keeps_copies = True`; for every other class the engine makes the copies. Check your own storage with
    `agentbench.testing.storage_suite`.

    Example:
        >>> class TextStorage:
        ...     def __init__(self):
        ...         self.texts = {}
        ...
        ...     async def save(self, checkpoint):
        ...         self.texts[checkpoint.checkpoint_id] = checkpoint.to_json()
        ...         return checkpoint.checkpoint_id
        ...
        ...     async def load(self, checkpoint_id):
        ...         if checkpoint_id not in self.texts:
        ...             raise CheckpointNotFoundError(checkpoint_id)
        ...         return WorkflowCheckpoint.from_json(self.texts[checkpoint_id])
        ...
        ...     async def list_checkpoints(self, *, workflow_name):
        ...         every = map(WorkflowCheckpoint.from_json, self.texts.values())
        ...         return [each for each in every if each.workflow_name == workflow_name]
        ...
        ...     async def list_checkpoint_ids(self, *, workflow_name):
        ...         return [each.checkpoint_id for each in await self.list_checkpoints(workflow_name=workflow_name)]
        ...
        ...     async def delete(self, checkpoint_id):
        ...         return self.texts.pop(checkpoint_id, None) is not None
        ...
        ...     async def get_latest(self, *, workflow_name):
        ...         checkpoints = await self.list_checkpoints(workflow_name=workflow_name)
        ...         return checkpoints[-1] if checkpoints else None
    """

    async def save(self, checkpoint: WorkflowCheckpoint) -> CheckpointID:
        """Store a checkpoint, replacing one with its id; return the id. Raises `WorkflowCheckpointException`."""

    async def load(self, checkpoint_id: CheckpointID) -> WorkflowCheckpoint:
        """Return a checkpoint. WorkflowCheckpointException: the id is unknown, or it cannot be read."""

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        """Return the checkpoints of exactly this name, oldest first."""

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[CheckpointID]:
        """Return the ids of the checkpoints of exactly this name, oldest first."""

    async def delete(self, checkpoint_id: CheckpointID) -> bool:
        """Remove a checkpoint, and return whether there was one."""

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        """Return the newest checkpoint of exactly this name, if there is one."""


@runtime_checkable
class SupportsCheckpointInfos(Protocol):
    """A storage that lists checkpoints without reading their content; all storages of the library do.

    Example:
        >>> if isinstance(storage, SupportsCheckpointInfos):
        ...     newest = await storage.list_infos(workflow_name="report", limit=10)
        >>> newest = await list_infos(storage, workflow_name="report", limit=10)  # with any storage
    """

    async def list_infos(
        self,
        *,
        workflow_name: str | None = None,
        run_id: str | None = None,
        before: CheckpointID | None = None,
        limit: int | None = None,
    ) -> list[CheckpointInfo]:
        """See the function `agentbench.checkpoints.list_infos`."""


@runtime_checkable
class SupportsChainNames(Protocol):
    """A storage that knows the names of its chains; all storages of the library do.

    Example:
        >>> threads = await storage.list_workflow_names("support/")  # ["support/1", "support/2"]
    """

    async def list_workflow_names(self, prefix: str = "") -> list[str]:
        """See the function `agentbench.checkpoints.list_workflow_names`."""


@runtime_checkable
class SupportsHeadCheck(Protocol):
    """A storage that checks the end of a chain and saves to it in one step; all storages of the library do.

    Example:
        >>> head = (await storage.list_infos(workflow_name="report", limit=1))[-1]
        >>> checkpoint.metadata["seq"] = head.seq + 1
        >>> await storage.save_if_head(checkpoint, expected_seq=head.seq)
    """

    async def save_if_head(self, checkpoint: WorkflowCheckpoint, expected_seq: int) -> CheckpointID:
        """Save a checkpoint if its chain's newest has this number (0: empty chain), otherwise `WorkflowBusyError`."""


@runtime_checkable
class SupportsPrune(Protocol):
    """A storage that removes many checkpoints at once, with their unshared data; all storages of the library do.

    Example:
        >>> await storage.prune(workflow_name="report", keep=10)
        >>> await prune_chain(storage, workflow_name="report", keep=10)  # with any storage
    """

    async def prune(self, *, workflow_name: str, keep: int) -> int:
        """See the function `agentbench.checkpoints.prune_chain`."""

    async def delete_chain(self, workflow_name: str) -> int:
        """See the function `agentbench.checkpoints.delete_chain`."""


@runtime_checkable
class SupportsSaveAll(Protocol):
    """A storage that saves a whole new chain at once; all storages of the library do.

    Example:
        >>> if isinstance(storage, SupportsSaveAll):
        ...     await storage.save_all(copies)
    """

    async def save_all(self, checkpoints: Sequence[WorkflowCheckpoint]) -> None:
        """Save the checkpoints of one new chain, under new ids; all become visible at once, or none after a failure.

        `WorkflowBusyError`: The chain has checkpoints already.
        """


class ChainStorage(Displayable):
    """The common base of the library's storages: all capabilities over a few methods of each."""

    def __init__(self, keep_last: int | None = None) -> None:
        if keep_last is not None:
            require_limit("keep_last", keep_last, least=1, none="all")
        self._ab_keep_last = keep_last

    async def list_infos(
        self,
        *,
        workflow_name: str | None = None,
        run_id: str | None = None,
        before: CheckpointID | None = None,
        limit: int | None = None,
    ) -> list[CheckpointInfo]:
        """List checkpoints without their contents; for arguments and errors, see the function `list_infos`."""
        choice: dict[str, Any] = {"run_id": run_id, "before": before, "limit": limit}
        limits = {name: value for name, value in choice.items() if value is not None}
        if workflow_name is not None:
            return await self._ab_infos(workflow_name, **limits)
        names = [name for name in await self.list_workflow_names() if not is_recorded_chain(name)]
        return select_infos([info for name in names for info in await self._ab_infos(name)], **limits)

    async def prune(self, *, workflow_name: str, keep: int) -> int:
        """Remove all but the `keep` newest checkpoints of a chain, with their unshared data; return how many."""
        require_limit("keep", keep, least=1)
        return await self._ab_remove(workflow_name, keep)

    async def delete_chain(self, workflow_name: str) -> int:
        """Remove all checkpoints of a chain and return their number."""
        return await self._ab_remove(workflow_name, 0)

    async def list_workflow_names(self, prefix: str = "") -> list[str]:
        """Return the names of the chains, sorted; only those that begin with `prefix`."""
        raise NotImplementedError

    async def _ab_infos(self, workflow_name: str, **limits: Any) -> list[CheckpointInfo]:
        """List one chain; `limits` are arguments of `list_infos` that are not `None`."""
        raise NotImplementedError

    async def _ab_remove(self, workflow_name: str, keep: int) -> int:
        """Remove all but the newest checkpoints of a chain, and return the number removed."""
        raise NotImplementedError


def require_head(workflow_name: str, head_seq: int, expected_seq: int) -> None:
    """Raise an error if another writer has saved to a chain."""
    if head_seq != expected_seq:
        message = (
            f"The chain {workflow_name!r} is at sequence number {head_seq}, expected {expected_seq}: another writer "
            "has saved to it, or removed from it, in the meantime. Load its latest checkpoint and continue from there."
        )
        raise WorkflowBusyError(message)

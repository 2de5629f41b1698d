"""A checkpoint storage in the files of a folder."""

from __future__ import annotations

import os
from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agentbench.checkpoints.checkpoint import CheckpointID, WorkflowCheckpoint
from agentbench.checkpoints.file_storage.backend import FileBackend
from agentbench.checkpoints.file_storage.folder import UnreadableCheckpointError
from agentbench.checkpoints.file_storage.loose_files import WholeRecord
from agentbench.checkpoints.parts.backend import CheckpointRecord
from agentbench.checkpoints.parts.chain_memory import ChainMemory
from agentbench.checkpoints.parts.content_storage import ContentAddressedStorage

if TYPE_CHECKING:
    from agentbench.checkpoints.file_storage.pickled_format import PickledFormat


class FileCheckpointStorage(ContentAddressedStorage):
    """A storage that needs only a folder, and that any number of processes of one machine can share.

    A chain is one file of JSON lines. A save appends the new data only: parts that checkpoints of a chain share are
    stored once. Files are accessible to their owner only (mode 0600) and are never written or read through links. A
    killed process loses nothing that was saved. With `codec="pickle"` each checkpoint is a file `<id>.json` in the
    format of agent-framework; such files, and those of earlier versions, are part of their chain.

    Ids must be valid file names: not empty, without separators, not reserved on any system. An unreadable checkpoint is
    left out of lists with a logged warning, and never hides the others.

    Args:
        storage_path: The folder; created with its parents (mode 0700) if it does not exist.
        allowed_checkpoint_types: With `codec="pickle"`: additional types that may be unpickled, as `"module:qualname"`;
            `{"*"}` allows all. Not needed otherwise.
        codec: `"json"` stores checkpoints as tagged JSON, without pickle. `"pickle"` writes whole checkpoints in the
            pickled format of agent-framework, and reads both. Unpickling runs code from the files: use it only for
            folders to which no one else can write.
        fsync: Whether saved data must survive a power failure, and not only a killed process. Slower by some
            milliseconds per checkpoint.
        keep_last: How many checkpoints of each chain to keep; `None` keeps all.

    Attributes:
        storage_path: The absolute path of the folder.

    Raises:
        WorkflowCheckpointException: The folder does not exist and cannot be created.
        ValueError: The path is empty, `codec` is unknown, or `keep_last` is less than 1.

    Example:
        >>> storage = FileCheckpointStorage("checkpoints", keep_last=100)
        >>> workflow = WorkflowBuilder(start_executor=first, name="report", checkpoint_storage=storage).build()
        >>> await workflow.run("tea")
        >>> # In another process, with the same workflow:
        >>> latest = await storage.get_latest(workflow_name="report")
        >>> result = await workflow.run(checkpoint_id=latest.checkpoint_id)
    """

    def __init__(
        self,
        storage_path: str | os.PathLike[str],
        *,
        allowed_checkpoint_types: Collection[str] | None = None,
        codec: Literal["json", "pickle"] = "json",
        fsync: bool = False,
        keep_last: int | None = None,
    ) -> None:
        if codec not in ("json", "pickle"):
            message = f'codec is {codec!r}; expected "json" or "pickle".'
            raise ValueError(message)
        if not os.fspath(storage_path):
            message = "storage_path is empty; expected a folder. Use '.' for the current one."
            raise ValueError(message)
        self.storage_path = Path(os.path.abspath(storage_path))
        self._ab_pickled: PickledFormat | None = None
        if codec == "pickle":  # only then import a module that can unpickle
            module = import_module("agentbench.checkpoints.file_storage.pickled_format")
            self._ab_pickled = module.PickledFormat(allowed_checkpoint_types or ())
        self._ab_files = FileBackend(str(self.storage_path), fsync=fsync, pickled=self._ab_pickled)
        super().__init__(self._ab_files, keep_last=keep_last)

    def __repr__(self) -> str:
        codec = "" if self._ab_pickled is None else ', codec="pickle"'
        return f"{type(self).__name__}({str(self.storage_path)!r}{codec})"

    async def _ab_save(self, checkpoint: WorkflowCheckpoint, expected_seq: int | None) -> CheckpointID:
        if self._ab_pickled is None:
            return await super()._ab_save(checkpoint, expected_seq)
        whole = self._ab_pickled.write(checkpoint)
        failure = f"Checkpoint {checkpoint.checkpoint_id!r} was not saved to"
        await self._ab_run(failure, self._ab_put, ChainMemory(0), whole, {}, expected_seq)
        return checkpoint.checkpoint_id

    def _ab_delete(self, checkpoint_id: CheckpointID) -> bool:
        try:
            return super()._ab_delete(checkpoint_id)
        except UnreadableCheckpointError as error:
            if error.holds is not None:  # another one, with the same name for the file system
                raise
            return self._ab_files.discard(checkpoint_id)

    def _ab_whole(self, record: CheckpointRecord) -> WorkflowCheckpoint:
        if self._ab_pickled is not None and isinstance(record, WholeRecord):
            return self._ab_pickled.read(record)
        return super()._ab_whole(record)

    def _ab_lazy_checkpoint(
        self, heads: dict[CheckpointID, CheckpointRecord], record: CheckpointRecord
    ) -> WorkflowCheckpoint:
        return self._ab_whole(record) if isinstance(record, WholeRecord) else super()._ab_lazy_checkpoint(heads, record)

"""A checkpoint storage as an argument of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentbench.checkpoints.storage import CheckpointStorage


class CheckpointManager:
    """A checkpoint storage as an argument of runs; wherever a manager is accepted, so is a bare storage.

    Args:
        storage: The storage for the checkpoints.

    Attributes:
        storage: The same storage.

    Raises:
        TypeError: `storage` is not a checkpoint storage.

    Example:
        >>> manager = CheckpointManager.create_in_memory()
        >>> run = workflow.start("tea", checkpoint_storage=manager)
        >>> await run.result()
        >>> infos = await list_infos(manager, workflow_name=workflow.name)
    """

    def __init__(self, storage: CheckpointStorage) -> None:
        self.storage = require_storage(storage)

    @classmethod
    def create_in_memory(cls) -> CheckpointManager:
        """Return a manager whose checkpoints live as long as the process."""
        from agentbench.checkpoints.memory import InMemoryCheckpointStorage  # noqa: PLC0415 - most runs save nothing

        return cls(InMemoryCheckpointStorage())

    def __repr__(self) -> str:
        return f"CheckpointManager({self.storage!r})"


def bare_storage(
    value: CheckpointManager | CheckpointStorage | None, name: str = "checkpoint_storage"
) -> CheckpointStorage | None:
    """Return the storage inside a manager, or the storage itself; None for None."""
    storage = value.storage if isinstance(value, CheckpointManager) else value
    if storage is not None:
        _check(storage, name)
    return storage


def require_storage(value: CheckpointManager | CheckpointStorage, name: str = "storage") -> CheckpointStorage:
    """Return the storage like `bare_storage`; `TypeError` without one."""
    storage = bare_storage(value, name)
    if storage is None:
        msg = f"{name} is None; {_EXPECTED}."
        raise TypeError(msg)
    return storage


_METHODS = ("save", "load", "list_checkpoints", "list_checkpoint_ids", "delete", "get_latest")
_EXPECTED = (
    "expected a CheckpointStorage, such as InMemoryCheckpointStorage() or FileCheckpointStorage(folder), or a "
    "CheckpointManager"
)


def _check(storage: Any, name: str) -> None:
    # By its type only, because a text may be a URL with a password.
    what = f"{name} is of type {type(storage).__name__}"
    if isinstance(storage, type):
        msg = f"{name} is the class {storage.__name__} itself, not a storage made of it; {_EXPECTED}."
        raise TypeError(msg)
    missing = [method for method in _METHODS if not callable(getattr(storage, method, None))]
    if missing:
        lacks = f", which has no {', '.join(missing)}" if len(missing) < len(_METHODS) else ""
        msg = f"{what}{lacks}; {_EXPECTED}."
        raise TypeError(msg)

"""A checkpoint storage in the hand of whoever starts runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentbench.checkpoints.storage import CheckpointStorage


class CheckpointManager:
    """A checkpoint storage in the hand of whoever starts runs.

    A bare storage is accepted wherever a manager is.

    Attributes:
        storage: the storage behind it.
    """

    def __init__(self, storage: CheckpointStorage) -> None:
        self.storage = storage

    @classmethod
    def create_in_memory(cls) -> CheckpointManager:
        """A manager whose checkpoints live as long as the process."""
        from agentbench.checkpoints.memory import InMemoryCheckpointStorage  # noqa: PLC0415 - most runs save nothing

        return cls(InMemoryCheckpointStorage())

    def __repr__(self) -> str:
        return f"CheckpointManager({self.storage!r})"


def bare_storage(given: CheckpointManager | CheckpointStorage | None) -> CheckpointStorage | None:
    """The storage inside a manager, or the storage itself; None for none.

    Raises:
        TypeError: it is neither.
    """
    storage = given.storage if isinstance(given, CheckpointManager) else given
    if storage is None:
        return None
    missing = [name for name in _METHODS if not hasattr(storage, name)]
    if not missing:
        return storage
    lacks = f", which has no {', '.join(missing)}" if len(missing) < len(_METHODS) else ""
    # By its type only: a text may be a URL with a password.
    msg = (
        f"checkpoint_storage is of type {type(given).__name__}{lacks}; expected a CheckpointStorage, such as "
        "InMemoryCheckpointStorage() or FileCheckpointStorage(folder), or a CheckpointManager."
    )
    raise TypeError(msg)


_METHODS = ("save", "load", "list_checkpoints", "list_checkpoint_ids", "delete", "get_latest")

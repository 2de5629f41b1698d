"""Calls of a storage that anybody may have written: what it does wrong becomes an error that says so.

A storage that keeps the very objects it is given, and gives them away again, is a storage all the same: it gets copies.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, TypeVar

from agentbench._copying import isolate_or_same
from agentbench.checkpoints.checkpoint import CheckpointID, WorkflowCheckpoint
from agentbench.exceptions import CheckpointNotFoundError, WorkflowCheckpointException

if TYPE_CHECKING:
    from agentbench.checkpoints.info import CheckpointInfo
    from agentbench.checkpoints.storage import CheckpointStorage

ResultT = TypeVar("ResultT")


def keeps_copies(storage: object) -> bool:
    """Tell whether a storage promises, by `keeps_copies = True` in its class, to copy what it saves and loads.

    A subclass that saves or loads in its own way does not inherit the promise; it may give it again.

    Args:
        storage: Any.
    """
    for cls in type(storage).__mro__:
        own = vars(cls)
        if "keeps_copies" in own:
            return own["keeps_copies"] is True
        if "save" in own or "load" in own:
            return False
    return False


def lent(storage: object, checkpoint: WorkflowCheckpoint) -> WorkflowCheckpoint:
    """Return a checkpoint as it may be given to a storage: itself, or a copy for one that may keep what it gets.

    Args:
        storage: Any.
        checkpoint: What is to be saved.
    """
    return checkpoint if keeps_copies(storage) else isolate_or_same(checkpoint)


def id_of(checkpoint: object) -> CheckpointID:
    """Return the id of a checkpoint, which may be given by its info, or be there itself.

    Raises:
        TypeError: It is neither an id nor something that has one.
    """
    found = getattr(checkpoint, "checkpoint_id", checkpoint)
    if not isinstance(found, str):
        msg = f"The checkpoint is given as a {type(checkpoint).__name__}; expected its id, or a CheckpointInfo."
        raise TypeError(msg)
    return found


async def load_checkpoint(
    storage: CheckpointStorage, checkpoint_id: CheckpointID | CheckpointInfo
) -> WorkflowCheckpoint:
    """Load a checkpoint as the caller's own.

    Args:
        storage: Any; `None` for an unknown id is understood.
        checkpoint_id: Its id, or its info.

    Raises:
        CheckpointNotFoundError: The id is unknown.
        WorkflowCheckpointException: It cannot be loaded.
        TypeError: It is no id.
    """
    checkpoint_id = id_of(checkpoint_id)
    try:
        found: Any = await awaitable(storage.load(checkpoint_id), storage, "load")
    except WorkflowCheckpointException:
        raise
    except Exception as error:
        raise checkpoint_error(error, f"Checkpoint {checkpoint_id!r} cannot be loaded") from error
    if found is None:
        raise CheckpointNotFoundError(checkpoint_id)
    if not isinstance(found, WorkflowCheckpoint):
        msg = (
            f"{type(storage).__name__}.load({checkpoint_id!r}) returned a {type(found).__name__}; expected a "
            "WorkflowCheckpoint, as WorkflowCheckpoint.from_json() or from_dict() makes it."
        )
        raise WorkflowCheckpointException(msg)
    return found if keeps_copies(storage) else isolate_or_same(found)


def awaitable(result: Awaitable[ResultT], storage: object, method: str) -> Awaitable[ResultT]:
    """Return what a method of a storage returned, if it can be awaited.

    Args:
        result: What it returned.
        storage: For the error.
        method: Likewise.

    Raises:
        WorkflowCheckpointException: It cannot be awaited.
    """
    found: object = result
    if isinstance(found, Awaitable):
        return result
    msg = (
        f"{type(storage).__name__}.{method}() is no coroutine: it returned a {type(found).__name__}, which cannot be "
        f"awaited. Write `async def {method}`; all six methods of a CheckpointStorage are async."
    )
    raise WorkflowCheckpointException(msg)


def checkpoint_error(error: Exception, what: str) -> WorkflowCheckpointException:
    """Return an error as what callers of storages expect; one that is it already stays as it is.

    Args:
        error: What was raised.
        what: What could not be done, as a sentence without its full stop.
    """
    if isinstance(error, WorkflowCheckpointException):
        return error
    reason = f"{type(error).__name__}: {error}".removesuffix(": ").removesuffix(".")
    return WorkflowCheckpointException(f"{what}: {reason}.", error)

"""Where checkpoints are kept: the protocol, its optional capabilities, and functions that do without them.

Six methods make a storage; no base class is needed. What a storage can do beyond them it tells by the methods of a
capability. Callers use the functions of this module, which take the capability where it is there and make do with the
six methods where it is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Literal, Protocol, runtime_checkable

from agentbench.checkpoints.checkpoint import CheckpointID, WorkflowCheckpoint
from agentbench.checkpoints.guarded import awaitable, checkpoint_error, load_checkpoint
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.metadata import seq_of
from agentbench.exceptions import CheckpointNotFoundError, WorkflowBusyError, WorkflowCheckpointException

# ------------------------------------------------------------------------------------------------------------ protocols


@runtime_checkable
class CheckpointStorage(Protocol):
    """What every storage does. A class with these six methods is one; `agentbench.testing.storage_suite` checks it.

    What is saved and what is loaded must be copies: a run changes its state while it goes on. A class that sees to it
    says so by `keeps_copies = True`; of others the engine copies what it gives and gets.
    """

    async def save(self, checkpoint: WorkflowCheckpoint) -> CheckpointID:
        """Keep a checkpoint and return its id; one of the same id is replaced.

        Raises:
            WorkflowCheckpointException: It cannot be kept; nothing was changed.
        """
        ...

    async def load(self, checkpoint_id: CheckpointID) -> WorkflowCheckpoint:
        """Return a checkpoint.

        Raises:
            WorkflowCheckpointException: The id is unknown, or what was kept cannot be read.
        """
        ...

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        """Return the checkpoints of exactly this name, oldest first."""
        ...

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[CheckpointID]:
        """Return the ids of the checkpoints of exactly this name, oldest first."""
        ...

    async def delete(self, checkpoint_id: CheckpointID) -> bool:
        """Forget a checkpoint, and tell whether there was one."""
        ...

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        """Return the newest checkpoint of exactly this name, if there is one."""
        ...


@runtime_checkable
class SupportsCheckpointInfos(Protocol):
    """A storage that lists checkpoints without reading what they hold."""

    async def list_infos(
        self,
        *,
        workflow_name: str | None = None,
        run_id: str | None = None,
        before: CheckpointID | None = None,
        limit: int | None = None,
    ) -> list[CheckpointInfo]:
        """Like the function `list_infos` of this module."""
        ...


@runtime_checkable
class SupportsChainNames(Protocol):
    """A storage that knows which chains it holds."""

    async def list_workflow_names(self, prefix: str = "") -> list[str]:
        """Like the function `list_workflow_names` of this module."""
        ...


@runtime_checkable
class SupportsHeadCheck(Protocol):
    """A storage that saves only if nobody else has moved the chain on, in one step."""

    async def save_if_head(self, checkpoint: WorkflowCheckpoint, expected_seq: int) -> CheckpointID:
        """Like the function `save_if_head` of this module."""
        ...


@runtime_checkable
class SupportsPrune(Protocol):
    """A storage that removes many checkpoints at once, together with whatever only they refer to."""

    async def prune(self, *, workflow_name: str, keep: int) -> int:
        """Like the function `prune` of this module."""
        ...

    async def delete_chain(self, workflow_name: str) -> int:
        """Like the function `delete_chain` of this module."""
        ...


# ---------------------------------------------------------------------------------------------------------------- order


def checkpoint_order(item: WorkflowCheckpoint | CheckpointInfo) -> tuple[int, str]:
    """Return the sort key that puts the checkpoints of a chain into their order, oldest first.

    By sequence number, those without one first, then by time; a stable sort leaves what is still equal in the order in
    which it was saved. The number goes first because clocks may go back.

    Args:
        item: A checkpoint or its info.
    """
    seq = item.seq if isinstance(item, CheckpointInfo) else seq_of(item.metadata)
    return seq, _comparable_time(item.timestamp)


def next_seq(head: CheckpointInfo | None) -> int:
    """Return the sequence number that continues a chain.

    Args:
        head: The newest checkpoint of the chain; `None` for an empty one.
    """
    return 1 if head is None else head.seq + 1


def _comparable_time(timestamp: str) -> str:
    if len(timestamp) == 32 and timestamp.endswith("+00:00"):
        return timestamp
    try:  # written by another program; Python 3.10 does not read the letter Z
        moment = datetime.fromisoformat(f"{timestamp[:-1]}+00:00" if timestamp.endswith("Z") else timestamp)
    except ValueError:
        return timestamp
    moment = moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment.astimezone(timezone.utc)
    return moment.isoformat(timespec="microseconds")


# ------------------------------------------------------------------------------------------------- with any storage


async def list_infos(
    storage: CheckpointStorage,
    *,
    workflow_name: str | None = None,
    run_id: str | None = None,
    before: CheckpointID | None = None,
    limit: int | None = None,
) -> list[CheckpointInfo]:
    """List checkpoints without their content.

    Args:
        storage: Any.
        workflow_name: The chain; `None` for all chains.
        run_id: Only what this run wrote.
        before: Only what comes before the checkpoint with this id; with `limit`, pages through a chain backwards.
        limit: At most so many, the newest ones.

    Returns:
        Oldest first; of several chains one after another, sorted by name.

    Raises:
        CheckpointNotFoundError: There is no checkpoint `before` among them.
        WorkflowCheckpointException: All chains were asked for, but the storage does not know which ones it holds.
        ValueError: `limit` is negative.
    """
    if isinstance(storage, SupportsCheckpointInfos):
        return await storage.list_infos(workflow_name=workflow_name, run_id=run_id, before=before, limit=limit)
    names = await list_workflow_names(storage) if workflow_name is None else [workflow_name]
    infos: list[CheckpointInfo] = []
    for name in names:
        checkpoints = await storage.list_checkpoints(workflow_name=name)
        infos.extend(map(CheckpointInfo.of, sorted(checkpoints, key=checkpoint_order)))
    return select_infos(infos, run_id=run_id, before=before, limit=limit)


def select_infos(
    infos: Sequence[CheckpointInfo],
    *,
    run_id: str | None = None,
    before: CheckpointID | None = None,
    limit: int | None = None,
) -> list[CheckpointInfo]:
    """Choose from ordered infos what `list_infos` returns; for storages that have all of them at hand.

    Args:
        infos: Oldest first.
        run_id: As in `list_infos`.
        before: As in `list_infos`.
        limit: As in `list_infos`.

    Raises:
        CheckpointNotFoundError: There is no checkpoint `before` among them.
        ValueError: `limit` is negative.
    """
    require_limit(limit)
    if before is not None:
        ids = [info.checkpoint_id for info in infos]
        if before not in ids:
            raise CheckpointNotFoundError(before)
        infos = infos[: ids.index(before)]
    if run_id is not None:
        infos = [info for info in infos if info.run_id == run_id]
    return list(infos if limit is None else infos[max(0, len(infos) - limit) :])


def require_limit(limit: int | None) -> None:
    """Refuse to list fewer than no checkpoints.

    Raises:
        ValueError: `limit` is negative.
    """
    if limit is not None and limit < 0:
        message = f"limit is {limit}; expected 0 or more, or None for all."
        raise ValueError(message)


async def head_of(storage: CheckpointStorage, workflow_name: str) -> CheckpointInfo | None:
    """Return the newest checkpoint of a chain without its content, or `None` for an empty chain.

    Args:
        storage: Any.
        workflow_name: The chain.

    Raises:
        WorkflowCheckpointException: It cannot be read.
    """
    if isinstance(storage, SupportsCheckpointInfos):
        newest = await storage.list_infos(workflow_name=workflow_name, limit=1)
        return newest[-1] if newest else None
    try:
        latest = await awaitable(storage.get_latest(workflow_name=workflow_name), storage, "get_latest")
    except WorkflowCheckpointException:
        raise
    except Exception as error:
        raise checkpoint_error(error, f"The latest checkpoint of chain {workflow_name!r} cannot be read") from error
    return None if latest is None else CheckpointInfo.of(latest)


async def lineage(storage: CheckpointStorage, checkpoint_id: CheckpointID) -> list[CheckpointInfo]:
    """Follow the links from a checkpoint back to where it all began, across runs and forks.

    Args:
        storage: Any.
        checkpoint_id: Where to start.

    Returns:
        Oldest first, the checkpoint itself last. It begins later where older ones were deleted.

    Raises:
        WorkflowCheckpointException: The id is unknown.
    """
    path = [CheckpointInfo.of(await load_checkpoint(storage, checkpoint_id))]
    known: dict[CheckpointID, CheckpointInfo] = {}
    listed: set[str] = set()
    passed = {checkpoint_id}
    while (wanted := path[-1].previous_checkpoint_id) is not None and wanted not in passed:
        chain = path[-1].workflow_name
        if chain not in listed:
            known.update({info.checkpoint_id: info for info in await list_infos(storage, workflow_name=chain)})
            listed.add(chain)
        parent = known.get(wanted) or await _find_info(storage, wanted)
        if parent is None:
            break
        passed.add(wanted)
        path.append(parent)
    return path[::-1]


async def _find_info(storage: CheckpointStorage, checkpoint_id: CheckpointID) -> CheckpointInfo | None:
    try:
        return CheckpointInfo.of(await load_checkpoint(storage, checkpoint_id))
    except WorkflowCheckpointException:
        return None


async def list_workflow_names(storage: CheckpointStorage, prefix: str = "") -> list[str]:
    """List the chains that a storage holds, sorted.

    Args:
        storage: One with `SupportsChainNames`.
        prefix: Only names that begin so.

    Raises:
        WorkflowCheckpointException: The storage does not know which chains it holds.
    """
    if isinstance(storage, SupportsChainNames):
        return await storage.list_workflow_names(prefix)
    message = (
        f"{type(storage).__name__} cannot tell which chains it holds: it has no list_workflow_names(prefix). Name the "
        "chain (workflow_name=...), or give the storage that method."
    )
    raise WorkflowCheckpointException(message)


async def save_if_head(storage: CheckpointStorage, checkpoint: WorkflowCheckpoint, expected_seq: int) -> CheckpointID:
    """Save a checkpoint only if the chain still ends where the caller believes that it does.

    With a storage that lacks `SupportsHeadCheck` somebody else may still save between the check and the saving.

    Args:
        storage: Any.
        checkpoint: What to save; its `workflow_name` is the chain.
        expected_seq: Sequence number of the newest checkpoint of the chain; 0 for an empty chain.

    Raises:
        WorkflowBusyError: The chain ends elsewhere; nothing was saved.
        WorkflowCheckpointException: It cannot be saved.
    """
    if isinstance(storage, SupportsHeadCheck):
        return await storage.save_if_head(checkpoint, expected_seq)
    head = await head_of(storage, checkpoint.workflow_name)
    require_head(checkpoint.workflow_name, 0 if head is None else head.seq, expected_seq)
    return await storage.save(checkpoint)


def require_head(workflow_name: str, head_seq: int, expected_seq: int) -> None:
    """Refuse to go on from a chain that somebody else has moved on.

    Args:
        workflow_name: The chain.
        head_seq: Sequence number of its newest checkpoint; 0 for an empty chain.
        expected_seq: What the caller believes it to be.

    Raises:
        WorkflowBusyError: The two differ.
    """
    if head_seq != expected_seq:
        message = (
            f"The chain {workflow_name!r} is at sequence number {head_seq}, expected {expected_seq}: somebody else has "
            "saved to it, or removed from it, meanwhile. Load its latest checkpoint and go on from there."
        )
        raise WorkflowBusyError(message)


async def prune(storage: CheckpointStorage, *, workflow_name: str, keep: int) -> int:
    """Remove all but the newest checkpoints of a chain.

    Args:
        storage: Any.
        workflow_name: The chain.
        keep: How many to keep, at least 1.

    Returns:
        How many were removed.

    Raises:
        ValueError: `keep` is less than 1; `delete_chain` removes all.
    """
    if isinstance(storage, SupportsPrune):
        return await storage.prune(workflow_name=workflow_name, keep=keep)
    require_keep(keep)
    infos = await list_infos(storage, workflow_name=workflow_name)
    return await _delete_all(storage, [info.checkpoint_id for info in infos[:-keep]])


def require_keep(keep: int, name: Literal["keep", "keep_last"] = "keep") -> None:
    """Refuse to prune a chain down to nothing.

    Args:
        keep: How many are to be kept.
        name: Of the argument, for the error.

    Raises:
        TypeError: It is no whole number.
        ValueError: It is less than 1.
    """
    given: object = keep
    if not isinstance(given, int) or isinstance(given, bool):
        message = f"{name} is {given!r}, a {type(given).__name__}; expected a whole number, 1 or more."
        raise TypeError(message)
    if keep < 1:
        instead = {"keep": "To remove the whole chain use delete_chain(workflow_name)", "keep_last": "None keeps all"}
        message = f"{name} is {keep}; expected 1 or more. {instead[name]}."
        raise ValueError(message)


async def delete_chain(storage: CheckpointStorage, workflow_name: str) -> int:
    """Remove all checkpoints of a chain.

    Args:
        storage: Any.
        workflow_name: The chain.

    Returns:
        How many were removed.
    """
    if isinstance(storage, SupportsPrune):
        return await storage.delete_chain(workflow_name)
    return await _delete_all(storage, await storage.list_checkpoint_ids(workflow_name=workflow_name))


async def _delete_all(storage: CheckpointStorage, ids: Sequence[CheckpointID]) -> int:
    return sum([await storage.delete(checkpoint_id) for checkpoint_id in ids])

"""Calls to any storage, including custom ones: functions that use its optional capabilities if it has them.

Mistakes of a custom storage become errors that describe them. A storage that does not promise to copy gets copies.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Sequence
from typing import TypeGuard, TypeVar

from agentbench._copying import isolate_or_same
from agentbench._limits import require_limit
from agentbench.checkpoints import metadata as keys
from agentbench.checkpoints.checkpoint import CheckpointID, WorkflowCheckpoint, id_of
from agentbench.checkpoints.info import CheckpointInfo, checkpoint_order, select_infos
from agentbench.checkpoints.manager import CheckpointManager, require_storage
from agentbench.checkpoints.metadata import is_recorded_chain, recorded_chain
from agentbench.checkpoints.storage import (
    CheckpointStorage,
    SupportsChainNames,
    SupportsCheckpointInfos,
    SupportsHeadCheck,
    SupportsPrune,
    SupportsSaveAll,
    require_head,
)
from agentbench.exceptions import (
    CheckpointNotFoundError,
    TransientStorageError,
    WorkflowBusyError,
    WorkflowCheckpointException,
)

ResultT = TypeVar("ResultT")


def makes_copies(storage: object) -> bool:
    """Return whether the class that saves and loads declares, by `keeps_copies = True`, that it copies checkpoints."""
    for cls in type(storage).__mro__:
        attributes = vars(cls)
        if "keeps_copies" in attributes:
            return attributes["keeps_copies"] is True
        if "save" in attributes or "load" in attributes:
            return False
    return False


def checks_head(storage: object) -> TypeGuard[SupportsHeadCheck]:
    """Return whether a storage checks the head and saves in one step; a class that overrides `save` loses that."""
    return _is_valid(storage, "save_if_head")


def _is_valid(storage: object, capability: str) -> bool:
    for cls in type(storage).__mro__:
        attributes = vars(cls)
        if capability in attributes or "save" in attributes:
            return capability in attributes
    return False


async def load_checkpoint(
    storage: CheckpointStorage, checkpoint_id: CheckpointID | CheckpointInfo
) -> WorkflowCheckpoint:
    """Load a checkpoint as the caller's own copy; a storage may return `None` for an unknown id."""
    checkpoint_id = id_of(checkpoint_id)
    try:
        loaded: object = await _awaitable(storage.load(checkpoint_id), storage, "load")
    except WorkflowCheckpointException:
        raise
    except Exception as error:
        raise checkpoint_error(error, f"Checkpoint {checkpoint_id!r} cannot be loaded") from error
    if loaded is None:
        raise CheckpointNotFoundError(checkpoint_id)
    if not isinstance(loaded, WorkflowCheckpoint):
        msg = (
            f"{type(storage).__name__}.load({checkpoint_id!r}) returned a {type(loaded).__name__}; expected a "
            "WorkflowCheckpoint, as WorkflowCheckpoint.from_json() or from_dict() makes it."
        )
        raise WorkflowCheckpointException(msg)
    return loaded if makes_copies(storage) else isolate_or_same(loaded)


async def save_checkpoint(
    storage: CheckpointStorage, checkpoint: WorkflowCheckpoint, expected_seq: int | None = None
) -> CheckpointID:
    """Save a checkpoint that the caller may change afterwards, and return its id.

    With `expected_seq`, save only if that is the chain's newest number, in one step if the storage supports that.
    """
    copied = checkpoint if makes_copies(storage) else isolate_or_same(checkpoint)
    if expected_seq is not None:
        if checks_head(storage):
            return await storage.save_if_head(copied, expected_seq)
        head = await head_of(storage, checkpoint.workflow_name)
        require_head(checkpoint.workflow_name, 0 if head is None else head.seq, expected_seq)
    return await _awaitable(storage.save(copied), storage, "save")


async def save_at_head(storage: CheckpointStorage, checkpoint: WorkflowCheckpoint, head_seq: int) -> CheckpointID:
    """Save a checkpoint as the newest of its chain, and return its id.

    Runs of a workflow share a chain. A checkpoint saved after number `head_seq` is a conflict only if it has a common
    ancestor with this one; otherwise this one takes the next number.

    Raises:
        WorkflowBusyError: There is a conflict. Nothing was saved.
    """
    while True:
        checkpoint.metadata[keys.SEQ] = head_seq + 1
        try:
            return await save_checkpoint(storage, checkpoint, head_seq)
        except WorkflowBusyError:
            infos = await list_infos(storage, workflow_name=checkpoint.workflow_name)
            seq = infos[-1].seq if infos else 0
            if seq == head_seq or _is_continued(checkpoint, [info for info in infos if info.seq > head_seq], infos):
                raise
            head_seq = seq


async def save_new_chain(storage: CheckpointStorage, checkpoints: Sequence[WorkflowCheckpoint]) -> None:
    """Save the checkpoints of a new chain, all or nothing; they may change afterwards.

    A storage that cannot do it at once gets them one by one, and those that arrived are removed after an error.

    Raises:
        WorkflowBusyError: The chain has checkpoints already. Nothing was saved.
    """
    if isinstance(storage, SupportsSaveAll) and _is_valid(storage, "save_all"):
        await storage.save_all(checkpoints)
    else:
        await save_one_by_one(storage, checkpoints, 0)


async def save_one_by_one(
    storage: CheckpointStorage, checkpoints: Sequence[WorkflowCheckpoint], head_seq: int | None
) -> None:
    """Save checkpoints of a chain one after another; after an error, remove those that were saved.

    The chain's newest number has to be `head_seq`; with `None`, each is saved as by `save_at_head`.
    """
    saved: list[CheckpointID] = []
    try:
        for checkpoint in checkpoints:
            saved.append(checkpoint.checkpoint_id)  # added first, because a failed save may still have arrived
            if head_seq is None:
                await save_at_head(storage, checkpoint, checkpoint.metadata[keys.SEQ] - 1)
            else:
                await save_checkpoint(storage, checkpoint, head_seq)
                head_seq = checkpoint.metadata[keys.SEQ]
    except BaseException as error:
        for checkpoint_id in saved:
            with contextlib.suppress(Exception):  # the error of the save matters more
                await storage.delete(checkpoint_id)
        if isinstance(error, Exception) and not isinstance(error, (WorkflowCheckpointException, WorkflowBusyError)):
            what = f"Checkpoint {saved[-1]!r} was not saved, and none of those before it"
            raise checkpoint_error(error, what) from error
        raise


def _is_continued(
    checkpoint: WorkflowCheckpoint, later: Sequence[CheckpointInfo], infos: Sequence[CheckpointInfo]
) -> bool:
    """Return whether one of the later checkpoints has a common ancestor with a checkpoint."""
    oldest: dict[str | None, str | None] = {}
    for info in infos:  # parents come first; a removed one represents its ancestors
        parent = info.previous_checkpoint_id
        oldest[info.checkpoint_id] = oldest.get(parent, parent) or info.checkpoint_id
    parent = checkpoint.previous_checkpoint_id
    return parent is not None and any(oldest[info.checkpoint_id] == oldest.get(parent, parent) for info in later)


def _awaitable(result: Awaitable[ResultT], storage: object, method: str) -> Awaitable[ResultT]:
    """Return the awaitable that a storage method returned, or raise an error that says the method is not async."""
    answer: object = result
    if isinstance(answer, Awaitable):
        return result
    msg = (
        f"{type(storage).__name__}.{method}() is not a coroutine: it returned a {type(answer).__name__}, which cannot "
        f"be awaited. Write `async def {method}`; all six methods of a CheckpointStorage are async."
    )
    raise WorkflowCheckpointException(msg)


def checkpoint_error(error: Exception, what: str) -> WorkflowCheckpointException:
    """Return an error as a `WorkflowCheckpointException`; an instance of that class is returned unchanged."""
    if isinstance(error, WorkflowCheckpointException):
        return error
    reason = f"{type(error).__name__}: {error}".removesuffix(": ").removesuffix(".")
    is_transient = isinstance(error, (TimeoutError, ConnectionError))
    kind = TransientStorageError if is_transient else WorkflowCheckpointException
    return kind(f"{what}: {reason}.", error)


async def list_infos(
    storage: CheckpointStorage | CheckpointManager,
    *,
    workflow_name: str | None = None,
    run_id: str | None = None,
    before: CheckpointID | None = None,
    limit: int | None = None,
) -> list[CheckpointInfo]:
    """List the checkpoints of a storage, without their contents.

    Args:
        storage: Any storage. One without `SupportsCheckpointInfos` has to load whole chains.
        workflow_name: The chain; `None` for all chains.
        run_id: Only checkpoints that this run wrote.
        before: Only checkpoints before the one with this id; with `limit`, this pages backwards through a chain.
        limit: Maximum number of checkpoints; the newest ones are returned.

    Returns:
        Infos, oldest first; chains one after another, sorted by name.

    Raises:
        CheckpointNotFoundError: The checkpoint `before` is not among them.
        WorkflowCheckpointException: All chains are requested, but the storage does not know their names.
        ValueError: `limit` is negative.

    Example:
        >>> for info in await list_infos(storage, workflow_name="report", limit=10):
        ...     print(info.seq, info.source, info.checkpoint_id)
    """
    storage = require_storage(storage)
    if isinstance(storage, SupportsCheckpointInfos):
        return await storage.list_infos(workflow_name=workflow_name, run_id=run_id, before=before, limit=limit)
    names = await list_workflow_names(storage) if workflow_name is None else [workflow_name]
    infos: list[CheckpointInfo] = []
    for name in names:
        checkpoints = await storage.list_checkpoints(workflow_name=name)
        infos.extend(map(CheckpointInfo.of, sorted(checkpoints, key=checkpoint_order)))
    return select_infos(infos, run_id=run_id, before=before, limit=limit)


async def list_workflow_names(storage: CheckpointStorage | CheckpointManager, prefix: str = "") -> list[str]:
    """Return the sorted names of the chains in a storage, without those of recorded calls.

    Args:
        storage: A storage with `SupportsChainNames`.
        prefix: Only names that begin with it.

    Raises:
        WorkflowCheckpointException: The storage does not know the names of its chains.

    Example:
        >>> for name in await list_workflow_names(storage, "support/"):
        ...     print(name, len(await storage.list_checkpoint_ids(workflow_name=name)))
    """
    storage = require_storage(storage)
    if isinstance(storage, SupportsChainNames):
        return [name for name in await storage.list_workflow_names(prefix) if not is_recorded_chain(name)]
    message = (
        f"{type(storage).__name__} does not know which chains it holds: it has no list_workflow_names(prefix). Name "
        "the chain (workflow_name=...), or add that method to the storage."
    )
    raise WorkflowCheckpointException(message)


async def head_of(storage: CheckpointStorage, workflow_name: str) -> CheckpointInfo | None:
    """Return the info of the newest checkpoint of a chain, or `None` for an empty chain."""
    if isinstance(storage, SupportsCheckpointInfos):
        newest = await storage.list_infos(workflow_name=workflow_name, limit=1)
        return newest[-1] if newest else None
    try:
        latest = await _awaitable(storage.get_latest(workflow_name=workflow_name), storage, "get_latest")
    except WorkflowCheckpointException:
        raise
    except Exception as error:
        raise checkpoint_error(error, f"The latest checkpoint of chain {workflow_name!r} cannot be read") from error
    return None if latest is None else CheckpointInfo.of(latest)


def next_seq(head: CheckpointInfo | None) -> int:
    """Return the sequence number after a chain's newest checkpoint; `None` for an empty chain."""
    return 1 if head is None else head.seq + 1


async def list_lineage(
    storage: CheckpointStorage | CheckpointManager, checkpoint_id: CheckpointID | CheckpointInfo
) -> list[CheckpointInfo]:
    """Return the checkpoints that led to a checkpoint, across runs, forks and chains.

    Args:
        storage: Any storage.
        checkpoint_id: The checkpoint to start from: its id, or its info.

    Returns:
        Infos, oldest first, ending with the checkpoint itself. Removed checkpoints shorten the list at its beginning.

    Raises:
        WorkflowCheckpointException: The id is unknown.

    Example:
        >>> path = await list_lineage(storage, fork.checkpoint_id)
        >>> print(" -> ".join(f"{info.workflow_name} {info.seq}" for info in path))
    """
    storage = require_storage(storage)
    path = [CheckpointInfo.of(await load_checkpoint(storage, checkpoint_id))]
    infos: dict[CheckpointID, CheckpointInfo] = {}
    listed: set[str] = set()
    visited = {path[0].checkpoint_id}
    while (wanted := path[-1].previous_checkpoint_id) is not None and wanted not in visited:
        chain = path[-1].workflow_name
        if chain not in listed:
            infos.update({info.checkpoint_id: info for info in await list_infos(storage, workflow_name=chain)})
            listed.add(chain)
        if wanted not in infos:
            try:
                infos[wanted] = CheckpointInfo.of(await load_checkpoint(storage, wanted))
            except WorkflowCheckpointException:
                break
        visited.add(wanted)
        path.append(infos[wanted])
    return path[::-1]


async def prune_chain(storage: CheckpointStorage | CheckpointManager, *, workflow_name: str, keep: int) -> int:
    """Remove all but the newest checkpoints of a chain.

    Args:
        storage: Any storage. One without `SupportsPrune` deletes them one by one.
        workflow_name: The chain.
        keep: How many checkpoints to keep, at least 1.

    Returns:
        The number of removed checkpoints.

    Raises:
        ValueError: `keep` is less than 1; `delete_chain` removes all.
        TypeError: `keep` is not a whole number.

    Example:
        >>> removed = await prune_chain(storage, workflow_name="report", keep=20)
    """
    storage = require_storage(storage)
    if isinstance(storage, SupportsPrune):
        return await storage.prune(workflow_name=workflow_name, keep=keep)
    require_limit("keep", keep, least=1)
    infos = await list_infos(storage, workflow_name=workflow_name)
    return await _delete_all(storage, [info.checkpoint_id for info in infos[:-keep]])


async def delete_chain(storage: CheckpointStorage | CheckpointManager, workflow_name: str) -> int:
    """Remove all checkpoints of a chain and return their number; what its runs recorded is removed too.

    Args:
        storage: Any storage. One without `SupportsPrune` deletes them one by one.
        workflow_name: The chain.

    Example:
        >>> for name in await list_workflow_names(storage, "support/42"):
        ...     await delete_chain(storage, name)
    """
    storage = require_storage(storage)
    recorded: list[str] = []
    if isinstance(storage, SupportsChainNames):
        first = recorded_chain(workflow_name, "")
        names = await storage.list_workflow_names(first)
        recorded = [name for name in names if "/" not in name.removeprefix(first)]  # not those of the chain "name/x"
    counts = [await _delete_one(storage, name) for name in (workflow_name, *recorded)]
    return counts[0]


async def _delete_one(storage: CheckpointStorage, chain: str) -> int:
    if isinstance(storage, SupportsPrune):
        return await storage.delete_chain(chain)
    return await _delete_all(storage, await storage.list_checkpoint_ids(workflow_name=chain))


async def _delete_all(storage: CheckpointStorage, ids: Sequence[CheckpointID]) -> int:
    return sum([await storage.delete(checkpoint_id) for checkpoint_id in ids])

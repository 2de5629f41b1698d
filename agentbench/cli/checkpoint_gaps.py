"""Checkpoints that are there but cannot be read: lists leave them out, a person should hear of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping

from agentbench.checkpoints.access import list_infos, list_workflow_names
from agentbench.checkpoints.file_storage.names import SUFFIX
from agentbench.checkpoints.opening import local_path
from agentbench.checkpoints.storage import CheckpointStorage
from agentbench.cli.checkpoint_text import line
from agentbench.exceptions import CheckpointNotFoundError, WorkflowCheckpointException

_MOST_NAMED = 5


async def find_unreadable(
    storage: CheckpointStorage, *, target: str, workflow_name: str | None = None, limit: int | None = None
) -> dict[str, str]:
    """Find checkpoints that no list shows, and why.

    Args:
        storage: Any.
        target: Its address. In a folder there may be files of which cannot even be told which chain they are of.
        workflow_name: Only this chain, and those of which it cannot be told.
        limit: Only among the newest so many of each chain, which takes no longer for a long one.

    Returns:
        Reasons by id.
    """
    names = await list_workflow_names(storage)
    known: set[str] = set()
    hidden: list[str] = []
    for name in names:
        ids = await storage.list_checkpoint_ids(workflow_name=name)
        known.update(ids)
        if workflow_name in (None, name):
            shown = {info.checkpoint_id for info in await list_infos(storage, workflow_name=name, limit=limit)}
            hidden += [each for each in (ids if limit is None else ids[-limit:]) if each not in shown]
    hidden += _other_files(target, known)
    reasons = {each: await _reason(storage, each) for each in hidden}
    return {checkpoint_id: reason for checkpoint_id, reason in reasons.items() if reason is not None}


def tell_unreadable(reasons: Mapping[str, str]) -> None:
    """Say on the standard error what could not be read; nothing if that is nothing."""
    if not reasons:
        return
    told = [line(f"{checkpoint_id}: {reason}") for checkpoint_id, reason in reasons.items()]
    if len(told) == 1:
        print(f"1 checkpoint could not be read: {told[0]}", file=sys.stderr)
        return
    more = [f"and {len(told) - _MOST_NAMED:,} more"] if len(told) > _MOST_NAMED else []
    print(f"{len(told):,} checkpoints could not be read:", *told[:_MOST_NAMED], *more, sep="\n  ", file=sys.stderr)


def _other_files(target: str, known: Collection[str]) -> list[str]:
    path = local_path(target)
    if path is None or not os.path.isdir(path):
        return []
    stems = (name.removesuffix(SUFFIX) for name in sorted(os.listdir(path)) if name.endswith(SUFFIX))
    return [stem for stem in stems if stem and stem not in known]


async def _reason(storage: CheckpointStorage, checkpoint_id: str) -> str | None:
    """Why a checkpoint cannot be read; `None` if it can, or is gone: it came, or went, between two looks."""
    try:
        await storage.load(checkpoint_id)
    except CheckpointNotFoundError:
        return None
    except WorkflowCheckpointException as error:
        reason = getattr(error, "reason", None)
        return str(error if reason is None else reason).removeprefix(f"Checkpoint {checkpoint_id!r} cannot be read. ")
    return None

"""`agentbench checkpoints export`: checkpoints as lines of JSON, or copied to another storage."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import AsyncIterator
from functools import partial

from agentbench.checkpoints.access import list_infos, list_workflow_names
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.opening import shown_address
from agentbench.checkpoints.storage import CheckpointStorage
from agentbench.cli.checkpoint_access import find_checkpoint, opened, require_chain
from agentbench.cli.checkpoint_gaps import find_unreadable, tell_unreadable
from agentbench.cli.checkpoint_kept import load_kept
from agentbench.cli.checkpoint_output import require_other_place, require_other_storage, written
from agentbench.cli.checkpoint_text import line
from agentbench.exceptions import WorkflowCheckpointException


async def export_checkpoints(given: argparse.Namespace) -> int:
    """Write checkpoints to a file, to the terminal, or to another storage."""
    with opened(given.target) as storage:
        if given.to is not None:
            require_other_place(given.target, given.to)
            with opened(given.to, create=True) as other:
                require_other_storage(storage, other, source=given.target, target=given.to)
                count = await _copy(storage, other, given)
            place = shown_address(given.to)
        else:
            with written(given.output, source=given.target, force=given.force) as file:
                count = 0
                async for checkpoint in _chosen(storage, given):
                    text = checkpoint.to_json()
                    file.write(f"{_spelled_out(text) if given.output == '-' else text}\n")
                    count += 1
            place = given.output
        unreadable = {}
        if given.id is None:
            unreadable = await find_unreadable(storage, target=given.target, workflow_name=given.workflow)
    if place != "-":
        print(line(f"{count:,} checkpoint{'' if count == 1 else 's'} written to {place}."), file=sys.stderr)
    tell_unreadable(unreadable)
    return 1 if unreadable else 0


async def _names(storage: CheckpointStorage, given: argparse.Namespace) -> list[str]:
    return [given.workflow] if given.workflow is not None else await list_workflow_names(storage)


async def _chosen(storage: CheckpointStorage, given: argparse.Namespace) -> AsyncIterator[WorkflowCheckpoint]:
    """One checkpoint, those of a chain, or all, each chain in order, one in memory at a time."""
    if given.id is not None:
        yield await find_checkpoint(storage, given.id, target=given.target, load=partial(load_kept, storage))
        return
    for name in await _names(storage, given):
        infos = (
            list_infos(storage, workflow_name=name) if given.all else require_chain(storage, name, target=given.target)
        )
        for info in await infos:
            yield await load_kept(storage, info.checkpoint_id)


async def _copy(storage: CheckpointStorage, other: CheckpointStorage, given: argparse.Namespace) -> int:
    there: set[str] = set()
    if given.id is None:
        for name in await _names(storage, given):
            there |= await _begun(storage, other, name, place=given.to)
    count = 0
    async for checkpoint in _chosen(storage, given):
        if checkpoint.checkpoint_id not in there:
            await other.save(checkpoint)
        count += 1
    return count


async def _begun(storage: CheckpointStorage, other: CheckpointStorage, name: str, *, place: str) -> set[str]:
    """Ids of a chain that were copied before; a chain that holds others is another one."""
    there = set(await other.list_checkpoint_ids(workflow_name=name))
    foreign = there - set(await storage.list_checkpoint_ids(workflow_name=name))
    if foreign:
        msg = (
            f"{shown_address(place)} has a chain {name!r} of its own, with {len(foreign):,} other checkpoints, such as "
            f"{min(foreign)!r}. Nothing was copied. Choose another place, or remove that chain first."
        )
        raise WorkflowCheckpointException(msg)
    return there


def _spelled_out(text: str) -> str:
    """The same JSON with signs of ASCII only: nothing acts on a terminal."""
    return json.dumps(json.loads(text), separators=(",", ":"))

"""The positions in the history of a thread: one per superstep, and one before each input, which is not saved itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agentbench.checkpoints import metadata as keys
from agentbench.checkpoints.access import load_checkpoint
from agentbench.checkpoints.checkpoint import CheckpointID, id_of
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.exceptions import GraphError
from agentbench.stategraph.running.plan import GraphPlan
from agentbench.stategraph.snapshots import (
    BEFORE_INPUT,
    SnapshotTask,
    StateSnapshot,
    config_of,
    metadata_of,
    parent_of,
    snapshot_of,
)
from agentbench.stategraph.state import START
from agentbench.workflows.executors.state import StateMark
from agentbench.workflows.run.first_input import read_input

_SAME_POSITION = ("interrupt", "error", "answer")
"""Reasons for saving a superstep that has not ended: the checkpoint takes the place of its parent."""


def positions(infos: Sequence[CheckpointInfo]) -> list[CheckpointInfo]:
    """Return the positions of a thread, newest first, from its checkpoints, oldest first."""
    begins: dict[str, str] = {}
    by_id = {info.checkpoint_id: info for info in infos}
    shown: dict[str, CheckpointInfo] = {}
    for info in infos:
        parent = begins.get(info.previous_checkpoint_id or "") if info.source in _SAME_POSITION else None
        begin = begins[info.checkpoint_id] = info.checkpoint_id if parent is None else parent
        if info.source != "answer" or begin not in shown:  # the question tells more than its answer
            shown[begin] = info
    found: list[CheckpointInfo] = []
    for info in sorted(shown.values(), key=lambda info: info.seq, reverse=True):
        found.append(info)
        first = by_id[begins[info.checkpoint_id]]
        if (before := parent_of(first)) != first.previous_checkpoint_id and before is not None:
            found.append(replace(first, checkpoint_id=before))
    return found


def metadata_at(plan: GraphPlan, info: CheckpointInfo) -> dict[str, Any]:
    """Return the metadata of a position, without its step."""
    is_before_input = info.checkpoint_id.startswith(BEFORE_INPUT)
    return metadata_of(plan, info.metadata) | ({keys.SOURCE: "input"} if is_before_input else {})


async def snapshot_at(
    plan: GraphPlan, storage: Any, checkpoint_id: CheckpointID, thread_id: Any, *, subgraphs: bool = False
) -> StateSnapshot[Any]:
    """Return a thread at a position."""
    first_id = checkpoint_id.removeprefix(BEFORE_INPUT)
    first = await load_checkpoint(storage, id_of(first_id))
    after = snapshot_of(plan, first, thread_id, subgraphs=subgraphs)
    if first_id == checkpoint_id:
        return after
    values, parent_id = plan.fields.initial(plan.template), first.previous_checkpoint_id
    if parent_id is not None:
        values = plan.values_in((await load_checkpoint(storage, parent_id)).state)
    return replace(
        after,
        values={name: values[name] for name in plan.fields.names if name in values},
        next=(START,),
        config=config_of(plan, thread_id, checkpoint_id),
        parent_config=None if parent_id is None else config_of(plan, thread_id, parent_id),
        metadata={**after.metadata, keys.SOURCE: "input", "step": after.step - 1},
        step=after.step - 1,
        tasks=(SnapshotTask(START, START, result=read_input(first.metadata)),),
        interrupts=(),
    )


async def input_at(storage: Any, checkpoint_id: str) -> tuple[Any, CheckpointID | None] | None:
    """Return the input at a position before one, and the checkpoint before it; None for any other position.

    Raises:
        GraphError: The input could not be stored, or cannot be read here.
    """
    if not checkpoint_id.startswith(BEFORE_INPUT):
        return None
    first = await load_checkpoint(storage, id_of(checkpoint_id.removeprefix(BEFORE_INPUT)))
    data = read_input(first.metadata)
    if data is StateMark.ABSENT:
        message = f"The input of {checkpoint_id!r} cannot be read here. Pass it: app.invoke(input, config)."
        raise GraphError(message)
    return data, first.previous_checkpoint_id

"""What a branch of a run differs in: the messages that wait, and the checkpoints that lead to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentbench.checkpoints.info import CheckpointInfo
from agentbench.workflow.message import WORKFLOW_SOURCE, WorkflowMessage

if TYPE_CHECKING:
    from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
    from agentbench.workflow.workflow import Workflow


def queued_messages(messages: Mapping[str, Sequence[Any]], workflow: Workflow) -> dict[str, list[WorkflowMessage]]:
    """Values as messages of their source; nothing is queued that could not be delivered."""
    sources = {s for group in workflow.edge_groups for s in group.source_executor_ids} | {WORKFLOW_SOURCE}
    queued = {}
    for source, values in messages.items():
        if source not in sources:
            msg = f"messages name the source {source!r}, which sends to nobody here; expected one of {sorted(sources)}."
            raise ValueError(msg)
        if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
            msg = f"messages of {source!r} are {values!r}; expected a list, such as [{values!r}]."
            raise TypeError(msg)
        queued[source] = [v if isinstance(v, WorkflowMessage) else WorkflowMessage(v, source) for v in values]
    return queued


def cut_back(infos: list[CheckpointInfo], checkpoint: WorkflowCheckpoint) -> None:
    """Keep those that lead to a checkpoint, it included: the last one is where the run stands."""
    places = {info.checkpoint_id: place for place, info in enumerate(infos)}
    if checkpoint.checkpoint_id in places:
        del infos[places[checkpoint.checkpoint_id] + 1 :]
    else:
        del infos[places.get(checkpoint.previous_checkpoint_id or "", -1) + 1 :]
        infos.append(CheckpointInfo.of(checkpoint))

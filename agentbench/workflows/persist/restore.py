"""From a checkpoint back into the state of a run."""

from __future__ import annotations

from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.workflows.engine.run_state import RunState
from agentbench.workflows.graph.graph import Graph
from agentbench.workflows.persist.graph_changes import graph_mismatch
from agentbench.workflows.persist.snapshot import Snapshot, restore


async def restore_checkpoint(graph: Graph, run_state: RunState, checkpoint: WorkflowCheckpoint) -> None:
    """Put a run back to where a checkpoint was saved. Requests are not emitted here.

    Where that fails, shared state, messages and requests of the run are as they were.

    Raises:
        GraphMismatchError: the checkpoint belongs to another graph.
        WorkflowCheckpointException: the checkpoint is damaged, or an executor is unknown or refuses its state.
    """
    require_fitting(graph, checkpoint)
    content = Snapshot(
        checkpoint.iteration_count, checkpoint.messages, checkpoint.state, checkpoint.pending_request_info_events
    )
    await restore(graph, run_state, content, f"Checkpoint {checkpoint.checkpoint_id!r}")
    run_state.unconverged = False
    run_state.last_checkpoint_id = checkpoint.checkpoint_id


def require_fitting(graph: Graph, checkpoint: WorkflowCheckpoint) -> None:
    """Refuse a checkpoint that this graph cannot go on from.

    Raises:
        WorkflowCheckpointException: its format is not known here.
        GraphMismatchError: it belongs to another graph.
    """
    checkpoint.require_known_version()
    mismatch = graph_mismatch(graph, checkpoint)
    if mismatch is not None:
        raise mismatch

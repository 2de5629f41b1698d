"""Where the run of a `Start` begins: at an edited copy of its checkpoint, the first one in a chain of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentbench.batch.running.meter import METERED
from agentbench.checkpoints import metadata as keys
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.workflows.executors.options import RunOptions
from agentbench.workflows.run.branching import branch_off

if TYPE_CHECKING:
    from agentbench.batch.inputs import Start
    from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
    from agentbench.workflows.graph.graph import Graph


async def copy_for_run(start: Start, graph: Graph, chain: str, run_id: str) -> WorkflowCheckpoint:
    """Return the edited copy, which is not saved yet; what the earlier run did and used is not part of it.

    Raises:
        GraphMismatchError: The checkpoint belongs to another graph.
        ValueError: The changes do not fit the graph.
        TypeError: As above.
    """
    storage = InMemoryCheckpointStorage()
    await storage.save(start.checkpoint)
    changes = start.changes
    info, _ = await branch_off(
        storage,
        start.checkpoint.checkpoint_id,
        graph,
        RunOptions(chain=chain),
        changes.get("state"),
        changes.get("messages"),
    )
    copied = await storage.load(info.checkpoint_id)
    copied.previous_checkpoint_id = None
    copied.metadata.pop(METERED, None)
    copied.metadata[keys.RUN_ID] = run_id
    return copied

"""Two versions of a workflow, and what takes checkpoints of the first to the second."""

from __future__ import annotations

from typing import Any

from agentbench import Executor, Workflow, WorkflowBuilder, WorkflowContext, handler
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.storage import CheckpointStorage
from agentbench.revisions import ExecutorContent


class Turn(Executor):
    """Takes turns: adds to the conversation, and passes on."""

    signature_key = "Turn"

    @handler
    async def go(self, turn: int, ctx: WorkflowContext[int, int]) -> None:
        talk = [*(ctx.get_state("talk") or []), f"{self.id} {turn}"]
        ctx.set_state("talk", talk)
        if turn:
            await ctx.send_message(turn - 1)
        else:
            await ctx.yield_output(len(talk))

    async def on_checkpoint_save(self) -> dict[str, Any]:
        return {"name": self.id}


def ring(*ids: str, name: str = "ring") -> Workflow:
    """Executors in a circle."""
    turns = [Turn(each) for each in ids]
    return (
        WorkflowBuilder(start_executor=turns[0], name=name, max_iterations=5000).add_chain([*turns, turns[0]]).build()
    )


async def fill(storage: CheckpointStorage, supersteps: int) -> None:
    """Run the first version for so many supersteps."""
    run = ring("ping", "pong").start(supersteps, checkpoint_storage=storage)
    for _ in range(supersteps):
        await run.step()
    await run.cancel()


def older(old: ExecutorContent) -> ExecutorContent:
    old.state["name"] = old.state["name"].upper()
    return old


new = ring("ping", "pang")
migration: dict[str, Any] = {"renamed": {"pong": "pang"}, "functions": {"pong": older, "talk": list}}


def content(checkpoint: WorkflowCheckpoint) -> tuple[Any, ...]:
    """What a checkpoint holds, apart from names, ids and numbers."""
    return checkpoint.iteration_count, checkpoint.state, checkpoint.messages, checkpoint.metadata.get("seq")

"""Checkpoints for tests of storages."""

from __future__ import annotations

from typing import Any

from agentbench import WorkflowCheckpoint


def checkpoint(seq: int, chain: str = "flow", **fields: Any) -> WorkflowCheckpoint:
    """Return a checkpoint of a chain, whose id and number follow from `seq`."""
    metadata = {"seq": seq, **fields.pop("metadata", {})}
    fields = {"checkpoint_id": f"{chain}-{seq}", "iteration_count": seq, **fields}
    return WorkflowCheckpoint(chain, "hash", metadata=metadata, **fields)


def conversation(length: int) -> list[str]:
    return [f"{each:05d}".ljust(200, "x") for each in range(length)]

"""Sample checkpoints, and assertions whose errors contain the actual value."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any

from agentbench._clock import iso_utc
from agentbench.checkpoints.checkpoint import CheckpointID, WorkflowCheckpoint
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.storage import CheckpointStorage

FLOW = "flow"


def make_checkpoint(seq: int, *, workflow_name: str = FLOW, **fields: Any) -> WorkflowCheckpoint:
    """Create a checkpoint with a sequence number from 1. Its time is one second after that of the previous number."""
    metadata = {"seq": seq, "source": "step", **fields.pop("metadata", {})}
    content = {
        "timestamp": iso_utc((1_700_000_000 + seq) * 1_000_000_000),
        "iteration_count": seq - 1,
        "state": {"step": seq},
        **fields,
    }
    return WorkflowCheckpoint(workflow_name, "hash", metadata=metadata, **content)


async def save_chain(
    storage: CheckpointStorage, length: int, *, workflow_name: str = FLOW, **fields: Any
) -> list[WorkflowCheckpoint]:
    """Save a chain of checkpoints that all have these fields, and return them, oldest first."""
    saved: list[WorkflowCheckpoint] = []
    for seq in range(1, length + 1):
        link = {"previous_checkpoint_id": saved[-1].checkpoint_id if saved else None}
        saved.append(make_checkpoint(seq, workflow_name=workflow_name, **link, **fields))
        await storage.save(saved[-1])
    return saved


def ids_of(checkpoints: Sequence[WorkflowCheckpoint | CheckpointInfo]) -> list[CheckpointID]:
    """Return the ids of checkpoints in their order. Fail if the value is not a sequence of checkpoints."""
    expect_kind(checkpoints, Sequence, "the list from the storage")
    for item in checkpoints:
        is_checkpoint = isinstance(item, (WorkflowCheckpoint, CheckpointInfo))
        expect(is_checkpoint, f"The storage listed {item!r}, which is not a checkpoint.")
    return [checkpoint.checkpoint_id for checkpoint in checkpoints]


def expect(condition: bool, problem: str) -> None:
    """Raise an `AssertionError` with this text unless the condition is true, even with `python -O`."""
    if not condition:
        raise AssertionError(problem)


def expect_equal(found: object, expected: object, what: str) -> None:
    """Expect two values to be equal. The error calls the first one `what`."""
    expect(found == expected, f"{what}: found {found!r}, expected {expected!r}.")


async def expect_ids(
    storage: CheckpointStorage,
    checkpoints: Sequence[WorkflowCheckpoint | CheckpointInfo],
    what: str,
    *,
    workflow_name: str = FLOW,
) -> None:
    """Expect a chain to consist of the ids of these checkpoints, in their order."""
    expect_equal(await storage.list_checkpoint_ids(workflow_name=workflow_name), ids_of(checkpoints), what)


def expect_kind(found: object, kind: type, what: str) -> None:
    """Expect an instance of a class. The error calls the value `what`."""
    expect(isinstance(found, kind), f"{what}: found {found!r}, expected a {kind.__name__}.")


async def load(storage: CheckpointStorage, checkpoint_id: CheckpointID) -> WorkflowCheckpoint:
    """Load a checkpoint, and expect the result to be one."""
    found = await storage.load(checkpoint_id)
    expect_kind(found, WorkflowCheckpoint, "the result of load()")
    return found


def expect_same(found: WorkflowCheckpoint | None, expected: WorkflowCheckpoint, what: str) -> None:
    """Expect two checkpoints to be equal, field by field. A value of another type fails."""
    expect_kind(found, WorkflowCheckpoint, what)
    for name, value in expected.to_dict().items():
        expect_equal(getattr(found, name), value, f"{what}, field {name}")


async def expect_error(expected: type[Exception], call: Awaitable[object], what: str) -> None:
    """Expect a call to raise an exception. Any other exception is a failure too."""
    try:
        result = await call
    except expected:
        return
    except Exception as error:
        problem = f"{what}: raised {error!r}, expected {expected.__name__}."
        raise AssertionError(problem) from error
    expect(False, f"{what}: returned {result!r}, expected {expected.__name__}.")

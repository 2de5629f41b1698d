"""Sample checkpoints, and expectations that say what was found instead."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any

from agentbench._clock import iso_utc
from agentbench.checkpoints.checkpoint import CheckpointID, WorkflowCheckpoint
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.storage import CheckpointStorage

FLOW = "flow"


def make_checkpoint(seq: int, *, workflow_name: str = FLOW, **fields: Any) -> WorkflowCheckpoint:
    """Make a checkpoint at a place in a chain, from 1; one second after the one before it."""
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
    """Save checkpoints that follow each other and all have these fields, and return them, oldest first."""
    saved: list[WorkflowCheckpoint] = []
    for seq in range(1, length + 1):
        link = {"previous_checkpoint_id": saved[-1].checkpoint_id if saved else None}
        saved.append(make_checkpoint(seq, workflow_name=workflow_name, **link, **fields))
        await storage.save(saved[-1])
    return saved


def ids_of(checkpoints: Sequence[WorkflowCheckpoint | CheckpointInfo]) -> list[CheckpointID]:
    """Return the ids, in their order, and expect what a storage listed to be a list of checkpoints."""
    expect_kind(checkpoints, Sequence, "what the storage listed")
    for each in checkpoints:
        expect(isinstance(each, (WorkflowCheckpoint, CheckpointInfo)), f"The storage listed {each!r}, no checkpoint.")
    return [checkpoint.checkpoint_id for checkpoint in checkpoints]


def expect(condition: bool, problem: str) -> None:
    """Raise an `AssertionError` with this text unless the condition holds; also under `python -O`."""
    if not condition:
        raise AssertionError(problem)


def expect_equal(found: object, expected: object, what: str) -> None:
    """Expect two values to be equal; `what` names the first one in the error."""
    expect(found == expected, f"{what}: found {found!r}, expected {expected!r}.")


async def expect_ids(
    storage: CheckpointStorage,
    checkpoints: Sequence[WorkflowCheckpoint | CheckpointInfo],
    what: str,
    *,
    workflow_name: str = FLOW,
) -> None:
    """Expect the ids of a chain to be those of these checkpoints, in their order."""
    expect_equal(await storage.list_checkpoint_ids(workflow_name=workflow_name), ids_of(checkpoints), what)


def expect_kind(found: object, kind: type, what: str) -> None:
    """Expect an instance of a class; `what` names the value in the error."""
    expect(isinstance(found, kind), f"{what}: found {found!r}, expected a {kind.__name__}.")


async def load(storage: CheckpointStorage, checkpoint_id: CheckpointID) -> WorkflowCheckpoint:
    """Load a checkpoint that is there, and expect it to be one."""
    found = await storage.load(checkpoint_id)
    expect_kind(found, WorkflowCheckpoint, "what load() returned")
    return found


def expect_same(found: WorkflowCheckpoint | None, expected: WorkflowCheckpoint, what: str) -> None:
    """Expect two checkpoints to be equal, field by field; other objects are not equal to a checkpoint."""
    expect_kind(found, WorkflowCheckpoint, what)
    for name, value in expected.to_dict().items():
        expect_equal(getattr(found, name), value, f"{what}, field {name}")


async def expect_error(expected: type[Exception], call: Awaitable[object], what: str) -> None:
    """Expect a call to raise; any other exception than the expected one is a failure as well."""
    try:
        result = await call
    except expected:
        return
    except Exception as error:
        problem = f"{what}: raised {error!r}, expected {expected.__name__}."
        raise AssertionError(problem) from error
    expect(False, f"{what}: returned {result!r}, expected {expected.__name__}.")

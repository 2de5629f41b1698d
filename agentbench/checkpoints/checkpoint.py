"""The saved point of a workflow: what one superstep left behind, enough to go on from there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeAlias

from agentbench._clock import iso_utc, runtime_defaults
from agentbench._display import Displayable, drawn_by
from agentbench.exceptions import WorkflowCheckpointException

CheckpointID: TypeAlias = str


def _new_id() -> CheckpointID:
    return runtime_defaults().ids.new_id("cp")


def _now() -> str:
    return iso_utc(runtime_defaults().clock.time_ns())


@drawn_by("agentbench.notebook.views:checkpoint_bundle")
@dataclass(slots=True, repr=False)
class WorkflowCheckpoint(Displayable):
    """All that a workflow needs to go on after a superstep, in this process or in another one.

    It belongs to a workflow's definition, not to an instance of it: any workflow with the same graph can go on from it.
    Two checkpoints are equal when all fields are. The timestamp has six fractional digits and ends in `+00:00`, so that
    the order of the texts is the order in time.

    Attributes:
        workflow_name: Groups checkpoints; all of one name are a chain.
        graph_signature_hash: Identifies the graph that made it.
        checkpoint_id: Its own id.
        previous_checkpoint_id: The checkpoint that the run went on from, across forks and resumed runs too.
        timestamp: When it was made: ISO 8601, UTC.
        messages: Messages waiting for the next superstep, by the id of the executor that sent them.
        state: The committed state; what the executors saved of themselves is under `_executor_state`.
        pending_request_info_events: Requests that wait for an answer, by their ids.
        iteration_count: Number of the superstep.
        metadata: Anything; the engine's own keys are in `agentbench.checkpoints.metadata`.
        version: Of this format.
    """

    workflow_name: str
    graph_signature_hash: str
    checkpoint_id: CheckpointID = field(default_factory=_new_id)
    previous_checkpoint_id: CheckpointID | None = None
    timestamp: str = field(default_factory=_now)
    messages: dict[str, list[Any]] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)
    pending_request_info_events: dict[str, Any] = field(default_factory=dict)
    iteration_count: int = 0
    metadata: dict[str, Any] = field(default_factory=dict)
    version: str = "1.0"

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.checkpoint_id!r}, workflow_name={self.workflow_name!r}, "
            f"iteration_count={self.iteration_count}, messages={sum(map(len, self.messages.values()))}, "
            f"requests={len(self.pending_request_info_events)})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, in their order; the values are the checkpoint's own, not copies."""
        return {name: getattr(self, name) for name in _FIELDS}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> WorkflowCheckpoint:
        """Build a checkpoint from what `to_dict` returned.

        Args:
            data: Values by field name. `workflow_name` and `graph_signature_hash` must be there, every other field has
                a default. The values are kept, not copied.

        Raises:
            WorkflowCheckpointException: A field is missing, or one is not known.
        """
        unknown = [key for key in data if key not in _FIELDS]
        missing = [name for name in _REQUIRED if name not in data]
        if unknown or missing:
            message = (
                f"No checkpoint can be read from these fields: {_listed(missing)} missing, {_listed(unknown)} unknown. "
                f"Expected what to_dict() returns: {', '.join(_FIELDS)}."
            )
            raise WorkflowCheckpointException(message)
        return cls(**data)


def _listed(keys: list[Any]) -> str:
    return ", ".join(map(repr, keys)) or "none"


_FIELDS = tuple(each.name for each in fields(WorkflowCheckpoint))
_REQUIRED = tuple(
    each.name for each in fields(WorkflowCheckpoint) if each.default is MISSING and each.default_factory is MISSING
)

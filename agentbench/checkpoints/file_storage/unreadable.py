"""The error for a checkpoint file that exists but cannot be read."""

from __future__ import annotations

from agentbench.exceptions import WorkflowCheckpointException


class UnreadableCheckpointError(WorkflowCheckpointException):
    """A file, or a line of one, should contain a checkpoint but does not, or not one that can be read here."""

    def __init__(self, checkpoint_id: str, path: str, reason: str, *, holds: str | None = None) -> None:
        self.checkpoint_id, self.path, self.reason, self.holds = checkpoint_id, path, reason, holds
        super().__init__(f"Checkpoint {checkpoint_id!r} cannot be read from {path!r}: {reason}.")

"""A checkpoint that is stored in one piece."""

from __future__ import annotations

from dataclasses import dataclass

from agentbench.checkpoints.parts.backend import CheckpointRecord


@dataclass(frozen=True, slots=True)
class WholeRecord(CheckpointRecord):
    """A record whose content is a checkpoint in the pickled format, with no parts elsewhere."""

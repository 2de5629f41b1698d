"""What a worker needs to run the inputs of a batch. It is sent to each worker once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from agentbench.batch.cluster.pickling import pickled
from agentbench.batch.running.run_one import RunRules
from agentbench.exceptions import UnpicklableError


@dataclass(frozen=True)
class Definition:
    """The workflow of a batch as a pickle, with the rules for its runs and the place of its rows."""

    payload: bytes
    into: Any
    name: str
    run_kwargs: Mapping[str, Any]
    opened: float
    """When the call began, by the clock of the database."""
    rules: RunRules

    @property
    def id(self) -> str:
        """A text that names this definition among others on a worker."""
        return sha256(self.payload + f"{self.into}|{self.name}|{self.opened}".encode()).hexdigest()[:32]


def pack_workflow(workflow: Any) -> bytes:
    """Return the pickle of what `run_many` was given.

    Raises:
        UnpicklableError: It cannot be sent; the error names the part that is the reason.
    """
    try:
        return pickled(workflow, "the workflow")
    except UnpicklableError as error:
        error.add_note(
            "A function without parameters that builds the workflow can be passed instead: run_many(build, ...)"
        )
        raise

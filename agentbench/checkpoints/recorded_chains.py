"""The chains that hold what runs have recorded: next to the chain of a run, one for each run, and not listed."""

from typing import Final

_PREFIX: Final = "agentbench.recorded/"


def recorded_chain(chain: str, run_id: str) -> str:
    """Return the name of the chain for what a run of `chain` records."""
    return f"{_PREFIX}{chain}/{run_id}"


def is_recorded_chain(chain: str) -> bool:
    """Return whether a chain holds recorded calls instead of checkpoints of a run."""
    return chain.startswith(_PREFIX)

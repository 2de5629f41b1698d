"""The keys that the engine writes to the metadata of a checkpoint, and the names of the chains of recordings."""

from typing import Final, Literal

SEQ: Final = "seq"
"""Integer, rising along a chain from 1: the head's plus one at the first save of a run, then plus one per save."""
SOURCE: Final = "source"
"""The reason for saving the checkpoint, one of `CheckpointSource`."""
RUN_ID: Final = "run_id"
"""Id of the run that wrote it."""
FORKED_FROM: Final = "forked_from"
"""Id of the checkpoint from which it was forked."""
WRITERS: Final = "writers"
"""Ids of the executors that ran in the superstep, in the order of the plan."""
SIZES: Final = "sizes"
"""A dict with the counts `messages` and `requests`, and with `bytes`, the number of bytes newly written."""
GRAPH_SIGNATURE: Final = "graph_signature"
"""The readable signature of the graph. Equal all along a chain, so that storages store it once."""
DURATION_S: Final = "duration_s"
"""Duration of the superstep, in seconds."""
CODE_HASHES: Final = "code_hashes"
"""The hashes of the code with which a started run began, by part of its graph; only in its first checkpoint."""
INPUT: Final = "input"
"""The input of the run, as JSON text of `agentbench.serialization`; only on the first checkpoint of a started run."""

ENGINE_KEYS: Final = frozenset(
    {SEQ, SOURCE, RUN_ID, FORKED_FROM, WRITERS, SIZES, GRAPH_SIGNATURE, DURATION_S, CODE_HASHES, INPUT}
)

CheckpointSource = Literal["input", "step", "answer", "interrupt", "stop", "error", "update", "fork", "pending"]
"""The reason for a checkpoint: `input` before the first superstep (`save_input`: before superstep 0),
`step` after each, `answer` with responses,
`interrupt`, `stop` and `error` if a run stopped, `fork` and (with edits) `update` by a person; `pending` checkpoints
are replaced by the next one and not displayed."""

_RECORDED: Final = "agentbench.recorded/"


def recorded_chain(chain: str, run_id: str) -> str:
    """Return the name of the chain that holds what a run of `chain` has recorded; it is not listed."""
    return f"{_RECORDED}{chain}/{run_id}"


def is_recorded_chain(chain: str) -> bool:
    """Return whether a chain holds a recording instead of the checkpoints of a run."""
    return chain.startswith(_RECORDED)

"""The keys that the engine writes to the metadata of a checkpoint. All other keys belong to the caller."""

from typing import Final, Literal

#: Integer, rising along a chain from 1: the head's plus one at the first save of a run, then plus one per save.
SEQ: Final = "seq"
#: The reason for saving the checkpoint, one of `CheckpointSource`.
SOURCE: Final = "source"
#: Id of the run that wrote it.
RUN_ID: Final = "run_id"
#: Id of the checkpoint from which it was forked.
FORKED_FROM: Final = "forked_from"
#: Ids of the executors that ran in the superstep, in the order of the plan.
WRITERS: Final = "writers"
#: A dict with the counts `messages` and `requests`, and with `bytes`, the number of bytes newly written.
SIZES: Final = "sizes"
#: The readable signature of the graph. Equal all along a chain, so that storages store it once.
GRAPH_SIGNATURE: Final = "graph_signature"
#: Duration of the superstep, in seconds.
DURATION_S: Final = "duration_s"

ENGINE_KEYS: Final = frozenset({SEQ, SOURCE, RUN_ID, FORKED_FROM, WRITERS, SIZES, GRAPH_SIGNATURE, DURATION_S})

CheckpointSource = Literal["input", "step", "answer", "interrupt", "stop", "error", "update", "fork", "pending"]
"""The reason for a checkpoint: `input` before the first superstep, `step` after each, `answer` with responses,
`interrupt`, `stop` and `error` if a run stopped, `fork` and (with edits) `update` by a person; `pending` checkpoints
are replaced by the next one and not displayed."""

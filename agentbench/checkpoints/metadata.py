"""The keys that the engine writes into the metadata of a checkpoint. All other keys are the caller's."""

from typing import Final, Literal

#: Integer, rising along a chain from 1: the head's plus one at the first save of a run, then plus one per save.
SEQ: Final = "seq"
#: Why the checkpoint was made, one of `CheckpointSource`.
SOURCE: Final = "source"
#: Id of the run that wrote it.
RUN_ID: Final = "run_id"
#: Id of the checkpoint that it was forked from.
FORKED_FROM: Final = "forked_from"
#: Ids of the executors that ran in the superstep, in the order of the plan.
WRITERS: Final = "writers"
#: A dict with the counts `messages` and `requests`, and with `bytes`, the number of bytes newly written.
SIZES: Final = "sizes"
#: The readable signature of the graph. Equal all along a chain, so that storages keep it once.
GRAPH_SIGNATURE: Final = "graph_signature"
#: How long the superstep took, in seconds.
DURATION_S: Final = "duration_s"

ENGINE_KEYS: Final = frozenset({SEQ, SOURCE, RUN_ID, FORKED_FROM, WRITERS, SIZES, GRAPH_SIGNATURE, DURATION_S})

CheckpointSource = Literal["input", "step", "answer", "interrupt", "stop", "error", "update", "fork", "pending"]
"""Why a checkpoint was made: `input` before the first superstep, `step` after each, `answer` with answers,
`interrupt`, `stop` and `error` where a run came to a halt, `fork` and (with edits) `update` by a person; `pending` ones
are superseded by the next and not displayed."""

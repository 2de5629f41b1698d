# Typed stub of the lazy names; written by tests/tools/write_stub.py, not by hand.

from agentbench._lazy import Door
from agentbench.checkpoints.access import delete_chain as delete_chain
from agentbench.checkpoints.access import list_infos as list_infos
from agentbench.checkpoints.access import list_lineage as list_lineage
from agentbench.checkpoints.access import list_workflow_names as list_workflow_names
from agentbench.checkpoints.access import prune_chain as prune_chain
from agentbench.checkpoints.checkpoint import CheckpointID as CheckpointID
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint as WorkflowCheckpoint
from agentbench.checkpoints.diff import CheckpointDiff as CheckpointDiff
from agentbench.checkpoints.diff import diff_checkpoints as diff_checkpoints
from agentbench.checkpoints.difference.changes import CheckpointChange as CheckpointChange
from agentbench.checkpoints.file import FileCheckpointStorage as FileCheckpointStorage
from agentbench.checkpoints.fork import fork_checkpoint as fork_checkpoint
from agentbench.checkpoints.info import CheckpointInfo as CheckpointInfo
from agentbench.checkpoints.manager import CheckpointManager as CheckpointManager
from agentbench.checkpoints.memory import InMemoryCheckpointStorage as InMemoryCheckpointStorage
from agentbench.checkpoints.opening import open_storage as open_storage
from agentbench.checkpoints.redis import RedisCheckpointStorage as RedisCheckpointStorage
from agentbench.checkpoints.sql import SQLCheckpointStorage as SQLCheckpointStorage
from agentbench.checkpoints.storage import CheckpointStorage as CheckpointStorage
from agentbench.checkpoints.storage import SupportsChainNames as SupportsChainNames
from agentbench.checkpoints.storage import SupportsCheckpointInfos as SupportsCheckpointInfos
from agentbench.checkpoints.storage import SupportsHeadCheck as SupportsHeadCheck
from agentbench.checkpoints.storage import SupportsPrune as SupportsPrune
from agentbench.checkpoints.storage import SupportsSaveAll as SupportsSaveAll
from agentbench.serialization.pickled import decode_checkpoint_value as decode_checkpoint_value
from agentbench.serialization.pickled import encode_checkpoint_value as encode_checkpoint_value

_door: Door
__all__: list[str]

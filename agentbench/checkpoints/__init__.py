"""Checkpoints: the saved state of runs, storages for it, and functions to list, compare and fork checkpoints."""

from agentbench._lazy import Door

_door = Door(
    globals(),
    """
    access: delete_chain list_infos list_lineage list_workflow_names prune_chain
    agentbench.serialization.pickled: decode_checkpoint_value encode_checkpoint_value
    checkpoint: CheckpointID WorkflowCheckpoint
    diff: CheckpointDiff diff_checkpoints
    difference.changes: CheckpointChange
    file: FileCheckpointStorage
    fork: fork_checkpoint
    info: CheckpointInfo
    manager: CheckpointManager
    memory: InMemoryCheckpointStorage
    opening: open_storage
    redis: RedisCheckpointStorage
    sql: SQLCheckpointStorage
    storage: CheckpointStorage SupportsChainNames SupportsCheckpointInfos SupportsHeadCheck SupportsPrune
        SupportsSaveAll
    """,
)
__all__ = _door.names
__getattr__, __dir__ = _door.load, _door.listing

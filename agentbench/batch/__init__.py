"""Many runs of one workflow: one table of results, on this machine or on a cluster."""

from agentbench._lazy import Door

_door = Door(
    globals(),
    """
    agentbench.exceptions: BatchChangedError BatchError BatchInputError BatchNotFoundError BatchStoppedError
        PlacementError RemoteExecutorError RunTimeoutError UnpicklableError
    agentbench.messages.usage: Budget
    agentbench.workflows.engine.recording: record_call
    agentbench.workflows.executors.placement: CallRecord HandlerCall Placement
    batch: Batch
    cluster.placement: DaskPlacement
    comparison: BatchComparison PairedRow
    inputs: Start
    opening: open_batch
    rows: BatchProgress BatchRow RowError RowStatus Traffic
    many: run_many
    views: Question RowView
    """,
)
__all__ = _door.names
__getattr__, __dir__ = _door.load, _door.listing

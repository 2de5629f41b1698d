"""Many runs of one workflow: one table of results, on this machine or on a cluster."""

from agentbench._lazy import Door

_door = Door(
    globals(),
    """
    agentbench.exceptions: BatchChangedError BatchError BatchInputError BatchStoppedError PlacementError
        RemoteExecutorError RunTimeoutError UnpicklableError
    agentbench.workflows.executors.placement: Placement
    batch: Batch Question RowView
    budget: Budget
    cluster.placement: DaskPlacement
    inputs: Start
    rows: BatchProgress BatchRow RowError RowStatus Traffic
    run_many: run_many
    """,
)
__all__ = _door.names
__getattr__, __dir__ = _door.load, _door.listing

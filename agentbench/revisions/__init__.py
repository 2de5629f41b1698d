"""From a run to a better workflow: redo with changed code, what if, keep as test, a page that answers back."""

from agentbench._lazy import Door

_door = Door(
    globals(),
    """
    agentbench.agents.clients.cassette.recorded_call: NewCall RecordedCall
    agentbench.agents.clients.cassette.recording: ModelRecording
    agentbench.exceptions: KeepTestError RedoError UnrecordedCallError
    agentbench.workflows.executors.message: Withdrawn
    agentbench.workflows.executors.recorder: GivenAnswer
    agentbench.workflows.persist.executor_content: ExecutorContent
    agentbench.workflows.persist.planned_migration: Migration
    agentbench.exceptions: VariantError
    what_if.results: Effect WhatIf WhatIfRow WhatIfSummary
    agentbench.exceptions: MergeError
    merge: Merge
    current_code: changed_parts current_workflow
    """,
)
__all__ = _door.names
__getattr__, __dir__ = _door.load, _door.listing

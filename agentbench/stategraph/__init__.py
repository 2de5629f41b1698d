"""State graphs: nodes that read a typed state and return updates, on the engine of workflows."""

from agentbench._lazy import Door

_door = Door(
    globals(),
    """
    agentbench.checkpoints.memory: InMemoryCheckpointer=InMemoryCheckpointStorage
    agentbench.agents.tools.decorator: tool
    agentbench.exceptions: ConcurrentUpdateError GraphCompileError GraphError GraphRecursionError GraphStopRequested
        InvalidUpdateError NodeError NodeTimeoutError ReducerError ResourceNotFoundError SchemaVersionError
        SerializationError StaleStateError=ThreadBusyError StateValidationError StorageError=WorkflowCheckpointException
        ThreadBusyError TransientStorageError
    agentbench.messages.content.blocks: TextBlock ToolCallBlock ToolResultBlock
    agentbench.messages.message: Message
    agentbench.observability.tool_reports: StreamEmitter
    command: Command Send
    compiled: CompiledGraph
    functional: EntrypointGraph TaskFuture entrypoint task
    graph: StateGraph
    interrupts: BreakpointRequest Continue GraphInterrupt Interrupt interrupt pending_interrupt
    prebuilt.tools.handoff: create_handoff_tool is_handoff_tool
    reducers: Overwrite Reducer RemoveMessage add_messages append_items remove_tool_messages replace_messages
        replace_value upsert_messages
    results: GraphResult ResponseGranularity
    running.executors: Runtime
    running.retrying: RetryPolicy
    snapshots: SnapshotTask StateSnapshot
    storage.savers: AsyncSqliteSaver=SqliteSaver InMemorySaver MemorySaver=InMemorySaver SqliteSaver
    streams.writer: StreamWriter get_stream_writer
    state: AgentState END ExecutionState ExecutionStatus START StopRequestStatus
    streaming: StreamChunk StreamEvent
    threads.history: StateHistory
    toolnode: ToolNode ToolResult
    utils.decorators: get_tool_metadata has_tool_decorator
    """,
    stored="""
    merging.updates: TaskWrites
    running.executors: TaskResult
    running.routing: Activation Waiting
    toolnode: EndedCall
    """,
)
__all__ = _door.names
__getattr__, __dir__ = _door.load, _door.listing

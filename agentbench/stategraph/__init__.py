"""State graphs: nodes that read a typed state and return updates, on the engine of workflows."""

from agentbench._lazy import Door

_door = Door(
    globals(),
    """
    agentbench.agents.tools.decorator: tool
    agentbench.exceptions: ConcurrentUpdateError GraphCompileError GraphError GraphRecursionError GraphStopRequested
        InvalidUpdateError NodeError NodeNotFoundError NodeTimeoutError ReducerError ResourceNotFoundError
        SchemaVersionError SerializationError StaleStateError=ThreadBusyError StateValidationError
        StorageError=WorkflowCheckpointException ThreadBusyError TransientStorageError
    agentbench.messages.content.blocks: AnnotationRef TextBlock TokenUsages ToolCallBlock ToolResultBlock
    agentbench.messages.message: Message
    agentbench.observability.tool_reports: StreamEmitter
    command: Command Send
    compiled: CompiledGraph
    drawn_graph: DrawnGraph
    functional: EntrypointGraph TaskFuture entrypoint task
    graph: StateGraph
    interrupts: BreakpointRequest Continue GraphInterrupt Interrupt interrupt pending_interrupt
    prebuilt.tools.handoff: create_handoff_tool is_handoff_tool
    reducers: Overwrite REMOVE_ALL_MESSAGES Reducer RemoveMessage add_messages append_items remove_tool_messages
        replace_messages replace_value upsert_messages
    results: GraphResult ResponseGranularity
    running.executors: Runtime get_config get_runtime
    running.plan: RunnableConfig
    running.retrying: RetryPolicy
    snapshots: SnapshotTask StateSnapshot
    storage.savers: AsyncSqliteSaver=SqliteSaver InMemorySaver MemorySaver=InMemorySaver SqliteSaver
    streams.writer: StreamWriter get_stream_writer
    state: AgentState END ExecutionState ExecutionStatus MessagesState START StopRequestStatus
    storage.checkpointer: InMemoryCheckpointer SqliteCheckpointer
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
    instead={
        "BaseCheckpointer": "Derive a storage from CheckpointStorage: from agentbench import CheckpointStorage.",
        **dict.fromkeys(
            ("AsyncPostgresSaver", "PgCheckpointer", "PostgresSaver"),
            "Use SQLCheckpointStorage('postgresql://...'): from agentbench import SQLCheckpointStorage.",
        ),
        **dict.fromkeys(
            ("BaseMediaStore", "InMemoryMediaStore", "LocalFileMediaStore"),
            "There is no media store: messages hold their media, Content.from_data(...), or its address.",
        ),
        **dict.fromkeys(
            ("BaseStore", "InMemoryStore", "Mem0Store", "QdrantStore"),
            "There is no memory store: compile(store=...) gives any object to nodes and tools with a parameter store.",
        ),
        **dict.fromkeys(
            ("Inject", "InjectQ"),
            "There is no container: bind what a node needs with functools.partial, or pass it with compile(store=...).",
        ),
        **dict.fromkeys(
            ("CachePolicy", "InMemoryCache"),
            "Results of nodes are not cached: let the node call a function that has a cache, such as functools.cache.",
        ),
        **dict.fromkeys(
            ("AIMessage", "AnyMessage", "BaseMessage", "HumanMessage", "SystemMessage", "ToolMessage"),
            "There is one class, Message('user', text), with 'assistant', 'system' or 'tool' as other roles.",
        ),
        "create_react_agent": "Use an agent as a node: graph.add_node('agent', Agent(client, tools=[...])).",
        "tools_condition": (
            "Write the condition: lambda state: 'tools' if state['messages'][-1].tools_calls else END. An Agent with "
            "tools needs none."
        ),
        "CallbackManager": "There are no callbacks: read app.astream(..., stream_mode='events'), or use middleware.",
        "RemoteTool": "There are no remote tools: declare FunctionTool(name=...) without a function for an agent.",
    },
)
__all__ = _door.names
__getattr__, __dir__ = _door.load, _door.listing

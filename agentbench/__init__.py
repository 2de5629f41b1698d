"""agentbench: agent workflows as graphs, to be run, seen, stepped, rewound and forked.

The names of everyday use are imported from here, `from agentbench import Executor, handler`; every other public name is
in one of the packages listed as `parts` below. A name is loaded at its first use: importing the package alone loads
nothing. The modules behind the names are internal.

To add a name, enter it in the table below and run `python -m tests.tools.write_stub`.
"""

import importlib as _importlib
import sys as _sys

from agentbench._lazy import Door as _Door

__version__ = "0.1.0"

if _sys.modules.get("IPython") is not None:  # a notebook shows errors without the library's frames from its first cell
    _importlib.import_module("agentbench._user_code").shorten_in_notebooks()

_door = _Door(
    globals(),
    """
    _bridge: run_sync
    _clock: Clock CountingIds IdSource RandomIds SystemClock TickingClock set_runtime_defaults
    agents.agent.agent: Agent
    agents.agent.base_agent: BaseAgent
    agents.agent.raw_agent: RawAgent
    agents.clients.cassette.client: CassetteChatClient
    agents.clients.openai.chat.completions: OpenAIChatCompletionOptions OpenAIChatOptions
    agents.clients.openai.client: OpenAIChatClient OpenAIChatCompletionClient OpenAIResponsesClient
        RawOpenAIChatClient RawOpenAIChatCompletionClient
    agents.clients.openai.embeddings: OpenAIEmbeddingClient OpenAIEmbeddingOptions
    agents.clients.openai.errors: ContentFilterResultSeverity
    agents.clients.openai.responses.output: OpenAIContinuationToken
    agents.clients.openai.settings: OpenAISettings
    agents.clients.scripted.offline: EchoChatClient OfflineChatClient default_chat_client
    agents.clients.scripted.script: Call
    agents.clients.scripted.scripted: ScriptedChatClient
    agents.compaction.budgets: ContextWindowCompactionStrategy TokenBudgetComposedStrategy
    agents.compaction.grouping: annotate_message_groups
    agents.compaction.projection: apply_compaction included_messages included_token_count
    agents.compaction.protocols: COMPACTION_STATE_KEY EXCLUDE_REASON_KEY EXCLUDED_KEY GROUP_ANNOTATION_KEY
        GROUP_HAS_REASONING_KEY GROUP_ID_KEY GROUP_INDEX_KEY GROUP_KIND_KEY GROUP_TOKEN_COUNT_KEY
        SUMMARIZED_BY_SUMMARY_ID_KEY SUMMARY_OF_GROUP_IDS_KEY SUMMARY_OF_MESSAGE_IDS_KEY
        CharacterEstimatorTokenizer CompactionStrategy TokenizerProtocol
    agents.compaction.strategies: SelectiveToolCallCompactionStrategy SlidingWindowStrategy
        SummarizationStrategy ToolResultCompactionStrategy TruncationStrategy
    agents.harness.background: DEFAULT_BACKGROUND_AGENTS_SOURCE_ID BackgroundAgentsProvider BackgroundTaskInfo
        BackgroundTaskStatus
    agents.harness.harness_agent: DEFAULT_HARNESS_INSTRUCTIONS create_harness_agent
    agents.harness.memory: DEFAULT_MEMORY_SOURCE_ID MemoryContextProvider
    agents.harness.memory_records: MemoryIndexEntry MemoryTopicRecord
    agents.harness.memory_store: MemoryFileStore MemoryStore
    agents.harness.modes: DEFAULT_MODE_SOURCE_ID AgentModeProvider get_agent_mode set_agent_mode
    agents.harness.todo: DEFAULT_TODO_SOURCE_ID TodoProvider
    agents.harness.todo_store: TodoFileStore TodoInput TodoItem TodoSessionStore TodoStore
    agents.history.compaction_provider: CompactionProvider
    agents.history.file_history: FileHistoryProvider
    agents.history.history: HistoryProvider InMemoryHistoryProvider
    agents.loop.configuration: DEFAULT_MAX_ITERATIONS FunctionInvocationConfiguration
        normalize_function_invocation_configuration
    agents.mcp.naming: MCPSpecificApproval
    agents.mcp.skills_source: MCPSkillsSource
    agents.mcp.tool: MCPTool
    agents.mcp.transports: MCPStdioTool MCPStreamableHTTPTool MCPWebsocketTool
    agents.middleware.bases: AgentMiddleware AgentMiddlewareTypes ChatAndFunctionMiddlewareTypes ChatMiddleware
        ChatMiddlewareTypes FunctionMiddleware FunctionMiddlewareTypes MiddlewareType MiddlewareTypes
        agent_middleware chat_middleware function_middleware
    agents.middleware.contexts: AgentContext ChatContext FunctionInvocationContext
    agents.middleware.layer: AgentMiddlewareLayer
    agents.model.client: BaseChatClient validate_chat_options
    agents.model.embeddings: BaseEmbeddingClient Embedding EmbeddingGenerationOptions EmbeddingInputT EmbeddingT
        GeneratedEmbeddings SupportsGetEmbeddings
    agents.model.layers: ChatMiddlewareLayer FunctionInvocationLayer
    agents.model.protocol: SupportsChatGetResponse SupportsCodeInterpreterTool SupportsFileSearchTool
        SupportsImageGenerationTool SupportsMCPTool SupportsWebSearchTool
    agents.sessions.agent_protocol: SupportsAgentRun resolve_agent_id
    agents.sessions.context_provider: ContextProvider
    agents.sessions.session: AgentSession
    agents.sessions.session_context: SessionContext
    agents.skills.code_skills: ClassSkill InlineSkill InlineSkillResource InlineSkillScript
    agents.skills.file_skills: FileSkill FileSkillScript FileSkillsSource
    agents.skills.frontmatter: SkillFrontmatter
    agents.skills.provider: SkillsProvider
    agents.skills.script_runner: subprocess_script_runner
    agents.skills.skill: Skill SkillResource SkillScript SkillScriptRunner
    agents.skills.sources: AggregatingSkillsSource CachingSkillsSource DeduplicatingSkillsSource
        DelegatingSkillsSource FilteringSkillsSource InMemorySkillsSource SkillsSource
    agents.telemetry.layers: AgentTelemetryLayer ChatTelemetryLayer EmbeddingTelemetryLayer
    agents.tools.collection: ToolTypes normalize_tools validate_tools
    agents.tools.decorator: tool
    agents.tools.function_tool: FunctionTool
    agents.tools.results: SKIP_PARSING
    checkpoints.access: delete_chain lineage list_infos list_workflow_names prune_chain
    checkpoints.checkpoint: CheckpointID WorkflowCheckpoint
    checkpoints.diff: CheckpointDiff diff_checkpoints
    checkpoints.difference.changes: CheckpointChange
    checkpoints.file: FileCheckpointStorage
    checkpoints.fork: fork_checkpoint
    checkpoints.info: CheckpointInfo
    checkpoints.manager: CheckpointManager
    checkpoints.memory: InMemoryCheckpointer=InMemoryCheckpointStorage InMemoryCheckpointStorage
    checkpoints.opening: open_storage
    checkpoints.redis: RedisCheckpointStorage
    checkpoints.sql: SQLCheckpointStorage
    checkpoints.storage: CheckpointStorage SupportsChainNames SupportsCheckpointInfos SupportsHeadCheck
        SupportsPrune
    evaluation.checks: CheckResult EvalCheck evaluator keyword_check tool_call_args_match tool_called_check
        tool_calls_present
    evaluation.comparison: EvalComparison ItemChange compare_evaluations
    evaluation.converter: AgentEvalConverter
    evaluation.agents: evaluate_agent
    evaluation.workflows: evaluate_workflow
    evaluation.items: ConversationSplit ConversationSplitter EvalItem ExpectedToolCall
    evaluation.local: Evaluator LocalEvaluator
    evaluation.results: EvalItemResult EvalResults EvalScoreResult
    exceptions: AdditionItemMismatch AgentBenchException AgentContentFilterException AgentException
        AgentFrameworkException AgentInvalidAuthException AgentInvalidRequestException
        AgentInvalidResponseException CassetteMissError ChatClientContentFilterException ChatClientException
        ChatClientInvalidAuthException ChatClientInvalidRequestException ChatClientInvalidResponseException
        CheckpointNotFoundError ConcurrentUpdateError ContentError EdgeDuplicationError EvalNotPassedError
        ExecutorTimeoutError FormInvalid FunctionCheckpointError GraphCompileError GraphConnectivityError
        GraphError GraphMismatchError GraphRecursionError HistoryFileError IntegrationContentFilterException
        IntegrationException IntegrationInitializationError IntegrationInvalidAuthException
        IntegrationInvalidRequestException IntegrationInvalidResponseException InvalidEdit InvalidUpdateError
        MagicUsageError MessageLimitError MiddlewareException MiddlewareTermination MissingExtraError
        NestedLoopError NoBlockingError NodeError NodeTimeoutError NotebookError OpenAIContentFilterException
        ReducerError RendererUnavailable RenderFailed RequestAlreadyAnswered RequestExpired SettingNotFoundError
        StateValidationError StepperClosed StepperStateError ThreadBusyError ToolException
        ToolExecutionException TypeCompatibilityError UnknownStoredTypeError UnstorableValueError
        UnsupportedSchema UserInputRequiredException ValidationTypeEnum WidgetsUnavailable WorkflowBusyError
        WorkflowCheckpointException WorkflowConvergenceException WorkflowException WorkflowRunnerException
        WorkflowTextError WorkflowValidationError
    messages.content.blocks: TextBlock ToolCallBlock ToolResultBlock
    messages.content.content: Content
    messages.content.media: Annotation TextSpanRegion detect_media_type_from_base64
    messages.inputs: AgentRunInputs normalize_messages prepend_instructions_to_messages
    messages.message: Message Role RoleLiteral
    messages.options: ChatOptions ToolMode merge_chat_options validate_tool_mode
    messages.response: AgentResponse ChatResponse
    messages.stream: FinalT OuterFinalT OuterUpdateT ResponseStream UpdateT
    messages.update: AgentResponseUpdate ChatResponseUpdate ContinuationToken FinishReason FinishReasonLiteral
        map_chat_to_agent_update
    messages.usage: UsageDetails add_usage_details
    observability.attribute_names: OtelAttr
    observability.instruments: get_meter get_tracer
    observability.providers: configure_otel_providers create_metric_views create_resource
    observability.switches: OBSERVABILITY_SETTINGS disable_instrumentation enable_instrumentation
        enable_sensitive_telemetry
    observability.user_agent: AGENT_FRAMEWORK_USER_AGENT APP_INFO USER_AGENT_KEY
        USER_AGENT_TELEMETRY_DISABLED_ENV_VAR prepend_agent_framework_to_user_agent
    orchestrations.agent_executor: AgentExecutor AgentExecutorRequest AgentExecutorResponse
    orchestrations.host_executor: AgentHostExecutor AgentHostOptions AIAgentHostExecutor=AgentHostExecutor
        AIAgentHostOptions=AgentHostOptions TurnToken bind_as_executor
    orchestrations.patterns.concurrent_builder: ConcurrentBuilder
    orchestrations.patterns.group_chat_builder: DEFAULT_ORCHESTRATOR_ID GroupChatBuilder
    orchestrations.patterns.group_chat_manager: AgentBasedGroupChatOrchestrator AgentOrchestrationOutput
    orchestrations.patterns.group_chat_messages: GroupChatParticipantMessage GroupChatRequestMessage
        GroupChatRequestSentEvent GroupChatResponseMessage GroupChatResponseReceivedEvent
        GroupChatSelectionFunction GroupChatState OrchestrationState ParticipantRegistry TerminationCondition
    orchestrations.patterns.group_chat_orchestrator: BaseGroupChatOrchestrator GroupChatOrchestrator
    orchestrations.patterns.handoff_builder: HandoffBuilder
    orchestrations.patterns.handoff_executor: HandoffAgentExecutor
    orchestrations.patterns.handoff_messages: HandoffAgentUserRequest HandoffConfiguration HandoffSentEvent
    orchestrations.patterns.helpers: clean_conversation_for_handoff create_completion_message
    orchestrations.patterns.magentic_builder: MagenticBuilder
    orchestrations.patterns.magentic_manager: MagenticManagerBase StandardMagenticManager
    orchestrations.patterns.magentic_messages: MAGENTIC_MANAGER_NAME ORCH_MSG_KIND_INSTRUCTION
        ORCH_MSG_KIND_NOTICE ORCH_MSG_KIND_TASK_LEDGER ORCH_MSG_KIND_USER_TASK MagenticContext
        MagenticOrchestratorEvent MagenticOrchestratorEventType MagenticPlanReviewRequest
        MagenticPlanReviewResponse MagenticProgressLedger MagenticProgressLedgerItem MagenticResetSignal
    orchestrations.patterns.magentic_orchestrator: MagenticAgentExecutor MagenticOrchestrator
    orchestrations.patterns.participant_executor: AgentRequestInfoResponse
    orchestrations.patterns.sequential_builder: SequentialBuilder
    orchestrations.sequential: AgentWorkflowBuilder build_sequential
    orchestrations.workflow_agent: FunctionalWorkflowAgent WorkflowAgent
    serialization.mixin: SerializationMixin SerializationProtocol
    serialization.pickled: decode_checkpoint_value encode_checkpoint_value
    serialization.state_types: register_state_type
    settings: SecretString load_settings
    stategraph.command: Command Send
    stategraph.compiled: CompiledGraph
    stategraph.graph: StateGraph
    stategraph.interrupts: Breakpoint Continue GraphInterrupt Interrupt interrupt pending_interrupt
    stategraph.reducers: Overwrite Reducer RemoveMessage add_messages append_items remove_tool_messages
        replace_messages replace_value upsert_messages
    stategraph.results: GraphResult ResponseGranularity
    stategraph.running.node: Runtime
    stategraph.snapshots: SnapshotTask StateSnapshot
    stategraph.state: END START AgentState ExecutionState ExecutionStatus StopRequestStatus
    stategraph.streaming: StreamChunk StreamEvent
    stategraph.threads.history: StateHistory
    stategraph.toolnode: ToolNode ToolResult
    workflows.builder.workflow_builder: WorkflowBuilder
    workflows.draw.drawing: WorkflowViz
    workflows.events.events: SuperstepCompletionInfo WorkflowErrorDetails WorkflowEvent WorkflowEventSource
        WorkflowEventType WorkflowRunState
    workflows.executors.approval: Approval
    workflows.executors.context: WorkflowContext
    workflows.executors.executor: Executor RequestInfoMixin
    workflows.executors.function_executor: FunctionExecutor executor
    workflows.executors.handlers: handler response_handler
    workflows.executors.message: MessageType WorkflowMessage
    workflows.executors.options: ExecutorPolicy RunOptions
    workflows.executors.runner_context: RunnerContext
    workflows.executors.state: State
    workflows.functional.context: RunContext get_run_context
    workflows.functional.functional_workflow: FunctionalWorkflow workflow
    workflows.functional.step: StepWrapper step
    workflows.graph.boundary: BoundaryCheckpoint BoundaryHook BoundaryOutcome PauseReason SuperstepView
    workflows.graph.edge_groups: EdgeGroup FanInEdgeGroup InternalEdgeGroup SingleEdgeGroup
    workflows.graph.edges: Case Default Edge EdgeCondition SwitchCaseEdgeGroupCase SwitchCaseEdgeGroupDefault
    workflows.graph.routing: EdgeGroupDeliveryStatus EdgeRunner create_edge_runner
    workflows.graph.selection: FanOutEdgeGroup SwitchCaseEdgeGroup
    workflows.graph.validation: WorkflowGraphValidator validate_workflow_graph
    workflows.nested.messages: SubWorkflowRequestMessage SubWorkflowResponseMessage
    workflows.nested.workflow_executor: WorkflowExecutor
    workflows.pages.in_process: InProcessExecution
    workflows.pages.runner: Runner
    workflows.pages.runner_context: InProcRunnerContext
    workflows.run.report: PlannedDelivery StepReport
    workflows.run.result: WorkflowRunResult
    workflows.run.run: StreamingRun=WorkflowRun WorkflowRun
    workflows.run.stream: WorkflowStream
    workflows.run.workflow: Workflow
    """,
    parts="checkpoints evaluation exceptions notebook observability openai orchestrations stategraph testing",
)
__all__ = _door.names
__getattr__, __dir__ = _door.load, _door.listing


def load_ipython_extension(ip: object) -> None:
    """Run by `%load_ext agentbench` in a notebook."""
    _importlib.import_module("agentbench.notebook").load_ipython_extension(ip)


def unload_ipython_extension(ip: object) -> None:
    """Run by `%unload_ext agentbench` in a notebook."""
    _importlib.import_module("agentbench.notebook").unload_ipython_extension(ip)

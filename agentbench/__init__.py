"""Build agent workflows as graphs, run them one superstep at a time, look inside, rewind and fork them.

The most used names are imported from here: `from agentbench import Executor, handler`. Every other public name is in
one of the packages listed as `parts` below. A name is loaded at its first use: importing the package alone loads
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
    agents.agent.agent: Agent RawAgent
    agents.agent.base_agent: BaseAgent
    agents.clients.scripted.offline: EchoChatClient
    agents.clients.scripted.script: Call
    agents.clients.scripted.scripted: ScriptedChatClient
    agents.compaction.strategies: ContextWindowCompactionStrategy SelectiveToolCallCompactionStrategy
        SlidingWindowStrategy SummarizationStrategy TokenBudgetComposedStrategy ToolResultCompactionStrategy
        TruncationStrategy
    agents.compaction.grouping: COMPACTION_STATE_KEY CharacterEstimatorTokenizer CompactionStrategy EXCLUDED_KEY
        EXCLUDE_REASON_KEY GROUP_ANNOTATION_KEY GROUP_HAS_REASONING_KEY GROUP_ID_KEY GROUP_INDEX_KEY
        GROUP_KIND_KEY GROUP_TOKEN_COUNT_KEY SUMMARIZED_BY_SUMMARY_ID_KEY SUMMARY_OF_GROUP_IDS_KEY
        SUMMARY_OF_MESSAGE_IDS_KEY TokenizerProtocol annotate_message_groups apply_compaction included_messages
        included_token_count
    agents.harness.background: BackgroundAgentsProvider BackgroundTaskInfo BackgroundTaskStatus
        DEFAULT_BACKGROUND_AGENTS_SOURCE_ID
    agents.harness.files.access: FileAccessProvider
    agents.harness.files.file_system: FileSystemAgentFileStore
    agents.harness.files.memory: FileMemoryProvider
    agents.harness.files.store: AgentFileStore FileSearchMatch FileSearchResult FileStoreEntry InMemoryAgentFileStore
    agents.harness.harness_agent: DEFAULT_HARNESS_INSTRUCTIONS create_harness_agent
    agents.harness.loop_conditions: background_tasks_running background_tasks_running_message todos_remaining
        todos_remaining_message
    agents.harness.memory: DEFAULT_MEMORY_SOURCE_ID MemoryContextProvider
    agents.harness.memory_store: MemoryFileStore MemoryIndexEntry MemoryStore MemoryTopicRecord
    agents.harness.modes: AgentModeProvider DEFAULT_MODE_SOURCE_ID get_agent_mode set_agent_mode
    agents.harness.todo: DEFAULT_TODO_SOURCE_ID TodoFileStore TodoInput TodoItem TodoProvider TodoSessionStore
        TodoStore
    agents.history.compaction_provider: CompactionProvider
    agents.history.file_history: FileHistoryProvider
    agents.history.history: HistoryProvider InMemoryHistoryProvider
    agents.loop.configuration: DEFAULT_MAX_ITERATIONS FunctionInvocationConfiguration
        normalize_function_invocation_configuration
    agents.loop.tool_approval: ToolApprovalMiddleware
    agents.mcp.listing: MCPSpecificApproval
    agents.mcp.skills_source: MCPSkillsSource
    agents.mcp.tool: MCPTool
    agents.mcp.transports: MCPStdioTool MCPStreamableHTTPTool MCPWebsocketTool
    agents.middleware.bundle: MiddlewareBundle
    agents.middleware.contexts: AgentContext AgentMiddleware AgentMiddlewareTypes ChatAndFunctionMiddlewareTypes
        ChatContext ChatMiddleware ChatMiddlewareTypes FunctionInvocationContext FunctionMiddleware
        FunctionMiddlewareTypes MiddlewareType MiddlewareTypes agent_middleware chat_middleware
        function_middleware
    agents.middleware.judge: JudgeVerdict
    agents.middleware.layer: AgentMiddlewareLayer
    agents.middleware.loop: AgentLoopMiddleware AgentRound
    agents.model.client: BaseChatClient validate_chat_options
    agents.model.embeddings: BaseEmbeddingClient Embedding EmbeddingGenerationOptions EmbeddingInputT EmbeddingT
        GeneratedEmbeddings SupportsGetEmbeddings
    agents.model.layers: ChatMiddlewareLayer FunctionInvocationLayer
    agents.model.protocol: SupportsChatGetResponse SupportsCodeInterpreterTool SupportsFileSearchTool
        SupportsImageGenerationTool SupportsMCPTool SupportsWebSearchTool
    agents.sessions.agent_protocol: ContextProvider SupportsAgentRun resolve_agent_id
    agents.sessions.injection: MessageInjectionMiddleware enqueue_messages
    agents.sessions.session: AgentSession
    agents.sessions.session_context: SessionContext
    agents.sessions.stores: FileSessionStore SessionStore
    agents.sessions.tool_approvals: ToolApprovalRule ToolApprovalState create_always_approve_tool_response
        create_always_approve_tool_with_arguments_response
    agents.skills.code_skills: ClassSkill InlineSkill InlineSkillResource InlineSkillScript
    agents.skills.file_skills: FileSkill FileSkillScript FileSkillsSource
    agents.skills.skill: Skill SkillFrontmatter SkillResource SkillScript SkillScriptArgumentParser SkillScriptRunner
    agents.skills.provider: SkillsProvider
    agents.skills.script_runner: subprocess_script_runner
    agents.skills.sources: AggregatingSkillsSource CachingSkillsSource DeduplicatingSkillsSource
        DelegatingSkillsSource FilteringSkillsSource InMemorySkillsSource SkillsSource SkillsSourceContext
    agents.tools.collection: ToolTypes normalize_tools validate_tools
    agents.tools.decorator: tool
    agents.tools.function_tool: FunctionTool
    agents.tools.results: SKIP_PARSING
    checkpoints.checkpoint: CheckpointID WorkflowCheckpoint
    checkpoints.file: FileCheckpointStorage
    checkpoints.info: CheckpointInfo
    checkpoints.manager: CheckpointManager
    checkpoints.memory: InMemoryCheckpointStorage
    checkpoints.sql: SQLCheckpointStorage
    checkpoints.storage: CheckpointStorage
    evaluation.checks: CheckResult evaluator keyword_check tool_call_args_match tool_called_check
        tool_calls_present
    evaluation.converter: AgentEvalConverter
    evaluation.agents: evaluate_agent
    evaluation.workflows: evaluate_workflow
    evaluation.items: ConversationSplit ConversationSplitter EvalItem ExpectedToolCall
    evaluation.local: Evaluator LocalEvaluator
    evaluation.results: EvalItemResult EvalResults EvalScoreResult RubricScore
    exceptions: AgentFrameworkException EdgeDuplicationError EvalNotPassedError GraphConnectivityError
        MiddlewareException MiddlewareTermination ResponseInvalidatedException TypeCompatibilityError
        UserInputRequiredException ValidationTypeEnum WorkflowCheckpointException WorkflowConvergenceException
        WorkflowException WorkflowRunnerException WorkflowValidationError
        MiddlewareException MiddlewareFailure MiddlewareTermination TypeCompatibilityError
        UserInputRequiredException
        ValidationTypeEnum WorkflowCheckpointException WorkflowConvergenceException WorkflowException
        WorkflowRunnerException WorkflowValidationError
    messages.content.content: Content
    messages.content.properties: get_namespaced_value merge_additional_properties with_namespaced_value
    messages.content.media: Annotation TextSpanRegion detect_media_type_from_base64
    messages.inputs: AgentRunInputs normalize_messages prepend_instructions_to_messages
    messages.message: Message Role RoleLiteral
    messages.options: ChatOptions ToolMode merge_chat_options validate_tool_mode
    messages.response: AgentResponse ChatResponse
    messages.stream: FinalT OuterFinalT OuterUpdateT ResponseStream UpdateT
    messages.update: AgentResponseUpdate ChatResponseUpdate ContinuationToken FinishReason FinishReasonLiteral
        map_chat_to_agent_update
    messages.usage: Budget UsageDetails add_usage_details
    observability.feature_stages: ExperimentalFeature ReleaseCandidateFeature
    observability.user_agent: AGENT_FRAMEWORK_USER_AGENT APP_INFO USER_AGENT_KEY
        USER_AGENT_TELEMETRY_DISABLED_ENV_VAR prepend_agent_framework_to_user_agent
    orchestrations.agent_executor: AgentExecutor AgentExecutorCheckpointState AgentExecutorRequest AgentExecutorResponse
    orchestrations.host_executor: AIAgentHostExecutor=AgentHostExecutor AIAgentHostOptions=AgentHostOptions
        AgentHostExecutor AgentHostOptions TurnToken bind_as_executor
    orchestrations.patterns.sequential_builder: AgentWorkflowBuilder
    orchestrations.functional_agent: FunctionalWorkflowAgent
    orchestrations.workflow_agent: WorkflowAgent
    serialization.mixin: SerializationMixin SerializationProtocol
    serialization.state_types: register_checkpoint_type=register_state_type register_state_type
    settings: SecretString load_settings
    stategraph.graph: StateGraph
    stategraph.reducers: add_messages append_items replace_messages replace_value
    stategraph.results: ResponseGranularity
    stategraph.state: AgentState
    workflows.builder.workflow_builder: WorkflowBuilder
    workflows.draw.drawing: WorkflowViz
    workflows.engine.run_kwargs: WorkflowInvocationKwargs
    workflows.events.events: SuperstepCompletionInfo WorkflowErrorDetails WorkflowEvent WorkflowEventSource
        WorkflowEventType WorkflowRunState
    workflows.executors.approval: Approval
    workflows.executors.context: WorkflowContext
    workflows.executors.executor: Executor RequestInfoMixin
    workflows.executors.function_executor: FunctionExecutor executor
    workflows.executors.handlers: handler response_handler
    workflows.executors.message: MessageType WorkflowMessage
    workflows.executors.options: ExecutorPolicy RunOptions
    workflows.executors.host: RunnerContext
    workflows.executors.state: State
    workflows.functional.context: RunContext StepWrapper get_run_context step
    workflows.functional.functional_workflow: FunctionalWorkflow FunctionalWorkflowDefinition workflow
    workflows.graph.boundary: BoundaryCheckpoint BoundaryHook BoundaryOutcome PauseReason SuperstepView
    workflows.graph.edge_groups: EdgeGroup FanInEdgeGroup InternalEdgeGroup SingleEdgeGroup
    workflows.graph.edges: Case Default Edge EdgeCondition SwitchCaseEdgeGroupCase SwitchCaseEdgeGroupDefault
    workflows.graph.routing: EdgeGroupDeliveryStatus EdgeRunner create_edge_runner
    workflows.graph.selection: FanOutEdgeGroup SwitchCaseEdgeGroup
    workflows.graph.validation: WorkflowGraphValidator validate_workflow_graph
    workflows.nested: SubWorkflowRequestMessage SubWorkflowResponseMessage WorkflowExecutor
    workflows.by_hand.calls: InProcessExecution
    workflows.by_hand.runner: Runner
    workflows.by_hand.runner_context: InProcRunnerContext
    workflows.run.result: WorkflowRunResult
    workflows.run.run: StreamingRun=WorkflowRun WorkflowRun
    workflows.run.step_report: PlannedDelivery StepReport
    workflows.run.stream: WorkflowStream
    workflows.run.workflow: Workflow
    """,
    parts="""
    batch checkpoints evaluation exceptions notebook observability openai orchestrations revisions stategraph testing
    """,
)
__all__ = _door.names
__getattr__, __dir__ = _door.load, _door.listing


def load_ipython_extension(ip: object) -> None:
    """Run by `%load_ext agentbench` in a notebook."""
    _importlib.import_module("agentbench.notebook").load_ipython_extension(ip)


def unload_ipython_extension(ip: object) -> None:
    """Run by `%unload_ext agentbench` in a notebook."""
    _importlib.import_module("agentbench.notebook").unload_ipython_extension(ip)

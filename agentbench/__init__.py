"""agentbench: agent workflows as graphs, to be run, seen, stepped, rewound and forked.

Every public name is found here, `from agentbench import Executor, handler`, and loaded when it is first touched;
importing the package alone loads nothing. The modules behind the names are internal.

To add a name, enter it in the table below and run `python -m tests.tools.write_stub`, which keeps `__init__.pyi`,
the twin that editors and type checkers read, in step.
"""

import importlib as _importlib
import sys as _sys

__version__ = "0.1.0"

# Module -> the public names that it defines.
_NAMES_OF = {
    "agentbench._bridge": ("run_sync",),
    "agentbench._clock": (
        "Clock",
        "CountingIds",
        "IdSource",
        "RandomIds",
        "SystemClock",
        "TickingClock",
        "set_runtime_defaults",
    ),
    "agentbench.agents.agent.agent": ("Agent",),
    "agentbench.agents.agent.base_agent": ("BaseAgent",),
    "agentbench.agents.model.client": ("BaseChatClient", "validate_chat_options"),
    "agentbench.agents.model.embeddings": (
        "BaseEmbeddingClient",
        "Embedding",
        "EmbeddingGenerationOptions",
        "EmbeddingInputT",
        "EmbeddingT",
        "GeneratedEmbeddings",
        "SupportsGetEmbeddings",
    ),
    "agentbench.agents.model.layers": ("ChatMiddlewareLayer", "FunctionInvocationLayer"),
    "agentbench.agents.model.protocol": (
        "SupportsChatGetResponse",
        "SupportsCodeInterpreterTool",
        "SupportsFileSearchTool",
        "SupportsImageGenerationTool",
        "SupportsMCPTool",
        "SupportsWebSearchTool",
    ),
    "agentbench.agents.clients.cassette.client": ("CassetteChatClient",),
    "agentbench.agents.clients.scripted.offline": ("EchoChatClient", "OfflineChatClient", "default_chat_client"),
    "agentbench.agents.clients.openai.chat.completions": ("OpenAIChatCompletionOptions", "OpenAIChatOptions"),
    "agentbench.agents.clients.openai.client": (
        "OpenAIChatClient",
        "OpenAIChatCompletionClient",
        "OpenAIResponsesClient",
        "RawOpenAIChatClient",
        "RawOpenAIChatCompletionClient",
    ),
    "agentbench.agents.clients.openai.embeddings": ("OpenAIEmbeddingClient", "OpenAIEmbeddingOptions"),
    "agentbench.agents.clients.openai.errors": ("ContentFilterResultSeverity",),
    "agentbench.agents.clients.openai.responses.output": ("OpenAIContinuationToken",),
    "agentbench.agents.clients.openai.settings": ("OpenAISettings",),
    "agentbench.agents.clients.scripted.script": ("Call",),
    "agentbench.agents.clients.scripted.scripted": ("ScriptedChatClient",),
    "agentbench.agents.compaction.budgets": ("ContextWindowCompactionStrategy", "TokenBudgetComposedStrategy"),
    "agentbench.agents.compaction.grouping": ("annotate_message_groups",),
    "agentbench.agents.compaction.projection": ("apply_compaction", "included_messages", "included_token_count"),
    "agentbench.agents.compaction.protocols": (
        "COMPACTION_STATE_KEY",
        "EXCLUDED_KEY",
        "EXCLUDE_REASON_KEY",
        "GROUP_ANNOTATION_KEY",
        "GROUP_HAS_REASONING_KEY",
        "GROUP_ID_KEY",
        "GROUP_INDEX_KEY",
        "GROUP_KIND_KEY",
        "GROUP_TOKEN_COUNT_KEY",
        "SUMMARIZED_BY_SUMMARY_ID_KEY",
        "SUMMARY_OF_GROUP_IDS_KEY",
        "SUMMARY_OF_MESSAGE_IDS_KEY",
        "CharacterEstimatorTokenizer",
        "CompactionStrategy",
        "TokenizerProtocol",
    ),
    "agentbench.agents.mcp.naming": ("MCPSpecificApproval",),
    "agentbench.agents.mcp.skills_source": ("MCPSkillsSource",),
    "agentbench.agents.mcp.tool": ("MCPTool",),
    "agentbench.agents.mcp.transports": ("MCPStdioTool", "MCPStreamableHTTPTool", "MCPWebsocketTool"),
    "agentbench.agents.middleware.bases": (
        "AgentMiddleware",
        "AgentMiddlewareTypes",
        "ChatAndFunctionMiddlewareTypes",
        "ChatMiddleware",
        "ChatMiddlewareTypes",
        "FunctionMiddleware",
        "FunctionMiddlewareTypes",
        "MiddlewareType",
        "MiddlewareTypes",
        "agent_middleware",
        "chat_middleware",
        "function_middleware",
    ),
    "agentbench.agents.middleware.contexts": ("AgentContext", "ChatContext", "FunctionInvocationContext"),
    "agentbench.agents.middleware.layer": ("AgentMiddlewareLayer",),
    "agentbench.agents.sessions.agent_protocol": ("SupportsAgentRun", "resolve_agent_id"),
    "agentbench.agents.agent.raw_agent": ("RawAgent",),
    "agentbench.agents.skills.code_skills": (
        "ClassSkill",
        "InlineSkill",
        "InlineSkillResource",
        "InlineSkillScript",
    ),
    "agentbench.agents.skills.file_skills": ("FileSkill", "FileSkillScript", "FileSkillsSource"),
    "agentbench.agents.skills.frontmatter": ("SkillFrontmatter",),
    "agentbench.agents.skills.provider": ("SkillsProvider",),
    "agentbench.agents.skills.script_runner": ("subprocess_script_runner",),
    "agentbench.agents.skills.skill": ("Skill", "SkillResource", "SkillScript", "SkillScriptRunner"),
    "agentbench.agents.skills.sources": (
        "AggregatingSkillsSource",
        "CachingSkillsSource",
        "DeduplicatingSkillsSource",
        "DelegatingSkillsSource",
        "FilteringSkillsSource",
        "InMemorySkillsSource",
        "SkillsSource",
    ),
    "agentbench.agents.telemetry.layers": ("AgentTelemetryLayer", "ChatTelemetryLayer", "EmbeddingTelemetryLayer"),
    "agentbench.agents.sessions.context_provider": ("ContextProvider",),
    "agentbench.agents.compaction.strategies": (
        "SelectiveToolCallCompactionStrategy",
        "SlidingWindowStrategy",
        "SummarizationStrategy",
        "ToolResultCompactionStrategy",
        "TruncationStrategy",
    ),
    "agentbench.agents.harness.background": (
        "DEFAULT_BACKGROUND_AGENTS_SOURCE_ID",
        "BackgroundAgentsProvider",
        "BackgroundTaskInfo",
        "BackgroundTaskStatus",
    ),
    "agentbench.agents.harness.harness_agent": ("DEFAULT_HARNESS_INSTRUCTIONS", "create_harness_agent"),
    "agentbench.agents.harness.memory": ("DEFAULT_MEMORY_SOURCE_ID", "MemoryContextProvider"),
    "agentbench.agents.harness.memory_records": ("MemoryIndexEntry", "MemoryTopicRecord"),
    "agentbench.agents.harness.memory_store": ("MemoryFileStore", "MemoryStore"),
    "agentbench.agents.harness.modes": (
        "DEFAULT_MODE_SOURCE_ID",
        "AgentModeProvider",
        "get_agent_mode",
        "set_agent_mode",
    ),
    "agentbench.agents.harness.todo": ("DEFAULT_TODO_SOURCE_ID", "TodoProvider"),
    "agentbench.agents.harness.todo_store": (
        "TodoFileStore",
        "TodoInput",
        "TodoItem",
        "TodoSessionStore",
        "TodoStore",
    ),
    "agentbench.agents.history.compaction_provider": ("CompactionProvider",),
    "agentbench.agents.history.file_history": ("FileHistoryProvider",),
    "agentbench.agents.history.history": ("HistoryProvider", "InMemoryHistoryProvider"),
    "agentbench.agents.sessions.session": ("AgentSession",),
    "agentbench.agents.sessions.session_context": ("SessionContext",),
    "agentbench.agents.loop.configuration": (
        "DEFAULT_MAX_ITERATIONS",
        "FunctionInvocationConfiguration",
        "normalize_function_invocation_configuration",
    ),
    "agentbench.agents.tools.collection": ("ToolTypes", "normalize_tools", "validate_tools"),
    "agentbench.agents.tools.decorator": ("tool",),
    "agentbench.agents.tools.function_tool": ("FunctionTool",),
    "agentbench.agents.tools.results": ("SKIP_PARSING",),
    "agentbench.checkpoints.access": (
        "delete_chain",
        "lineage",
        "list_infos",
        "list_workflow_names",
        "prune_chain",
    ),
    "agentbench.checkpoints.checkpoint": ("CheckpointID", "WorkflowCheckpoint"),
    "agentbench.checkpoints.difference.changes": ("CheckpointChange",),
    "agentbench.checkpoints.diff": ("CheckpointDiff", "diff_checkpoints"),
    "agentbench.checkpoints.file": ("FileCheckpointStorage",),
    "agentbench.checkpoints.fork": ("fork_checkpoint",),
    "agentbench.checkpoints.info": ("CheckpointInfo",),
    "agentbench.checkpoints.manager": ("CheckpointManager",),
    "agentbench.checkpoints.memory": ("InMemoryCheckpointStorage",),
    "agentbench.checkpoints.opening": ("open_storage",),
    "agentbench.checkpoints.redis": ("RedisCheckpointStorage",),
    "agentbench.checkpoints.sql": ("SQLCheckpointStorage",),
    "agentbench.checkpoints.storage": (
        "CheckpointStorage",
        "SupportsChainNames",
        "SupportsCheckpointInfos",
        "SupportsHeadCheck",
        "SupportsPrune",
    ),
    "agentbench.evaluation.checks": (
        "CheckResult",
        "EvalCheck",
        "evaluator",
        "keyword_check",
        "tool_call_args_match",
        "tool_called_check",
        "tool_calls_present",
    ),
    "agentbench.evaluation.comparison": ("EvalComparison", "ItemChange", "compare_evaluations"),
    "agentbench.evaluation.converter": ("AgentEvalConverter",),
    "agentbench.evaluation.evaluate_agent": ("evaluate_agent",),
    "agentbench.evaluation.evaluate_workflow": ("evaluate_workflow",),
    "agentbench.evaluation.items": ("ConversationSplit", "ConversationSplitter", "EvalItem", "ExpectedToolCall"),
    "agentbench.evaluation.local": ("Evaluator", "LocalEvaluator"),
    "agentbench.evaluation.results": ("EvalItemResult", "EvalResults", "EvalScoreResult"),
    "agentbench.exceptions": (
        "AdditionItemMismatch",
        "AgentBenchException",
        "AgentContentFilterException",
        "AgentException",
        "AgentFrameworkException",
        "AgentInvalidAuthException",
        "AgentInvalidRequestException",
        "AgentInvalidResponseException",
        "CassetteMissError",
        "ChatClientContentFilterException",
        "ChatClientException",
        "ChatClientInvalidAuthException",
        "ChatClientInvalidRequestException",
        "ChatClientInvalidResponseException",
        "CheckpointNotFoundError",
        "ConcurrentUpdateError",
        "ContentError",
        "EdgeDuplicationError",
        "EvalNotPassedError",
        "ExecutorTimeoutError",
        "FormInvalid",
        "FunctionCheckpointError",
        "GraphCompileError",
        "GraphConnectivityError",
        "GraphError",
        "GraphMismatchError",
        "GraphRecursionError",
        "HistoryFileError",
        "IntegrationContentFilterException",
        "IntegrationException",
        "IntegrationInitializationError",
        "IntegrationInvalidAuthException",
        "IntegrationInvalidRequestException",
        "IntegrationInvalidResponseException",
        "InvalidEdit",
        "InvalidUpdateError",
        "MagicUsageError",
        "MessageLimitError",
        "MiddlewareException",
        "MiddlewareTermination",
        "MissingExtraError",
        "NestedLoopError",
        "NoBlockingError",
        "NodeError",
        "NodeTimeoutError",
        "NotebookError",
        "OpenAIContentFilterException",
        "ReducerError",
        "RenderFailed",
        "RendererUnavailable",
        "RequestAlreadyAnswered",
        "RequestExpired",
        "SettingNotFoundError",
        "StateValidationError",
        "StepperClosed",
        "StepperStateError",
        "ThreadBusyError",
        "ToolException",
        "ToolExecutionException",
        "TypeCompatibilityError",
        "UnknownStoredTypeError",
        "UnstorableValueError",
        "UnsupportedSchema",
        "UserInputRequiredException",
        "ValidationTypeEnum",
        "WidgetsUnavailable",
        "WorkflowBusyError",
        "WorkflowCheckpointException",
        "WorkflowConvergenceException",
        "WorkflowException",
        "WorkflowRunnerException",
        "WorkflowTextError",
        "WorkflowValidationError",
    ),
    "agentbench.messages.content.blocks": ("TextBlock", "ToolCallBlock", "ToolResultBlock"),
    "agentbench.messages.content.content": ("Content",),
    "agentbench.messages.inputs": ("AgentRunInputs", "normalize_messages", "prepend_instructions_to_messages"),
    "agentbench.messages.content.media": ("Annotation", "TextSpanRegion", "detect_media_type_from_base64"),
    "agentbench.messages.message": ("Message", "Role", "RoleLiteral"),
    "agentbench.messages.options": ("ChatOptions", "ToolMode", "merge_chat_options", "validate_tool_mode"),
    "agentbench.messages.response": ("AgentResponse", "ChatResponse"),
    "agentbench.messages.stream": ("FinalT", "OuterFinalT", "OuterUpdateT", "ResponseStream", "UpdateT"),
    "agentbench.messages.update": (
        "AgentResponseUpdate",
        "ChatResponseUpdate",
        "ContinuationToken",
        "FinishReason",
        "FinishReasonLiteral",
        "map_chat_to_agent_update",
    ),
    "agentbench.messages.usage": ("UsageDetails", "add_usage_details"),
    "agentbench.observability.attribute_names": ("OtelAttr",),
    "agentbench.observability.instruments": ("get_meter", "get_tracer"),
    "agentbench.observability.providers": ("configure_otel_providers", "create_metric_views", "create_resource"),
    "agentbench.observability.switches": (
        "OBSERVABILITY_SETTINGS",
        "disable_instrumentation",
        "enable_instrumentation",
        "enable_sensitive_telemetry",
    ),
    "agentbench.observability.user_agent": (
        "AGENT_FRAMEWORK_USER_AGENT",
        "APP_INFO",
        "USER_AGENT_KEY",
        "USER_AGENT_TELEMETRY_DISABLED_ENV_VAR",
        "prepend_agent_framework_to_user_agent",
    ),
    "agentbench.orchestrations.agent_executor": ("AgentExecutor", "AgentExecutorRequest", "AgentExecutorResponse"),
    "agentbench.orchestrations.host_executor": (
        "AgentHostExecutor",
        "AgentHostOptions",
        "TurnToken",
        "bind_as_executor",
    ),
    "agentbench.orchestrations.patterns.concurrent_builder": ("ConcurrentBuilder",),
    "agentbench.orchestrations.patterns.group_chat_builder": ("DEFAULT_ORCHESTRATOR_ID", "GroupChatBuilder"),
    "agentbench.orchestrations.patterns.group_chat_manager": (
        "AgentBasedGroupChatOrchestrator",
        "AgentOrchestrationOutput",
    ),
    "agentbench.orchestrations.patterns.group_chat_messages": (
        "GroupChatParticipantMessage",
        "GroupChatRequestMessage",
        "GroupChatRequestSentEvent",
        "GroupChatResponseMessage",
        "GroupChatResponseReceivedEvent",
        "GroupChatSelectionFunction",
        "GroupChatState",
        "OrchestrationState",
        "ParticipantRegistry",
        "TerminationCondition",
    ),
    "agentbench.orchestrations.patterns.group_chat_orchestrator": (
        "BaseGroupChatOrchestrator",
        "GroupChatOrchestrator",
    ),
    "agentbench.orchestrations.patterns.handoff_builder": ("HandoffBuilder",),
    "agentbench.orchestrations.patterns.handoff_executor": ("HandoffAgentExecutor",),
    "agentbench.orchestrations.patterns.handoff_messages": (
        "HandoffAgentUserRequest",
        "HandoffConfiguration",
        "HandoffSentEvent",
    ),
    "agentbench.orchestrations.patterns.helpers": (
        "clean_conversation_for_handoff",
        "create_completion_message",
    ),
    "agentbench.orchestrations.patterns.magentic_builder": ("MagenticBuilder",),
    "agentbench.orchestrations.patterns.magentic_manager": (
        "MagenticManagerBase",
        "StandardMagenticManager",
    ),
    "agentbench.orchestrations.patterns.magentic_messages": (
        "MAGENTIC_MANAGER_NAME",
        "MagenticContext",
        "MagenticOrchestratorEvent",
        "MagenticOrchestratorEventType",
        "MagenticPlanReviewRequest",
        "MagenticPlanReviewResponse",
        "MagenticProgressLedger",
        "MagenticProgressLedgerItem",
        "MagenticResetSignal",
        "ORCH_MSG_KIND_INSTRUCTION",
        "ORCH_MSG_KIND_NOTICE",
        "ORCH_MSG_KIND_TASK_LEDGER",
        "ORCH_MSG_KIND_USER_TASK",
    ),
    "agentbench.orchestrations.patterns.magentic_orchestrator": (
        "MagenticAgentExecutor",
        "MagenticOrchestrator",
    ),
    "agentbench.orchestrations.patterns.participant_executor": ("AgentRequestInfoResponse",),
    "agentbench.orchestrations.patterns.sequential_builder": ("SequentialBuilder",),
    "agentbench.orchestrations.sequential": ("AgentWorkflowBuilder", "build_sequential"),
    "agentbench.orchestrations.workflow_agent": ("FunctionalWorkflowAgent", "WorkflowAgent"),
    "agentbench.serialization.mixin": ("SerializationMixin", "SerializationProtocol"),
    "agentbench.serialization.pickled": ("decode_checkpoint_value", "encode_checkpoint_value"),
    "agentbench.serialization.state_types": ("register_state_type",),
    "agentbench.settings": ("SecretString", "load_settings"),
    "agentbench.stategraph.command": (
        "Command",
        "Send",
    ),
    "agentbench.stategraph.compiled": ("CompiledGraph",),
    "agentbench.stategraph.graph": ("StateGraph",),
    "agentbench.stategraph.threads.history": ("StateHistory",),
    "agentbench.stategraph.interrupts": (
        "Breakpoint",
        "Continue",
        "GraphInterrupt",
        "Interrupt",
        "interrupt",
        "pending_interrupt",
    ),
    "agentbench.stategraph.reducers": (
        "Overwrite",
        "Reducer",
        "RemoveMessage",
        "add_messages",
        "append_items",
        "remove_tool_messages",
        "replace_messages",
        "replace_value",
        "upsert_messages",
    ),
    "agentbench.stategraph.results": (
        "GraphResult",
        "ResponseGranularity",
    ),
    "agentbench.stategraph.running.node": ("Runtime",),
    "agentbench.stategraph.snapshots": (
        "SnapshotTask",
        "StateSnapshot",
    ),
    "agentbench.stategraph.state": (
        "END",
        "START",
        "AgentState",
        "ExecutionState",
        "ExecutionStatus",
        "StopRequestStatus",
    ),
    "agentbench.stategraph.streaming": (
        "StreamChunk",
        "StreamEvent",
    ),
    "agentbench.stategraph.toolnode": (
        "ToolNode",
        "ToolResult",
    ),
    "agentbench.workflows.executors.approval": ("Approval",),
    "agentbench.workflows.graph.boundary": (
        "BoundaryCheckpoint",
        "BoundaryHook",
        "BoundaryOutcome",
        "PauseReason",
        "SuperstepView",
    ),
    "agentbench.workflows.builder.workflow_builder": ("WorkflowBuilder",),
    "agentbench.workflows.executors.context": ("WorkflowContext",),
    "agentbench.workflows.draw.drawing": ("WorkflowViz",),
    "agentbench.workflows.graph.edges": (
        "Case",
        "Default",
        "Edge",
        "EdgeCondition",
        "SwitchCaseEdgeGroupCase",
        "SwitchCaseEdgeGroupDefault",
    ),
    "agentbench.workflows.graph.edge_groups": ("EdgeGroup", "FanInEdgeGroup", "InternalEdgeGroup", "SingleEdgeGroup"),
    "agentbench.workflows.events.events": (
        "SuperstepCompletionInfo",
        "WorkflowErrorDetails",
        "WorkflowEvent",
        "WorkflowEventSource",
        "WorkflowEventType",
        "WorkflowRunState",
    ),
    "agentbench.workflows.executors.executor": ("Executor", "RequestInfoMixin"),
    "agentbench.workflows.executors.function_executor": ("FunctionExecutor", "executor"),
    "agentbench.workflows.executors.handlers": ("handler", "response_handler"),
    "agentbench.workflows.functional.context": ("RunContext", "get_run_context"),
    "agentbench.workflows.functional.functional_workflow": ("FunctionalWorkflow", "workflow"),
    "agentbench.workflows.functional.step": ("StepWrapper", "step"),
    "agentbench.workflows.nested.messages": ("SubWorkflowRequestMessage", "SubWorkflowResponseMessage"),
    "agentbench.workflows.nested.workflow_executor": ("WorkflowExecutor",),
    "agentbench.workflows.pages.in_process": ("InProcessExecution",),
    "agentbench.workflows.executors.message": ("MessageType", "WorkflowMessage"),
    "agentbench.workflows.executors.options": ("ExecutorPolicy", "RunOptions"),
    "agentbench.workflows.run.report": ("PlannedDelivery", "StepReport"),
    "agentbench.workflows.run.result": ("WorkflowRunResult",),
    "agentbench.workflows.graph.routing": ("EdgeGroupDeliveryStatus", "EdgeRunner", "create_edge_runner"),
    "agentbench.workflows.run.run": ("WorkflowRun",),
    "agentbench.workflows.pages.runner": ("Runner",),
    "agentbench.workflows.executors.runner_context": ("RunnerContext",),
    "agentbench.workflows.pages.runner_context": ("InProcRunnerContext",),
    "agentbench.workflows.graph.selection": ("FanOutEdgeGroup", "SwitchCaseEdgeGroup"),
    "agentbench.workflows.executors.state": ("State",),
    "agentbench.workflows.run.stream": ("WorkflowStream",),
    "agentbench.workflows.graph.validation": ("WorkflowGraphValidator", "validate_workflow_graph"),
    "agentbench.workflows.run.workflow": ("Workflow",),
}

# Second names of the same things.
_ALIASES = {
    "AIAgentHostExecutor": "AgentHostExecutor",
    "AIAgentHostOptions": "AgentHostOptions",
    "InMemoryCheckpointer": "InMemoryCheckpointStorage",
    "StreamingRun": "WorkflowRun",
}

# Parts with a door of their own: `agentbench.notebook.draw`.
_SUBMODULES = ("exceptions", "notebook", "observability", "openai", "orchestrations", "stategraph", "testing")

_MODULE_OF = {name: module for module, names in _NAMES_OF.items() for name in names}

__all__ = sorted([*_MODULE_OF, *_ALIASES])


if (
    _sys.modules.get("IPython") is not None
):  # as in a notebook: errors are shown without the library's frames from the first cell on
    _importlib.import_module("agentbench._user_code").shorten_in_notebooks()


def __getattr__(name: str) -> object:
    original = _ALIASES.get(name, name)
    if original in _MODULE_OF:
        value = getattr(_importlib.import_module(_MODULE_OF[original]), original)
        value = _importlib.import_module("agentbench._arguments").name_arguments(value)
    elif name in _SUBMODULES:
        value = _importlib.import_module(f"agentbench.{name}")
    else:
        raise _missing(name, importing=_sys._getframe(1).f_code.co_name == "_handle_fromlist")  # noqa: SLF001 - documented
    if name != "APP_INFO":  # it follows a variable of the environment
        globals()[name] = value
    return value


def _missing(name: str, *, importing: bool) -> Exception:
    """Say where a name is, or which one may have been meant.

    `from agentbench import NAME` replaces an `AttributeError` by a message of its own, so it gets an `ImportError`.
    """
    message = f"module 'agentbench' has no attribute {name!r}"
    if name.startswith("_") or (importing and _is_inner_module(name)):
        return AttributeError(message)
    elsewhere = _importlib.import_module("agentbench.notebook")._MODULE_OF  # noqa: SLF001 - the other lazy table
    if name in elsewhere:
        hint = f"It is in the notebook layer: from agentbench.notebook import {name}"
    else:
        known = [*__all__, *_SUBMODULES, *elsewhere]
        close = _importlib.import_module("difflib").get_close_matches(name, known, n=1)
        if not close:
            return AttributeError(message)
        home = "agentbench.notebook" if close[0] in elsewhere and close[0] not in __all__ else "agentbench"
        hint = f"Did you mean {close[0]!r}? from {home} import {close[0]}"
    if importing:
        return ImportError(f"cannot import name {name!r} from 'agentbench'. {hint}", name="agentbench", path=__file__)
    return AttributeError(f"{message}. {hint}", name=name)  # with its `obj`, too, Python would add a second guess


def _is_inner_module(name: str) -> bool:
    finder = _importlib.import_module("importlib.machinery").PathFinder
    return finder.find_spec(f"agentbench.{name}", __path__) is not None


def __dir__() -> list[str]:
    own = [name for name in globals() if name.startswith("__")]
    return sorted({*own, *__all__, *_SUBMODULES, "load_ipython_extension", "unload_ipython_extension"})


def load_ipython_extension(ip: object) -> None:
    """Run by `%load_ext agentbench` in a notebook."""
    _importlib.import_module("agentbench.notebook").load_ipython_extension(ip)


def unload_ipython_extension(ip: object) -> None:
    """Run by `%unload_ext agentbench` in a notebook."""
    _importlib.import_module("agentbench.notebook").unload_ipython_extension(ip)

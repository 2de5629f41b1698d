"""Typed stub of the lazy names; written by tests/tools/write_stub.py, not by hand."""

from agentbench import checkpoints as checkpoints
from agentbench import evaluation as evaluation
from agentbench import exceptions as exceptions
from agentbench import notebook as notebook
from agentbench import observability as observability
from agentbench import openai as openai
from agentbench import orchestrations as orchestrations
from agentbench import stategraph as stategraph
from agentbench import testing as testing
from agentbench._bridge import run_sync as run_sync
from agentbench._clock import Clock as Clock
from agentbench._clock import CountingIds as CountingIds
from agentbench._clock import IdSource as IdSource
from agentbench._clock import RandomIds as RandomIds
from agentbench._clock import SystemClock as SystemClock
from agentbench._clock import TickingClock as TickingClock
from agentbench._clock import set_runtime_defaults as set_runtime_defaults
from agentbench._lazy import Door
from agentbench.agents.agent.agent import Agent as Agent
from agentbench.agents.agent.base_agent import BaseAgent as BaseAgent
from agentbench.agents.agent.raw_agent import RawAgent as RawAgent
from agentbench.agents.clients.cassette.client import CassetteChatClient as CassetteChatClient
from agentbench.agents.clients.openai.chat.completions import OpenAIChatCompletionOptions as OpenAIChatCompletionOptions
from agentbench.agents.clients.openai.chat.completions import OpenAIChatOptions as OpenAIChatOptions
from agentbench.agents.clients.openai.client import OpenAIChatClient as OpenAIChatClient
from agentbench.agents.clients.openai.client import OpenAIChatCompletionClient as OpenAIChatCompletionClient
from agentbench.agents.clients.openai.client import OpenAIResponsesClient as OpenAIResponsesClient
from agentbench.agents.clients.openai.client import RawOpenAIChatClient as RawOpenAIChatClient
from agentbench.agents.clients.openai.client import RawOpenAIChatCompletionClient as RawOpenAIChatCompletionClient
from agentbench.agents.clients.openai.embeddings import OpenAIEmbeddingClient as OpenAIEmbeddingClient
from agentbench.agents.clients.openai.embeddings import OpenAIEmbeddingOptions as OpenAIEmbeddingOptions
from agentbench.agents.clients.openai.errors import ContentFilterResultSeverity as ContentFilterResultSeverity
from agentbench.agents.clients.openai.responses.output import OpenAIContinuationToken as OpenAIContinuationToken
from agentbench.agents.clients.openai.settings import OpenAISettings as OpenAISettings
from agentbench.agents.clients.scripted.offline import EchoChatClient as EchoChatClient
from agentbench.agents.clients.scripted.offline import OfflineChatClient as OfflineChatClient
from agentbench.agents.clients.scripted.offline import default_chat_client as default_chat_client
from agentbench.agents.clients.scripted.script import Call as Call
from agentbench.agents.clients.scripted.scripted import ScriptedChatClient as ScriptedChatClient
from agentbench.agents.compaction.budgets import ContextWindowCompactionStrategy as ContextWindowCompactionStrategy
from agentbench.agents.compaction.budgets import TokenBudgetComposedStrategy as TokenBudgetComposedStrategy
from agentbench.agents.compaction.grouping import annotate_message_groups as annotate_message_groups
from agentbench.agents.compaction.projection import apply_compaction as apply_compaction
from agentbench.agents.compaction.projection import included_messages as included_messages
from agentbench.agents.compaction.projection import included_token_count as included_token_count
from agentbench.agents.compaction.protocols import COMPACTION_STATE_KEY as COMPACTION_STATE_KEY
from agentbench.agents.compaction.protocols import EXCLUDE_REASON_KEY as EXCLUDE_REASON_KEY
from agentbench.agents.compaction.protocols import EXCLUDED_KEY as EXCLUDED_KEY
from agentbench.agents.compaction.protocols import GROUP_ANNOTATION_KEY as GROUP_ANNOTATION_KEY
from agentbench.agents.compaction.protocols import GROUP_HAS_REASONING_KEY as GROUP_HAS_REASONING_KEY
from agentbench.agents.compaction.protocols import GROUP_ID_KEY as GROUP_ID_KEY
from agentbench.agents.compaction.protocols import GROUP_INDEX_KEY as GROUP_INDEX_KEY
from agentbench.agents.compaction.protocols import GROUP_KIND_KEY as GROUP_KIND_KEY
from agentbench.agents.compaction.protocols import GROUP_TOKEN_COUNT_KEY as GROUP_TOKEN_COUNT_KEY
from agentbench.agents.compaction.protocols import SUMMARIZED_BY_SUMMARY_ID_KEY as SUMMARIZED_BY_SUMMARY_ID_KEY
from agentbench.agents.compaction.protocols import SUMMARY_OF_GROUP_IDS_KEY as SUMMARY_OF_GROUP_IDS_KEY
from agentbench.agents.compaction.protocols import SUMMARY_OF_MESSAGE_IDS_KEY as SUMMARY_OF_MESSAGE_IDS_KEY
from agentbench.agents.compaction.protocols import CharacterEstimatorTokenizer as CharacterEstimatorTokenizer
from agentbench.agents.compaction.protocols import CompactionStrategy as CompactionStrategy
from agentbench.agents.compaction.protocols import TokenizerProtocol as TokenizerProtocol
from agentbench.agents.compaction.strategies import (
    SelectiveToolCallCompactionStrategy as SelectiveToolCallCompactionStrategy,
)
from agentbench.agents.compaction.strategies import SlidingWindowStrategy as SlidingWindowStrategy
from agentbench.agents.compaction.strategies import SummarizationStrategy as SummarizationStrategy
from agentbench.agents.compaction.strategies import ToolResultCompactionStrategy as ToolResultCompactionStrategy
from agentbench.agents.compaction.strategies import TruncationStrategy as TruncationStrategy
from agentbench.agents.harness.background import (
    DEFAULT_BACKGROUND_AGENTS_SOURCE_ID as DEFAULT_BACKGROUND_AGENTS_SOURCE_ID,
)
from agentbench.agents.harness.background import BackgroundAgentsProvider as BackgroundAgentsProvider
from agentbench.agents.harness.background import BackgroundTaskInfo as BackgroundTaskInfo
from agentbench.agents.harness.background import BackgroundTaskStatus as BackgroundTaskStatus
from agentbench.agents.harness.harness_agent import DEFAULT_HARNESS_INSTRUCTIONS as DEFAULT_HARNESS_INSTRUCTIONS
from agentbench.agents.harness.harness_agent import create_harness_agent as create_harness_agent
from agentbench.agents.harness.memory import DEFAULT_MEMORY_SOURCE_ID as DEFAULT_MEMORY_SOURCE_ID
from agentbench.agents.harness.memory import MemoryContextProvider as MemoryContextProvider
from agentbench.agents.harness.memory_records import MemoryIndexEntry as MemoryIndexEntry
from agentbench.agents.harness.memory_records import MemoryTopicRecord as MemoryTopicRecord
from agentbench.agents.harness.memory_store import MemoryFileStore as MemoryFileStore
from agentbench.agents.harness.memory_store import MemoryStore as MemoryStore
from agentbench.agents.harness.modes import DEFAULT_MODE_SOURCE_ID as DEFAULT_MODE_SOURCE_ID
from agentbench.agents.harness.modes import AgentModeProvider as AgentModeProvider
from agentbench.agents.harness.modes import get_agent_mode as get_agent_mode
from agentbench.agents.harness.modes import set_agent_mode as set_agent_mode
from agentbench.agents.harness.todo import DEFAULT_TODO_SOURCE_ID as DEFAULT_TODO_SOURCE_ID
from agentbench.agents.harness.todo import TodoProvider as TodoProvider
from agentbench.agents.harness.todo_store import TodoFileStore as TodoFileStore
from agentbench.agents.harness.todo_store import TodoInput as TodoInput
from agentbench.agents.harness.todo_store import TodoItem as TodoItem
from agentbench.agents.harness.todo_store import TodoSessionStore as TodoSessionStore
from agentbench.agents.harness.todo_store import TodoStore as TodoStore
from agentbench.agents.history.compaction_provider import CompactionProvider as CompactionProvider
from agentbench.agents.history.file_history import FileHistoryProvider as FileHistoryProvider
from agentbench.agents.history.history import HistoryProvider as HistoryProvider
from agentbench.agents.history.history import InMemoryHistoryProvider as InMemoryHistoryProvider
from agentbench.agents.loop.configuration import DEFAULT_MAX_ITERATIONS as DEFAULT_MAX_ITERATIONS
from agentbench.agents.loop.configuration import FunctionInvocationConfiguration as FunctionInvocationConfiguration
from agentbench.agents.loop.configuration import (
    normalize_function_invocation_configuration as normalize_function_invocation_configuration,
)
from agentbench.agents.mcp.naming import MCPSpecificApproval as MCPSpecificApproval
from agentbench.agents.mcp.skills_source import MCPSkillsSource as MCPSkillsSource
from agentbench.agents.mcp.tool import MCPTool as MCPTool
from agentbench.agents.mcp.transports import MCPStdioTool as MCPStdioTool
from agentbench.agents.mcp.transports import MCPStreamableHTTPTool as MCPStreamableHTTPTool
from agentbench.agents.mcp.transports import MCPWebsocketTool as MCPWebsocketTool
from agentbench.agents.middleware.bases import AgentMiddleware as AgentMiddleware
from agentbench.agents.middleware.bases import AgentMiddlewareTypes as AgentMiddlewareTypes
from agentbench.agents.middleware.bases import ChatAndFunctionMiddlewareTypes as ChatAndFunctionMiddlewareTypes
from agentbench.agents.middleware.bases import ChatMiddleware as ChatMiddleware
from agentbench.agents.middleware.bases import ChatMiddlewareTypes as ChatMiddlewareTypes
from agentbench.agents.middleware.bases import FunctionMiddleware as FunctionMiddleware
from agentbench.agents.middleware.bases import FunctionMiddlewareTypes as FunctionMiddlewareTypes
from agentbench.agents.middleware.bases import MiddlewareType as MiddlewareType
from agentbench.agents.middleware.bases import MiddlewareTypes as MiddlewareTypes
from agentbench.agents.middleware.bases import agent_middleware as agent_middleware
from agentbench.agents.middleware.bases import chat_middleware as chat_middleware
from agentbench.agents.middleware.bases import function_middleware as function_middleware
from agentbench.agents.middleware.contexts import AgentContext as AgentContext
from agentbench.agents.middleware.contexts import ChatContext as ChatContext
from agentbench.agents.middleware.contexts import FunctionInvocationContext as FunctionInvocationContext
from agentbench.agents.middleware.layer import AgentMiddlewareLayer as AgentMiddlewareLayer
from agentbench.agents.model.client import BaseChatClient as BaseChatClient
from agentbench.agents.model.client import validate_chat_options as validate_chat_options
from agentbench.agents.model.embeddings import BaseEmbeddingClient as BaseEmbeddingClient
from agentbench.agents.model.embeddings import Embedding as Embedding
from agentbench.agents.model.embeddings import EmbeddingGenerationOptions as EmbeddingGenerationOptions
from agentbench.agents.model.embeddings import EmbeddingInputT as EmbeddingInputT
from agentbench.agents.model.embeddings import EmbeddingT as EmbeddingT
from agentbench.agents.model.embeddings import GeneratedEmbeddings as GeneratedEmbeddings
from agentbench.agents.model.embeddings import SupportsGetEmbeddings as SupportsGetEmbeddings
from agentbench.agents.model.layers import ChatMiddlewareLayer as ChatMiddlewareLayer
from agentbench.agents.model.layers import FunctionInvocationLayer as FunctionInvocationLayer
from agentbench.agents.model.protocol import SupportsChatGetResponse as SupportsChatGetResponse
from agentbench.agents.model.protocol import SupportsCodeInterpreterTool as SupportsCodeInterpreterTool
from agentbench.agents.model.protocol import SupportsFileSearchTool as SupportsFileSearchTool
from agentbench.agents.model.protocol import SupportsImageGenerationTool as SupportsImageGenerationTool
from agentbench.agents.model.protocol import SupportsMCPTool as SupportsMCPTool
from agentbench.agents.model.protocol import SupportsWebSearchTool as SupportsWebSearchTool
from agentbench.agents.sessions.agent_protocol import SupportsAgentRun as SupportsAgentRun
from agentbench.agents.sessions.agent_protocol import resolve_agent_id as resolve_agent_id
from agentbench.agents.sessions.context_provider import ContextProvider as ContextProvider
from agentbench.agents.sessions.session import AgentSession as AgentSession
from agentbench.agents.sessions.session_context import SessionContext as SessionContext
from agentbench.agents.skills.code_skills import ClassSkill as ClassSkill
from agentbench.agents.skills.code_skills import InlineSkill as InlineSkill
from agentbench.agents.skills.code_skills import InlineSkillResource as InlineSkillResource
from agentbench.agents.skills.code_skills import InlineSkillScript as InlineSkillScript
from agentbench.agents.skills.file_skills import FileSkill as FileSkill
from agentbench.agents.skills.file_skills import FileSkillScript as FileSkillScript
from agentbench.agents.skills.file_skills import FileSkillsSource as FileSkillsSource
from agentbench.agents.skills.frontmatter import SkillFrontmatter as SkillFrontmatter
from agentbench.agents.skills.provider import SkillsProvider as SkillsProvider
from agentbench.agents.skills.script_runner import subprocess_script_runner as subprocess_script_runner
from agentbench.agents.skills.skill import Skill as Skill
from agentbench.agents.skills.skill import SkillResource as SkillResource
from agentbench.agents.skills.skill import SkillScript as SkillScript
from agentbench.agents.skills.skill import SkillScriptRunner as SkillScriptRunner
from agentbench.agents.skills.sources import AggregatingSkillsSource as AggregatingSkillsSource
from agentbench.agents.skills.sources import CachingSkillsSource as CachingSkillsSource
from agentbench.agents.skills.sources import DeduplicatingSkillsSource as DeduplicatingSkillsSource
from agentbench.agents.skills.sources import DelegatingSkillsSource as DelegatingSkillsSource
from agentbench.agents.skills.sources import FilteringSkillsSource as FilteringSkillsSource
from agentbench.agents.skills.sources import InMemorySkillsSource as InMemorySkillsSource
from agentbench.agents.skills.sources import SkillsSource as SkillsSource
from agentbench.agents.telemetry.layers import AgentTelemetryLayer as AgentTelemetryLayer
from agentbench.agents.telemetry.layers import ChatTelemetryLayer as ChatTelemetryLayer
from agentbench.agents.telemetry.layers import EmbeddingTelemetryLayer as EmbeddingTelemetryLayer
from agentbench.agents.tools.collection import ToolTypes as ToolTypes
from agentbench.agents.tools.collection import normalize_tools as normalize_tools
from agentbench.agents.tools.collection import validate_tools as validate_tools
from agentbench.agents.tools.decorator import tool as tool
from agentbench.agents.tools.function_tool import FunctionTool as FunctionTool
from agentbench.agents.tools.results import SKIP_PARSING as SKIP_PARSING
from agentbench.checkpoints.access import delete_chain as delete_chain
from agentbench.checkpoints.access import lineage as lineage
from agentbench.checkpoints.access import list_infos as list_infos
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
from agentbench.evaluation.agents import evaluate_agent as evaluate_agent
from agentbench.evaluation.checks import CheckResult as CheckResult
from agentbench.evaluation.checks import EvalCheck as EvalCheck
from agentbench.evaluation.checks import evaluator as evaluator
from agentbench.evaluation.checks import keyword_check as keyword_check
from agentbench.evaluation.checks import tool_call_args_match as tool_call_args_match
from agentbench.evaluation.checks import tool_called_check as tool_called_check
from agentbench.evaluation.checks import tool_calls_present as tool_calls_present
from agentbench.evaluation.comparison import EvalComparison as EvalComparison
from agentbench.evaluation.comparison import ItemChange as ItemChange
from agentbench.evaluation.comparison import compare_evaluations as compare_evaluations
from agentbench.evaluation.converter import AgentEvalConverter as AgentEvalConverter
from agentbench.evaluation.items import ConversationSplit as ConversationSplit
from agentbench.evaluation.items import ConversationSplitter as ConversationSplitter
from agentbench.evaluation.items import EvalItem as EvalItem
from agentbench.evaluation.items import ExpectedToolCall as ExpectedToolCall
from agentbench.evaluation.local import Evaluator as Evaluator
from agentbench.evaluation.local import LocalEvaluator as LocalEvaluator
from agentbench.evaluation.results import EvalItemResult as EvalItemResult
from agentbench.evaluation.results import EvalResults as EvalResults
from agentbench.evaluation.results import EvalScoreResult as EvalScoreResult
from agentbench.evaluation.workflows import evaluate_workflow as evaluate_workflow
from agentbench.exceptions import AdditionItemMismatch as AdditionItemMismatch
from agentbench.exceptions import AgentBenchException as AgentBenchException
from agentbench.exceptions import AgentContentFilterException as AgentContentFilterException
from agentbench.exceptions import AgentException as AgentException
from agentbench.exceptions import AgentFrameworkException as AgentFrameworkException
from agentbench.exceptions import AgentInvalidAuthException as AgentInvalidAuthException
from agentbench.exceptions import AgentInvalidRequestException as AgentInvalidRequestException
from agentbench.exceptions import AgentInvalidResponseException as AgentInvalidResponseException
from agentbench.exceptions import CassetteMissError as CassetteMissError
from agentbench.exceptions import ChatClientContentFilterException as ChatClientContentFilterException
from agentbench.exceptions import ChatClientException as ChatClientException
from agentbench.exceptions import ChatClientInvalidAuthException as ChatClientInvalidAuthException
from agentbench.exceptions import ChatClientInvalidRequestException as ChatClientInvalidRequestException
from agentbench.exceptions import ChatClientInvalidResponseException as ChatClientInvalidResponseException
from agentbench.exceptions import CheckpointNotFoundError as CheckpointNotFoundError
from agentbench.exceptions import ConcurrentUpdateError as ConcurrentUpdateError
from agentbench.exceptions import ContentError as ContentError
from agentbench.exceptions import EdgeDuplicationError as EdgeDuplicationError
from agentbench.exceptions import EvalNotPassedError as EvalNotPassedError
from agentbench.exceptions import ExecutorTimeoutError as ExecutorTimeoutError
from agentbench.exceptions import FormInvalid as FormInvalid
from agentbench.exceptions import FunctionCheckpointError as FunctionCheckpointError
from agentbench.exceptions import GraphCompileError as GraphCompileError
from agentbench.exceptions import GraphConnectivityError as GraphConnectivityError
from agentbench.exceptions import GraphError as GraphError
from agentbench.exceptions import GraphMismatchError as GraphMismatchError
from agentbench.exceptions import GraphRecursionError as GraphRecursionError
from agentbench.exceptions import HistoryFileError as HistoryFileError
from agentbench.exceptions import IntegrationContentFilterException as IntegrationContentFilterException
from agentbench.exceptions import IntegrationException as IntegrationException
from agentbench.exceptions import IntegrationInitializationError as IntegrationInitializationError
from agentbench.exceptions import IntegrationInvalidAuthException as IntegrationInvalidAuthException
from agentbench.exceptions import IntegrationInvalidRequestException as IntegrationInvalidRequestException
from agentbench.exceptions import IntegrationInvalidResponseException as IntegrationInvalidResponseException
from agentbench.exceptions import InvalidEdit as InvalidEdit
from agentbench.exceptions import InvalidUpdateError as InvalidUpdateError
from agentbench.exceptions import MagicUsageError as MagicUsageError
from agentbench.exceptions import MessageLimitError as MessageLimitError
from agentbench.exceptions import MiddlewareException as MiddlewareException
from agentbench.exceptions import MiddlewareTermination as MiddlewareTermination
from agentbench.exceptions import MissingExtraError as MissingExtraError
from agentbench.exceptions import NestedLoopError as NestedLoopError
from agentbench.exceptions import NoBlockingError as NoBlockingError
from agentbench.exceptions import NodeError as NodeError
from agentbench.exceptions import NodeTimeoutError as NodeTimeoutError
from agentbench.exceptions import NotebookError as NotebookError
from agentbench.exceptions import OpenAIContentFilterException as OpenAIContentFilterException
from agentbench.exceptions import ReducerError as ReducerError
from agentbench.exceptions import RendererUnavailable as RendererUnavailable
from agentbench.exceptions import RenderFailed as RenderFailed
from agentbench.exceptions import RequestAlreadyAnswered as RequestAlreadyAnswered
from agentbench.exceptions import RequestExpired as RequestExpired
from agentbench.exceptions import SettingNotFoundError as SettingNotFoundError
from agentbench.exceptions import StateValidationError as StateValidationError
from agentbench.exceptions import StepperClosed as StepperClosed
from agentbench.exceptions import StepperStateError as StepperStateError
from agentbench.exceptions import ThreadBusyError as ThreadBusyError
from agentbench.exceptions import ToolException as ToolException
from agentbench.exceptions import ToolExecutionException as ToolExecutionException
from agentbench.exceptions import TypeCompatibilityError as TypeCompatibilityError
from agentbench.exceptions import UnknownStoredTypeError as UnknownStoredTypeError
from agentbench.exceptions import UnstorableValueError as UnstorableValueError
from agentbench.exceptions import UnsupportedSchema as UnsupportedSchema
from agentbench.exceptions import UserInputRequiredException as UserInputRequiredException
from agentbench.exceptions import ValidationTypeEnum as ValidationTypeEnum
from agentbench.exceptions import WidgetsUnavailable as WidgetsUnavailable
from agentbench.exceptions import WorkflowBusyError as WorkflowBusyError
from agentbench.exceptions import WorkflowCheckpointException as WorkflowCheckpointException
from agentbench.exceptions import WorkflowConvergenceException as WorkflowConvergenceException
from agentbench.exceptions import WorkflowException as WorkflowException
from agentbench.exceptions import WorkflowRunnerException as WorkflowRunnerException
from agentbench.exceptions import WorkflowTextError as WorkflowTextError
from agentbench.exceptions import WorkflowValidationError as WorkflowValidationError
from agentbench.messages.content.blocks import TextBlock as TextBlock
from agentbench.messages.content.blocks import ToolCallBlock as ToolCallBlock
from agentbench.messages.content.blocks import ToolResultBlock as ToolResultBlock
from agentbench.messages.content.content import Content as Content
from agentbench.messages.content.media import Annotation as Annotation
from agentbench.messages.content.media import TextSpanRegion as TextSpanRegion
from agentbench.messages.content.media import detect_media_type_from_base64 as detect_media_type_from_base64
from agentbench.messages.inputs import AgentRunInputs as AgentRunInputs
from agentbench.messages.inputs import normalize_messages as normalize_messages
from agentbench.messages.inputs import prepend_instructions_to_messages as prepend_instructions_to_messages
from agentbench.messages.message import Message as Message
from agentbench.messages.message import Role as Role
from agentbench.messages.message import RoleLiteral as RoleLiteral
from agentbench.messages.options import ChatOptions as ChatOptions
from agentbench.messages.options import ToolMode as ToolMode
from agentbench.messages.options import merge_chat_options as merge_chat_options
from agentbench.messages.options import validate_tool_mode as validate_tool_mode
from agentbench.messages.response import AgentResponse as AgentResponse
from agentbench.messages.response import ChatResponse as ChatResponse
from agentbench.messages.stream import FinalT as FinalT
from agentbench.messages.stream import OuterFinalT as OuterFinalT
from agentbench.messages.stream import OuterUpdateT as OuterUpdateT
from agentbench.messages.stream import ResponseStream as ResponseStream
from agentbench.messages.stream import UpdateT as UpdateT
from agentbench.messages.update import AgentResponseUpdate as AgentResponseUpdate
from agentbench.messages.update import ChatResponseUpdate as ChatResponseUpdate
from agentbench.messages.update import ContinuationToken as ContinuationToken
from agentbench.messages.update import FinishReason as FinishReason
from agentbench.messages.update import FinishReasonLiteral as FinishReasonLiteral
from agentbench.messages.update import map_chat_to_agent_update as map_chat_to_agent_update
from agentbench.messages.usage import UsageDetails as UsageDetails
from agentbench.messages.usage import add_usage_details as add_usage_details
from agentbench.observability.attribute_names import OtelAttr as OtelAttr
from agentbench.observability.instruments import get_meter as get_meter
from agentbench.observability.instruments import get_tracer as get_tracer
from agentbench.observability.providers import configure_otel_providers as configure_otel_providers
from agentbench.observability.providers import create_metric_views as create_metric_views
from agentbench.observability.providers import create_resource as create_resource
from agentbench.observability.switches import OBSERVABILITY_SETTINGS as OBSERVABILITY_SETTINGS
from agentbench.observability.switches import disable_instrumentation as disable_instrumentation
from agentbench.observability.switches import enable_instrumentation as enable_instrumentation
from agentbench.observability.switches import enable_sensitive_telemetry as enable_sensitive_telemetry
from agentbench.observability.user_agent import AGENT_FRAMEWORK_USER_AGENT as AGENT_FRAMEWORK_USER_AGENT
from agentbench.observability.user_agent import APP_INFO as APP_INFO
from agentbench.observability.user_agent import USER_AGENT_KEY as USER_AGENT_KEY
from agentbench.observability.user_agent import (
    USER_AGENT_TELEMETRY_DISABLED_ENV_VAR as USER_AGENT_TELEMETRY_DISABLED_ENV_VAR,
)
from agentbench.observability.user_agent import (
    prepend_agent_framework_to_user_agent as prepend_agent_framework_to_user_agent,
)
from agentbench.orchestrations.agent_executor import AgentExecutor as AgentExecutor
from agentbench.orchestrations.agent_executor import AgentExecutorRequest as AgentExecutorRequest
from agentbench.orchestrations.agent_executor import AgentExecutorResponse as AgentExecutorResponse
from agentbench.orchestrations.host_executor import AgentHostExecutor as AgentHostExecutor
from agentbench.orchestrations.host_executor import AgentHostOptions as AgentHostOptions
from agentbench.orchestrations.host_executor import TurnToken as TurnToken
from agentbench.orchestrations.host_executor import bind_as_executor as bind_as_executor
from agentbench.orchestrations.patterns.concurrent_builder import ConcurrentBuilder as ConcurrentBuilder
from agentbench.orchestrations.patterns.group_chat_builder import DEFAULT_ORCHESTRATOR_ID as DEFAULT_ORCHESTRATOR_ID
from agentbench.orchestrations.patterns.group_chat_builder import GroupChatBuilder as GroupChatBuilder
from agentbench.orchestrations.patterns.group_chat_manager import (
    AgentBasedGroupChatOrchestrator as AgentBasedGroupChatOrchestrator,
)
from agentbench.orchestrations.patterns.group_chat_manager import AgentOrchestrationOutput as AgentOrchestrationOutput
from agentbench.orchestrations.patterns.group_chat_messages import (
    GroupChatParticipantMessage as GroupChatParticipantMessage,
)
from agentbench.orchestrations.patterns.group_chat_messages import GroupChatRequestMessage as GroupChatRequestMessage
from agentbench.orchestrations.patterns.group_chat_messages import (
    GroupChatRequestSentEvent as GroupChatRequestSentEvent,
)
from agentbench.orchestrations.patterns.group_chat_messages import GroupChatResponseMessage as GroupChatResponseMessage
from agentbench.orchestrations.patterns.group_chat_messages import (
    GroupChatResponseReceivedEvent as GroupChatResponseReceivedEvent,
)
from agentbench.orchestrations.patterns.group_chat_messages import (
    GroupChatSelectionFunction as GroupChatSelectionFunction,
)
from agentbench.orchestrations.patterns.group_chat_messages import GroupChatState as GroupChatState
from agentbench.orchestrations.patterns.group_chat_messages import OrchestrationState as OrchestrationState
from agentbench.orchestrations.patterns.group_chat_messages import ParticipantRegistry as ParticipantRegistry
from agentbench.orchestrations.patterns.group_chat_messages import TerminationCondition as TerminationCondition
from agentbench.orchestrations.patterns.group_chat_orchestrator import (
    BaseGroupChatOrchestrator as BaseGroupChatOrchestrator,
)
from agentbench.orchestrations.patterns.group_chat_orchestrator import GroupChatOrchestrator as GroupChatOrchestrator
from agentbench.orchestrations.patterns.handoff_builder import HandoffBuilder as HandoffBuilder
from agentbench.orchestrations.patterns.handoff_executor import HandoffAgentExecutor as HandoffAgentExecutor
from agentbench.orchestrations.patterns.handoff_messages import HandoffAgentUserRequest as HandoffAgentUserRequest
from agentbench.orchestrations.patterns.handoff_messages import HandoffConfiguration as HandoffConfiguration
from agentbench.orchestrations.patterns.handoff_messages import HandoffSentEvent as HandoffSentEvent
from agentbench.orchestrations.patterns.helpers import clean_conversation_for_handoff as clean_conversation_for_handoff
from agentbench.orchestrations.patterns.helpers import create_completion_message as create_completion_message
from agentbench.orchestrations.patterns.magentic_builder import MagenticBuilder as MagenticBuilder
from agentbench.orchestrations.patterns.magentic_manager import MagenticManagerBase as MagenticManagerBase
from agentbench.orchestrations.patterns.magentic_manager import StandardMagenticManager as StandardMagenticManager
from agentbench.orchestrations.patterns.magentic_messages import MAGENTIC_MANAGER_NAME as MAGENTIC_MANAGER_NAME
from agentbench.orchestrations.patterns.magentic_messages import ORCH_MSG_KIND_INSTRUCTION as ORCH_MSG_KIND_INSTRUCTION
from agentbench.orchestrations.patterns.magentic_messages import ORCH_MSG_KIND_NOTICE as ORCH_MSG_KIND_NOTICE
from agentbench.orchestrations.patterns.magentic_messages import ORCH_MSG_KIND_TASK_LEDGER as ORCH_MSG_KIND_TASK_LEDGER
from agentbench.orchestrations.patterns.magentic_messages import ORCH_MSG_KIND_USER_TASK as ORCH_MSG_KIND_USER_TASK
from agentbench.orchestrations.patterns.magentic_messages import MagenticContext as MagenticContext
from agentbench.orchestrations.patterns.magentic_messages import MagenticOrchestratorEvent as MagenticOrchestratorEvent
from agentbench.orchestrations.patterns.magentic_messages import (
    MagenticOrchestratorEventType as MagenticOrchestratorEventType,
)
from agentbench.orchestrations.patterns.magentic_messages import MagenticPlanReviewRequest as MagenticPlanReviewRequest
from agentbench.orchestrations.patterns.magentic_messages import (
    MagenticPlanReviewResponse as MagenticPlanReviewResponse,
)
from agentbench.orchestrations.patterns.magentic_messages import MagenticProgressLedger as MagenticProgressLedger
from agentbench.orchestrations.patterns.magentic_messages import (
    MagenticProgressLedgerItem as MagenticProgressLedgerItem,
)
from agentbench.orchestrations.patterns.magentic_messages import MagenticResetSignal as MagenticResetSignal
from agentbench.orchestrations.patterns.magentic_orchestrator import MagenticAgentExecutor as MagenticAgentExecutor
from agentbench.orchestrations.patterns.magentic_orchestrator import MagenticOrchestrator as MagenticOrchestrator
from agentbench.orchestrations.patterns.participant_executor import AgentRequestInfoResponse as AgentRequestInfoResponse
from agentbench.orchestrations.patterns.sequential_builder import SequentialBuilder as SequentialBuilder
from agentbench.orchestrations.sequential import AgentWorkflowBuilder as AgentWorkflowBuilder
from agentbench.orchestrations.sequential import build_sequential as build_sequential
from agentbench.orchestrations.workflow_agent import FunctionalWorkflowAgent as FunctionalWorkflowAgent
from agentbench.orchestrations.workflow_agent import WorkflowAgent as WorkflowAgent
from agentbench.serialization.mixin import SerializationMixin as SerializationMixin
from agentbench.serialization.mixin import SerializationProtocol as SerializationProtocol
from agentbench.serialization.pickled import decode_checkpoint_value as decode_checkpoint_value
from agentbench.serialization.pickled import encode_checkpoint_value as encode_checkpoint_value
from agentbench.serialization.state_types import register_state_type as register_state_type
from agentbench.settings import SecretString as SecretString
from agentbench.settings import load_settings as load_settings
from agentbench.stategraph.command import Command as Command
from agentbench.stategraph.command import Send as Send
from agentbench.stategraph.compiled import CompiledGraph as CompiledGraph
from agentbench.stategraph.graph import StateGraph as StateGraph
from agentbench.stategraph.interrupts import Breakpoint as Breakpoint
from agentbench.stategraph.interrupts import Continue as Continue
from agentbench.stategraph.interrupts import GraphInterrupt as GraphInterrupt
from agentbench.stategraph.interrupts import Interrupt as Interrupt
from agentbench.stategraph.interrupts import interrupt as interrupt
from agentbench.stategraph.interrupts import pending_interrupt as pending_interrupt
from agentbench.stategraph.reducers import Overwrite as Overwrite
from agentbench.stategraph.reducers import Reducer as Reducer
from agentbench.stategraph.reducers import RemoveMessage as RemoveMessage
from agentbench.stategraph.reducers import add_messages as add_messages
from agentbench.stategraph.reducers import append_items as append_items
from agentbench.stategraph.reducers import remove_tool_messages as remove_tool_messages
from agentbench.stategraph.reducers import replace_messages as replace_messages
from agentbench.stategraph.reducers import replace_value as replace_value
from agentbench.stategraph.reducers import upsert_messages as upsert_messages
from agentbench.stategraph.results import GraphResult as GraphResult
from agentbench.stategraph.results import ResponseGranularity as ResponseGranularity
from agentbench.stategraph.running.node import Runtime as Runtime
from agentbench.stategraph.snapshots import SnapshotTask as SnapshotTask
from agentbench.stategraph.snapshots import StateSnapshot as StateSnapshot
from agentbench.stategraph.state import END as END
from agentbench.stategraph.state import START as START
from agentbench.stategraph.state import AgentState as AgentState
from agentbench.stategraph.state import ExecutionState as ExecutionState
from agentbench.stategraph.state import ExecutionStatus as ExecutionStatus
from agentbench.stategraph.state import StopRequestStatus as StopRequestStatus
from agentbench.stategraph.streaming import StreamChunk as StreamChunk
from agentbench.stategraph.streaming import StreamEvent as StreamEvent
from agentbench.stategraph.threads.history import StateHistory as StateHistory
from agentbench.stategraph.toolnode import ToolNode as ToolNode
from agentbench.stategraph.toolnode import ToolResult as ToolResult
from agentbench.workflows.builder.workflow_builder import WorkflowBuilder as WorkflowBuilder
from agentbench.workflows.draw.drawing import WorkflowViz as WorkflowViz
from agentbench.workflows.events.events import SuperstepCompletionInfo as SuperstepCompletionInfo
from agentbench.workflows.events.events import WorkflowErrorDetails as WorkflowErrorDetails
from agentbench.workflows.events.events import WorkflowEvent as WorkflowEvent
from agentbench.workflows.events.events import WorkflowEventSource as WorkflowEventSource
from agentbench.workflows.events.events import WorkflowEventType as WorkflowEventType
from agentbench.workflows.events.events import WorkflowRunState as WorkflowRunState
from agentbench.workflows.executors.approval import Approval as Approval
from agentbench.workflows.executors.context import WorkflowContext as WorkflowContext
from agentbench.workflows.executors.executor import Executor as Executor
from agentbench.workflows.executors.executor import RequestInfoMixin as RequestInfoMixin
from agentbench.workflows.executors.function_executor import FunctionExecutor as FunctionExecutor
from agentbench.workflows.executors.function_executor import executor as executor
from agentbench.workflows.executors.handlers import handler as handler
from agentbench.workflows.executors.handlers import response_handler as response_handler
from agentbench.workflows.executors.message import MessageType as MessageType
from agentbench.workflows.executors.message import WorkflowMessage as WorkflowMessage
from agentbench.workflows.executors.options import ExecutorPolicy as ExecutorPolicy
from agentbench.workflows.executors.options import RunOptions as RunOptions
from agentbench.workflows.executors.runner_context import RunnerContext as RunnerContext
from agentbench.workflows.executors.state import State as State
from agentbench.workflows.functional.context import RunContext as RunContext
from agentbench.workflows.functional.context import get_run_context as get_run_context
from agentbench.workflows.functional.functional_workflow import FunctionalWorkflow as FunctionalWorkflow
from agentbench.workflows.functional.functional_workflow import workflow as workflow
from agentbench.workflows.functional.step import StepWrapper as StepWrapper
from agentbench.workflows.functional.step import step as step
from agentbench.workflows.graph.boundary import BoundaryCheckpoint as BoundaryCheckpoint
from agentbench.workflows.graph.boundary import BoundaryHook as BoundaryHook
from agentbench.workflows.graph.boundary import BoundaryOutcome as BoundaryOutcome
from agentbench.workflows.graph.boundary import PauseReason as PauseReason
from agentbench.workflows.graph.boundary import SuperstepView as SuperstepView
from agentbench.workflows.graph.edge_groups import EdgeGroup as EdgeGroup
from agentbench.workflows.graph.edge_groups import FanInEdgeGroup as FanInEdgeGroup
from agentbench.workflows.graph.edge_groups import InternalEdgeGroup as InternalEdgeGroup
from agentbench.workflows.graph.edge_groups import SingleEdgeGroup as SingleEdgeGroup
from agentbench.workflows.graph.edges import Case as Case
from agentbench.workflows.graph.edges import Default as Default
from agentbench.workflows.graph.edges import Edge as Edge
from agentbench.workflows.graph.edges import EdgeCondition as EdgeCondition
from agentbench.workflows.graph.edges import SwitchCaseEdgeGroupCase as SwitchCaseEdgeGroupCase
from agentbench.workflows.graph.edges import SwitchCaseEdgeGroupDefault as SwitchCaseEdgeGroupDefault
from agentbench.workflows.graph.routing import EdgeGroupDeliveryStatus as EdgeGroupDeliveryStatus
from agentbench.workflows.graph.routing import EdgeRunner as EdgeRunner
from agentbench.workflows.graph.routing import create_edge_runner as create_edge_runner
from agentbench.workflows.graph.selection import FanOutEdgeGroup as FanOutEdgeGroup
from agentbench.workflows.graph.selection import SwitchCaseEdgeGroup as SwitchCaseEdgeGroup
from agentbench.workflows.graph.validation import WorkflowGraphValidator as WorkflowGraphValidator
from agentbench.workflows.graph.validation import validate_workflow_graph as validate_workflow_graph
from agentbench.workflows.nested.messages import SubWorkflowRequestMessage as SubWorkflowRequestMessage
from agentbench.workflows.nested.messages import SubWorkflowResponseMessage as SubWorkflowResponseMessage
from agentbench.workflows.nested.workflow_executor import WorkflowExecutor as WorkflowExecutor
from agentbench.workflows.pages.in_process import InProcessExecution as InProcessExecution
from agentbench.workflows.pages.runner import Runner as Runner
from agentbench.workflows.pages.runner_context import InProcRunnerContext as InProcRunnerContext
from agentbench.workflows.run.report import PlannedDelivery as PlannedDelivery
from agentbench.workflows.run.report import StepReport as StepReport
from agentbench.workflows.run.result import WorkflowRunResult as WorkflowRunResult
from agentbench.workflows.run.run import WorkflowRun as WorkflowRun
from agentbench.workflows.run.stream import WorkflowStream as WorkflowStream
from agentbench.workflows.run.workflow import Workflow as Workflow

AIAgentHostExecutor = AgentHostExecutor
AIAgentHostOptions = AgentHostOptions
InMemoryCheckpointer = InMemoryCheckpointStorage
StreamingRun = WorkflowRun

_door: Door
__all__: list[str]
__version__: str

def load_ipython_extension(ip: object) -> None: ...
def unload_ipython_extension(ip: object) -> None: ...

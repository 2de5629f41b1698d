# Typed stub of the lazy names; written by tests/tools/write_stub.py, not by hand.

from agentbench import batch as batch
from agentbench import checkpoints as checkpoints
from agentbench import evaluation as evaluation
from agentbench import exceptions as exceptions
from agentbench import notebook as notebook
from agentbench import observability as observability
from agentbench import openai as openai
from agentbench import orchestrations as orchestrations
from agentbench import revisions as revisions
from agentbench import stategraph as stategraph
from agentbench import testing as testing
from agentbench._bridge import run_sync as run_sync
from agentbench._lazy import Door
from agentbench.agents.agent.agent import Agent as Agent
from agentbench.agents.agent.agent import RawAgent as RawAgent
from agentbench.agents.agent.base_agent import BaseAgent as BaseAgent
from agentbench.agents.clients.scripted.offline import EchoChatClient as EchoChatClient
from agentbench.agents.clients.scripted.script import Call as Call
from agentbench.agents.clients.scripted.scripted import ScriptedChatClient as ScriptedChatClient
from agentbench.agents.compaction.grouping import COMPACTION_STATE_KEY as COMPACTION_STATE_KEY
from agentbench.agents.compaction.grouping import EXCLUDE_REASON_KEY as EXCLUDE_REASON_KEY
from agentbench.agents.compaction.grouping import EXCLUDED_KEY as EXCLUDED_KEY
from agentbench.agents.compaction.grouping import GROUP_ANNOTATION_KEY as GROUP_ANNOTATION_KEY
from agentbench.agents.compaction.grouping import GROUP_HAS_REASONING_KEY as GROUP_HAS_REASONING_KEY
from agentbench.agents.compaction.grouping import GROUP_ID_KEY as GROUP_ID_KEY
from agentbench.agents.compaction.grouping import GROUP_INDEX_KEY as GROUP_INDEX_KEY
from agentbench.agents.compaction.grouping import GROUP_KIND_KEY as GROUP_KIND_KEY
from agentbench.agents.compaction.grouping import GROUP_TOKEN_COUNT_KEY as GROUP_TOKEN_COUNT_KEY
from agentbench.agents.compaction.grouping import SUMMARIZED_BY_SUMMARY_ID_KEY as SUMMARIZED_BY_SUMMARY_ID_KEY
from agentbench.agents.compaction.grouping import SUMMARY_OF_GROUP_IDS_KEY as SUMMARY_OF_GROUP_IDS_KEY
from agentbench.agents.compaction.grouping import SUMMARY_OF_MESSAGE_IDS_KEY as SUMMARY_OF_MESSAGE_IDS_KEY
from agentbench.agents.compaction.grouping import CharacterEstimatorTokenizer as CharacterEstimatorTokenizer
from agentbench.agents.compaction.grouping import CompactionStrategy as CompactionStrategy
from agentbench.agents.compaction.grouping import TokenizerProtocol as TokenizerProtocol
from agentbench.agents.compaction.grouping import annotate_message_groups as annotate_message_groups
from agentbench.agents.compaction.grouping import apply_compaction as apply_compaction
from agentbench.agents.compaction.grouping import included_messages as included_messages
from agentbench.agents.compaction.grouping import included_token_count as included_token_count
from agentbench.agents.compaction.strategies import ContextWindowCompactionStrategy as ContextWindowCompactionStrategy
from agentbench.agents.compaction.strategies import (
    SelectiveToolCallCompactionStrategy as SelectiveToolCallCompactionStrategy,
)
from agentbench.agents.compaction.strategies import SlidingWindowStrategy as SlidingWindowStrategy
from agentbench.agents.compaction.strategies import SummarizationStrategy as SummarizationStrategy
from agentbench.agents.compaction.strategies import TokenBudgetComposedStrategy as TokenBudgetComposedStrategy
from agentbench.agents.compaction.strategies import ToolResultCompactionStrategy as ToolResultCompactionStrategy
from agentbench.agents.compaction.strategies import TruncationStrategy as TruncationStrategy
from agentbench.agents.harness.background import (
    DEFAULT_BACKGROUND_AGENTS_SOURCE_ID as DEFAULT_BACKGROUND_AGENTS_SOURCE_ID,
)
from agentbench.agents.harness.background import BackgroundAgentsProvider as BackgroundAgentsProvider
from agentbench.agents.harness.background import BackgroundTaskInfo as BackgroundTaskInfo
from agentbench.agents.harness.background import BackgroundTaskStatus as BackgroundTaskStatus
from agentbench.agents.harness.files.access import FileAccessProvider as FileAccessProvider
from agentbench.agents.harness.files.file_system import FileSystemAgentFileStore as FileSystemAgentFileStore
from agentbench.agents.harness.files.memory import FileMemoryProvider as FileMemoryProvider
from agentbench.agents.harness.files.store import AgentFileStore as AgentFileStore
from agentbench.agents.harness.files.store import FileSearchMatch as FileSearchMatch
from agentbench.agents.harness.files.store import FileSearchResult as FileSearchResult
from agentbench.agents.harness.files.store import FileStoreEntry as FileStoreEntry
from agentbench.agents.harness.files.store import InMemoryAgentFileStore as InMemoryAgentFileStore
from agentbench.agents.harness.harness_agent import DEFAULT_HARNESS_INSTRUCTIONS as DEFAULT_HARNESS_INSTRUCTIONS
from agentbench.agents.harness.harness_agent import create_harness_agent as create_harness_agent
from agentbench.agents.harness.loop_conditions import background_tasks_running as background_tasks_running
from agentbench.agents.harness.loop_conditions import (
    background_tasks_running_message as background_tasks_running_message,
)
from agentbench.agents.harness.loop_conditions import todos_remaining as todos_remaining
from agentbench.agents.harness.loop_conditions import todos_remaining_message as todos_remaining_message
from agentbench.agents.harness.memory import DEFAULT_MEMORY_SOURCE_ID as DEFAULT_MEMORY_SOURCE_ID
from agentbench.agents.harness.memory import MemoryContextProvider as MemoryContextProvider
from agentbench.agents.harness.memory_store import MemoryFileStore as MemoryFileStore
from agentbench.agents.harness.memory_store import MemoryIndexEntry as MemoryIndexEntry
from agentbench.agents.harness.memory_store import MemoryStore as MemoryStore
from agentbench.agents.harness.memory_store import MemoryTopicRecord as MemoryTopicRecord
from agentbench.agents.harness.modes import DEFAULT_MODE_SOURCE_ID as DEFAULT_MODE_SOURCE_ID
from agentbench.agents.harness.modes import AgentModeProvider as AgentModeProvider
from agentbench.agents.harness.modes import get_agent_mode as get_agent_mode
from agentbench.agents.harness.modes import set_agent_mode as set_agent_mode
from agentbench.agents.harness.todo import DEFAULT_TODO_SOURCE_ID as DEFAULT_TODO_SOURCE_ID
from agentbench.agents.harness.todo import TodoFileStore as TodoFileStore
from agentbench.agents.harness.todo import TodoInput as TodoInput
from agentbench.agents.harness.todo import TodoItem as TodoItem
from agentbench.agents.harness.todo import TodoProvider as TodoProvider
from agentbench.agents.harness.todo import TodoSessionStore as TodoSessionStore
from agentbench.agents.harness.todo import TodoStore as TodoStore
from agentbench.agents.history.compaction_provider import CompactionProvider as CompactionProvider
from agentbench.agents.history.file_history import FileHistoryProvider as FileHistoryProvider
from agentbench.agents.history.history import HistoryProvider as HistoryProvider
from agentbench.agents.history.history import InMemoryHistoryProvider as InMemoryHistoryProvider
from agentbench.agents.loop.configuration import DEFAULT_MAX_ITERATIONS as DEFAULT_MAX_ITERATIONS
from agentbench.agents.loop.configuration import FunctionInvocationConfiguration as FunctionInvocationConfiguration
from agentbench.agents.loop.configuration import (
    normalize_function_invocation_configuration as normalize_function_invocation_configuration,
)
from agentbench.agents.loop.tool_approval import ToolApprovalMiddleware as ToolApprovalMiddleware
from agentbench.agents.mcp.listing import MCPSpecificApproval as MCPSpecificApproval
from agentbench.agents.mcp.skills_source import MCPSkillsSource as MCPSkillsSource
from agentbench.agents.mcp.tool import MCPTool as MCPTool
from agentbench.agents.mcp.transports import MCPStdioTool as MCPStdioTool
from agentbench.agents.mcp.transports import MCPStreamableHTTPTool as MCPStreamableHTTPTool
from agentbench.agents.mcp.transports import MCPWebsocketTool as MCPWebsocketTool
from agentbench.agents.middleware.bundle import MiddlewareBundle as MiddlewareBundle
from agentbench.agents.middleware.contexts import AgentContext as AgentContext
from agentbench.agents.middleware.contexts import AgentMiddleware as AgentMiddleware
from agentbench.agents.middleware.contexts import AgentMiddlewareTypes as AgentMiddlewareTypes
from agentbench.agents.middleware.contexts import ChatAndFunctionMiddlewareTypes as ChatAndFunctionMiddlewareTypes
from agentbench.agents.middleware.contexts import ChatContext as ChatContext
from agentbench.agents.middleware.contexts import ChatMiddleware as ChatMiddleware
from agentbench.agents.middleware.contexts import ChatMiddlewareTypes as ChatMiddlewareTypes
from agentbench.agents.middleware.contexts import FunctionInvocationContext as FunctionInvocationContext
from agentbench.agents.middleware.contexts import FunctionMiddleware as FunctionMiddleware
from agentbench.agents.middleware.contexts import FunctionMiddlewareTypes as FunctionMiddlewareTypes
from agentbench.agents.middleware.contexts import MiddlewareType as MiddlewareType
from agentbench.agents.middleware.contexts import MiddlewareTypes as MiddlewareTypes
from agentbench.agents.middleware.contexts import agent_middleware as agent_middleware
from agentbench.agents.middleware.contexts import chat_middleware as chat_middleware
from agentbench.agents.middleware.contexts import function_middleware as function_middleware
from agentbench.agents.middleware.judge import JudgeVerdict as JudgeVerdict
from agentbench.agents.middleware.layer import AgentMiddlewareLayer as AgentMiddlewareLayer
from agentbench.agents.middleware.loop import AgentLoopMiddleware as AgentLoopMiddleware
from agentbench.agents.middleware.loop import AgentRound as AgentRound
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
from agentbench.agents.sessions.agent_protocol import ContextProvider as ContextProvider
from agentbench.agents.sessions.agent_protocol import SupportsAgentRun as SupportsAgentRun
from agentbench.agents.sessions.agent_protocol import resolve_agent_id as resolve_agent_id
from agentbench.agents.sessions.injection import MessageInjectionMiddleware as MessageInjectionMiddleware
from agentbench.agents.sessions.injection import enqueue_messages as enqueue_messages
from agentbench.agents.sessions.session import AgentSession as AgentSession
from agentbench.agents.sessions.session_context import SessionContext as SessionContext
from agentbench.agents.sessions.stores import FileSessionStore as FileSessionStore
from agentbench.agents.sessions.stores import SessionStore as SessionStore
from agentbench.agents.sessions.tool_approvals import ToolApprovalRule as ToolApprovalRule
from agentbench.agents.sessions.tool_approvals import ToolApprovalState as ToolApprovalState
from agentbench.agents.sessions.tool_approvals import (
    create_always_approve_tool_response as create_always_approve_tool_response,
)
from agentbench.agents.sessions.tool_approvals import (
    create_always_approve_tool_with_arguments_response as create_always_approve_tool_with_arguments_response,
)
from agentbench.agents.skills.code_skills import ClassSkill as ClassSkill
from agentbench.agents.skills.code_skills import InlineSkill as InlineSkill
from agentbench.agents.skills.code_skills import InlineSkillResource as InlineSkillResource
from agentbench.agents.skills.code_skills import InlineSkillScript as InlineSkillScript
from agentbench.agents.skills.file_skills import FileSkill as FileSkill
from agentbench.agents.skills.file_skills import FileSkillScript as FileSkillScript
from agentbench.agents.skills.file_skills import FileSkillsSource as FileSkillsSource
from agentbench.agents.skills.provider import SkillsProvider as SkillsProvider
from agentbench.agents.skills.script_runner import subprocess_script_runner as subprocess_script_runner
from agentbench.agents.skills.skill import Skill as Skill
from agentbench.agents.skills.skill import SkillFrontmatter as SkillFrontmatter
from agentbench.agents.skills.skill import SkillResource as SkillResource
from agentbench.agents.skills.skill import SkillScript as SkillScript
from agentbench.agents.skills.skill import SkillScriptArgumentParser as SkillScriptArgumentParser
from agentbench.agents.skills.skill import SkillScriptRunner as SkillScriptRunner
from agentbench.agents.skills.sources import AggregatingSkillsSource as AggregatingSkillsSource
from agentbench.agents.skills.sources import CachingSkillsSource as CachingSkillsSource
from agentbench.agents.skills.sources import DeduplicatingSkillsSource as DeduplicatingSkillsSource
from agentbench.agents.skills.sources import DelegatingSkillsSource as DelegatingSkillsSource
from agentbench.agents.skills.sources import FilteringSkillsSource as FilteringSkillsSource
from agentbench.agents.skills.sources import InMemorySkillsSource as InMemorySkillsSource
from agentbench.agents.skills.sources import SkillsSource as SkillsSource
from agentbench.agents.skills.sources import SkillsSourceContext as SkillsSourceContext
from agentbench.agents.tools.collection import ToolTypes as ToolTypes
from agentbench.agents.tools.collection import normalize_tools as normalize_tools
from agentbench.agents.tools.collection import validate_tools as validate_tools
from agentbench.agents.tools.decorator import tool as tool
from agentbench.agents.tools.function_tool import FunctionTool as FunctionTool
from agentbench.agents.tools.results import SKIP_PARSING as SKIP_PARSING
from agentbench.checkpoints.checkpoint import CheckpointID as CheckpointID
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint as WorkflowCheckpoint
from agentbench.checkpoints.file import FileCheckpointStorage as FileCheckpointStorage
from agentbench.checkpoints.info import CheckpointInfo as CheckpointInfo
from agentbench.checkpoints.manager import CheckpointManager as CheckpointManager
from agentbench.checkpoints.memory import InMemoryCheckpointStorage as InMemoryCheckpointStorage
from agentbench.checkpoints.sql import SQLCheckpointStorage as SQLCheckpointStorage
from agentbench.checkpoints.storage import CheckpointStorage as CheckpointStorage
from agentbench.evaluation.agents import evaluate_agent as evaluate_agent
from agentbench.evaluation.checks import CheckResult as CheckResult
from agentbench.evaluation.checks import evaluator as evaluator
from agentbench.evaluation.checks import keyword_check as keyword_check
from agentbench.evaluation.checks import tool_call_args_match as tool_call_args_match
from agentbench.evaluation.checks import tool_called_check as tool_called_check
from agentbench.evaluation.checks import tool_calls_present as tool_calls_present
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
from agentbench.evaluation.results import RubricScore as RubricScore
from agentbench.evaluation.workflows import evaluate_workflow as evaluate_workflow
from agentbench.exceptions import AgentFrameworkException as AgentFrameworkException
from agentbench.exceptions import EdgeDuplicationError as EdgeDuplicationError
from agentbench.exceptions import EvalNotPassedError as EvalNotPassedError
from agentbench.exceptions import GraphConnectivityError as GraphConnectivityError
from agentbench.exceptions import MiddlewareException as MiddlewareException
from agentbench.exceptions import MiddlewareFailure as MiddlewareFailure
from agentbench.exceptions import MiddlewareTermination as MiddlewareTermination
from agentbench.exceptions import ResponseInvalidatedException as ResponseInvalidatedException
from agentbench.exceptions import TypeCompatibilityError as TypeCompatibilityError
from agentbench.exceptions import UserInputRequiredException as UserInputRequiredException
from agentbench.exceptions import ValidationTypeEnum as ValidationTypeEnum
from agentbench.exceptions import WorkflowCheckpointException as WorkflowCheckpointException
from agentbench.exceptions import WorkflowConvergenceException as WorkflowConvergenceException
from agentbench.exceptions import WorkflowException as WorkflowException
from agentbench.exceptions import WorkflowRunnerException as WorkflowRunnerException
from agentbench.exceptions import WorkflowValidationError as WorkflowValidationError
from agentbench.messages.content.content import Content as Content
from agentbench.messages.content.media import Annotation as Annotation
from agentbench.messages.content.media import TextSpanRegion as TextSpanRegion
from agentbench.messages.content.media import detect_media_type_from_base64 as detect_media_type_from_base64
from agentbench.messages.content.properties import get_namespaced_value as get_namespaced_value
from agentbench.messages.content.properties import merge_additional_properties as merge_additional_properties
from agentbench.messages.content.properties import with_namespaced_value as with_namespaced_value
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
from agentbench.messages.usage import Budget as Budget
from agentbench.messages.usage import UsageDetails as UsageDetails
from agentbench.messages.usage import add_usage_details as add_usage_details
from agentbench.observability.feature_stages import ExperimentalFeature as ExperimentalFeature
from agentbench.observability.feature_stages import ReleaseCandidateFeature as ReleaseCandidateFeature
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
from agentbench.orchestrations.agent_executor import AgentExecutorCheckpointState as AgentExecutorCheckpointState
from agentbench.orchestrations.agent_executor import AgentExecutorRequest as AgentExecutorRequest
from agentbench.orchestrations.agent_executor import AgentExecutorResponse as AgentExecutorResponse
from agentbench.orchestrations.functional_agent import FunctionalWorkflowAgent as FunctionalWorkflowAgent
from agentbench.orchestrations.host_executor import AgentHostExecutor as AgentHostExecutor
from agentbench.orchestrations.host_executor import AgentHostOptions as AgentHostOptions
from agentbench.orchestrations.host_executor import TurnToken as TurnToken
from agentbench.orchestrations.host_executor import bind_as_executor as bind_as_executor
from agentbench.orchestrations.patterns.sequential_builder import AgentWorkflowBuilder as AgentWorkflowBuilder
from agentbench.orchestrations.workflow_agent import WorkflowAgent as WorkflowAgent
from agentbench.serialization.mixin import SerializationMixin as SerializationMixin
from agentbench.serialization.mixin import SerializationProtocol as SerializationProtocol
from agentbench.serialization.state_types import register_state_type as register_state_type
from agentbench.settings import SecretString as SecretString
from agentbench.settings import load_settings as load_settings
from agentbench.stategraph.graph import StateGraph as StateGraph
from agentbench.stategraph.reducers import add_messages as add_messages
from agentbench.stategraph.reducers import append_items as append_items
from agentbench.stategraph.reducers import replace_messages as replace_messages
from agentbench.stategraph.reducers import replace_value as replace_value
from agentbench.stategraph.results import ResponseGranularity as ResponseGranularity
from agentbench.stategraph.state import AgentState as AgentState
from agentbench.workflows.builder.workflow_builder import WorkflowBuilder as WorkflowBuilder
from agentbench.workflows.by_hand.calls import InProcessExecution as InProcessExecution
from agentbench.workflows.by_hand.runner import Runner as Runner
from agentbench.workflows.by_hand.runner_context import InProcRunnerContext as InProcRunnerContext
from agentbench.workflows.draw.drawing import WorkflowViz as WorkflowViz
from agentbench.workflows.engine.run_kwargs import WorkflowInvocationKwargs as WorkflowInvocationKwargs
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
from agentbench.workflows.executors.host import RunnerContext as RunnerContext
from agentbench.workflows.executors.message import MessageType as MessageType
from agentbench.workflows.executors.message import WorkflowMessage as WorkflowMessage
from agentbench.workflows.executors.options import ExecutorPolicy as ExecutorPolicy
from agentbench.workflows.executors.options import RunOptions as RunOptions
from agentbench.workflows.executors.state import State as State
from agentbench.workflows.functional.context import RunContext as RunContext
from agentbench.workflows.functional.context import StepWrapper as StepWrapper
from agentbench.workflows.functional.context import get_run_context as get_run_context
from agentbench.workflows.functional.context import step as step
from agentbench.workflows.functional.functional_workflow import FunctionalWorkflow as FunctionalWorkflow
from agentbench.workflows.functional.functional_workflow import (
    FunctionalWorkflowDefinition as FunctionalWorkflowDefinition,
)
from agentbench.workflows.functional.functional_workflow import workflow as workflow
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
from agentbench.workflows.nested import SubWorkflowRequestMessage as SubWorkflowRequestMessage
from agentbench.workflows.nested import SubWorkflowResponseMessage as SubWorkflowResponseMessage
from agentbench.workflows.nested import WorkflowExecutor as WorkflowExecutor
from agentbench.workflows.run.result import WorkflowRunResult as WorkflowRunResult
from agentbench.workflows.run.run import WorkflowRun as WorkflowRun
from agentbench.workflows.run.step_report import PlannedDelivery as PlannedDelivery
from agentbench.workflows.run.step_report import StepReport as StepReport
from agentbench.workflows.run.stream import WorkflowStream as WorkflowStream
from agentbench.workflows.run.workflow import Workflow as Workflow

AIAgentHostExecutor = AgentHostExecutor
AIAgentHostOptions = AgentHostOptions
StreamingRun = WorkflowRun
register_checkpoint_type = register_state_type

_door: Door
__all__: list[str]
__version__: str

def load_ipython_extension(ip: object) -> None: ...
def unload_ipython_extension(ip: object) -> None: ...

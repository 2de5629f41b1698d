# Typed stub of the lazy names; written by tests/tools/write_stub.py, not by hand.

from agentbench._lazy import Door
from agentbench.agents.tools.decorator import tool as tool
from agentbench.exceptions import ConcurrentUpdateError as ConcurrentUpdateError
from agentbench.exceptions import GraphCompileError as GraphCompileError
from agentbench.exceptions import GraphError as GraphError
from agentbench.exceptions import GraphRecursionError as GraphRecursionError
from agentbench.exceptions import GraphStopRequested as GraphStopRequested
from agentbench.exceptions import InvalidUpdateError as InvalidUpdateError
from agentbench.exceptions import NodeError as NodeError
from agentbench.exceptions import NodeNotFoundError as NodeNotFoundError
from agentbench.exceptions import NodeTimeoutError as NodeTimeoutError
from agentbench.exceptions import ReducerError as ReducerError
from agentbench.exceptions import ResourceNotFoundError as ResourceNotFoundError
from agentbench.exceptions import SchemaVersionError as SchemaVersionError
from agentbench.exceptions import SerializationError as SerializationError
from agentbench.exceptions import StateValidationError as StateValidationError
from agentbench.exceptions import ThreadBusyError as ThreadBusyError
from agentbench.exceptions import TransientStorageError as TransientStorageError
from agentbench.exceptions import WorkflowCheckpointException
from agentbench.messages.content.blocks import AnnotationRef as AnnotationRef
from agentbench.messages.content.blocks import TextBlock as TextBlock
from agentbench.messages.content.blocks import TokenUsages as TokenUsages
from agentbench.messages.content.blocks import ToolCallBlock as ToolCallBlock
from agentbench.messages.content.blocks import ToolResultBlock as ToolResultBlock
from agentbench.messages.message import Message as Message
from agentbench.observability.tool_reports import StreamEmitter as StreamEmitter
from agentbench.stategraph.command import Command as Command
from agentbench.stategraph.command import Send as Send
from agentbench.stategraph.compiled import CompiledGraph as CompiledGraph
from agentbench.stategraph.drawn_graph import DrawnGraph as DrawnGraph
from agentbench.stategraph.functional import EntrypointGraph as EntrypointGraph
from agentbench.stategraph.functional import TaskFuture as TaskFuture
from agentbench.stategraph.functional import entrypoint as entrypoint
from agentbench.stategraph.functional import task as task
from agentbench.stategraph.graph import StateGraph as StateGraph
from agentbench.stategraph.interrupts import BreakpointRequest as BreakpointRequest
from agentbench.stategraph.interrupts import Continue as Continue
from agentbench.stategraph.interrupts import GraphInterrupt as GraphInterrupt
from agentbench.stategraph.interrupts import Interrupt as Interrupt
from agentbench.stategraph.interrupts import interrupt as interrupt
from agentbench.stategraph.interrupts import pending_interrupt as pending_interrupt
from agentbench.stategraph.prebuilt.tools.handoff import create_handoff_tool as create_handoff_tool
from agentbench.stategraph.prebuilt.tools.handoff import is_handoff_tool as is_handoff_tool
from agentbench.stategraph.reducers import REMOVE_ALL_MESSAGES as REMOVE_ALL_MESSAGES
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
from agentbench.stategraph.running.executors import Runtime as Runtime
from agentbench.stategraph.running.executors import get_config as get_config
from agentbench.stategraph.running.executors import get_runtime as get_runtime
from agentbench.stategraph.running.plan import RunnableConfig as RunnableConfig
from agentbench.stategraph.running.retrying import RetryPolicy as RetryPolicy
from agentbench.stategraph.snapshots import SnapshotTask as SnapshotTask
from agentbench.stategraph.snapshots import StateSnapshot as StateSnapshot
from agentbench.stategraph.state import END as END
from agentbench.stategraph.state import START as START
from agentbench.stategraph.state import AgentState as AgentState
from agentbench.stategraph.state import ExecutionState as ExecutionState
from agentbench.stategraph.state import ExecutionStatus as ExecutionStatus
from agentbench.stategraph.state import MessagesState as MessagesState
from agentbench.stategraph.state import StopRequestStatus as StopRequestStatus
from agentbench.stategraph.storage.checkpointer import InMemoryCheckpointer as InMemoryCheckpointer
from agentbench.stategraph.storage.checkpointer import SqliteCheckpointer as SqliteCheckpointer
from agentbench.stategraph.storage.savers import InMemorySaver as InMemorySaver
from agentbench.stategraph.storage.savers import SqliteSaver as SqliteSaver
from agentbench.stategraph.streaming import StreamChunk as StreamChunk
from agentbench.stategraph.streaming import StreamEvent as StreamEvent
from agentbench.stategraph.streams.writer import StreamWriter as StreamWriter
from agentbench.stategraph.streams.writer import get_stream_writer as get_stream_writer
from agentbench.stategraph.threads.history import StateHistory as StateHistory
from agentbench.stategraph.toolnode import ToolNode as ToolNode
from agentbench.stategraph.toolnode import ToolResult as ToolResult
from agentbench.stategraph.utils.decorators import get_tool_metadata as get_tool_metadata
from agentbench.stategraph.utils.decorators import has_tool_decorator as has_tool_decorator

AsyncSqliteSaver = SqliteSaver
MemorySaver = InMemorySaver
StaleStateError = ThreadBusyError
StorageError = WorkflowCheckpointException

_door: Door
__all__: list[str]

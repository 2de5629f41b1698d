"""State graphs: nodes that read a typed state and return updates, on the engine of workflows."""

from agentbench._arguments import name_arguments
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.exceptions import (
    ConcurrentUpdateError,
    GraphCompileError,
    GraphError,
    GraphRecursionError,
    InvalidUpdateError,
    NodeError,
    NodeTimeoutError,
    ReducerError,
    StateValidationError,
    ThreadBusyError,
)
from agentbench.messages.content.blocks import TextBlock, ToolCallBlock, ToolResultBlock
from agentbench.messages.message import Message
from agentbench.stategraph.command import Command, Send
from agentbench.stategraph.compiled import CompiledGraph
from agentbench.stategraph.graph import StateGraph
from agentbench.stategraph.interrupts import (
    Breakpoint,
    Continue,
    GraphInterrupt,
    Interrupt,
    interrupt,
    pending_interrupt,
)
from agentbench.stategraph.reducers import (
    Overwrite,
    Reducer,
    RemoveMessage,
    add_messages,
    append_items,
    remove_tool_messages,
    replace_messages,
    replace_value,
    upsert_messages,
)
from agentbench.stategraph.results import GraphResult, ResponseGranularity
from agentbench.stategraph.running.node import Runtime
from agentbench.stategraph.snapshots import SnapshotTask, StateSnapshot
from agentbench.stategraph.state import END, START, AgentState, ExecutionState, ExecutionStatus, StopRequestStatus
from agentbench.stategraph.streaming import StreamChunk, StreamEvent
from agentbench.stategraph.threads.history import StateHistory
from agentbench.stategraph.toolnode import ToolNode, ToolResult

InMemoryCheckpointer = InMemoryCheckpointStorage

__all__ = [
    "END",
    "START",
    "AgentState",
    "Breakpoint",
    "Command",
    "CompiledGraph",
    "ConcurrentUpdateError",
    "Continue",
    "ExecutionState",
    "ExecutionStatus",
    "GraphCompileError",
    "GraphError",
    "GraphInterrupt",
    "GraphRecursionError",
    "GraphResult",
    "InMemoryCheckpointer",
    "Interrupt",
    "InvalidUpdateError",
    "Message",
    "NodeError",
    "NodeTimeoutError",
    "Overwrite",
    "Reducer",
    "ReducerError",
    "RemoveMessage",
    "ResponseGranularity",
    "Runtime",
    "Send",
    "SnapshotTask",
    "StateGraph",
    "StateHistory",
    "StateSnapshot",
    "StateValidationError",
    "StopRequestStatus",
    "StreamChunk",
    "StreamEvent",
    "TextBlock",
    "ThreadBusyError",
    "ToolCallBlock",
    "ToolNode",
    "ToolResult",
    "ToolResultBlock",
    "add_messages",
    "append_items",
    "interrupt",
    "pending_interrupt",
    "remove_tool_messages",
    "replace_messages",
    "replace_value",
    "upsert_messages",
]

for _name in __all__:
    globals()[_name] = name_arguments(globals()[_name])

"""The state and its messages."""

from agentbench.messages.content.blocks import TextBlock, ToolCallBlock, ToolResultBlock
from agentbench.messages.message import Message
from agentbench.stategraph.state import AgentState, ExecutionState, ExecutionStatus, StopRequestStatus
from agentbench.stategraph.streaming import StreamChunk, StreamEvent
from agentbench.stategraph.toolnode import ToolResult

__all__ = [
    "AgentState",
    "ExecutionState",
    "ExecutionStatus",
    "Message",
    "StopRequestStatus",
    "StreamChunk",
    "StreamEvent",
    "TextBlock",
    "ToolCallBlock",
    "ToolResult",
    "ToolResultBlock",
]

"""The state and its messages."""

from agentbench.messages.content.blocks import AnnotationRef, TextBlock, TokenUsages, ToolCallBlock, ToolResultBlock
from agentbench.messages.message import Message
from agentbench.stategraph.state import AgentState, ExecutionState, ExecutionStatus, StopRequestStatus
from agentbench.stategraph.streaming import StreamChunk, StreamEvent
from agentbench.stategraph.toolnode import ToolResult

__all__ = [
    "AgentState",
    "AnnotationRef",
    "ExecutionState",
    "ExecutionStatus",
    "Message",
    "StopRequestStatus",
    "StreamChunk",
    "StreamEvent",
    "TextBlock",
    "TokenUsages",
    "ToolCallBlock",
    "ToolResult",
    "ToolResultBlock",
]

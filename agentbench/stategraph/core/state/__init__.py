"""The state and its messages."""

from agentbench.stategraph import (
    AgentState,
    AnnotationRef,
    ExecutionState,
    ExecutionStatus,
    Message,
    StopRequestStatus,
    StreamChunk,
    StreamEvent,
    TextBlock,
    TokenUsages,
    ToolCallBlock,
    ToolResult,
    ToolResultBlock,
)

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

"""Constants, commands, interrupts, and labels of tools."""

from agentbench.stategraph import (
    END,
    START,
    Command,
    GraphInterrupt,
    Interrupt,
    ResponseGranularity,
    Send,
    get_tool_metadata,
    has_tool_decorator,
    interrupt,
    pending_interrupt,
    tool,
)

__all__ = [
    "END",
    "START",
    "Command",
    "GraphInterrupt",
    "Interrupt",
    "ResponseGranularity",
    "Send",
    "get_tool_metadata",
    "has_tool_decorator",
    "interrupt",
    "pending_interrupt",
    "tool",
]

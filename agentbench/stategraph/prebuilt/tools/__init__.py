"""Ready-made tools."""

from agentbench.stategraph import create_handoff_tool, is_handoff_tool

__all__ = [
    "create_handoff_tool",
    "is_handoff_tool",
]

"""The builder, what it compiles, and the node of tools."""

from agentbench.stategraph.compiled import CompiledGraph
from agentbench.stategraph.graph import StateGraph
from agentbench.stategraph.toolnode import ToolNode

__all__ = [
    "CompiledGraph",
    "StateGraph",
    "ToolNode",
]

"""The builder, the compiled graph, and the tool node."""

from agentbench.stategraph.compiled import CompiledGraph
from agentbench.stategraph.graph import StateGraph
from agentbench.stategraph.toolnode import ToolNode

__all__ = [
    "CompiledGraph",
    "StateGraph",
    "ToolNode",
]

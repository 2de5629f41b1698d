"""The builder, the compiled graph, and the tool node."""

from agentbench.stategraph import CompiledGraph, StateGraph, ToolNode

__all__ = [
    "CompiledGraph",
    "StateGraph",
    "ToolNode",
]

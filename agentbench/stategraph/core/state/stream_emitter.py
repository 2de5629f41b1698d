"""The emitter of a running tool."""

from agentbench.observability.tool_reports import StreamEmitter

__all__ = ["StreamEmitter"]

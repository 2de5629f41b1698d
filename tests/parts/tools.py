"""Tools, and a middleware, that many tests of agents use."""

from __future__ import annotations

from typing import Any

from agentbench import agent_middleware, tool


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(approval_mode="always_require")
def danger(what: str = "it") -> str:
    return f"did {what}"


@agent_middleware
async def passing(context: Any, call_next: Any) -> None:
    await call_next()

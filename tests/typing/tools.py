"""Read by mypy, not run: what tools and middleware are to a type checker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, assert_type

from agentbench import (
    ChatContext,
    ChatMiddleware,
    FunctionInvocationContext,
    FunctionTool,
    MiddlewareTypes,
    agent_middleware,
    normalize_tools,
    tool,
)


@tool
def bare(a: int) -> str:
    return str(a)


@tool(name="named", approval_mode="always_require")
async def with_arguments(a: int, ctx: FunctionInvocationContext) -> str:
    return f"{a} {ctx.session}"


@agent_middleware
async def marked(context: Any, call_next: Callable[[], Awaitable[None]]) -> None:
    await call_next()


async def annotated(context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
    await call_next()


class Logged(ChatMiddleware):
    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        await call_next()


class Service:
    @tool
    def method(self, a: int) -> str:
        return str(a)


assert_type(bare, FunctionTool)
assert_type(with_arguments, FunctionTool)
assert_type(tool(len, name="length"), FunctionTool)
assert_type(Service().method, FunctionTool)
assert_type(bare.name, str)
assert_type(bare.parameters(), dict[str, Any])
assert_type(normalize_tools([bare, len]), list[Any])

middleware: list[MiddlewareTypes] = [marked, annotated, Logged()]

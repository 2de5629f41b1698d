"""A chain of middleware around one call, outermost first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from agentbench._user_code import warn_user
from agentbench.agents.arguments import describe
from agentbench.exceptions import MiddlewareTermination
from agentbench.messages.stream import ResponseStream

if TYPE_CHECKING:
    from agentbench.agents.middleware.contexts import AgentContext, ChatContext


async def run_pipeline(
    middleware: Sequence[Callable[..., Any]], context: Any, innermost: Callable[[], Awaitable[None]]
) -> bool:
    """Run a call inside its middleware. Return whether a `MiddlewareTermination` raised by the middleware ended it."""
    raised_by_call: MiddlewareTermination | None = None

    async def call() -> None:
        nonlocal raised_by_call
        try:
            await innermost()
        except MiddlewareTermination as termination:
            raised_by_call = termination
            raise

    for one in reversed(middleware):
        call = _around(call, one, context)
    try:
        await call()
    except MiddlewareTermination as termination:
        if termination is raised_by_call:
            raise
        if context.result is None:
            context.result = termination.result
        return True
    return False


def _around(
    inner: Callable[[], Awaitable[None]], middleware: Callable[..., Any], context: Any
) -> Callable[[], Coroutine[Any, Any, None]]:
    async def call_next(*arguments: object) -> None:
        if arguments:
            message = "call_next() takes no arguments. Change the context if necessary, then `await call_next()`."
            raise TypeError(message)
        await inner()

    async def call() -> None:
        pending = middleware(context, call_next)
        if pending is not None:  # a sync function returns None
            returned = await pending
            if returned is not None and context.result is None:
                _warn_of_return(middleware, returned)

    return call


def _warn_of_return(middleware: Callable[..., Any], returned: object) -> None:
    name = getattr(middleware, "__qualname__", None) or type(middleware).__name__
    message = (
        f"The middleware {name} returned a value ({describe(returned)}), which is ignored, and set no result. "
        "To answer, set context.result; to continue, `await call_next()`."
    )
    warn_user(message, RuntimeWarning)


def with_stream_hooks(stream: object, context: AgentContext | ChatContext) -> ResponseStream[Any, Any]:
    """Add the hooks of a context to the stream that is the result of its call, and return the stream."""
    if not isinstance(stream, ResponseStream):
        message = (
            f"The result of a streaming call is of type {type(stream).__name__}. Expected a ResponseStream: when "
            "context.stream is true, a middleware must set context.result to a ResponseStream."
        )
        raise ValueError(message)
    for transform in context.stream_transform_hooks:
        stream.with_transform_hook(transform)
    for hook in context.stream_result_hooks:
        stream.with_result_hook(hook)
    for cleanup in context.stream_cleanup_hooks:
        stream.with_cleanup_hook(cleanup)
    return stream

"""Executors made from plain functions."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, overload

from agentbench._signatures import NOT_GIVEN, ExplicitTypes, read_function
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.handlers import HandlerSpec, HandlerTable, ResponseTable


class FunctionExecutor(Executor):
    """A function as a node. Async functions run on the event loop, plain ones in a worker thread.

    Args:
        func: takes `(message)` or `(message, ctx)`.
        id: default: the function's name.
        input: message type; explicit types win over annotations, one by one.
        output: type of sent messages.
        workflow_output: type of yielded outputs.
        send_result: a one-parameter function's result, unless None, is sent on.
        policy: limits such as `timeout=`, `retries=` and `max_concurrency=`.

    Raises:
        ValueError: the signature is not one of the two, or the message type is unknown.
    """

    # All functions are one kind of node; where this class lives is nothing that a checkpoint depends on.
    signature_key: ClassVar[str | None] = "FunctionExecutor"

    def __init__(
        self,
        func: Callable[..., Any],
        id: str | None = None,  # noqa: A002 - the name is part of the public surface
        *,
        input: Any = NOT_GIVEN,  # noqa: A002 - as above
        output: Any = NOT_GIVEN,
        workflow_output: Any = NOT_GIVEN,
        send_result: bool = False,
        **policy: Any,
    ) -> None:
        explicit = ExplicitTypes(input=input, output=output, workflow_output=workflow_output)
        signature = read_function(func, context_type=WorkflowContext, explicit=explicit)
        super().__init__(id or _name_of(func), type="FunctionExecutor", defer_discovery=True, **policy)
        self._function = func
        call = _caller(func, takes_context=signature.takes_context, send_result=send_result)
        if send_result and not signature.takes_context:
            signature = signature._replace(can_send=True)
        self._handlers = HandlerTable([HandlerSpec(_name_of(func), call, signature)], _name_of(func))
        self._responses = ResponseTable([], _name_of(func))

    def __repr__(self) -> str:
        return f"FunctionExecutor({self.id!r})"


def _name_of(func: Any) -> str:
    if hasattr(func, "func"):  # functools.partial
        return _name_of(func.func)
    name = getattr(func, "__name__", None)
    return name if isinstance(name, str) else type(func).__name__


def _is_async(func: Any) -> bool:
    while hasattr(func, "func"):
        func = func.func
    return inspect.iscoroutinefunction(func) or inspect.iscoroutinefunction(getattr(func, "__call__", None))  # noqa: B004


def _caller(func: Callable[..., Any], *, takes_context: bool, send_result: bool) -> Callable[..., Any]:
    """The function in the form `(executor, data, ctx)` in which the engine calls handlers."""
    if _is_async(func):

        async def call_async(_: Executor, data: Any, ctx: Any) -> None:
            result = await (func(data, ctx) if takes_context else func(data))
            if send_result and not takes_context and result is not None:
                await ctx.send_message(result)

        return call_async

    def call(_: Executor, data: Any, ctx: Any) -> Any:
        result = func(data, ctx) if takes_context else func(data)
        if not send_result or takes_context:
            return result
        if inspect.isawaitable(result):  # a plain wrapper around an async function
            return _send_awaited(result, ctx)
        return None if result is None else ctx.send_message(result)

    return call


async def _send_awaited(result: Awaitable[Any], ctx: Any) -> None:
    value = await result
    if value is not None:
        await ctx.send_message(value)


@overload
def executor(func: Callable[..., Any]) -> FunctionExecutor: ...
@overload
def executor(
    func: str | None = None,
    *,
    id: str | None = None,
    input: Any = ...,
    output: Any = ...,
    workflow_output: Any = ...,
    send_result: bool = False,
    **policy: Any,
) -> Callable[[Callable[..., Any]], FunctionExecutor]: ...
def executor(
    func: Callable[..., Any] | str | None = None,
    *,
    id: str | None = None,  # noqa: A002 - the name is part of the public surface
    **settings: Any,
) -> Any:
    """Make a node from a function: `@executor`, `@executor()`, `@executor("name")` or with keywords.

    Keywords are those of `FunctionExecutor`.

    Raises:
        ValueError: a staticmethod or classmethod object, or a signature that is not `(message)` or `(message, ctx)`.
    """
    if isinstance(func, str):
        return lambda f: FunctionExecutor(f, id or func, **settings)
    if func is not None:
        return FunctionExecutor(func, id, **settings)
    return lambda f: FunctionExecutor(f, id, **settings)

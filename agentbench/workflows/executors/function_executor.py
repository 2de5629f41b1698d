"""Executors made from plain functions."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable
from importlib import import_module
from operator import attrgetter
from typing import Any, ClassVar, overload

from agentbench._signatures import ExplicitTypes, read_function
from agentbench.workflows.executors.blocking import unawaited_calls
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.handlers import HandlerSpec, HandlerTable
from agentbench.workflows.executors.options import PlacementName


class FunctionExecutor(Executor):
    """A function as a node. Async functions run on the event loop, plain ones in a worker thread.

    It can be pickled if its function can: a module-level function, with or without `@executor`, but not a lambda.

    Args:
        func: A function that takes `(message)` or `(message, ctx)`.
        id: A unique id in the workflow; by default the function's name.
        input: The message type. Explicit types take precedence over annotations, one by one.
        output: The type of sent messages.
        workflow_output: The type of yielded outputs.
        send_result: Send the result of a function without context on, unless it is None.
        timeout: Seconds that one attempt may take, see `Executor`.
        retries: Further attempts after the function has raised.
        max_concurrency: Maximum number of concurrent deliveries in one superstep.
        on: `"workers"` runs the function on the workers of `RunOptions(workers=)`, if a run has them.

    Raises:
        ValueError: The signature is not one of the two, the message type is unknown, or `on` is.

    Example:
        >>> double = FunctionExecutor(lambda n: 2 * n, "double", input=int, output=int, send_result=True)
    """

    # All functions are one kind of node; checkpoints do not depend on the module of this class.
    signature_key: ClassVar[str | None] = "FunctionExecutor"

    def __init__(  # noqa: PLR0913 - the published signature, and limits
        self,
        func: Callable[..., Any],
        id: str | None = None,  # noqa: A002 - the name is part of the public surface
        *,
        input: Any = None,  # noqa: A002 - as above
        output: Any = None,
        workflow_output: Any = None,
        send_result: bool = False,
        timeout: float | None = None,
        retries: int | None = None,
        max_concurrency: int | None = None,
        on: PlacementName | None = None,
    ) -> None:
        explicit = ExplicitTypes(input=input, output=output, workflow_output=workflow_output)
        signature = read_function(func, context_type=WorkflowContext, explicit=explicit)
        inner: Any = func
        while hasattr(inner, "func"):  # functools.partial
            inner = inner.func
        name = getattr(inner, "__name__", None)
        if not isinstance(name, str):
            name = type(inner).__name__
        super().__init__(
            id or name,
            type="FunctionExecutor",
            defer_discovery=True,
            timeout=timeout,
            retries=retries,
            max_concurrency=max_concurrency,
            placement=on,
        )
        self._ab_explicit = explicit
        self._ab_function = func
        self._ab_takes_context = signature.takes_context
        self._ab_sends_result = send_result and not signature.takes_context
        if self._ab_sends_result:
            signature = signature._replace(can_send=True)
        is_async = inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(getattr(inner, "__call__", None))  # noqa: B004
        call = FunctionExecutor._ab_call_async if is_async else FunctionExecutor._ab_call_plain
        self._ab_handlers = HandlerTable([HandlerSpec(name, call, signature, unawaited_calls(inner))], name)

    def with_function(self, func: Callable[..., Any]) -> FunctionExecutor:
        """Return an executor with the same id and settings for another function; raises like the constructor."""
        input, output, workflow_output, *_ = self._ab_explicit  # noqa: A001 - names of the constructor
        other = FunctionExecutor(
            func,
            self.id,
            input=input,
            output=output,
            workflow_output=workflow_output,
            send_result=self._ab_sends_result,
        )
        settings = {name: value for name, value in vars(self).items() if not name.startswith("_ab_")}
        vars(other).update(settings)
        return other

    async def _ab_call_async(self, data: Any, ctx: Any) -> Any:
        return await self._ab_send_awaited(
            self._ab_function(data, ctx) if self._ab_takes_context else self._ab_function(data), ctx
        )

    async def _ab_send_awaited(self, pending: Awaitable[Any], ctx: Any) -> Any:
        result = await pending
        if not self._ab_sends_result:
            return result
        return None if result is None else await ctx.send_message(result)

    def _ab_call_plain(self, data: Any, ctx: Any) -> Any:
        result = self._ab_function(data, ctx) if self._ab_takes_context else self._ab_function(data)
        if not self._ab_sends_result:
            return result
        if inspect.isawaitable(result):  # a plain wrapper around an async function
            return self._ab_send_awaited(result, ctx)
        return None if result is None else ctx.send_message(result)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        module, name = getattr(self._ab_function, "__module__", None), getattr(self._ab_function, "__qualname__", "")
        value: Any = sys.modules.get(module) if module else None
        for part in name.split("."):
            value = getattr(value, part, None)
        if isinstance(value, FunctionExecutor) and value._ab_function is self._ab_function:  # noqa: SLF001 - its own class
            # @executor replaced the function where pickle would look for it; unpickling takes it from the node of that
            # name.
            state["_ab_function"] = (module, name)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if isinstance(state["_ab_function"], tuple):
            module, name = state["_ab_function"]
            self._ab_function = attrgetter(name)(import_module(module))._ab_function  # noqa: SLF001 - its own class


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
    timeout: float | None = None,
    retries: int | None = None,
    max_concurrency: int | None = None,
    on: PlacementName | None = None,
) -> Callable[[Callable[..., Any]], FunctionExecutor]: ...
def executor(
    func: Callable[..., Any] | str | None = None,
    *,
    id: str | None = None,  # noqa: A002 - the name is part of the public surface
    **settings: Any,
) -> Any:
    """Create a node from a function: `@executor`, `@executor()`, `@executor("name")` or with keyword arguments.

    Args:
        func: The function, which takes `(message)` or `(message, ctx)`; or the id of the node as text.
        id: A unique id in the workflow; by default the function's name.
        settings: The other keyword arguments of `FunctionExecutor`: `input`, `output`, `workflow_output`,
            `send_result`, `timeout`, `retries`, `max_concurrency`, `on`.

    Raises:
        ValueError: The signature is not `(message)` or `(message, ctx)`.
        TypeError: The object is not a function, for example a staticmethod object.

    Example:
        >>> @executor
        ... async def upper(text: str, ctx: WorkflowContext[str]) -> None:
        ...     await ctx.send_message(text.upper())
        >>> @executor(id="length", output=int, send_result=True)
        ... def measure(text: str) -> int:
        ...     return len(text)
    """
    if func is None or isinstance(func, str):
        return lambda f: FunctionExecutor(f, id or func, **settings)
    return FunctionExecutor(func, id, **settings)

"""Steps: functions whose results a run caches."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar, overload

from agentbench.workflows.functional.calling import ContextFunction
from agentbench.workflows.functional.context import ACTIVE, RunContext

ResultT = TypeVar("ResultT")


class StepWrapper(Generic[ResultT]):
    """An async function as a step of workflow functions; usually created by `@step`.

    Inside a run, its result is cached: when the workflow function is called again, to continue after a response or from
    a checkpoint, the step is not called again. Outside a run it is just the function.

    Args:
        func: The function, with any parameters; one named `ctx` or annotated `RunContext` gets the context.
        name: The name in events and checkpoints; by default the function's name.

    Raises:
        TypeError: The function is not async.

    Example:
        >>> async def fetch_page(address: str) -> str:
        ...     return f"The page at {address}"
        >>> fetch = StepWrapper(fetch_page, name="fetch")
    """

    __name__: str

    def __init__(self, func: Callable[..., Coroutine[Any, Any, ResultT]], *, name: str | None = None) -> None:
        self._function = ContextFunction(func, "Step")
        functools.update_wrapper(self, func)
        self.name: str = name or func.__name__

    async def __call__(self, *args: Any, **kwargs: Any) -> ResultT:
        """Return the result of the function, or the cached result of the same call."""
        context = ACTIVE.get()
        result: ResultT
        if context is None:
            result = await self._function.function(*args, **kwargs)
        else:
            # A step gets its own context, even if it was passed the context of its caller.
            args = tuple(value for value in args if not isinstance(value, RunContext))
            kwargs = {name: value for name, value in kwargs.items() if not isinstance(value, RunContext)}
            result = await context.execution.run_step(self.name, self._function, context, args, kwargs)
        return result

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Bind to an instance, like a method."""
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"StepWrapper({self.name!r})"


@overload
def step(func: Callable[..., Coroutine[Any, Any, ResultT]]) -> StepWrapper[ResultT]: ...
@overload
def step(
    func: None = None, *, name: str | None = None
) -> Callable[[Callable[..., Coroutine[Any, Any, ResultT]]], StepWrapper[ResultT]]: ...
def step(func: Callable[..., Any] | None = None, *, name: str | None = None) -> Any:
    """Create a step of a workflow function: `@step` or `@step(name="...")`.

    Args:
        func: An async function.
        name: The name in events and checkpoints; by default the function's name.

    Raises:
        TypeError: The function is not async.

    Example:
        >>> @step
        ... async def summarize(text: str) -> str:
        ...     return (await agent.run(f"Summarize: {text}")).text
    """
    if func is None:
        return lambda f: StepWrapper(f, name=name)
    return StepWrapper(func, name=name)

"""Graphs that are written as one function: `@entrypoint` runs it on threads; `@task` functions are its kept parts."""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial, update_wrapper
from typing import Any, Generic, ParamSpec, TypedDict, TypeVar, cast, overload

from agentbench._bridge import (
    EngineFuture,
    blocking,
    iterate_sync,
    run_sync,
    running_loop,
    threads_available,
    wait_sync,
)
from agentbench._copying import isolate_or_same
from agentbench._display import Displayable
from agentbench._workers import run_in_thread
from agentbench.stategraph.command import Command
from agentbench.stategraph.compiled import CompiledGraph
from agentbench.stategraph.graph import StateGraph
from agentbench.stategraph.interrupts import QUESTIONS, GraphInterrupt, TaskQuestions, current_questions
from agentbench.stategraph.snapshots import StateSnapshot
from agentbench.stategraph.state import END, START
from agentbench.stategraph.streams.writer import TaskStep

P = ParamSpec("P")
T = TypeVar("T")
SaveT = TypeVar("SaveT")


# ---- tasks -----------------------------------------------------------------------------------------------------------


class TaskFuture(EngineFuture[T]):
    """The future result of a task: `future.result()` in a plain function, `await future` in an async one.

    Example:
        >>> futures = [summarize(page) for page in pages]  # all of them run now
        >>> summaries = [future.result() for future in futures]
    """

    def result(self, timeout: float | None = None) -> T:
        """Wait for the task and return its result; its error is raised here.

        Args:
            timeout: Maximum wait in seconds. The task is cancelled after it.

        Raises:
            RuntimeError: The caller is async, and would block the event loop that runs the task.
            TimeoutError: The task took longer.
        """
        if not self.done():
            if threads_available() and running_loop() is self._loop:
                message = "result() would block the event loop that runs the task. Write: await future."
                raise RuntimeError(message)
            wait_sync(self, timeout=timeout, name="The task")
        return super().result()

    def __await__(self) -> Generator[Any, None, T]:
        """Wait for the task in async code."""
        return asyncio.wrap_future(self).__await__()


class TaskWrapper(Generic[P, T]):
    """A function as a task; created by `@task`."""

    def __init__(self, func: Callable[P, Any], name: str | None = None) -> None:
        self.func = func
        self.name: str = name or func.__name__
        self._is_async = inspect.iscoroutinefunction(func)
        update_wrapper(self, func)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> TaskFuture[T]:
        """Start the task, and return its future; the result of an earlier attempt is not computed again."""
        questions = QUESTIONS.get()
        if questions is None:
            message = f"Task {self.name!r} was called while no graph runs. Call it in an @entrypoint, a node or a task."
            raise RuntimeError(message)
        calls: TaskCalls = questions.calls or TaskCalls()
        questions.calls = calls
        key = f"{'' if questions.scope is None else f'{questions.scope}/'}{self.name}::{calls.counts[self.name]}"
        calls.counts[self.name] += 1
        loop = running_loop() or questions.loop or questions.ctx.loop
        own = replace(questions, asked=0, scope=key, calls=None, loop=loop)
        future: TaskFuture[T] = TaskFuture(loop, self._run(own, args, kwargs))
        calls.started.append(future)
        future.start()
        return future

    async def _run(self, questions: TaskQuestions, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        done, key = questions.done, questions.scope
        assert key is not None
        if key in done:
            return isolate_or_same(done[key])
        QUESTIONS.set(questions)
        step = TaskStep(f"{questions.task_id}:{key}", self.name, args, kwargs)
        questions.emit(step)
        call = partial(self.func, *args, **kwargs)
        try:
            result = await (call() if self._is_async else run_in_thread(call))
        except BaseException as error:
            await end_tasks(questions, error)
            if isinstance(error, Exception):
                questions.emit(replace(step, is_ended=True, error=repr(error)))
            raise
        await end_tasks(questions)
        done[key] = isolate_or_same(result)
        questions.emit(replace(step, is_ended=True, result=result))
        return result

    def __repr__(self) -> str:
        return f"TaskWrapper({self.name!r})"


class TaskCalls:
    """The calls of tasks by a running node, or by another task."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.started: list[TaskFuture[Any]] = []


async def end_tasks(questions: TaskQuestions, error: BaseException | None = None) -> None:
    """Wait for the tasks that still run, so that their results are kept; after an error, cancel them."""
    futures = [] if questions.calls is None else questions.calls.started
    for future in futures if error is not None and not isinstance(error, GraphInterrupt) else ():
        future.cancel()
    await asyncio.gather(*map(asyncio.wrap_future, futures), return_exceptions=True)
    questions.open.sort(key=lambda question: question.key)  # not in the order in which threads happen to ask


@overload
def task(func: Callable[P, Coroutine[Any, Any, T]], *, name: str | None = None) -> TaskWrapper[P, T]: ...
@overload
def task(func: Callable[P, T], *, name: str | None = None) -> TaskWrapper[P, T]: ...
@overload
def task(func: None = None, *, name: str | None = None) -> Callable[[Callable[P, T]], TaskWrapper[P, T]]: ...
def task(func: Callable[..., Any] | None = None, *, name: str | None = None) -> Any:
    """Make a function a task: `@task`, or `@task(name=...)`.

    A call starts it and returns a future: `.result()` waits for the result, in async code `await` does. Several tasks
    run at the same time; functions that are not async run in worker threads. When the entrypoint runs again, after an
    answer or an error, a task that has a result is not called again. The calls are distinguished by their order, so
    an entrypoint must call its tasks in the same order each time.

    Args:
        func: The function, sync or async.
        name: The name in streams; by default that of the function.

    Raises:
        RuntimeError: When it is called: no graph is running.

    Example:
        >>> @task
        ... def summarize(page: str) -> str:
        ...     return page[:20]
    """
    return partial(TaskWrapper, name=name) if func is None else TaskWrapper(func, name)


# ---- entrypoints -----------------------------------------------------------------------------------------------------


class _State(TypedDict, total=False):
    input: Any
    value: Any
    previous: Any


class entrypoint:  # noqa: N801 - a decorator
    """Make a function a graph that runs on threads: `@entrypoint()`, or `@entrypoint(checkpointer=...)`.

    The function gets the input in its first parameter; parameters named `previous`, `writer`, `config`, `runtime` and
    `store` get the value that the thread's last run saved, a function that sends data to streams, the configuration,
    the `Runtime` and the store. It may call `@task` functions and `interrupt()`; after an answer, it is called again
    from its start, with the results of tasks that have ended.

    Args:
        checkpointer: The storage for threads; by default in memory.
        store: Any object, for the parameter `store`.

    Raises:
        ValueError: The function has no parameter for the input.
        TypeError: It is a generator, or not a function with a name.

    Example:
        >>> @entrypoint(checkpointer=InMemorySaver())
        ... def essay(topic: str) -> dict:
        ...     draft = write(topic).result()
        ...     return {"draft": draft, "approved": interrupt(draft)}
        >>> essay.invoke("owls", config)  # pauses
        >>> essay.invoke(Command(resume=True), config)
    """

    @dataclass(frozen=True)
    class final(Generic[T, SaveT]):  # noqa: N801 - the published name
        """The result of an entrypoint, with another value for `previous` in the thread's next run.

        Args:
            value: What `invoke` returns.
            save: The next run's `previous`.

        Example:
            >>> @entrypoint(checkpointer=InMemorySaver())
            ... def total(n: int, *, previous: int | None = None) -> entrypoint.final[int, int]:
            ...     return entrypoint.final(value=previous or 0, save=(previous or 0) + n)
        """

        value: T
        save: SaveT

    def __init__(self, checkpointer: Any = None, *, store: Any = None) -> None:
        self.checkpointer = checkpointer
        self.store = store

    def __call__(self, func: Callable[..., Any]) -> EntrypointGraph:
        """Return the function as a graph."""
        name = getattr(func, "__name__", "")
        if inspect.isgeneratorfunction(func) or inspect.isasyncgenfunction(func):
            message = f"Entrypoint {name!r} is a generator. Return one value, and send progress with writer(...)."
            raise TypeError(message)
        is_function = callable(cast("object", func))
        if is_function and not [*inspect.signature(func).parameters]:
            message = f"Entrypoint {name!r} has no parameter. Its first one gets the input of invoke()."
            raise ValueError(message)
        if not is_function or name in ("", "<lambda>"):
            message = f"func is {func!r}; expected a function with a name. Define it with def or async def."
            raise TypeError(message)
        others = [*inspect.signature(func).parameters][1:]
        graph = StateGraph(_State, name=name).add_node(name, _node_of(func, others))
        graph.add_edge(START, name).add_edge(name, END)
        return EntrypointGraph(func, graph.compile(checkpointer=self.checkpointer, store=self.store))


def _node_of(func: Callable[..., Any], others: Sequence[str]) -> Callable[..., Any]:
    """Return the function as a node; the names are those of its parameters after the first."""

    def call(state: Mapping[str, Any], **given: Any) -> Any:
        given["previous"] = state.get("previous")
        return func(state["input"], **{name: given[name] for name in others if name in given})

    def node(state: _State, config: Any, runtime: Any, emit: Any, store: Any) -> dict[str, Any]:
        try:
            value = call(state, config=config, runtime=runtime, writer=emit, store=store)
        except BaseException as error:
            run_sync(end_tasks(current_questions(), error))
            raise
        run_sync(end_tasks(current_questions()))
        return _update(value)

    async def async_node(state: _State, config: Any, runtime: Any, emit: Any, store: Any) -> dict[str, Any]:
        try:
            value = await call(state, config=config, runtime=runtime, writer=emit, store=store)
        except BaseException as error:
            await end_tasks(current_questions(), error)
            raise
        await end_tasks(current_questions())
        return _update(value)

    return async_node if inspect.iscoroutinefunction(func) else node


def _update(value: Any) -> dict[str, Any]:
    """Return the result of an entrypoint as an update of the state, unless a task still waits for an answer."""
    if asked := current_questions().open:
        raise GraphInterrupt(asked[0])
    if isinstance(value, entrypoint.final):
        return {"value": value.value, "previous": value.save}
    return {"value": value, "previous": value}


class EntrypointGraph(Displayable):
    """An entrypoint function as a graph; created by `@entrypoint`.

    Attributes:
        graph: The compiled graph of one node, for steppers, updates and forks. Its state has the fields `input`,
            `value` and `previous`.

    Example:
        >>> essay.graph.stepper({"input": "owls"}, config)
    """

    def __init__(self, func: Callable[..., Any], graph: CompiledGraph[Any]) -> None:
        self.graph = graph
        self.name = graph.plan.name
        self.__doc__ = func.__doc__

    async def ainvoke(self, input_data: Any, config: Mapping[str, Any] | None = None) -> Any:
        """Run the function, and return its result; `{"__interrupt__": [...]}` if it waits for answers.

        Args:
            input_data: The input; `Command(resume=...)` answers; `None` continues after an error.
            config: `thread_id` and other settings, flat or under `configurable`.

        Raises:
            Exception: As for `CompiledGraph.ainvoke`; an error of the function is raised unchanged.
        """
        result = await self.graph.ainvoke(_input(input_data), config)
        return {"__interrupt__": result.interrupts} if result.interrupts else result["value"]

    invoke = blocking(ainvoke)

    def stream(
        self, input_data: Any, config: Mapping[str, Any] | None = None, *, stream_mode: str | Sequence[str] = "updates"
    ) -> Iterator[Any]:
        """Run the function and yield its progress, from synchronous code; see `astream`."""
        return iterate_sync(self.astream(input_data, config, stream_mode=stream_mode))

    async def astream(
        self, input_data: Any, config: Mapping[str, Any] | None = None, *, stream_mode: str | Sequence[str] = "updates"
    ) -> AsyncGenerator[Any, None]:
        """Run the function and yield its progress: by default the results of its tasks, and then its own.

        Args:
            input_data: As for `ainvoke`.
            config: As for `ainvoke`.
            stream_mode: As for `CompiledGraph.astream`.
        """
        modes = [stream_mode] if isinstance(stream_mode, str) else stream_mode
        is_first = True
        async with aclosing(self.graph.astream(_input(input_data), config, stream_mode=modes)) as items:
            async for mode, item in items:
                shown = item
                if mode == "updates" and self.name in item:
                    shown = {self.name: item[self.name]["value"]}
                elif mode == "values":
                    if is_first:  # the input is a field, but no result
                        is_first = False
                        continue
                    shown = {name: item[name] for name in ("__interrupt__",) if name in item} or item.get("value")
                yield shown if isinstance(stream_mode, str) else (mode, shown)

    async def aget_state(self, config: Mapping[str, Any]) -> StateSnapshot[Any]:
        """Return a thread, as `CompiledGraph.aget_state`; `values` is the result of its last run."""
        snapshot = await self.graph.aget_state(config)
        return replace(snapshot, values=snapshot.values.get("value"))

    get_state = blocking(aget_state)

    async def aget_state_history(self, config: Mapping[str, Any]) -> list[StateSnapshot[Any]]:
        """Return the snapshots of a thread, newest first, with the results of the function as `values`."""
        history = await self.graph.aget_state_history(config)
        return [replace(snapshot, values=snapshot.values.get("value")) async for snapshot in history]

    get_state_history = blocking(aget_state_history)

    def __repr__(self) -> str:
        return f"EntrypointGraph({self.name!r})"


def _input(data: Any) -> Any:
    return data if data is None or isinstance(data, Command) else {"input": data}

"""The events of a run while it runs, superstep by superstep, and the awaitable that `run()` returns."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from typing import Any

from agentbench._bridge import await_on
from agentbench.exceptions import NestedLoopError, WorkflowRunnerException
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.run.execution import Execution
from agentbench.workflows.run.result import WorkflowRunResult


class LiveSteps:
    """Runs an execution one superstep at a time as a task, and returns events as they are emitted."""

    __slots__ = ("_execution", "_interrupted", "_loop", "_reading", "_task")

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self._task: asyncio.Task[bool] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None  # the loop of the task
        self._interrupted = False
        self._reading = False

    @property
    def running(self) -> bool:
        """Whether a superstep is being executed."""
        return self._task is not None and not self._task.done() and not self._task.get_loop().is_closed()

    @property
    def is_lost(self) -> bool:
        """Whether the event loop was closed while a superstep was being executed."""
        return self._task is not None and not self._task.done() and self._task.get_loop().is_closed()

    @property
    def _waits_inside(self) -> bool:
        inner_steps = self._execution.run.inner_steps
        return inner_steps is not None and bool(inner_steps.waiting)

    def require_none(self, what: str) -> None:
        """Raise RuntimeError while a superstep is being executed; `what` can be done after it.

        A superstep that waits inside a node does not count, because it can be broken off.
        """
        if self.running and not self._waits_inside:
            msg = f"A superstep is being executed; pause() or cancel() first, then {what}."
            raise RuntimeError(msg)

    async def next_events(self) -> list[WorkflowEvent[Any]] | None:
        """Wait for the next events and return them; None if there are none without another superstep."""
        if self._reading:
            msg = "This run already has a reader, and only one is allowed at a time. Await the other one first."
            raise WorkflowRunnerException(msg)
        loop, running_loop = self._loop, asyncio.get_running_loop()
        if loop is not None and loop is not running_loop and self.running:
            return await await_on(loop, self.next_events(), name="WorkflowRun.step")
        log, may_start = self._execution.log, True
        while True:
            events = log.take()
            if events or (self._task is not None and self._waits_inside):
                return events
            if self._task is None:
                if self._execution.ended or not may_start:
                    return None
                self._loop = self._execution.loop = running_loop
                self._task = running_loop.create_task(self._execution.advance())
                self._task.add_done_callback(log.waker())
            elif self._task.done():
                task, self._task = self._task, None
                if not (self._interrupted and task.cancelled()):
                    task.result()
                may_start = False
                continue
            self._reading = True
            try:
                await log.next_change()
            except asyncio.CancelledError:
                await self.cancel()
                raise
            finally:
                self._reading = False

    def interrupt(self) -> None:
        """Break off the superstep; for the reader the run ends as cancelled, without an exception."""
        if self._task is not None:
            self._interrupted = True
            self._task.cancel()

    async def cancel(self) -> None:
        """Break off the superstep, wait until its handlers have ended, and release the instance."""
        task, self._task = self._task, None
        while task is not None and not task.done():
            task.cancel()
            try:
                await asyncio.wait((task,))
            except asyncio.CancelledError:
                continue
        _retrieve_outcome(task)
        self._execution.break_off()

    def abandon(self) -> None:
        """Break off like `cancel` if nothing can be awaited: the handlers end by themselves soon after."""
        task, self._task = self._task, None
        if task is not None and not task.done() and not task.get_loop().is_closed():
            task.add_done_callback(_retrieve_outcome)
            task.cancel()
        self._execution.break_off()


def _retrieve_outcome(task: asyncio.Task[bool] | None) -> None:
    """Retrieve the outcome of a task that is no longer awaited; otherwise the loop reports it as never retrieved."""
    if task is not None and task.done() and not task.cancelled():
        task.exception()


class WorkflowStream:
    """The run of `workflow.run(..., stream=True)`: an async iterator of events.

    Nothing runs until the first event is awaited. Leaving the loop early, calling `aclose()`, or dropping the object
    abandons the run and frees the workflow. A handler's error is raised from the loop, after the last event.

    Example:
        >>> stream = workflow.run("to be", stream=True)
        >>> async for event in stream:
        ...     print(event.type)
        >>> result = await stream.get_final_response()
    """

    def __init__(
        self,
        execution: Execution,
        acquire: Callable[[Execution], None],
        *,
        include_status_events: bool,
        keep_events: bool,
    ) -> None:
        self._execution = execution
        self._acquire = acquire
        self._steps = LiveSteps(execution)
        self._ready: deque[WorkflowEvent[Any]] = deque()
        self._include_status = include_status_events
        self._keep = keep_events
        self._result: WorkflowRunResult | None = None
        self._error: BaseException | None = None
        self._closed = False

    def __aiter__(self) -> WorkflowStream:
        return self

    async def __anext__(self) -> WorkflowEvent[Any]:
        if self._ready:
            return self._ready.popleft()
        if self._closed:
            raise StopAsyncIteration
        if not self._execution.begun:
            self._acquire(self._execution)
        try:
            events = await self._steps.next_events()
            while events is None and not self._execution.ended:
                events = await self._steps.next_events()
        except BaseException as error:
            # A run that this thread cannot wait for goes on; whoever awaits the stream still gets all of it.
            if self._execution.ended or not isinstance(error, NestedLoopError):
                self._error, self._closed = error, True
            raise
        if events is None:
            self._closed = True
            raise StopAsyncIteration
        if not self._keep:
            self._execution.log.drop_brief()
        if len(events) == 1:
            return events[0]
        self._ready.extend(events)
        return self._ready.popleft()

    def __await__(self) -> Generator[Any, None, WorkflowStream]:
        yield from ()  # nothing to wait for; this makes it a generator function
        return self

    async def get_final_response(self) -> WorkflowRunResult:
        """Consume the remaining events; return the result of the run, or raise its error, the same each time."""
        async for _ in self:
            pass
        if self._error is not None:
            raise self._error
        if self._result is None:
            self._result = WorkflowRunResult.from_log(self._execution.log, include_status_events=self._include_status)
        return self._result

    async def aclose(self) -> None:
        """Abandon the run; its handlers have ended when this returns."""
        self._closed = True
        self._ready.clear()
        await self._steps.cancel()

    def __del__(self) -> None:
        if not self._closed:
            self._steps.abandon()

    def __repr__(self) -> str:
        return f"WorkflowStream({self._execution.run.graph.name!r}, {self._execution.log.state})"


class RunCoroutine(Coroutine[Any, Any, WorkflowRunResult]):
    """The result of calling `workflow.run(...)`: a coroutine that must be awaited once."""

    # An interrupt arrives here when asyncio.run drives the coroutine; `cut_to_user` removes the frames below.

    __slots__ = ("_coroutine",)

    def __init__(self, coroutine: Coroutine[Any, Any, WorkflowRunResult]) -> None:
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, WorkflowRunResult]:
        return self._coroutine.__await__()

    def send(self, value: Any) -> Any:
        """Resume the coroutine with a value."""
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        """Resume the coroutine with an error."""
        return self._coroutine.throw(*error)

    def close(self) -> None:
        """End the coroutine."""
        self._coroutine.close()

    def __getattr__(self, name: str) -> Any:
        if hasattr(WorkflowRunResult, name) and not name.startswith("_"):
            msg = (
                f"The run has not been awaited, so it has no {name!r} yet. Write (await workflow.run(...)).{name}, or "
                f"in synchronous code: run_sync(workflow.run(...)).{name}."
            )
            raise AttributeError(msg)
        return getattr(self._coroutine, name)

    def __repr__(self) -> str:
        return "<coroutine of Workflow.run, to be awaited>"

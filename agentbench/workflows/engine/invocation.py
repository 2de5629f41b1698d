"""Carries out one delivery, the only place that awaits user handlers, and several of them at once."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from agentbench._signatures import (
    decided_by_class,
    describe_redefinition,
    is_instance_of,
    type_name,
    type_of,
    types_in,
)
from agentbench._signatures.forms import origin_of
from agentbench._workers import run_in_thread
from agentbench.exceptions import ExecutorTimeoutError
from agentbench.workflows.engine.active_run import ActiveRun
from agentbench.workflows.events.events import WorkflowErrorDetails, WorkflowEvent
from agentbench.workflows.executors.context import HandlerContext
from agentbench.workflows.executors.handlers import HandlerSpec
from agentbench.workflows.executors.message import WITHDRAWN, Delivery, DeliveryResult, WorkflowMessage
from agentbench.workflows.executors.options import NO_POLICY


async def invoke(delivery: Delivery, run: ActiveRun, *, note_result: bool = False) -> list[WorkflowMessage]:
    """Call the handler of a delivery and emit its events; return what it sent, re-raise what it raised."""
    spec = delivery.handler
    if spec is None:
        accepted = ", ".join(type_name(t) for t in delivery.executor.input_types) or "nothing"
        redefined = describe_redefinition(
            types_in(delivery.data), delivery.executor.input_types, "the message", repr(delivery.executor_id)
        )
        msg = (
            f"Executor {delivery.executor_id!r} cannot handle data of type {type_of(delivery.data)}; it takes "
            f"{accepted}. {redefined or 'Add a handler for that type, or pass another input.'}"
        )
        raise RuntimeError(msg)
    if delivery.abandoned:
        raise asyncio.CancelledError
    executor, log = delivery.executor, run.log
    ctx: HandlerContext = (spec.context if run.strict_context else spec.free_context)(delivery, run)
    delivery.context = ctx
    try:
        if (
            spec.is_async
            and delivery.request is None
            and executor.policy is NO_POLICY
            and not executor.serialize
            and run.around is None
            and run.timeout is None
        ):
            log.record_invoked(delivery)
            result = await spec.function(executor, delivery.data, ctx)
            if result is not None:
                _warn_of_result(type(result).__name__, delivery, run)
        else:
            ctx = await _run_guarded(spec, delivery, ctx, run)
    except Exception as error:
        _abandon(delivery)
        delivery.error = error
        log.record_failed(delivery, WorkflowErrorDetails.from_exception(error, executor_id=executor.id))
        raise
    except BaseException:
        _abandon(delivery)
        raise
    finally:
        delivery.context = None  # otherwise a reference cycle would remain for each delivery
    ctx._open = False  # noqa: SLF001 - the engine's side of the context; as _close(), which only deferred events need
    if ctx._deferred is not None:  # noqa: SLF001
        ctx._close()  # noqa: SLF001
    if spec.unawaited or (ctx._yielded and not executor._ab_yielded.issuperset(map(type, ctx._yielded))):  # noqa: SLF001
        _warn_of_call(spec, ctx, delivery, run)
    log.record_completed(delivery, ctx._sent, ctx._yielded)  # noqa: SLF001
    if note_result:
        delivery.result = DeliveryResult(tuple(ctx._sent), tuple(ctx._yielded))  # noqa: SLF001
    return ctx._sent  # noqa: SLF001


def _warn_of_call(spec: HandlerSpec, ctx: HandlerContext, delivery: Delivery, run: ActiveRun) -> None:
    """Warn about a forgotten `await`, and about outputs of a type that the executor does not declare."""
    executor = delivery.executor
    if spec.unawaited:
        lines = f"line{'' if len(spec.unawaited) == 1 else 's'} {', '.join(map(str, spec.unawaited))}"
        text = (
            f"Executor {executor.id!r} calls a method of its context without await, in {lines} of handler "
            f"{spec.name!r}, so the call has no effect. Write await in front of it."
        )
        run.log.warn_once(("not awaited", executor.id), executor.id, text, delivery)
    if run.graph.settings.check_types != "off":
        return  # each value was checked already
    for cls in {*map(type, ctx._yielded)} - executor._ab_yielded:  # noqa: SLF001
        types = executor.workflow_output_types
        output = next(value for value in ctx._yielded if type(value) is cls)  # noqa: SLF001
        if not types or any(_fits_class_of(output, type_) for type_ in types):
            executor._ab_yielded |= {cls}  # noqa: SLF001
            continue
        declared = " | ".join(map(type_name, types))
        text = f"Executor {executor.id!r} yielded an output of type {type_of(output)}; it declares {declared}."
        run.log.warn_once(("undeclared", executor.id, cls), executor.id, text, delivery)


def _fits_class_of(output: object, type_: Any) -> bool:
    """Return whether an output's class fits a type; the contents of lists and dictionaries are not checked."""
    if decided_by_class(type_):
        return is_instance_of(output, type_)
    origin = origin_of(type_)
    return not isinstance(origin, type) or isinstance(output, origin)


def _abandon(delivery: Delivery) -> None:
    """Close the context of a failed attempt; after a retry it is not the first context."""
    if delivery.context is not None:
        delivery.context._abandon()  # noqa: SLF001 - the engine's side of the context


async def _run_guarded(spec: HandlerSpec, delivery: Delivery, ctx: HandlerContext, run: ActiveRun) -> HandlerContext:
    """Call a handler within its policy, traced and captured; return the context of the successful attempt."""
    executor = delivery.executor
    if delivery.data is WITHDRAWN and delivery.request is not None:
        run.log.append(WorkflowEvent.withdrawn(delivery.request), delivery)

    def attempts() -> Coroutine[Any, Any, HandlerContext]:
        call = _run_attempts(spec, delivery, ctx, run)
        return call if run.around is None else run.around(delivery, call)

    limit = 1 if executor.serialize else executor.policy.max_concurrency
    if limit is None:
        return await attempts()
    gate = run.gates.get(executor.id)
    if gate is None:
        gate = run.gates[executor.id] = asyncio.Semaphore(limit)
    async with gate:
        return await attempts()


async def _run_attempts(spec: HandlerSpec, delivery: Delivery, ctx: HandlerContext, run: ActiveRun) -> HandlerContext:
    policy = delivery.executor.policy
    placement = None if delivery.executor.placement is None else run.placement
    delivery.attempt = 1 if policy.retries or placement is not None else None
    run.log.record_invoked(delivery)
    for attempt in range(1, policy.retries + 2):
        if policy.retries:
            ctx._defer_events()  # noqa: SLF001 - the engine's side of the context
        try:
            timeout = run.timeout if policy.timeout is None else policy.timeout
            if run.recorder is not None and run.recorder.asks:
                timeout = None  # the handler may wait for a person
            if placement is None:
                call = call_handler(spec, delivery, ctx)
            else:
                from agentbench.workflows.engine.placed import call_elsewhere  # noqa: PLC0415 - most runs need it not

                call = call_elsewhere(placement, delivery, ctx, run)
            result = await _within(timeout, call, delivery.executor_id)
        except Exception as error:
            wait_s = 0.0 if policy.retry_after is None else policy.retry_after(error, attempt)
            if attempt > policy.retries or wait_s is None:
                raise
            ctx._abandon()  # noqa: SLF001
            run.log.append(
                WorkflowEvent.warning(
                    f"Executor {delivery.executor_id!r}: attempt {attempt} of {policy.retries + 1} failed with "
                    f"{type(error).__name__}: {error}. Trying again.",
                    delivery.executor_id,
                ),
                delivery,
            )
            if wait_s:
                await asyncio.sleep(wait_s)
            delivery.attempt = (delivery.attempt or 1) + 1
            ctx = delivery.context = ctx.__class__(delivery, run)
        else:
            if result is not None:
                _warn_of_result(type(result).__name__ if placement is None else result, delivery, run)
            return ctx
    raise AssertionError  # the last attempt has either returned or raised


def _warn_of_result(name: str, delivery: Delivery, run: ActiveRun) -> None:
    executor_id = delivery.executor_id
    text = (
        f"Executor {executor_id!r} returned a value ({name}), which is ignored: use ctx.send_message() or "
        "ctx.yield_output(), or @executor(send_result=True) on a function without ctx."
    )
    run.log.warn_once(("returned", executor_id, name), executor_id, text, delivery)


async def call_handler(spec: HandlerSpec, delivery: Delivery, ctx: HandlerContext) -> Any:
    """Call a handler, a plain one in a worker thread, and return its result."""
    request = delivery.request
    values: tuple[Any, ...] = (delivery.data,) if request is None else (request.data, delivery.data)
    if spec.is_async:
        return await spec.function(delivery.executor, *values, ctx)
    try:
        result = await run_in_thread(spec.function, delivery.executor, *values, ctx)
    except asyncio.CancelledError:
        ctx._abandon()  # noqa: SLF001 - frees the thread, which cannot be ended
        raise
    # A plain wrapper around an async function returns an awaitable.
    return await result if inspect.isawaitable(result) else result


async def _within(timeout: float | None, call: Any, executor_id: str) -> Any:
    """Await `call` and return its result; after `timeout` seconds it is cancelled, awaited, and reported."""
    if timeout is None:
        return await call
    task = asyncio.ensure_future(call)
    try:
        done, _ = await asyncio.wait((task,), timeout=timeout)
    except asyncio.CancelledError:
        await _cancel(task)
        raise
    if not done:
        await _cancel(task)
        raise ExecutorTimeoutError(executor_id, timeout)
    return task.result()


async def _cancel(task: asyncio.Future[Any]) -> None:
    task.cancel()
    await asyncio.wait((task,))
    if not task.cancelled():
        task.exception()  # otherwise the loop reports it as never retrieved


# ---- several at once


ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

# From Python 3.12 on, tasks start eagerly: a coroutine that does not suspend never becomes work for the loop.
_new_task: Callable[..., asyncio.Task[None]] = asyncio.Task
if sys.version_info >= (3, 12):
    _new_task = partial(asyncio.Task, eager_start=True)


async def run_all(function: Callable[[ItemT], Coroutine[Any, Any, ResultT]], items: Sequence[ItemT]) -> list[ResultT]:
    """Await `function(item)` for all items concurrently; raise the first exception after all have ended."""
    if len(items) == 1:
        return [await function(items[0])]
    return await _Group(function, len(items)).run(items)


class _Group:
    """Tasks that count down when they end. Lighter than callbacks, which the loop schedules one by one."""

    __slots__ = ("_error", "_function", "_left", "_loop", "_results", "_tasks", "_waiter")

    def __init__(self, function: Callable[[Any], Coroutine[Any, Any, Any]], size: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._function = function
        self._tasks: list[asyncio.Task[None]] = []
        self._results: list[Any] = [None] * size
        self._left = size
        self._error: BaseException | None = None
        self._waiter: asyncio.Future[None] = self._loop.create_future()

    async def run(self, items: Sequence[Any]) -> list[Any]:
        try:
            for index, item in enumerate(items):
                self._tasks.append(_new_task(self._member(index, item), loop=self._loop))
            if self._left:
                await self._waiter
            if self._error is not None:
                raise self._error
        except GeneratorExit:  # the loop has ended, so nothing can be awaited
            raise
        except BaseException:
            await self._cancel()
            raise
        return self._results

    async def _member(self, index: int, item: Any) -> None:
        try:
            self._results[index] = await self._function(item)
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 - `run` raises it
            if self._error is None:
                self._error = error
        self._left -= 1
        if (not self._left or self._error is not None) and not self._waiter.done():
            self._waiter.set_result(None)

    async def _cancel(self) -> None:
        open_tasks = [t for t in self._tasks if not t.done()]
        for task in open_tasks:
            task.cancel()
        while open_tasks:
            # A second cancellation of the caller must not leave tasks behind either.
            try:
                await asyncio.wait(open_tasks)
            except asyncio.CancelledError:
                continue
            open_tasks = [t for t in open_tasks if not t.done()]

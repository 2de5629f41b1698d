"""Executors on the workers of a Dask cluster: `RunOptions(workers=client)`."""

from __future__ import annotations

import asyncio
import traceback
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from agentbench._secrets import mask_text
from agentbench._workers import run_in_thread
from agentbench.batch.cluster.pickling import check_workers, pickled, require_client, unloadable, unpickled
from agentbench.exceptions import PlacementError, RemoteExecutorError, UnpicklableError
from agentbench.workflows.engine.recording import RecordingHost, record_call
from agentbench.workflows.executors.placement import CallRecord, HandlerCall

if TYPE_CHECKING:
    from agentbench.workflows.executors.executor import Executor

_CANCEL_S = 5.0
"""How long a cancelled call waits for the cluster to answer."""
_CHECK_S = 0.2
"""How often a worker checks whether its call was cancelled."""


class DaskPlacement:
    """Runs the handlers of executors with `placement = "workers"` on a Dask cluster, one task per call.

    `RunOptions(workers=client)` makes one. An executor is sent to each worker once, as it is when the run begins, and
    every worker keeps its copy for later calls; changes to its fields stay there. Each call gets a copy of the whole
    shared state as of the start of its superstep, of which a worker unpickles the values that are read. What the
    handler sends, yields, requests, writes and prints arrives when it ends. Async handlers run in an event loop of
    their own and are cancelled with the run. Plain ones cannot be: `ctx.stop_requested` becomes true for them. A
    timeout includes the time in which a call waits for a free worker. If a worker is lost, Dask starts the call on
    another one: the `attempt` of its events then is 2, and only the last attempt has effects.

    Args:
        client: A `dask.distributed.Client` that was created without `asynchronous=True`. It is never closed.

    Raises:
        TypeError: It is not a Dask client.
        PlacementError: It is closed or asynchronous.

    Example:
        >>> @executor(on="workers")
        ... def simulate(seed: int, ctx: WorkflowContext[Never, float]) -> None:
        ...     ctx.yield_output(expensive(seed))
        >>> result = await workflow.run(7, options=RunOptions(workers=Client("tcp://scheduler:8786")))
    """

    def __init__(self, client: Any) -> None:
        require_client(client)
        self.client = client
        self._definitions: WeakKeyDictionary[Executor, Any] = WeakKeyDictionary()
        self._is_checked = False

    async def prepare(self, executors: Sequence[Executor]) -> None:
        """Send executors to the cluster, and raise if one of them cannot run there.

        Raises:
            PlacementError: The client cannot be used, a worker runs another Python, or an executor keeps state.
            UnpicklableError: An executor cannot be sent.
        """
        require_client(self.client)
        if executors and not self._is_checked:
            await run_in_thread(check_workers, self.client)
            self._is_checked = True
        for executor in executors:
            if executor.keeps_state:
                msg = (
                    f"Executor {executor.id!r} cannot run on workers: it keeps state in its fields for checkpoints "
                    "(on_checkpoint_save), and changes on a worker would be lost. Keep the state in shared state "
                    "(ctx.set_state), or run this executor here."
                )
                raise PlacementError(msg, executor.id)
        for executor in executors:
            payload = await run_in_thread(pickled, executor, f"executor {executor.id!r}")
            # A task, not scattered data: if all workers that hold it are lost, Dask can repeat it.
            key = f"definition-{sha256(payload).hexdigest()}"
            self._definitions[executor] = self.client.submit(
                _define, payload, f"executor {executor.id!r}", key=key, pure=False, priority=10
            )
        for executor in executors:
            future = self._definitions[executor]
            await _end_of(future)
            if future.status != "finished":
                require_client(self.client)  # a closed one might never return an error
                raise _failure(executor.id, await run_in_thread(future.exception))

    async def call(self, executor: Executor, call: HandlerCall) -> CallRecord:
        """Call the handler on a worker and return what it did, or why the cluster could not carry it out.

        Raises:
            UnpicklableError: The message cannot be pickled.
        """
        if executor not in self._definitions:
            await self.prepare([executor])
        payload = _pickled_call(executor.id, call)
        key = f"{executor.id}-{uuid.uuid4().hex}"
        losses = 0
        try:
            future = self.client.submit(
                _carry_out, self._definitions[executor], executor.id, payload, key, key=key, pure=False
            )
            try:
                await _end_of(future)
                require_client(self.client)  # a closed one might never return a result
                losses = await run_in_thread(self._count_losses, key)
                outcome: _Outcome = await run_in_thread(future.result)
                record = outcome.record_of(executor.id)
            except asyncio.CancelledError:
                await self._cancel(future)
                raise
        except Exception as error:  # noqa: BLE001 - raised in the run
            record = CallRecord(error=_failure(executor.id, error))
        record.attempts = losses + 1
        return record

    def _count_losses(self, key: str) -> int:
        """Return how many workers were lost while they ran a task."""
        try:
            # A lambda is sent by value, so the scheduler needs no agentbench.
            return int(self.client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.tasks[key].suspicious))
        except Exception:  # noqa: BLE001 - the number of attempts is not worth a failure
            return 0

    async def _cancel(self, future: Any) -> None:
        """Cancel a task; its worker finds out that nothing waits for it, see `_record`."""

        def cancel() -> None:
            with suppress(Exception):  # a lost cluster is no further error
                future.cancel()

        await asyncio.wait((asyncio.ensure_future(run_in_thread(cancel)),), timeout=_CANCEL_S)

    def __repr__(self) -> str:
        return f"DaskPlacement({self.client!r})"


def dask_placement(client: Any) -> DaskPlacement:
    """Return the placement of a Dask client, always the same one."""
    require_client(client)
    fields = vars(client)  # both live equally long
    if "_agentbench_placement" not in fields:
        fields["_agentbench_placement"] = DaskPlacement(client)
    placement: DaskPlacement = fields["_agentbench_placement"]
    return placement


def _pickled_call(executor_id: str, call: HandlerCall) -> bytes:
    """Return the pickle of a call. Values of the state that cannot be pickled are an error only where they are read."""
    state: dict[str, Any] = {}
    for key, value in call.state.items():
        try:
            state[key] = pickled(value, f"the value of state key {key!r}")
        except UnpicklableError as error:
            state[key] = error
    data = pickled(call.data, f"the message to executor {executor_id!r}")
    return pickled(replace(call, data=data, state=state), f"the call of executor {executor_id!r}")


def _failure(executor_id: str, error: Exception) -> Exception:
    if isinstance(error, UnpicklableError):
        return error
    if isinstance(error, ModuleNotFoundError) and str(error.name).startswith("agentbench"):
        msg = "agentbench cannot be imported on the workers. Install it there, in the version that this process uses."
        return PlacementError(msg, executor_id, inner_exception=error)
    msg = (
        f"Executor {executor_id!r} could not be carried out on the workers ({type(error).__name__}: {error}). "
        "Look at the logs of the workers, and whether the cluster and its client are still open."
    )
    return PlacementError(msg, executor_id, inner_exception=error)


async def _end_of(future: Any) -> None:
    """Wait for a Dask future without blocking the event loop."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()

    def report(_: Any) -> None:
        with suppress(RuntimeError):  # the loop was closed in the meantime
            loop.call_soon_threadsafe(ended.set)

    future.add_done_callback(report)
    while not ended.is_set() and not future.done():  # a client that is closed calls nothing back
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                await ended.wait()


# ---- on the worker


class _Outcome(NamedTuple):
    """The result of a call: a pickled `CallRecord` without its error, and the error in two forms."""

    record: bytes
    error: bytes | None
    error_text: RemoteExecutorError | None

    def record_of(self, executor_id: str) -> CallRecord:
        try:
            record: CallRecord = unpickled(self.record)
        except Exception as error:
            what = f"what executor {executor_id!r} sent on a worker"
            raise unloadable(what, error) from error
        if self.error_text is not None:
            record.error = self.error_text
            with suppress(Exception):  # its class may not be there
                if self.error is not None:
                    record.error = unpickled(self.error)
                    if not isinstance(record.error, UnpicklableError):
                        record.error.__cause__ = self.error_text
        return record


def _define(payload: bytes, what: str) -> bytes:
    """Unpickle an executor on a worker; its pickle is what calls depend on."""
    try:
        _executor_of(payload)
    except Exception as error:  # noqa: BLE001 - the cause may not be known where it is raised
        raise unloadable(what, error) from None
    return payload


@lru_cache(maxsize=64)
def _executor_of(payload: bytes) -> Any:
    return unpickled(payload)


def _carry_out(definition: bytes, executor_id: str, payload: bytes, key: str) -> _Outcome:
    """Call a handler in this process, in an event loop of its own."""
    from distributed import get_worker  # noqa: PLC0415 - only workers get here

    worker = get_worker()
    try:
        what = f"executor {executor_id!r}"
        executor = _executor_of(definition)
        what = f"the message to {what}"
        call: HandlerCall = unpickled(payload)
        call = replace(call, data=unpickled(call.data), state=_SentState(call.state))
    except Exception as error:  # noqa: BLE001 - raised in the run
        return _outcome(CallRecord(error=unloadable(what, error)), executor_id, worker.address)
    try:
        record = asyncio.run(_record(executor, call, lambda: _is_wanted(worker, key)))
    except asyncio.CancelledError as error:
        record = CallRecord(error=RuntimeError(f"The handler was cancelled on the worker: {error}"))
    return _outcome(record, executor_id, worker.address)


def _is_wanted(worker: Any, key: str) -> bool:
    """Return whether the cluster still waits for a task that this worker is running."""
    task = worker.state.tasks.get(key)
    return task is not None and task.state != "cancelled"


async def _record(executor: Any, call: HandlerCall, is_wanted: Callable[[], bool]) -> CallRecord:
    """Record a call; end it if it was cancelled, or the client that waits for it is gone."""
    hosts: list[RecordingHost] = []
    recording = asyncio.ensure_future(record_call(executor, call, hosts.append))
    while not (await asyncio.wait((recording,), timeout=_CHECK_S))[0]:
        if hosts and not is_wanted():
            hosts[0].stop_requested = True
            if hosts[0].is_async:  # the thread of a plain handler cannot be ended
                recording.cancel()
    return recording.result()


def _outcome(record: CallRecord, executor_id: str, worker: str) -> _Outcome:
    error, record.error, record.worker = record.error, None, worker
    try:
        payload = _pickled_record(record, executor_id)
    except UnpicklableError as unpicklable:
        error = unpicklable
        payload = pickled(CallRecord(worker=worker), "nothing")
    if error is None:
        return _Outcome(payload, None, None)
    error_pickle = None
    with suppress(Exception):
        error_pickle = pickled(error, "the error")
        if type(unpickled(error_pickle)) is not type(error):
            error_pickle = None
    text = "".join(traceback.format_exception(error))
    message = "<an error that cannot be printed>"
    with suppress(Exception):
        message = str(error)
    remote = RemoteExecutorError(executor_id, worker, type(error).__name__, mask_text(message), mask_text(text))
    return _Outcome(payload, error_pickle, remote)


_WHAT = {"send": "a message", "yield": "an output", "request": "a request", "event": "an event", "set": "a state value"}


def _pickled_record(record: CallRecord, executor_id: str) -> bytes:
    try:
        return pickled(record, "the record")
    except UnpicklableError:
        for name, *values in record.operations:
            pickled(values[-1] if name == "set" else values[0], f"{_WHAT.get(name, name)} of executor {executor_id!r}")
        raise


class _SentState(dict[str, Any]):
    """The shared state that was sent; a value is unpickled when it is read."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self._read: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        if key not in self._read:
            if isinstance(value, UnpicklableError):
                raise value
            try:
                value = unpickled(value)
            except Exception as error:
                what = f"the value of state key {key!r}"
                raise unloadable(what, error) from error
            self[key] = value
            self._read.add(key)
        return value

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else default  # noqa: SIM401 - this is `get`

    def copy(self) -> dict[str, Any]:
        return {key: self[key] for key in self}

"""One run of a workflow function, with its cached step results and requests."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from typing import Any

from agentbench._clock import runtime_defaults
from agentbench._copying import isolate_or_same
from agentbench._signatures import is_instance_of
from agentbench._user_code import warn_user
from agentbench.checkpoints.access import load_checkpoint
from agentbench.exceptions import FunctionCheckpointError, WorkflowRunnerException
from agentbench.serialization.plain import are_equal
from agentbench.workflows.events.events import WorkflowErrorDetails, WorkflowEvent, WorkflowEventSource
from agentbench.workflows.executors.message import WITHDRAWN
from agentbench.workflows.executors.options import RunOptions
from agentbench.workflows.functional.context import (
    ACTIVE,
    ContextFunction,
    RunContext,
    RunPending,
    can_change_in_place,
    change_in_place,
    fingerprint,
)
from agentbench.workflows.functional.step_log import StepLog
from agentbench.workflows.graph.graph import Graph
from agentbench.workflows.persist.snapshot import restore_checkpoint
from agentbench.workflows.persist.writer import CheckpointWriter
from agentbench.workflows.run.execution import ABSENT, Execution, RunInput
from agentbench.workflows.run.responses import check_responses, id_of_request

logger = logging.getLogger("agentbench")

# Reserved keys of the state, for cached results.
STEP_RESULTS = "_step_cache"
STEP_ARGUMENTS = "_step_arguments"
STEP_CHANGES = "_step_changes"
STEP_REQUESTS = "_step_cache_auto_request_info_counts"
ANSWERS = "_request_info_answers"
MESSAGE = "_original_message"


class FunctionExecution(Execution):
    """Calls the function once. A resumed run takes earlier results from the cache instead of computing them again."""

    def __init__(
        self,
        function: ContextFunction,
        graph: Graph,
        run_state: Any,
        run_input: RunInput,
        options: RunOptions,
        **settings: Any,
    ) -> None:
        super().__init__(graph, run_state, run_input, options, **settings)
        self._clock = options.clock or runtime_defaults().clock
        self._function = function
        self._request_count = 0
        self._saving = asyncio.Lock()
        self._tasks: list[asyncio.Task[Any]] = []
        """The tasks in which steps are running."""
        self._before: tuple[dict[str, Any], dict[str, WorkflowEvent[Any]]] = {}, {}
        # By the key of the step: its results, digests of its arguments, and its requests without an id, if any.
        self._results, self._arguments, self._requests = StepLog(), StepLog(), StepLog()
        self._changes = StepLog()
        """Arguments that steps changed in place, in their final form: by the key of the step, then by position or name.
        """
        self._responses: dict[str, Any] = {}
        """The new responses, by request id."""
        self._answers: dict[str, Any] = {}
        self._requested: set[str] = set()
        """The ids of all requests up to now, with and without a response."""

    # ---- the run ---------------------------------------------------------------------------------

    async def _advance(self, *, to_end: bool = False) -> bool:
        run_state = self.run.run_state
        self._before = run_state.state.export_state(), dict(run_state.requests)
        try:
            await self._begin()
            if self._withdraws:
                await self._finish(None)  # the function waits for these requests, so it has nothing left to do
            else:
                await self._call()
        except Exception as error:
            self._restore_before()
            self._fail(error)
            raise
        except BaseException:
            self.break_off()
            raise
        return False

    def break_off(self) -> None:
        """End a run that was cancelled or abandoned, and drop its writes."""
        if not self.ended:
            self._restore_before()
        super().break_off()

    @property
    def _withdraws(self) -> bool:
        return any(response is WITHDRAWN for response in self._responses.values())

    async def _begin(self) -> None:
        run_state, run_input = self.run.run_state, self._input
        if run_input.checkpoint_id is not None:
            await self._restore(run_input.checkpoint_id)
        if run_input.responses is not None:
            self._responses = _accept(run_state.requests, run_input.responses)
        if run_input.message is not ABSENT or (run_input.responses is None and run_input.checkpoint_id is None):
            run_state.reset()
        if run_input.tools is not None:
            run_state.tools = run_input.tools
        self.begun = True
        if self._traced_as is not None:
            self.run.trace(self._traced_as)
        if run_input.storage is not None:
            self.runner.writer = CheckpointWriter(self.run, run_input.storage)
        responses = self._responses
        self.log.begin(0)
        if self.runner.writer is not None:
            is_new = run_input.checkpoint_id is None and not responses
            await self.runner.writer.load_head(is_new=is_new, is_answer=bool(responses))
        for request_id, response in responses.items():
            request = run_state.requests[request_id]
            if response is None and not is_instance_of(None, request.response_type):
                self.log.append(
                    WorkflowEvent.warning(f"The response to request {request_id!r} is None.", request.source_id)
                )
        self._take_responses()

    def _take_responses(self) -> None:
        """Drop the open requests, which the function makes again; after a withdrawal, only the withdrawn ones."""
        run_state, open_requests = self.run.run_state, self.run.run_state.requests
        run_state.requests = {}
        if self._withdraws:
            for request_id, request in open_requests.items():
                if request_id in self._responses:
                    self.log.append(WorkflowEvent.withdrawn(request))
                else:
                    self.run.open_request(request)
        self._remember(self._responses)

    def _remember(self, responses: Mapping[str, Any]) -> None:
        """Restore the cached results of earlier runs, and add the new responses."""
        state = self.run.state
        self._results, self._arguments = StepLog(state.get(STEP_RESULTS)), StepLog(state.get(STEP_ARGUMENTS))
        self._requests, self._changes = StepLog(state.get(STEP_REQUESTS)), StepLog(state.get(STEP_CHANGES))
        self._answers = {**state.get(ANSWERS, {}), **responses}
        if self._input.message is not ABSENT:
            state.set(MESSAGE, self._input.message)
        state.set(STEP_RESULTS, self._results)
        state.set(STEP_ARGUMENTS, self._arguments)
        state.set(STEP_REQUESTS, self._requests)
        state.set(ANSWERS, self._answers)

    async def _call(self) -> None:
        """Call the function, and end the run with its result or with the requests that it made."""
        message = self.run.state.get(MESSAGE, ABSENT)
        context = RunContext(self)
        token = ACTIVE.set(context)
        result = None
        try:
            result = await self._function.call(context, () if message is ABSENT else (isolate_or_same(message),), {})
        except Exception:
            await self._end_steps(cancel=True)
            raise
        except BaseException as error:
            if not _is_pending(error):
                raise
        finally:
            with contextlib.suppress(ValueError):  # the loop was closed; the garbage collector runs this
                ACTIVE.reset(token)
        await self._end_steps(cancel=False)
        await self._finish(result)

    async def _finish(self, result: Any) -> None:
        """End the run with a result or with open requests."""
        run_state = self.run.run_state
        is_pending = bool(run_state.requests)
        if result is not None and not is_pending:
            name = self.run.graph.name
            self.log.append(WorkflowEvent("output", result, origin=WorkflowEventSource.FRAMEWORK, executor_id=name))
        await self._save("interrupt" if is_pending else "step")
        run_state.raised = []
        if not is_pending:
            for key in (STEP_RESULTS, STEP_ARGUMENTS, STEP_REQUESTS, STEP_CHANGES, ANSWERS, MESSAGE):
                run_state.state.committed.pop(key, None)
        self._end()

    async def _end_steps(self, *, cancel: bool) -> None:
        """Wait for steps that still run in their own tasks, so that their results are cached; or cancel them."""
        while others := {task for task in self._tasks if task is not asyncio.current_task()}:
            for task in others if cancel else ():
                task.cancel()
            await asyncio.wait(others)

    def _restore_before(self) -> None:
        """Restore the state and the requests of before the run, which can then be answered again."""
        state, requests = self._before
        self.run.state.clear()
        self.run.state.import_state(state)
        self.run.run_state.requests = requests
        self.run.run_state.raised = []

    # ---- checkpoints -----------------------------------------------------------------------------

    async def _save(self, source: str, step_name: str | None = None, began_ns: int | None = None) -> None:
        self.run.state.commit()
        writer, run_state = self.runner.writer, self.run.run_state
        if writer is None:
            return
        async with self._saving:
            info = await writer.save(source, writers=() if step_name is None else (step_name,), began_ns=began_ns)
            if info is not None:
                run_state.last_checkpoint_id = info.checkpoint_id

    async def _restore(self, checkpoint_id: str) -> None:
        storage, graph = self._input.storage, self.run.graph
        if storage is None:
            msg = "checkpoint_id needs a storage: pass checkpoint_storage= to run() or to the workflow."
            raise ValueError(msg)
        checkpoint = await load_checkpoint(storage, checkpoint_id)
        if checkpoint.graph_signature_hash != graph.signature_hash:
            msg = (
                f"Checkpoint {checkpoint_id!r} was made by another version of workflow function {graph.name!r}: its "
                "name, steps or code were different. Use the function in its earlier form, or start a new run."
            )
            raise FunctionCheckpointError(msg)
        for key in checkpoint.state.get(STEP_RESULTS, {}):
            name, _, number = str(key).rpartition("::")
            if not (name and number.isdecimal()):
                msg = f"Checkpoint {checkpoint_id!r} has a result for the step {key!r}; expected '<name>::<number>'."
                raise FunctionCheckpointError(msg)
        await restore_checkpoint(graph, self.run.run_state, checkpoint)

    # ---- steps and requests ----------------------------------------------------------------------

    async def run_step(
        self,
        name: str,
        label: str,
        function: ContextFunction,
        context: RunContext,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Return the result of a step, calling it unless the result of this call of the `label` is cached."""
        key = f"{context.prefix}{label}::{context.calls[label]}"
        context.calls[label] += 1
        arguments = fingerprint(args, kwargs)
        if key in self._results:
            result = self._reuse_result(name, key, arguments, context)
            for place, changed in self._changes.get(key, {}).items():
                change_in_place(args[place] if isinstance(place, int) else kwargs[place], changed)
            return result
        call = isolate_or_same({"args": args, "kwargs": kwargs}) if args or kwargs else None
        self.log.append(WorkflowEvent.executor_invoked(name, call))
        began_ns = self._clock.perf_ns()
        inner = RunContext(self, f"{key}/")
        task = asyncio.current_task()
        if task is not None:
            self._tasks.append(task)
        token = ACTIVE.set(inner)
        try:
            result = await function.call(inner, args, kwargs)
        except Exception as error:
            details = WorkflowErrorDetails.from_exception(error, executor_id=name)
            self.log.append_end(WorkflowEvent.executor_failed(name, details), began_ns)
            raise
        finally:
            with contextlib.suppress(ValueError):  # the loop was closed; the garbage collector runs this
                ACTIVE.reset(token)
            if task is not None:
                self._tasks.remove(task)
        if call is not None:
            self._note_changes(name, key, call, args, kwargs)
        self._results[key] = result
        self._arguments[key] = arguments
        if inner.requests:
            self._requests[key] = inner.requests
        context.requests += inner.requests
        self.log.append_end(WorkflowEvent.executor_completed(name, isolate_or_same(result)), began_ns)
        await self._save("step", name, began_ns)
        return result

    def _note_changes(
        self, name: str, key: str, call: Mapping[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Record the arguments that a step changed in place; `call` has copies of the earlier values."""
        before = [*enumerate(call["args"]), *call["kwargs"].items()]
        changes: dict[int | str, Any] = {}
        for (place, old), new in zip(before, [*args, *kwargs.values()], strict=True):
            if old is new or are_equal(old, new):
                continue
            digests = fingerprint((old,), {}), fingerprint((new,), {})
            is_storable = None not in digests
            attributes = [getattr(value, "__dict__", None) for value in (old, new)]
            if digests[0] == digests[1] if is_storable else are_equal(*attributes):
                continue
            if is_storable and can_change_in_place(new):
                changes[place] = new
                continue
            argument = f"argument {place + 1}" if isinstance(place, int) else f"the argument {place!r}"
            text = (
                f"Step {name!r} changed {argument}, a {type(new).__name__}, in place. The change is lost when the "
                "step's result comes from the cache, after a response or a checkpoint. Return the new value instead."
            )
            self.log.append(WorkflowEvent.warning(text, name))
            warn_user(text, RuntimeWarning)
        if changes:
            self._changes[key] = changes
            self.run.state.set(STEP_CHANGES, self._changes)

    def _reuse_result(self, name: str, key: str, arguments: str | None, context: RunContext) -> Any:
        earlier = self._arguments.get(key)
        if earlier is not None and arguments is not None and earlier != arguments:
            msg = (
                f"Step {key!r} was called with different arguments than when its result was cached, so the result does "
                "not fit. The function must call its steps in the same order with the same arguments each time: move "
                "values that change, such as the current time, into their own steps."
            )
            raise WorkflowRunnerException(msg)
        self._request_count += self._requests.get(key, 0)
        context.requests += self._requests.get(key, 0)
        result = self._results[key]
        self.log.append(WorkflowEvent.executor_bypassed(name, result))
        return result

    def next_request_id(self) -> str:
        """Return the id of the next request that has no explicit id."""
        self._request_count += 1
        return f"auto::{self._request_count - 1}"

    def request(self, request_id: str, data: Any, response_type: Any) -> Any:
        """Return the response to a request, or raise the request, which ends the function."""
        if request_id in self._requested:
            msg = (
                f"The request id {request_id!r} is used twice in one run, so one response would answer both requests. "
                "Give each request its own id, or leave request_id out."
            )
            raise ValueError(msg)
        self._requested.add(request_id)
        if self._answers.get(request_id) is WITHDRAWN:
            raise RunPending(request_id)  # another part of the function may still continue
        if request_id in self._answers:
            return self._answers[request_id]
        self.run.open_request(WorkflowEvent.request_info(request_id, self.run.graph.name, data, response_type))
        raise RunPending(request_id)


def _is_pending(error: BaseException) -> bool:
    """Whether an exception only means that responses are needed; a `TaskGroup` combines several in one."""
    if isinstance(error, RunPending):
        return True
    several = getattr(error, "exceptions", ())
    return bool(several) and all(map(_is_pending, several))


def _accept(requests: Mapping[str, WorkflowEvent[Any]], responses: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the checked responses to open requests; other responses may belong to earlier rounds."""
    accepted: dict[str, Any] = {}
    for key, response in responses.items():
        request = requests.get(id_of_request(key))
        if request is not None:
            known = {request.request_id: request}
            accepted |= {request.request_id: None} if response is None else check_responses(known, {key: response})
    if not accepted:
        msg = (
            f"None of the responses {', '.join(map(repr, map(id_of_request, responses)))} belongs to an open request. "
            f"Open requests: {', '.join(requests) or 'none'}."
        )
        raise ValueError(msg)
    return accepted

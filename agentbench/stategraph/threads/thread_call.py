"""A call of a graph on a thread: its configuration, the state of the thread, and how the engine runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, get_args
from uuid import UUID

from agentbench._bridge import call_on, wait_for_loop
from agentbench._clock import iso_utc, runtime_defaults
from agentbench._display import shorten
from agentbench._extras import require
from agentbench._limits import require_limit, require_seconds
from agentbench._signatures import type_name
from agentbench.checkpoints.access import head_of, load_checkpoint
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.exceptions import InvalidUpdateError, NestedLoopError, ThreadBusyError
from agentbench.stategraph.command import Command
from agentbench.stategraph.interrupts import BreakpointRequest, Continue, Interrupt
from agentbench.stategraph.merging.state_fields import StateFields
from agentbench.stategraph.merging.updates import read_input
from agentbench.stategraph.running.executors import META
from agentbench.stategraph.running.inner_runs import CalledRun
from agentbench.stategraph.running.plan import CallRecord, GraphOptions, OnBusy, OnGraphChange
from agentbench.stategraph.threads.positions import input_at
from agentbench.stategraph.threads.threads import Threads, thread_errors
from agentbench.workflows.engine.active_run import RunState
from agentbench.workflows.engine.event_log import new_log
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.run.execution import Execution, RunInput
from agentbench.workflows.run.run import WorkflowRun
from agentbench.workflows.run.workflow import Workflow


class ThreadCall:
    """A call of a graph on a thread, from its beginning to its end.

    `ended` is done when it has ended; `execution` is set once the thread has been read. A call without a thread id gets
    a new one; unless `is_named`, it is saved only if it does not complete. The `inner` run of a call in a task of
    another graph is stored there instead.
    """

    def __init__(
        self,
        config: dict[str, Any],
        threads: Threads,
        *,
        is_named: bool,
        is_watched: bool,
        inner: CalledRun | None = None,
    ) -> None:
        if config.get("thread_id") is None:
            if config.get("checkpoint_id") is not None:
                message = f"The config names checkpoint {config['checkpoint_id']!r} of no thread. Add its thread_id."
                raise ValueError(message)
            config["thread_id"] = runtime_defaults().ids.new_id("thread")
        self.inner = inner
        self.config = config
        self.chain = threads.chain(config["thread_id"] if inner is None else runtime_defaults().ids.new_id("thread"))
        self.is_named = is_named
        is_shown = inner is not None and inner.is_shown
        self.record = CallRecord(is_watched=is_watched or is_shown, shows_called=is_shown)
        self.execution: Execution | None = None
        self.head_seq = 0
        """Number of the newest checkpoint of the thread, when it was read."""
        self.is_fresh = False
        """Whether the call begins the thread again, whatever it has."""
        self.ended: Future[None] = Future()
        self.loop = asyncio.get_running_loop()
        self._is_stopped = False

    async def take_input(self, data: Any, threads: Threads) -> Any:
        """Return the input of the call; at a position before an input, that one."""
        checkpoint_id = self.config.get("checkpoint_id")
        found = None if checkpoint_id is None or data is not None else await input_at(threads.storage, checkpoint_id)
        if found is None:
            return data
        data, self.config["checkpoint_id"] = found
        self.is_fresh = self.config["checkpoint_id"] is None
        return data

    async def claim(self, running: dict[str, ThreadCall]) -> None:
        """Become the call that runs on the thread; the setting `on_busy` decides what happens if another call runs."""
        while (other := running_call(running, self.chain) or running.setdefault(self.chain, self)) is not self:
            thread_id, on_busy = self.config["thread_id"], self.config["on_busy"]
            if on_busy == "raise":
                message = (
                    f"Another call is running on thread {thread_id!r}. Await it, use another thread, or wait with "
                    "on_busy='wait' in the config."
                )
                raise ThreadBusyError(message, thread_id=thread_id)
            if on_busy == "stop":
                other.stop()
            try:
                await wait_for_loop(other.loop, asyncio.wrap_future(other.ended), "CompiledGraph.ainvoke")
            except NestedLoopError:
                if not other.is_lost:
                    raise

    def release(self, running: dict[str, ThreadCall]) -> None:
        """Let the next call run on the thread."""
        try:
            self.ended.set_result(None)
        except InvalidStateError:  # it was lost, and another call may be running there now
            return
        running.pop(self.chain, None)

    @property
    def is_lost(self) -> bool:
        """Whether its event loop was closed, so that it will never end."""
        return self.loop.is_closed()

    def begin(self, workflow: Workflow, run_input: RunInput, options: GraphOptions) -> Execution:
        """Create the engine's run; nothing runs yet."""
        observe = self.record.is_watched
        if self.inner is not None and self.inner.is_shown:
            log = self.inner.new_log()
        else:
            log = new_log(self.config["run_id"], runtime_defaults().clock, observe=observe)
        run_state = RunState() if self.inner is None else self.inner.run_state
        self.execution = Execution(
            workflow.graph, run_state, run_input, options, log=log, run_id=self.config["run_id"], streaming=observe
        )
        self.execution.run.stop_requested = self._is_stopped
        return self.execution

    async def run(self, execution: Execution) -> None:
        """Run to the end. If the caller is cancelled, the run is stopped first, so that it is saved."""
        running = asyncio.ensure_future(execution.run_to_end())
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            self.stop()
            await asyncio.wait((running,))
            raise

    def stop(self, *, graceful: bool = False) -> None:
        """Stop the run at its next boundary, from any thread; unless `graceful`, async nodes are cancelled."""
        self._is_stopped = True
        if self.execution is not None:
            self.execution.run.stop_requested = True
            if not graceful:
                call_on(self.loop, self.execution.runner.cancel_deliveries)


class ThreadRun(WorkflowRun):
    """A handle on a run of a thread; raises `ThreadBusyError` if another writer saves to the thread."""

    app: Any = None
    """The compiled graph, for parts of the library that run branches of this run."""

    async def _next_events(self) -> list[WorkflowEvent[Any]] | None:
        with self._thread_errors():
            return await super()._next_events()

    async def fork(self, *args: Any, **edits: Any) -> WorkflowRun:  # noqa: D102 - as of WorkflowRun
        with self._thread_errors():
            run = await super().fork(*args, **edits)
        if isinstance(run, ThreadRun):
            run.app = self.app
        return run

    def _thread_errors(self) -> AbstractContextManager[None]:
        assert isinstance(self._options, GraphOptions)
        return thread_errors(self._options.config["thread_id"])


def called_run(fields: StateFields, config: Mapping[str, Any] | None) -> CalledRun | None:
    """Return the run of a call in a task of another graph, unless the call names a thread of its own.

    A configuration that a node passes on names the thread of the outer graph, where the run belongs.
    """
    inner = None if fields.is_agent_state else CalledRun.find()
    if inner is None or config is None:
        return inner
    given = {**(config.get("configurable") or {}), **config}
    is_passed_on = given.get("run_id") == inner.outer.config.get("run_id")
    return inner if given.get("thread_id") is None or is_passed_on else None


def running_call(running: dict[str, ThreadCall], chain: str) -> ThreadCall | None:
    """Return the call that runs on a thread, unless its event loop was closed."""
    call = running.get(chain)
    if call is None or not call.is_lost:
        return call
    call.release(running)
    return None


async def read_thread(
    threads: Threads, call: ThreadCall, data: Any, workflow: Workflow
) -> tuple[RunInput, WorkflowCheckpoint | None]:
    """Return the engine's input for a call, depending on the state of the thread, and the checkpoint to continue from.

    Raises:
        InvalidUpdateError: The input has an unknown form.
        ValueError: An answer is missing, there is no open question, or there is nothing to continue.
        GraphMismatchError: The thread belongs to another graph.
    """
    config, storage = call.config, threads.storage_or_none
    has_input = data is not None and (data != {} or not threads.plan.fields.is_agent_state)
    is_answer = _is_answer(data, threads)
    _require_form(data, workflow)
    reads = storage is not None and call.is_named
    checkpoint = None if not reads else await _checkpoint(threads, call, workflow, is_replay=not has_input)
    if checkpoint is None:
        if data is None or is_answer:
            message = f"Thread {config['thread_id']!r} has nothing to continue. Pass an input."
            raise ValueError(message)
        return RunInput(message=data, storage=storage), None
    questions = {key: event.data for key, event in checkpoint.pending_request_info_events.items()}
    pauses = _pauses(questions, data, threads)
    asked = {key: each for key, each in questions.items() if isinstance(each, Interrupt) and key not in pauses}
    if is_answer:
        answers = _answers(data, asked, config["thread_id"])
        return await _add_command(threads, call, checkpoint, data, answers)
    if isinstance(data, Command) and not threads.plan.fields.is_agent_state:
        return await _add_command(threads, call, checkpoint, data, dict.fromkeys(pauses, Continue()))
    starts_again = has_input and not threads.plan.fields.is_agent_state
    if asked and not starts_again:
        question = next(iter(asked.values()))
        message = (
            f"Thread {config['thread_id']!r} waits for an answer of node {question.node!r}: "
            f"{question.message or question.value!r}. Answer it: app.invoke({{'resume': ...}}, config)."
        )
        raise ValueError(message)
    if pauses and not starts_again:
        answer = Continue(data if has_input else None)
        run_input = RunInput(
            responses=dict.fromkeys(pauses, answer),
            checkpoint_id=checkpoint.checkpoint_id,
            checkpoint=checkpoint,
            storage=storage,
        )
        return run_input, checkpoint
    if has_input and not starts_again and checkpoint.state[META]["status"] == "interrupted":  # the run was stopped
        checkpoint = await _add_input(threads, call, checkpoint, data)
    elif has_input:
        return RunInput(
            message=data, checkpoint_id=checkpoint.checkpoint_id, checkpoint=checkpoint, storage=storage
        ), checkpoint
    if not checkpoint.messages and threads.plan.fields.is_agent_state:
        message = f"Thread {config['thread_id']!r} has nothing to continue. Pass an input."
        raise ValueError(message)
    return RunInput(checkpoint_id=checkpoint.checkpoint_id, checkpoint=checkpoint, storage=storage), checkpoint


def _pauses(questions: Mapping[str, Any], data: Any, threads: Threads) -> list[str]:
    """Return the breakpoints among open questions; without an `AgentState`, `None` continues those of inner graphs."""
    continues = data is None and not threads.plan.fields.is_agent_state
    return [
        key
        for key, asked in questions.items()
        if isinstance(asked, BreakpointRequest)
        or (continues and isinstance(asked, Interrupt) and asked.reason == "breakpoint")
    ]


def _require_form(data: Any, workflow: Workflow) -> None:
    start = workflow.get_start_executor()
    if data is not None and start.find_handler(data) is None:
        expected = " | ".join(map(type_name, start.input_types))
        message = f"The input is {shorten(data)}, of type {type_name(type(data))}; expected {expected}."
        raise InvalidUpdateError(message)


async def _checkpoint(
    threads: Threads, call: ThreadCall, workflow: Workflow, *, is_replay: bool
) -> WorkflowCheckpoint | None:
    """Return the checkpoint to continue from; for a replayed earlier one, a copy."""
    head = await head_of(threads.storage, call.chain)
    call.head_seq = 0 if head is None else head.seq
    checkpoint_id = call.config.get("checkpoint_id") or (head and head.checkpoint_id)
    if checkpoint_id is None or call.is_fresh:
        return None
    checkpoint = await load_checkpoint(threads.storage, checkpoint_id)
    fitted = await threads.fit(checkpoint, workflow.graph, call.config, call.head_seq)
    if fitted is not checkpoint:
        call.head_seq = CheckpointInfo.of(fitted).seq
    if is_replay and (head is None or head.checkpoint_id != checkpoint_id):
        fitted = await threads.replay(fitted, call.config["thread_id"], call.head_seq)
        call.head_seq = CheckpointInfo.of(fitted).seq
    return fitted


async def _add_command(
    threads: Threads, call: ThreadCall, checkpoint: WorkflowCheckpoint, data: Any, responses: Mapping[str, Any]
) -> tuple[RunInput, WorkflowCheckpoint]:
    """Add the update and the nodes of a command to the pending work of a thread, which continues with responses.

    If there are none, the nodes that wait for an answer ask again.
    """
    if checkpoint.pending_request_info_events and not responses:
        checkpoint = await threads.replay(checkpoint, call.config["thread_id"], call.head_seq)
        call.head_seq = CheckpointInfo.of(checkpoint).seq
    if isinstance(data, Command) and (data.update, data.state, data.goto) != (None, None, None):
        checkpoint = await _add_input(threads, call, checkpoint, replace(data, resume=None))
    return RunInput(
        responses=responses or None,
        checkpoint_id=checkpoint.checkpoint_id,
        checkpoint=checkpoint,
        storage=threads.storage,
    ), checkpoint


async def _add_input(
    threads: Threads, call: ThreadCall, checkpoint: WorkflowCheckpoint, data: Any
) -> WorkflowCheckpoint:
    """Save an input in addition to the pending work of the thread."""
    writes, messages = read_input(data, threads.plan.fields, checkpoint.state)
    call.record.messages += messages
    checkpoint = await threads.save_update(checkpoint, writes, call.config["thread_id"], call.head_seq)
    call.head_seq = CheckpointInfo.of(checkpoint).seq
    return checkpoint


def _is_answer(data: Any, threads: Threads) -> bool:
    if isinstance(data, Command):
        return data.resume is not None
    return isinstance(data, Mapping) and "resume" in data and "resume" not in threads.plan.fields.by_name


def _answers(data: Any, asked: Mapping[str, Interrupt], thread_id: Any) -> dict[str, Any]:
    """Return the answers by the ids of their questions."""
    resume = data.resume if isinstance(data, Command) else data["resume"]
    if not asked:
        message = f"Thread {thread_id!r} has no open question."
        raise ValueError(message)
    if isinstance(resume, Mapping) and resume and set(resume) <= set(asked):
        answers = dict(resume)
    elif len(asked) == 1:
        answers = {next(iter(asked)): resume}
    else:
        message = f"Several questions are open: {', '.join(asked)}. Answer by id: {{'resume': {{id: answer}}}}."
        raise ValueError(message)
    for key, answer in answers.items():
        _check_schema(asked[key], answer)
    return answers


def _check_schema(question: Interrupt, answer: Any) -> None:
    """Raise `ValueError` if the JSON schema of a question does not allow an answer; the engine checks types."""
    if not isinstance(question.response_schema, Mapping):
        return
    validator = require("jsonschema", extra="schema", purpose="check an answer against its JSON schema")
    problems = [error.message for error in validator.Draft202012Validator(question.response_schema).iter_errors(answer)]
    if problems:
        message = (
            f"The answer to {question.id!r} does not fit its schema: {'; '.join(problems)}. The thread still waits."
        )
        raise ValueError(message)


# ---- configurations


_DEFAULTS: Mapping[str, Any] = {
    "user_id": "anonymous", "tags": (), "metadata": {}, "on_busy": "raise",
    "on_graph_change": "raise",
}  # fmt: skip
_TYPES: Mapping[str, tuple[type, str]] = {
    "metadata": (Mapping, "a mapping"),
    "interrupt_before": (Collection, "the name of a node, or a list of names"),
    "interrupt_after": (Collection, "the name of a node, or a list of names"),
}


_OF_A_RUN = (
    "checkpoint_id", "node", "task_id", "step", "run_id", "timestamp", "interrupt_before", "interrupt_after",
    "node_timeout",
)  # fmt: skip


def flat_config(config: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a flat configuration. Settings may be under `configurable`; those beside it take precedence.

    Raises:
        TypeError: It is not a mapping, or the thread id is neither text, nor a whole number, nor a UUID.
        ValueError: The thread id cannot be encoded.
    """
    _require("config", config, Mapping, "a mapping such as {'thread_id': 'order-7'}")
    flat = {**(config or {})}
    nested = flat.pop("configurable", None)
    _require("configurable", nested, Mapping, "a mapping such as {'thread_id': 'order-7'}")
    flat = {**(nested or {}), **flat}
    if "task_id" in flat:  # the config of a node, which is about another run
        flat = {name: value for name, value in flat.items() if name not in _OF_A_RUN}
    thread_id = flat.get("thread_id")
    if isinstance(thread_id, UUID):
        thread_id = flat["thread_id"] = str(thread_id)
    _require("thread_id", thread_id, (str, int), "text, a whole number or a UUID")
    try:
        str(thread_id).encode()
    except UnicodeEncodeError as error:
        message = f"thread_id is {thread_id!r}, which cannot be encoded: {error.reason}."
        raise ValueError(message) from error
    return flat


def thread_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flat configuration that names a thread; `ValueError` if it names none, else like `flat_config`."""
    flat = flat_config(config)
    if flat.get("thread_id") is None:
        message = f"config is {config!r}, without a thread_id. Pass the id of a thread: {{'thread_id': 'order-7'}}."
        raise ValueError(message)
    return flat


def read_config(config: Mapping[str, Any] | None, recursion_limit: int) -> dict[str, Any]:
    """Return the configuration of a call with its defaults, of which the graph chooses `recursion_limit`.

    Raises:
        TypeError: It is not a mapping, or a setting has the wrong type.
        ValueError: A setting has an invalid value.
    """
    read = {"recursion_limit": recursion_limit, **_DEFAULTS, **flat_config(config)}
    defaults = runtime_defaults()
    require_limit("recursion_limit", read["recursion_limit"], least=1)
    require_seconds("node_timeout", read.get("node_timeout"), none="no limit")
    for name, choices in (("on_busy", get_args(OnBusy)), ("on_graph_change", get_args(OnGraphChange))):
        if read[name] not in choices:
            message = f"{name} is {read[name]!r}; expected one of {', '.join(map(repr, choices))}."
            raise ValueError(message)
    for name, (type_, expected) in _TYPES.items():
        _require(name, read.get(name), type_, expected)
    read.setdefault("run_id", defaults.ids.new_id("run"))
    read.setdefault("timestamp", iso_utc(defaults.clock.time_ns()))
    return read


def _require(name: str, value: object, type_: type | tuple[type, ...], expected: str) -> None:
    if value is not None and not isinstance(value, type_):
        message = f"{name} is {value!r}, of type {type(value).__name__}; expected {expected}."
        raise TypeError(message)

"""Runs one input of a batch to its row: from its input or its last checkpoint, with retries and a time limit."""

from __future__ import annotations

import asyncio
import os
import socket
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, cast

from agentbench._call_limiter import CallLimiter, counting, in_force
from agentbench._clock import runtime_defaults
from agentbench._user_code import cut_to_user
from agentbench._workers import run_in_thread
from agentbench.batch.inputs import Start
from agentbench.batch.rows import RowError, RowStatus
from agentbench.batch.running.concurrency import Gate, RunSlots
from agentbench.batch.running.meter import METERED, Meter, MeteredLog, SharedOutputs
from agentbench.batch.running.starts import copy_for_run
from agentbench.batch.running.targets import RunPlan, Target
from agentbench.batch.store.store import BatchStore, Claim, Ending
from agentbench.checkpoints import metadata as keys
from agentbench.checkpoints.access import head_of, list_lineage, next_seq
from agentbench.exceptions import (
    ClaimLostError,
    RunTimeoutError,
    UnstorableValueError,
    WorkflowCheckpointException,
    WorkflowConvergenceException,
)
from agentbench.messages.prices import Price, cost_of
from agentbench.workflows.events.events import WorkflowRunState
from agentbench.workflows.executors.message import Delivery
from agentbench.workflows.executors.options import RunOptions
from agentbench.workflows.persist.writer import CheckpointWriter
from agentbench.workflows.run.execution import Execution
from agentbench.workflows.run.responses import check_responses

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
    from agentbench.checkpoints.storage import CheckpointStorage

_PATIENCE_S: Final = 60.0
"""How long a run waits for its database before it is given up and left open."""
_AGAIN_S: Final = 0.5
_HOPELESS: Final = UnstorableValueError, WorkflowConvergenceException
"""Errors that a further attempt would only repeat, or that a limit of the user asks for."""
_LONGEST_TRACEBACK: Final = 20_000
_MOST_LOSSES: Final = 5
"""An input whose processes ended this often before its run did is the likely reason for it, and fails."""


@dataclass(frozen=True)
class RunRules:
    """How the inputs of a batch are run; the same in all processes."""

    retry: int = 1
    timeout: float | None = None
    checkpoints: str = "failed"
    options: RunOptions = field(default_factory=RunOptions)
    executor_limits: Mapping[str, int] = field(default_factory=dict)
    call_limits: Mapping[str, int] = field(default_factory=dict)
    """The maximum number of concurrent calls by service."""
    prices: Mapping[str, Price] = field(default_factory=dict)
    concurrency: int | None = None


class RowRunner:
    """Runs inputs of one batch in this process, any number of them at once on one event loop."""

    def __init__(self, target: Target, store: BatchStore, rules: RunRules) -> None:
        self._target, self._store, self._rules = target, store, rules
        self._storage = store.database.storage
        self._gates = {key: Gate(limit) for key, limit in rules.executor_limits.items()}
        self._graph_hash = target.graph_hash
        self.limiter = CallLimiter(limits=rules.call_limits)
        self.slots = RunSlots(self.limiter, rules.concurrency)
        self._divided = 1
        self._options = replace(rules.options, strict_checkpoints=True, observe=False)
        self._saves_nothing = not target.is_resumable or (rules.checkpoints == "none" and store.database.into is None)
        """Without a file nobody can continue a run, and without kept checkpoints only waiting ones need one."""

    def divide_limits(self, processes: int) -> None:
        """Use the share of the limits of one of several processes that run inputs of the batch."""
        if processes == self._divided:
            return
        self._divided = processes
        for service, limit in self._rules.call_limits.items():
            self.limiter.set_limit(service, max(1, limit // processes))
        for key, gate in self._gates.items():
            gate.set_limit(max(1, self._rules.executor_limits[key] // processes))

    async def run(self, claim: Claim) -> Ending | None:
        """Run a claimed input; None if the claim was lost meanwhile, so that another process has the row."""
        row = _Row(claim, self._target.chain(claim.key), self._target.of(claim.input))
        if claim.losses >= _MOST_LOSSES:
            text = f"{claim.losses} processes ended while they ran this input, which is the likely reason for it."
            return self._ending(row, RowStatus.FAILED, error=RowError("LostProcessesError", text))
        in_force.set(self.limiter)
        counting.set(partial(self._count_answer, row.meter))
        ends = time.monotonic() + _PATIENCE_S
        while True:
            row.began = time.perf_counter()
            try:
                return await self._attempt(row)
            except ClaimLostError:
                return None
            except (Exception, asyncio.CancelledError, SystemExit) as error:
                if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                    raise
                if _is_lost_database(error):
                    if time.monotonic() > ends:
                        raise
                    await asyncio.sleep(_AGAIN_S)
                    continue
                if row.retries >= self._rules.retry or isinstance(error, _HOPELESS):
                    return self._ending(row, RowStatus.FAILED, error=_error_of(error, row))
                row.retries += 1
                row.meter.seconds += time.perf_counter() - row.began

    def _count_answer(self, meter: Meter, response: Any) -> None:
        """Add what a model used for an answer."""
        use = response.usage_details or {}
        tokens_in, tokens_out = use.get("input_token_count"), use.get("output_token_count")
        cached = use.get("cache_read_input_token_count")
        meter.add_usage(
            tokens_in, tokens_out, cost_of(response.model, tokens_in, tokens_out, cached, self._rules.prices)
        )

    async def _attempt(self, row: _Row) -> Ending:
        claim = row.claim
        checkpoint = await self._resume(row)
        start = claim.input if isinstance(claim.input, Start) else None
        answers = claim.answers if start is None else {**start.answers, **(claim.answers or {})}
        if checkpoint is not None and answers:  # those that the checkpoint does not contain yet
            answers = {key: value for key, value in answers.items() if key in checkpoint.pending_request_info_events}
        row.is_begun = True
        row.started = row.started or time.time()
        run_id = row.run_id = row.run_id or runtime_defaults().ids.new_id("run")
        is_start = checkpoint is None and start is not None and start.checkpoint is not None
        saves = checkpoint is not None or not self._saves_nothing
        storage: Any = _RunStorage(self._storage, self._store, row) if saves else None
        if is_start:
            assert start is not None
            graph = row.target.workflow.graph
            checkpoint = await copy_for_run(start, graph, row.chain, run_id)
            if start.answers:
                answers = check_responses(checkpoint.pending_request_info_events, start.answers, graph)
            if storage is not None:
                checkpoint.metadata[keys.SEQ] = next_seq(await head_of(self._storage, row.chain))
                await storage.save(checkpoint)
        plan = RunPlan(claim.key, claim.input if start is None else start.input, checkpoint, answers or None, storage)
        log = row.target.log_class(row.meter)
        execution = row.target.begin(plan, self._options, log, run_id)
        row.execution = execution
        if self._gates:
            execution.run.around = partial(self._within_limits, row)
        await self._run_to_end(execution, log, row)
        status = RowStatus.FINISHED
        if execution.run.run_state.requests and self._target.is_resumable:
            status = RowStatus.WAITING
            if self._saves_nothing:
                kept = cast("CheckpointStorage", _RunStorage(self._storage, self._store, row))
                await CheckpointWriter(execution.run, kept).save("step")
        if log.state is WorkflowRunState.CANCELLED:
            status = RowStatus.CANCELLED
        return self._ending(row, status)

    async def _run_to_end(self, execution: Execution, log: MeteredLog, row: _Row) -> None:
        timeout = self._rules.timeout
        if timeout is None:
            await execution.run_to_end()
            return
        try:
            async with asyncio.timeout(timeout) as limit:
                row.limit = limit
                await execution.run_to_end()
        except TimeoutError:
            if not limit.expired():
                raise
            raise RunTimeoutError(sorted(log.running), timeout) from None

    async def _within_limits(self, row: _Row, delivery: Delivery, call: Coroutine[Any, Any, Any]) -> Any:
        gate = self._gates.get(delivery.executor_id)
        if gate is None:
            return await call
        limit, loop = row.limit, asyncio.get_running_loop()
        ends = None if limit is None else limit.when()
        left = 0.0 if ends is None else ends - loop.time()
        try:
            if limit is not None and ends is not None:
                limit.reschedule(None)  # the time that a run waits for its turn does not count
            await gate.take()
        except BaseException:
            call.close()
            raise
        if limit is not None and ends is not None:
            limit.reschedule(loop.time() + left)
        try:
            return await call
        finally:
            gate.free()

    # ---- where a run begins ------------------------------------------------------------------------------------------

    async def _resume(self, row: _Row) -> WorkflowCheckpoint | None:
        """Return the checkpoint to continue from, if there is one that fits the graph, and take over its numbers."""
        claim, meter = row.claim, row.meter
        if claim.attempts <= 1 and not row.is_begun and not claim.has_ended:
            return None
        checkpoint = await self._storage.get_latest(workflow_name=row.chain)
        if checkpoint is not None and checkpoint.graph_signature_hash != row.target.workflow.graph_signature_hash:
            checkpoint = None  # the graph has changed, so the run starts over
        if row.is_begun:  # a further attempt in this process, whose meter goes on
            infos = [] if checkpoint is None else await list_lineage(self._storage, checkpoint.checkpoint_id)
            meter.continue_from(infos)
            return checkpoint
        if claim.has_ended and (checkpoint is not None or claim.graph_hash == self._graph_hash):
            meter.add(await run_in_thread(self._store.traffic, claim.key))
            meter.tokens_in, meter.tokens_out, meter.cost = *claim.tokens, claim.cost
            meter.seconds, row.started, row.queued = claim.seconds, claim.started, claim.queued_seconds
        if checkpoint is not None:
            infos = await list_lineage(self._storage, checkpoint.checkpoint_id)
            ids = [info.checkpoint_id for info in infos]
            counted = ids.index(claim.checkpoint_id) + 1 if claim.has_ended and claim.checkpoint_id in ids else 0
            meter.continue_from(infos, uncounted=infos[counted:])
            row.run_id = infos[0].run_id
        return checkpoint

    # ---- how it ended ------------------------------------------------------------------------------------------------

    def _ending(self, row: _Row, status: RowStatus, *, error: RowError | None = None) -> Ending:
        meter, execution, rules = row.meter, row.execution, self._rules
        keeps = rules.checkpoints == "all" or status in (RowStatus.WAITING, RowStatus.CANCELLED)
        keeps = keeps or (status is RowStatus.FAILED and rules.checkpoints == "failed")
        requests = [] if execution is None else list(execution.run.run_state.requests.values())
        traffic = meter.totals()
        fields: dict[str, Any] = {
            "error": error,
            "attempts": row.claim.attempts + row.retries,
            "supersteps": len(meter.path),
            "path": meter.path_text,
            "tokens_in": meter.tokens_in,
            "tokens_out": meter.tokens_out,
            "cost": meter.cost,
            "started": row.started,
            "seconds": meter.seconds + time.perf_counter() - row.began,
            "queued_seconds": _queued(row),
            "run_id": row.run_id,
            "graph_hash": row.target.graph_hash,
            "worker": worker_name(),
        }
        if status is RowStatus.FINISHED:
            assert execution is not None
            fields["output"] = row.target.output(execution, meter.outputs)
        if status is RowStatus.WAITING:
            fields["questions"] = requests
        if keeps and execution is not None:
            fields["checkpoint_id"] = execution.run.run_state.last_checkpoint_id
        return Ending(row.claim, status, fields, traffic, None if keeps else row.chain)


@dataclass
class _Row:
    """A row while its input runs."""

    claim: Claim
    chain: str
    target: Target
    meter: Meter = field(default_factory=Meter)
    execution: Execution | None = None
    run_id: str | None = None
    began: float = 0.0
    """When the current attempt began, by the performance counter."""
    started: float | None = None
    queued: float | None = None
    retries: int = 0
    is_begun: bool = False
    limit: asyncio.Timeout | None = None
    """The time limit of the current attempt."""


def _queued(row: _Row) -> float | None:
    if row.queued is not None or row.started is None:
        return row.queued
    return max(0.0, row.started - row.claim.registered)


class _RunStorage:
    """The storage as one run sees it: each save checks the claim of the row, and adds what was metered."""

    keeps_copies = True

    def __init__(self, storage: Any, store: BatchStore, row: _Row) -> None:
        self._storage, self._store, self._row = storage, store, row
        for name in ("load", "list_checkpoints", "list_checkpoint_ids", "delete", "get_latest", "list_infos"):
            setattr(self, name, getattr(storage, name))

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        return await self._save(checkpoint, lambda: self._storage.save(checkpoint))

    async def save_if_head(self, checkpoint: WorkflowCheckpoint, expected_seq: int) -> str:
        return await self._save(checkpoint, lambda: self._storage.save_if_head(checkpoint, expected_seq))

    async def _save(self, checkpoint: WorkflowCheckpoint, save: Callable[[], Awaitable[str]]) -> str:
        """Save a checkpoint, again and again while the database is out of reach: its superstep must not be repeated."""
        metered = checkpoint.metadata[METERED] = self._row.meter.settle()
        if self._store.database.into is None:
            metered[-1] = SharedOutputs(metered[-1])
        ends = time.monotonic() + _PATIENCE_S
        while True:
            try:
                await self._require_claim()
                return await save()
            except UnstorableValueError as error:
                if not error.path.startswith(f"metadata[{METERED!r}]"):
                    raise
                reason = (
                    "Yield plain data, or an instance of a dataclass or model in a module that all processes import, "
                    f"or register_state_type({error.value_type.__name__}, ...)."
                )
                path = f"The output of row {self._row.claim.key!r}"
                raise UnstorableValueError(error.value_type, reason, path=path) from None
            except Exception as error:
                if not _is_lost_database(error) or time.monotonic() > ends:
                    raise
            await asyncio.sleep(_AGAIN_S)
            with suppress(WorkflowCheckpointException):
                await self._storage.load(checkpoint.checkpoint_id)
                return checkpoint.checkpoint_id  # it was saved although the connection was lost

    async def _require_claim(self) -> None:
        owner, claim = self._store.owner, self._row.claim
        if owner.holds(claim.owner):
            return
        await run_in_thread(owner.renew)  # not seen for some time, as after a sleep: perhaps nobody noticed
        if not owner.holds(claim.owner):
            msg = f"The claim on input {claim.key!r} was lost: this process was not seen for 30 seconds."
            raise ClaimLostError(msg, log_level=None)


def _is_cancelled() -> bool:
    """Return whether the current task was cancelled; otherwise the code of the run has raised `CancelledError`."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _is_lost_database(error: BaseException) -> bool:
    """Return whether a run failed only because its database was out of reach, as during a restart."""
    if not isinstance(error, WorkflowCheckpointException):
        return False
    return any(isinstance(cause, (ConnectionError, TimeoutError)) for cause in (error.inner_exception, error.__cause__))


def _error_of(error: BaseException, row: _Row) -> RowError:
    execution, location = row.execution, ""
    if execution is not None:
        executor_id = execution.runner.find_failed_executor(error)
        if executor_id is None and isinstance(error, RunTimeoutError):
            executor_id = ", ".join(error.executors)
        place = f"superstep {max(len(row.meter.path) - 1, 0)}"
        location = f"{executor_id}, {place}" if executor_id else place
    cut_to_user(error)
    text = "".join(traceback.format_exception(error))[-_LONGEST_TRACEBACK:]
    return RowError(type(error).__name__, str(error), location, text)


@cache
def _host() -> str:
    return socket.gethostname()


def worker_name() -> str:
    """Return the name of this process: host and process id."""
    return f"{_host()}:{os.getpid()}"

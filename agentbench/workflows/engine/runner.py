"""The engine loop: runs superstep after superstep. The module `superstep` implements a single superstep."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

from agentbench._clock import runtime_defaults
from agentbench.exceptions import UnrecordedCallError, WorkflowConvergenceException
from agentbench.workflows.engine.active_run import ActiveRun
from agentbench.workflows.engine.invocation import invoke, run_all
from agentbench.workflows.engine.superstep import apply_outcome, commit, fold, report_plan, roll_back
from agentbench.workflows.events.events import SuperstepCompletionInfo
from agentbench.workflows.executors.message import Delivery, WorkflowMessage
from agentbench.workflows.graph.routing import Plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentbench.checkpoints.info import CheckpointInfo
    from agentbench.workflows.engine.active_run import RunState
    from agentbench.workflows.graph.boundary import BoundaryOutcome, SuperstepView

Sends = Coroutine[Any, Any, list[WorkflowMessage]]


class SavesCheckpoints(Protocol):
    """The writer of a run's checkpoints; `answers_once` if the run answers a request that may be answered only once."""

    answers_once: bool

    async def save(
        self,
        source: str,
        *,
        writers: Sequence[str] = (),
        began_ns: int | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> CheckpointInfo | None:
        """Save the state of the run."""

    async def save_amid(self, values: Mapping[str, Any]) -> None:
        """Save an unfinished superstep."""

    async def load_head(self, *, is_new: bool, is_answer: bool) -> None:
        """Remember the head of the chain for a run that continues from a checkpoint."""


class SuperstepRunner:
    """Runs the supersteps of one run; `writer` saves checkpoints. Once `abandoned`, handlers have no effect."""

    __slots__ = (
        "_cancelled",
        "_deliveries",
        "_gate",
        "_hook",
        "_plan",
        "_plan_error",
        "_reports",
        "_router",
        "_tasks",
        "_view_class",
        "abandoned",
        "run",
        "writer",
    )

    def __init__(self, run: ActiveRun, writer: SavesCheckpoints | None = None) -> None:
        self.run = run
        self.writer = writer
        self.abandoned = False
        self._hook = run.graph.boundary_hook
        if self._hook is not None:
            from agentbench.workflows.graph.boundary import SuperstepView  # noqa: PLC0415 - plain workflows have no hook

            self._view_class = SuperstepView
        self._router = run.graph.router
        self._plan: Plan | None = None
        self._plan_error: Exception | None = None
        self._deliveries: Sequence[Delivery] = ()
        self._tasks: dict[Delivery, asyncio.Future[Any]] = {}
        self._cancelled: set[Delivery] = set()
        self._reports = getattr(self._hook, "on_delivery", None) is not None
        limit = getattr(self._hook, "max_concurrency", None)
        self._gate = None if limit is None else asyncio.Semaphore(limit)

    # ---- planning --------------------------------------------------------------------------------

    async def plan(self, superstep: int | None = None) -> Plan:
        """Return the next superstep (its number if it has begun), planned once. It raises a condition's exception."""
        plan = self._plan_at_once()
        if plan is None:
            router, run_state = self._router, self.run.run_state
            try:
                decision = router.decide(run_state.messages)
                if (recorder := self.run.recorder) is not None:
                    begins = run_state.superstep + 1 if superstep is None else superstep
                    decision = recorder.around("", begins, decision, may_wait=superstep is not None)
                verdicts = await decision
                plan = router.plan(run_state.messages, run_state.buffers, verdicts, traced=self.run.tracer is not None)
            except Exception as error:  # noqa: BLE001 - raised by the superstep, whose failure it is
                if superstep is None and isinstance(error, UnrecordedCallError):
                    return Plan([])  # the superstep calls the condition again, and may ask for permission
                plan, self._plan_error = Plan([]), error
            self._plan = plan
        return plan

    def _plan_at_once(self) -> Plan | None:
        """Return the next superstep; None if conditions have to be awaited for it."""
        if self._plan is None:
            router, run_state = self._router, self.run.run_state
            if router.has_conditions_for(run_state.messages):
                return None
            try:
                self._plan = router.plan(run_state.messages, run_state.buffers, traced=self.run.tracer is not None)
            except Exception as error:  # noqa: BLE001 - as above
                self._plan, self._plan_error = Plan([]), error
        return self._plan

    def plan_without_conditions(self) -> Plan:
        """Return the next superstep, empty if planning it would need a condition; changes nothing."""
        run_state = self.run.run_state
        if self._plan is not None:
            return self._plan
        if self._router.has_conditions_for(run_state.messages):
            return Plan([])
        return self._router.plan(run_state.messages, run_state.buffers)

    def drop_plan(self) -> None:
        """Discard an unused plan because its basis has changed."""
        self._plan = self._plan_error = None

    # ---- supersteps ------------------------------------------------------------------------------

    async def start(self, data: Any) -> None:
        """Run superstep 0: deliver the run's input to the start executors."""
        self.run.run_state.superstep = 0
        self.drop_plan()
        await self._carry_out("input", self._router.plan_start(data))

    def superstep(self) -> Coroutine[Any, Any, None]:
        """Run one superstep over the queued messages; without messages, run an empty one."""
        return self._carry_out("step")

    async def _carry_out(self, source: str, plan: Plan | None = None) -> None:
        """Run the deliveries of a plan, by default of the next superstep; fold, pass the boundary, and save.

        All of it is one coroutine, because each further one costs as much as a step of planning.
        """
        run, writer, hook = self.run, self.writer, self._hook
        if plan is None:
            if monotonic() > run.turn_ends and run.holds_loop():
                await run.yield_turn()
                self._require_active()
            run.run_state.superstep += 1
        superstep = run.run_state.superstep
        began_ns = 0 if writer is None else self._now_ns()
        outcome: BoundaryOutcome | None = None
        try:
            if plan is None:
                run.log.superstep_started(superstep)
                plan = self._plan_at_once() or await self.plan(superstep)
                self._take(plan)
            sent = await self._deliver(plan, superstep)
            self._require_active()  # a handler may have suppressed its cancellation
            fold(run, plan, sent)
            if hook is None:
                commit(run)
            else:
                decision = hook.at_boundary(self.view(plan.deliveries))
                outcome = await (decision if run.recorder is None else run.recorder.around("", superstep, decision))
                self._require_active()
                apply_outcome(run, outcome)
        except BaseException:
            self._undo(superstep)
            raise
        info: CheckpointInfo | None = None
        if writer is not None and self._is_saved(outcome):
            info = await self._save(writer, source, outcome, plan, began_ns)
        if source == "step":
            run.log.superstep_completed(superstep, None if writer is None else self._completion(info, plan))
        if outcome is not None:
            run.pause = outcome.pause
            if outcome.error is not None:
                raise outcome.error

    def _require_active(self) -> None:
        if self.abandoned:
            raise asyncio.CancelledError

    def _take(self, plan: Plan) -> None:
        """Take the queued messages for this plan, and report what there is to report about it."""
        self._require_active()  # conditions may have been awaited
        run_state = self.run.run_state
        run_state.delivering, run_state.messages = run_state.messages, {}
        error, self._plan, self._plan_error = self._plan_error, None, None
        if error is not None:
            raise error
        if plan.notes is not None:
            report_plan(self.run, plan)

    def _undo(self, superstep: int) -> None:
        if not self.abandoned:
            self.run.run_state.superstep = max(superstep - 1, 0)
            self._roll_back()

    def _roll_back(self) -> None:
        run_state = self.run.run_state
        roll_back(run_state)
        for executor in {delivery.executor for delivery in self._deliveries}:
            executor.on_rolled_back(
                {key: one for key, one in run_state.requests.items() if one.source_executor_id == executor.id}
            )

    # ---- deliveries ------------------------------------------------------------------------------

    def _deliver(self, plan: Plan, superstep: int) -> Sends:
        """Run the deliveries of a plan; return the sent messages in plan order."""
        self._deliveries = deliveries = plan.deliveries
        for delivery in deliveries:
            delivery.superstep = superstep
        if len(deliveries) == 1:
            if self._hook is None:
                return invoke(deliveries[0], self.run)  # a single delivery needs no task and no frame
            if self._gate is None and self._hook.failure_policy == "finish":
                return self._deliver_to_end(deliveries[0])
        return self._deliver_all(plan)

    async def _deliver_all(self, plan: Plan) -> list[WorkflowMessage]:
        if not plan.deliveries:
            return []
        one: Callable[[Delivery], Sends] = partial(invoke, run=self.run)
        if self._hook is not None:
            to_end = self._deliver_to_end if self._gate is None else self._deliver_gated
            one = to_end if self._hook.failure_policy == "finish" else self._deliver_for_hook
        if plan.lanes is None:
            return _flatten(await run_all(one, plan.deliveries))
        return _flatten(await run_all(partial(self._run_lane, one), plan.lanes))

    async def _run_lane(self, one: Callable[[Delivery], Sends], lane: list[list[Delivery]]) -> list[WorkflowMessage]:
        """Run batches of deliveries one after the other."""
        sent: list[WorkflowMessage] = []
        for batch in lane:
            if monotonic() > self.run.turn_ends and self.run.holds_loop():
                await self.run.yield_turn()
            sent += _flatten(await run_all(one, batch))
        return sent

    async def _deliver_for_hook(self, delivery: Delivery) -> list[WorkflowMessage]:
        """Run a delivery and report its end to the hook."""
        try:
            sent = await invoke(delivery, self.run, note_result=True)
        except Exception:
            await self._report_to_hook(delivery)
            raise
        await self._report_to_hook(delivery)
        return sent

    async def _report_to_hook(self, delivery: Delivery) -> None:
        report = getattr(self._hook, "on_delivery", None)
        if report is not None and not self.abandoned:
            state = await report(delivery.view(), self.view(self._deliveries))
            if state and self.writer is not None:
                await self.writer.save_amid(state)

    async def _deliver_gated(self, delivery: Delivery) -> list[WorkflowMessage]:
        assert self._gate is not None
        async with self._gate:
            return await self._deliver_to_end(delivery)

    async def _deliver_to_end(self, delivery: Delivery) -> list[WorkflowMessage]:
        """Run a delivery; the hook handles its failure, or its cancellation by `cancel_deliveries`.

        A single delivery runs in the task of the run, which costs less than a task of its own.
        """
        call = self._deliver_for_hook(delivery) if self._reports else invoke(delivery, self.run, note_result=True)
        is_alone = len(self._deliveries) == 1
        work: Awaitable[list[WorkflowMessage]] = call if is_alone else asyncio.ensure_future(call)
        task: Any = asyncio.current_task() if is_alone else work
        self._tasks[delivery] = task
        try:
            return await work
        except asyncio.CancelledError as error:
            if not self._is_intended(delivery):
                raise
            delivery.error = error
        except BaseException as error:
            if delivery.error is not error:  # not the handler's error: no handler was called, or the hook failed
                raise
        finally:
            del self._tasks[delivery]
            if is_alone and delivery in self._cancelled:
                await _end_cancellation(task)
        return []

    def _is_intended(self, delivery: Delivery) -> bool:
        """Return whether the cancellation of a delivery is a stop, for which the run goes on to its boundary."""
        return not self.abandoned and (self.run.stop_requested or delivery in self._cancelled)

    def find_failed_executor(self, error: BaseException) -> str | None:
        """Return the id of the executor whose handler raised this error in the last superstep, or None."""
        return next((d.executor_id for d in self._deliveries if d.error is error), None)

    def cancel_deliveries(self) -> None:
        """Cancel the async deliveries in flight; plain handlers finish by themselves. For failure policy "finish"."""
        for delivery, task in list(self._tasks.items()):
            if delivery.handler is not None and delivery.handler.is_async:
                self._cancelled.add(delivery)
                task.cancel()

    def abandon(self) -> None:
        """Abandon the run immediately: queued messages are dropped, and running handlers no longer have any effect."""
        self.abandoned = True
        for delivery in self._deliveries:
            delivery.abandoned = True
            if delivery.context is not None:
                delivery.context._abandon()  # noqa: SLF001 - the engine's side of the context
        self.drop_plan()
        self._roll_back()
        self._deliveries = ()

    # ---- boundary --------------------------------------------------------------------------------

    def view(self, deliveries: Sequence[Delivery] = ()) -> SuperstepView:
        """Return the part of the run that a hook may read now."""
        run = self.run
        return self._view_class(
            run.run_state.superstep,
            run.options.chain or run.graph.name,
            run.run_id,
            run.state,
            [delivery.view() for delivery in deliveries],
            run.stop_requested,
            run.run_state.requests,
            run.options,
        )

    def _is_saved(self, outcome: BoundaryOutcome | None) -> bool:
        if outcome is not None and self.run.graph.driver is not None:
            return outcome.save
        run_state = self.run.run_state
        return run_state.superstep > 0 or bool(run_state.messages)

    async def _save(
        self, writer: SavesCheckpoints, source: str, outcome: BoundaryOutcome | None, plan: Plan, began_ns: int
    ) -> CheckpointInfo | None:
        metadata: Mapping[str, Any] = {}
        if outcome is not None and outcome.checkpoint is not None:
            source, metadata = outcome.checkpoint.source, outcome.checkpoint.metadata
        elif self._hook is not None and self.run.stop_requested:
            source = "stop"
        info = await writer.save(
            source,
            writers=plan.executor_ids(),
            began_ns=began_ns,
            metadata=metadata,
        )
        if self.abandoned:
            raise asyncio.CancelledError
        if info is not None:
            self.run.run_state.last_checkpoint_id = info.checkpoint_id
        return info

    def _now_ns(self) -> int:
        return (self.run.options.clock or runtime_defaults().clock).perf_ns()

    def _completion(self, info: CheckpointInfo | None, plan: Plan) -> SuperstepCompletionInfo:
        run_state = self.run.run_state
        return SuperstepCompletionInfo(
            info,
            has_pending_messages=bool(run_state.messages),
            has_pending_requests=bool(run_state.requests),
            activated_executors=plan.executor_ids(),
        )


async def _end_cancellation(task: asyncio.Task[Any]) -> None:
    """Take back the cancellation of a delivery that has ended, so that the rest of the run is not cancelled."""
    task.uncancel()
    try:
        await asyncio.sleep(0)  # it may still be due: the handler was not suspended since
    except asyncio.CancelledError:
        if task.cancelling():  # another one, by whoever runs the task
            raise


def _flatten(parts: list[list[WorkflowMessage]]) -> list[WorkflowMessage]:
    return [message for part in parts for message in part]


def convergence_error(workflow_name: str, run_state: RunState, limit: int) -> WorkflowConvergenceException:
    """Return the error for messages that are left after the last allowed superstep."""
    waiting = {source: len(queued) for source, queued in run_state.messages.items()}
    msg = (
        f"Workflow {workflow_name!r} did not finish within {limit} supersteps; messages wait from "
        f"{', '.join(waiting)}. Look for an endless cycle, or raise max_iterations."
    )
    return WorkflowConvergenceException(msg, max_iterations=limit, pending=waiting)

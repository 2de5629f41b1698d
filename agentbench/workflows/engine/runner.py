"""The loop: superstep after superstep over the messages of one workflow instance."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from agentbench._clock import Clock, runtime_defaults
from agentbench._copying import isolate_or_same
from agentbench.exceptions import WorkflowConvergenceException, WorkflowRunnerException
from agentbench.workflows.engine.concurrency import run_all
from agentbench.workflows.engine.invocation import invoke
from agentbench.workflows.events.events import SuperstepCompletionInfo, WorkflowEvent
from agentbench.workflows.executors.delivery import Delivery
from agentbench.workflows.executors.message import WORKFLOW_SOURCE, WorkflowMessage, internal_source
from agentbench.workflows.executors.options import RunOptions
from agentbench.workflows.graph.routing import Plan, PlanNotes, Router

if TYPE_CHECKING:
    from agentbench.checkpoints.info import CheckpointInfo
    from agentbench.checkpoints.storage import CheckpointStorage
    from agentbench.workflows.engine.boundary import BoundaryHook, BoundaryOutcome, PauseReason, SuperstepView
    from agentbench.workflows.executors.executor import Executor
    from agentbench.workflows.executors.state import State
    from agentbench.workflows.graph.edge_groups import EdgeGroup
    from agentbench.workflows.pages.runner_context import InProcRunnerContext
    from agentbench.workflows.persist.writer import CheckpointWriter

Sends = Coroutine[Any, Any, list[WorkflowMessage]]


class Runner:
    """Runs supersteps. Holds no messages, events or requests itself: those are in its context.

    Args:
        edge_groups: all edge groups in builder order, internal ones included.
        executors: by id.
        state: shared state.
        ctx: messages, events and requests.
        workflow_name: key of the checkpoints.
        graph_signature_hash: hash of the graph, or a function that makes it when a checkpoint needs it.
        max_iterations: limit of `run_until_convergence`.
        boundary_hook: drives another dialect of graphs; None for plain workflows.
        copy_messages: every target gets its own copy of a message.
    """

    def __init__(  # noqa: PLR0913 - the published signature
        self,
        edge_groups: Sequence[EdgeGroup],
        executors: dict[str, Executor],
        state: State,
        ctx: InProcRunnerContext,
        workflow_name: str,
        graph_signature_hash: str | Callable[[], str],
        max_iterations: int = 100,
        *,
        boundary_hook: BoundaryHook | None = None,
        copy_messages: bool = False,
    ) -> None:
        self.edge_groups = edge_groups
        self.executors = executors
        self.state = state
        self.context = ctx
        self.workflow_name = workflow_name
        self.max_iterations = max_iterations
        self.hook = boundary_hook
        self.iteration = 0
        self.options = RunOptions()
        self.run_id = ""
        self.clock: Clock = runtime_defaults().clock
        #: Saves checkpoints; None while checkpointing is off.
        self.writer: CheckpointWriter | None = None
        #: Restores a checkpoint by id; set by the workflow.
        self.restorer: Callable[[str, CheckpointStorage | None], Any] | None = None
        #: Ids of the executors that get what comes from outside; set by the workflow.
        self.starts: Sequence[str] = ()
        #: Why the hook wants the run to pause, after a boundary.
        self.pause: PauseReason | None = None
        self._hash = graph_signature_hash
        self._copies = copy_messages
        self._shared_router: Router | None = None
        self._plan: Plan | None = None
        self._plan_error: Exception | None = None
        self._told: dict[str, Any] = {}
        self._in_flight: Sequence[Delivery] = ()
        # What the superstep that runs has taken from the queue.
        self._taken: Mapping[str, Sequence[WorkflowMessage]] = {}
        self._tasks: dict[Delivery, asyncio.Future[list[WorkflowMessage]]] = {}
        # Raised when a run is abandoned: what still unwinds of it must not touch the next one.
        self._epoch = 0
        self._busy = False

    @property
    def graph_signature_hash(self) -> str:
        """Hash of the graph."""
        if not isinstance(self._hash, str):
            self._hash = self._hash()
        return self._hash

    @property
    def router(self) -> Router:
        """The routing tables, made at first use."""
        if self._shared_router is None:
            self._shared_router = Router(
                self.edge_groups, self.executors, starts=self.starts, copy_messages=self._copies
            )
        return self._shared_router

    def share_router(self, other: Runner) -> None:
        """Use the routing tables of a runner with the same graph and executors."""
        self._shared_router = other.router

    def reset_iteration_count(self) -> None:
        """Number supersteps from 1 again."""
        self.iteration = 0

    # ---- planning --------------------------------------------------------------------------------

    async def plan(self) -> Plan:
        """The next superstep, computed once and used by it; a condition's exception is raised there."""
        if self._plan is None:
            messages, buffers = self.context.messages, self.context.get_buffers()
            traced = self.context.tracer is not None
            try:
                if self.router.asks_about(messages):
                    verdicts = await self.router.decide(messages)
                    self._plan = self.router.plan(messages, buffers, verdicts, traced=traced)
                else:
                    self._plan = self.router.plan(messages, buffers, traced=traced)
            except Exception as error:  # noqa: BLE001 - kept for the superstep, whose failure it is
                self._plan, self._plan_error = Plan([]), error
        return self._plan

    @property
    def plan_so_far(self) -> Plan:
        """The next superstep, as far as it is known without asking a condition; changes nothing."""
        messages = self.context.messages
        if self._plan is not None:
            return self._plan
        return Plan([]) if self.router.asks_about(messages) else self.router.plan(messages, self.context.get_buffers())

    def drop_plan(self) -> None:
        """Forget a plan that was made but not used: what it was made from has changed."""
        self._plan = self._plan_error = None

    # ---- supersteps ------------------------------------------------------------------------------

    async def start(self, starts: Sequence[Executor], data: Any) -> None:
        """Superstep 0: give the input of a run to the start executors."""
        self.iteration = 0
        self.drop_plan()
        began = self.clock.perf_ns() if self.writer is not None else 0
        plan = Plan([Delivery(e, e.find_handler(data), data, (WORKFLOW_SOURCE,)) for e in starts])
        for order, delivery in enumerate(plan.deliveries):
            delivery.order = order
        epoch = self._epoch
        try:
            sent = await self._deliver(plan)
            self._still(epoch)
            self.context.post(sent)
            outcome = await self._reach_boundary(plan.deliveries)
        except BaseException:
            if epoch == self._epoch:
                self._roll_back()
            raise
        if self.context.messages or self.hook is not None:
            await self._save("input", outcome, plan.deliveries, began)
            self._still(epoch)
        self._finish(outcome)

    async def superstep(self) -> None:
        """One superstep over the queued messages; with none it is an empty one."""
        context = self.context
        log = context.log
        self.iteration = iteration = self.iteration + 1
        log.superstep_started(iteration)
        began = self.clock.perf_ns() if self.writer is not None else 0
        epoch = self._epoch
        try:
            plan = self._plan
            if plan is None:
                plan = await self.plan()
                self._still(epoch)
            self._taken = context.take_messages()
            error, self._plan, self._plan_error = self._plan_error, None, None
            if error is not None:
                raise error
            if plan.notes is not None:
                self._report(plan.notes)
            sent = await self._deliver(plan)
            self._still(epoch)
            context.post(sent)
            if plan.buffers is not None:
                context.set_buffers(plan.buffers)
            if self.hook is None and self.writer is None and not log.observed:
                self.state.commit()
                context.keep_requests()
                self._taken = {}
                log.superstep_completed(iteration, None)
                return
            outcome = await self._reach_boundary(plan.deliveries)
            self._taken = {}
        except BaseException:
            if epoch == self._epoch:
                self.iteration = iteration - 1
                self._roll_back()
            raise
        saved = await self._save("step", outcome, plan.deliveries, began)
        self._still(epoch)
        log.superstep_completed(iteration, self._completion(saved, plan.deliveries))
        self._finish(outcome)

    def _still(self, epoch: int) -> None:
        """End here if the run was abandoned meanwhile: a handler may have swallowed its cancellation."""
        if epoch != self._epoch:
            raise asyncio.CancelledError

    def _deliver(self, plan: Plan) -> Sends:
        """Run the deliveries of a plan; returns what they sent, in plan order."""
        self._in_flight = deliveries = plan.deliveries
        for delivery in deliveries:
            delivery.superstep = self.iteration
        if len(deliveries) == 1 and self.hook is None:
            return invoke(deliveries[0], self.state, self.context)  # a lone delivery needs no task and no frame
        return self._deliver_all(plan, deliveries)

    async def _deliver_all(self, plan: Plan, deliveries: Sequence[Delivery]) -> list[WorkflowMessage]:
        if not deliveries:
            return []
        one = self._to_its_end if self.hook is not None and self.hook.failure_policy == "finish" else self._or_fail
        if plan.lanes is None:
            return _joined(await run_all(one, deliveries))
        return _joined(await run_all(partial(_lane, one), plan.lanes))

    def _or_fail(self, delivery: Delivery) -> Sends:
        """A delivery whose failure ends the superstep."""
        return invoke(delivery, self.state, self.context)

    async def _to_its_end(self, delivery: Delivery) -> list[WorkflowMessage]:
        """A delivery whose failure, or cancellation by `cancel_deliveries`, is left to the hook."""
        task = asyncio.ensure_future(invoke(delivery, self.state, self.context))
        self._tasks[delivery] = task
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait((task,))
            raise
        finally:
            del self._tasks[delivery]
        if task.cancelled():
            delivery.error = asyncio.CancelledError()
            return []
        error = task.exception()
        if error is None:
            return task.result()
        if delivery.error is None:  # not the handler's: nobody could take the message
            raise error
        return []

    def who_raised(self, error: BaseException) -> str | None:
        """Id of the executor whose handler raised this in the last superstep, None if none did."""
        return next((d.executor_id for d in self._in_flight if d.error is error), None)

    def cancel_deliveries(self) -> None:
        """Cancel the async deliveries in flight; plain handlers end by themselves. For failure policy "finish"."""
        for delivery, task in list(self._tasks.items()):
            if delivery.handler is not None and delivery.handler.is_async:
                task.cancel()

    def _report(self, notes: PlanNotes) -> None:
        """Tell of warnings, and to observers of routing and dropped messages."""
        log = self.context.log
        if self.context.tracer is not None:
            self.context.tracer.routed(notes)
        for source, verdict in notes.verdicts:
            for text in verdict.warnings:
                log.append(WorkflowEvent.warning(text))
            if log.observed:
                facts = {"from": source, "condition": verdict.condition, "result": verdict.result}
                log.append(WorkflowEvent("graph_routed", {**facts, "targets": list(verdict.targets)}))
        if log.observed or self.context.report_drops:
            for drop in notes.drops:
                message = drop.message
                log.append(
                    WorkflowEvent(
                        "message_dropped",
                        {
                            "reason": drop.reason,
                            "source": message.source_id,
                            "target": message.target_id or ", ".join(drop.targets) or None,
                            "type": type(message.data).__name__,
                        },
                    )
                )

    # ---- boundary --------------------------------------------------------------------------------

    def view(self, deliveries: Sequence[Delivery] = ()) -> SuperstepView:
        """What a hook may read now."""
        from agentbench.workflows.engine.boundary import SuperstepView  # noqa: PLC0415 - plain workflows have no hook

        context = self.context
        return SuperstepView(
            self.iteration,
            self.options.chain or self.workflow_name,
            self.run_id,
            self.state,
            deliveries,
            context.stop_requested,
            context.requests,
            self.options,
        )

    async def _reach_boundary(self, deliveries: Sequence[Delivery]) -> BoundaryOutcome | None:
        if self.hook is None:
            self._commit()
            return None
        epoch = self._epoch
        outcome = await self.hook.at_boundary(self.view(deliveries))
        self._still(epoch)
        self.apply(outcome)
        return outcome

    def _commit(self) -> None:
        """What this superstep wrote and asked stays."""
        self._tell_state()
        self.state.commit()
        self.context.keep_requests()

    def apply(self, outcome: BoundaryOutcome) -> None:
        """Carry out a hook's outcome up to the checkpoint, in the order of its fields."""
        state, context = self.state, self.context
        for key, value in outcome.state_updates.items():
            state.set(key, value)
        for key in outcome.state_deletes:
            state.delete(key)
        if outcome.commit:
            self._commit()
        else:
            state.discard()
        context.post(WorkflowMessage(data, internal_source(to), to) for to, data in outcome.messages)
        if context.log.observed and outcome.messages:
            targets = [to for to, _ in outcome.messages]
            context.log.append(WorkflowEvent("graph_routed", {"from": None, "condition": "hook", "targets": targets}))
        for request in outcome.requests:
            context.open_request(request)
        for executor_id, value in outcome.outputs:
            context.log.append(WorkflowEvent("output", value, executor_id=executor_id))
        for event in outcome.events:
            context.log.append(event)
        context.keep_requests()

    def _tell_state(self) -> None:
        context = self.context
        if not context.log.observed:
            return
        writers, context.writers = context.writers, {}
        facts: dict[str, Any] = {}
        for key, (old, new) in self.state.pending_changes().items():
            # The committed value may be the new one already, changed in place: the copy of last time is the old one.
            facts[key] = {"old": self._told.get(key, old), "new": isolate_or_same(new), "writers": writers.get(key, [])}
            self._told[key] = facts[key]["new"]
        if facts:
            context.log.append(WorkflowEvent("state_updated", facts))

    def remember_state(self) -> None:
        """Begin to tell of changes: from here on, for an observed run."""
        self._told = {key: isolate_or_same(value) for key, value in self.state.export_state().items()}

    async def _save(
        self, source: str, outcome: BoundaryOutcome | None, deliveries: Sequence[Delivery], began_ns: int
    ) -> CheckpointInfo | None:
        if self.writer is None:
            return None
        metadata: Mapping[str, Any] = {}
        if outcome is not None and outcome.checkpoint is not None:
            source, metadata = outcome.checkpoint.source, outcome.checkpoint.metadata
        elif self.hook is not None and self.context.stop_requested:
            source = "stop"
        return await self.writer.save(
            self.iteration,
            source,
            writers=list(dict.fromkeys(d.executor_id for d in deliveries)),
            duration_s=(self.clock.perf_ns() - began_ns) / 1e9,
            metadata=metadata,
        )

    def _completion(
        self, saved: CheckpointInfo | None, deliveries: Sequence[Delivery]
    ) -> SuperstepCompletionInfo | None:
        if self.writer is None:
            return None
        return SuperstepCompletionInfo(
            saved,
            has_pending_messages=bool(self.context.messages),
            has_pending_requests=bool(self.context.requests),
            activated_executors=list(dict.fromkeys(d.executor_id for d in deliveries)),
        )

    def _finish(self, outcome: BoundaryOutcome | None) -> None:
        if outcome is None:
            return
        self.pause = outcome.pause
        if outcome.error is not None:
            raise outcome.error

    def _roll_back(self) -> None:
        """A superstep broke off: nothing of it stays. Questions whose answers were not handled are open again."""
        context = self.context
        self.state.discard()
        unhandled = [*self._taken.values(), *context.take_messages().values()]
        self._taken = {}
        context.withdraw_requests()
        context.writers = {}
        for queued in unhandled:
            for message in queued:
                request = message.original_request_info_event
                if request is not None:
                    context.requests[request.request_id] = request

    def disown(self) -> None:
        """Drop what is queued and in flight, at once: handlers that still run can reach nothing any more."""
        self._epoch += 1
        for delivery in self._in_flight:
            delivery.disowned = True
            if delivery.context is not None:
                delivery.context._abandon()  # noqa: SLF001 - the engine's side of the context
        self._in_flight = ()
        self.drop_plan()
        self._roll_back()

    # ---- the reference's entry points ------------------------------------------------------------

    async def restore_from_checkpoint(self, checkpoint_id: str, storage: CheckpointStorage | None = None) -> None:
        """Put the instance back to a checkpoint.

        Raises:
            WorkflowCheckpointException: no storage, an unknown id, another graph, or a hook that fails.
        """
        if self.restorer is None:
            msg = "This runner belongs to no workflow, so it cannot restore. Use Workflow.run(checkpoint_id=...)."
            raise WorkflowRunnerException(msg)
        await self.restorer(checkpoint_id, storage)

    async def run_until_convergence(self) -> AsyncIterator[WorkflowEvent[Any]]:
        """Run supersteps until no message is queued, yielding events after each.

        Raises:
            WorkflowRunnerException: it runs already.
            WorkflowConvergenceException: messages are left after `max_iterations` supersteps.
        """
        if self._busy:
            msg = "This runner runs already; wait for it to end, or use another workflow instance."
            raise WorkflowRunnerException(msg)
        self._busy = True
        try:
            for event in await self.context.drain_events():
                yield event
            for _ in range(self.max_iterations):
                await self.superstep()
                for event in await self.context.drain_events():
                    yield event
                if not self.context.messages:
                    return
            if self.context.messages:
                raise not_converged(self, self.max_iterations)
        finally:
            self._busy = False


async def _lane(one: Callable[[Delivery], Sends], lane: list[list[Delivery]]) -> list[WorkflowMessage]:
    """Deliveries of which each batch waits for the one before."""
    sent: list[WorkflowMessage] = []
    for batch in lane:
        sent += _joined(await run_all(one, batch))
    return sent


def _joined(parts: list[list[WorkflowMessage]]) -> list[WorkflowMessage]:
    return [message for part in parts for message in part]


def not_converged(runner: Runner, limit: int) -> WorkflowConvergenceException:
    """The error for messages that are left after the last superstep allowed."""
    waiting = {source: len(queued) for source, queued in runner.context.messages.items()}
    msg = (
        f"Workflow {runner.workflow_name!r} did not end within {limit} supersteps; messages wait from "
        f"{', '.join(waiting)}. Look for a cycle without an end, or raise max_iterations."
    )
    return WorkflowConvergenceException(msg, max_iterations=limit, pending=waiting)

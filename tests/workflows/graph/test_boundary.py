"""The boundary hook: what another dialect of graphs may do at the end of a superstep."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from agentbench import (
    BoundaryOutcome,
    Executor,
    InMemoryCheckpointStorage,
    PauseReason,
    RunOptions,
    SuperstepView,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowEvent,
    WorkflowRunState,
    handler,
)
from agentbench.workflows.executors.message import DeliveryView
from agentbench.workflows.graph.boundary import BoundaryCheckpoint
from tests.parts.errors import raises
from tests.parts.executors import Fail, Pass, Show, Wait, brief, chain, collect

Decide = Callable[[SuperstepView], BoundaryOutcome]
NOTHING = BoundaryOutcome()


class Hook:
    """A hook that does what a function says, and remembers what it was shown."""

    def __init__(self, decide: Decide = lambda view: NOTHING, *, failure_policy: Any = "cancel") -> None:
        self.decide = decide
        self.failure_policy = failure_policy
        self.reachability = False
        self.seen: list[tuple[int, list[tuple[str, bool]]]] = []
        self.answers: dict[str, Any] = {}

    async def at_boundary(self, view: SuperstepView) -> BoundaryOutcome:
        await asyncio.sleep(0)
        self.seen.append((view.superstep, [(d.executor_id, d.error is not None) for d in view.deliveries]))
        return self.decide(view)

    async def on_responses(self, answers: Mapping[str, Any], view: SuperstepView) -> BoundaryOutcome:
        self.answers.update(answers)
        return BoundaryOutcome(messages=[("b", str(next(iter(answers.values()))))])

    def signature(self) -> dict[str, Any] | None:
        return {"kind": "test"}


def hooked(hook: Hook, *executors: Executor, **settings: Any) -> Workflow:
    builder = WorkflowBuilder(start_executor=executors[0], name="hooked", **settings).boundary_hook(hook)
    for executor in executors[1:]:
        builder.add_executor(executor)
    return builder.build()


def at(superstep: int, outcome: BoundaryOutcome) -> Decide:
    return lambda view: outcome if view.superstep == superstep else NOTHING


async def test_a_hook_that_does_nothing_changes_no_event():
    plain = chain(Pass("a"), Pass("b"), Show("c"))
    watched = WorkflowBuilder(start_executor=(a := Pass("a"))).add_chain([a, Pass("b"), Show("c")])
    hook = Hook()
    events = [e async for e in watched.boundary_hook(hook).build().run("x", stream=True)]
    assert brief(events) == brief([e async for e in plain.run("x", stream=True)])
    assert hook.seen == [(0, [("a", False)]), (1, [("b", False)]), (2, [("c", False)])]


async def test_a_hook_routes_to_executors_without_an_edge_and_without_conditions():
    hook = Hook(at(0, BoundaryOutcome(messages=[("b", "routed"), ("c", "too")])))
    workflow = hooked(hook, Pass("a"), Show("b"), Show("c"))
    result = await workflow.run("x", options=RunOptions(observe=True))
    assert result.outputs == ["routed!", "too!"]
    assert [e.data["targets"] for e in result if e.type == "graph_routed"] == [["b", "c"]]


@pytest.mark.filterwarnings("ignore::agentbench.exceptions.WorkflowWarning")
async def test_a_hook_stages_state_reserved_keys_included_and_it_is_committed():
    hook = Hook(at(0, BoundaryOutcome(state_updates={"_graph:values": 1, "k": 2})))
    workflow = hooked(hook, Show("a"))
    await workflow.run("x")
    assert workflow.state.export_state() == {"_graph:values": 1, "k": 2}
    hook.decide = at(1, BoundaryOutcome(state_deletes=["k"]))
    await workflow.run("x")
    assert workflow.state.export_state() == {"_graph:values": 1}


async def test_a_hook_may_refuse_what_a_superstep_wrote():
    class Write(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext) -> None:
            ctx.set_state("k", text)

    workflow = hooked(Hook(at(0, BoundaryOutcome(commit=False))), Write("w"))
    await workflow.run("x")
    assert workflow.state.export_state() == {}


async def test_outputs_and_events_of_a_hook_come_before_the_superstep_is_completed():
    outcome = BoundaryOutcome(outputs=[("a", "from the hook")], events=[WorkflowEvent("custom", 1)])
    result = await hooked(Hook(at(1, outcome)), Pass("a")).run("x")
    assert brief(result)[-4:] == ["superstep_started 1", "output a", "custom", "superstep_completed 1"]
    assert result.outputs == ["from the hook"]


async def test_a_request_of_a_hook_needs_no_response_handler_and_its_answer_goes_to_the_hook():
    request = WorkflowEvent.request_info("ask-1", "a", "go on?", str)
    hook = Hook(at(0, BoundaryOutcome(requests=[request])))
    workflow = hooked(hook, Pass("a"), Show("b"))
    first = await workflow.run("x")
    assert first.final_state is WorkflowRunState.IDLE_WITH_PENDING_REQUESTS
    with raises(ValueError, "str"):
        await workflow.run(responses={"ask-1": 5})
    hook.decide = lambda view: NOTHING
    second = await workflow.run(responses={"ask-1": "yes"})
    assert hook.answers == {"ask-1": "yes"}
    assert second.outputs == ["yes!"]
    assert second.final_state is WorkflowRunState.IDLE


async def test_a_hook_that_pauses_ends_a_plain_run_and_pauses_a_handle():
    outcome = BoundaryOutcome(messages=[("b", "later")], pause=PauseReason("look here", "hook"))
    storage = InMemoryCheckpointStorage()
    workflow = hooked(Hook(at(0, outcome)), Pass("a"), Show("b"), checkpoint_storage=storage)
    assert (await workflow.run("x")).outputs == []
    saved = await storage.get_latest(workflow_name="hooked")
    assert saved is not None
    again = await workflow.run(checkpoint_id=saved.checkpoint_id)
    assert again.outputs == ["later!"]

    run = hooked(Hook(at(0, outcome)), Pass("a"), Show("b")).start("x")
    async for _ in run.watch_stream():
        pass
    assert run.paused
    assert str(run.pause_reason) == "look here"
    assert (await run.result()).outputs == ["later!"]


async def test_with_finish_siblings_run_to_their_end_and_the_hook_sees_the_errors():
    source, wait, fail = Pass("s"), Wait("wait"), Fail("fail")
    hook = Hook(failure_policy="finish")
    builder = WorkflowBuilder(start_executor=source).add_fan_out_edges(source, [wait, fail]).boundary_hook(hook)
    workflow = builder.build()
    running = asyncio.ensure_future(workflow.run("x"))
    await wait.entered.wait()
    wait.gate.set()
    result = await running
    assert wait.ended == "ran on"
    assert result.outputs == ["late"]
    assert hook.seen[1] == (1, [("wait", False), ("fail", True)])
    assert result.final_state is WorkflowRunState.IDLE_WITH_PENDING_REQUESTS


async def test_an_error_of_the_hook_is_raised_after_the_checkpoint():
    storage = InMemoryCheckpointStorage()
    boom = ValueError("the hook says no")
    outcome = BoundaryOutcome(error=boom, checkpoint=BoundaryCheckpoint("error", {"why": "test"}))
    workflow = hooked(Hook(at(1, outcome)), Pass("a"), checkpoint_storage=storage)
    seen: list[WorkflowEvent[Any]] = []
    with raises(ValueError) as caught:
        await collect(workflow.run("x", stream=True), seen)
    assert caught.value is boom
    assert brief(seen)[-2:] == ["failed", "status FAILED"]
    latest = await storage.get_latest(workflow_name="hooked")
    assert latest is not None
    assert (latest.metadata["source"], latest.metadata["why"]) == ("error", "test")


async def test_a_stop_with_finish_cancels_what_runs_and_still_reaches_the_boundary():
    wait = Wait("w")
    hook = Hook(failure_policy="finish")
    storage = InMemoryCheckpointStorage()
    run = hooked(hook, wait, checkpoint_storage=storage).start("x")
    driving = asyncio.ensure_future(run.result())
    await wait.entered.wait()
    run.stop()
    await driving
    assert wait.ended == "cancelled"
    assert hook.seen == [(0, [("w", True)])]
    assert run.status is WorkflowRunState.CANCELLED
    assert [c.source for c in run.checkpoints] == ["stop"]


async def test_a_hook_that_outlives_its_abandoned_run_changes_nothing_of_the_next() -> None:
    reached, ended = asyncio.Event(), asyncio.Event()

    class Stubborn:
        failure_policy = "cancel"
        reachability = True

        def signature(self) -> None:
            """Stays out of the graph's signature."""

        async def at_boundary(self, view: Any) -> BoundaryOutcome:
            if reached.is_set():
                return BoundaryOutcome()
            reached.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ended.set()
            return BoundaryOutcome(state_updates={"late": True}, outputs=[("only", "late")])

        async def on_responses(self, answers: Any, view: Any) -> BoundaryOutcome:
            return BoundaryOutcome()

    hook: Any = Stubborn()
    workflow = WorkflowBuilder(start_executor=Show("only")).boundary_hook(hook).build()
    stream = workflow.run("x", stream=True)
    async for event in stream:
        if event.type == "executor_completed":
            break
    await reached.wait()
    del stream
    result = await workflow.run("y")
    await ended.wait()
    await asyncio.sleep(0)

    assert result.outputs == ["y!"]
    assert workflow.state.export_state() == {}


class Reports(Hook):
    """A hook that hears of each delivery when it has ended."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.ended: list[DeliveryView] = []

    async def on_delivery(self, delivery: DeliveryView, view: SuperstepView) -> None:
        assert view.superstep == int(delivery.task_id.partition(":")[0])
        self.ended.append(delivery)


@pytest.mark.parametrize("failure_policy", ["cancel", "finish"])
async def test_a_hook_is_called_for_each_delivery_with_its_result(failure_policy: Any):
    hook = Reports(failure_policy=failure_policy)
    builder = WorkflowBuilder(start_executor=(a := Pass("a"))).add_chain([a, Show("b")])
    await builder.boundary_hook(hook).build().run("x")
    assert [(d.task_id, d.data, d.error) for d in hook.ended] == [("0:a:0", "x", None), ("1:b:0", "x>a", None)]
    sent, yielded = (d.result for d in hook.ended)
    assert sent is not None
    assert ([m.data for m in sent.sent], sent.yielded) == (["x>a"], ())
    assert yielded is not None
    assert (yielded.sent, yielded.yielded) == ((), ("x>a!",))

import asyncio
import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench._clock import CountingIds, TickingClock
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.engine.event_log import EventLog, ObservedEventLog
from agentbench.workflows.events.events import (
    SuperstepCompletionInfo,
    WorkflowErrorDetails,
    WorkflowEvent,
    WorkflowRunState,
)
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.function_executor import executor
from agentbench.workflows.executors.handlers import handler, response_handler
from agentbench.workflows.executors.message import Delivery, WorkflowMessage
from agentbench.workflows.executors.options import RunOptions


@executor
async def node(value: Any) -> None: ...


def delivery(data: Any = "x", superstep=1, order=0, nth=0):
    made = Delivery(node, None, data, ("a",))
    made.superstep, made.order, made.nth = superstep, order, nth
    return made


def sent(*values):
    return [WorkflowMessage(v, "node") for v in values]


DETAILS = WorkflowErrorDetails("ValueError", "no")
INFO = SuperstepCompletionInfo(None, has_pending_messages=False, has_pending_requests=False)


def facts(event):
    return (event.type, event.source_id, event.iteration, event.state, event.data, event.origin)


# ---- the plain log -------------------------------------------------------------------------------

ENTRIES = [
    (lambda log: log.superstep_started(3), WorkflowEvent.superstep_started(3)),
    (lambda log: log.superstep_completed(3, None), WorkflowEvent.superstep_completed(3)),
    (lambda log: log.superstep_completed(3, INFO), WorkflowEvent.superstep_completed(3, INFO)),
    (lambda log: log.record_invoked(delivery("in")), WorkflowEvent.executor_invoked("node", "in")),
    (lambda log: log.record_invoked(delivery(None)), WorkflowEvent.executor_invoked("node")),
    (lambda log: log.record_invoked(delivery(1)), WorkflowEvent.executor_invoked("node", 1)),
    (lambda log: log.record_completed(delivery(), [], []), WorkflowEvent.executor_completed("node")),
    (lambda log: log.record_completed(delivery(), sent(None), []), WorkflowEvent.executor_completed("node", [None])),
    (lambda log: log.record_completed(delivery(), sent(1, 2), []), WorkflowEvent.executor_completed("node", [1, 2])),
    (lambda log: log.record_completed(delivery(), [], ["y"]), WorkflowEvent.executor_completed("node", ["y"])),
    (lambda log: log.record_completed(delivery(), sent(1), ["y"]), WorkflowEvent.executor_completed("node", [1, "y"])),
    (lambda log: log.record_failed(delivery(), DETAILS), WorkflowEvent.executor_failed("node", DETAILS)),
    (lambda log: log.status(WorkflowRunState.IDLE), WorkflowEvent.status(WorkflowRunState.IDLE)),
    (lambda log: log.append(WorkflowEvent.warning("w")), WorkflowEvent.warning("w")),
    (lambda log: log.append(WorkflowEvent("output", 0, executor_id="a")), WorkflowEvent("output", 0, executor_id="a")),
]


@given(st.lists(st.integers(0, len(ENTRIES) - 1)), st.sets(st.integers(0, 20)))
def test_the_log_reads_the_same_however_and_whenever_it_is_read(chosen, reads):
    """Plain and observed, read at once or bit by bit: the same events, each one the same object ever after."""
    plain, observed, bit_by_bit = EventLog(), ObservedEventLog("run", TickingClock()), EventLog()
    taken: list[WorkflowEvent[Any]] = []
    for place, number in enumerate(chosen):
        for log in (plain, observed, bit_by_bit):
            ENTRIES[number][0](log)
        if place in reads:
            taken += bit_by_bit.take()
            assert not bit_by_bit.has_unread
    taken += bit_by_bit.take()
    expected = [facts(ENTRIES[number][1]) for number in chosen]
    assert [facts(e) for e in plain.events()] == expected
    assert [facts(e) for e in observed.events()] == expected
    assert [facts(e) for e in taken] == expected
    assert all(a is b for a, b in zip(taken, bit_by_bit.events(), strict=True))
    assert len(plain) == len(observed) == len(bit_by_bit) == len(chosen)


@pytest.mark.parametrize("observed", [False, True])
def test_an_input_is_copied_when_its_handler_starts(observed):
    log = ObservedEventLog("run", TickingClock()) if observed else EventLog()
    data = [1]
    log.record_invoked(delivery(data))
    data.append(2)
    assert log.events()[0].data == [1]


# ---- observed runs -------------------------------------------------------------------------------


class Split(Executor):
    @handler
    async def run(self, text: str, ctx: WorkflowContext[str]) -> None:
        ctx.set_state("text", text)
        await ctx.send_message(text)
        await ctx.send_message(text * 2)


class Side(Executor):
    """Takes some hops on the loop, then passes its input on."""

    def __init__(self, key, hops):
        super().__init__(key)
        self.hops = hops

    @handler
    async def run(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        for _ in range(self.hops):
            await asyncio.sleep(0)
        await ctx.yield_output(f"{self.id} {text}")
        await ctx.send_message(text)


class Ask(Executor):
    @handler
    async def run(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        if not ctx.has_state("asked"):
            ctx.set_state("asked", True)
            await ctx.request_info(text, str)

    @response_handler
    async def on_answer(self, asked: str, answer: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(answer)


def graph(hops=(2, 0), **settings):
    """Split, two sides at once that get two messages each, and one that asks."""
    split, ask = Split("split"), Ask("ask")
    sides = [Side("left", hops[0]), Side("right", hops[1])]
    builder = WorkflowBuilder(name="observed", start_executor=split, **settings)
    return builder.add_fan_out_edges(split, sides).fan_in(sides, ask).build()


def options(**given):
    return RunOptions(observe=True, clock=TickingClock(), ids=CountingIds(), **given)


async def observed(workflow, message="x", **given):
    stream = workflow.run(message, stream=True, options=options(), **given)
    return [e async for e in stream]


async def test_a_plain_run_has_no_stamps_and_no_observation_events():
    events = [e async for e in graph(checkpoint_storage=InMemoryCheckpointStorage()).run("x", stream=True)]
    assert {(e.seq, e.run_id, e.superstep, e.time_ns, e.task_id, e.order, e.duration_s) for e in events} == {
        (None,) * 7
    }
    assert not {"checkpoint_saved", "state_updated", "graph_routed", "message_dropped", "log"} & {
        e.type for e in events
    }


async def test_every_event_of_an_observed_run_has_its_place_and_time():
    events = await observed(graph())
    assert [e.seq for e in events] == list(range(1, len(events) + 1))
    assert {e.run_id for e in events} == {"run-1"}
    times: list[Any] = [e.time_ns for e in events]
    assert times == sorted(set(times))
    steps: list[Any] = [e.superstep for e in events]
    assert steps == sorted(steps)
    assert {e.superstep for e in events if e.source_id == "split"} == {0}
    assert {e.superstep for e in events if e.source_id in ("left", "right")} == {1}
    assert {e.superstep for e in events if e.source_id == "ask"} == {2}
    assert all(e.superstep == e.iteration for e in events if e.iteration is not None)


async def test_executor_events_name_their_delivery_by_its_place_in_the_plan():
    events = await observed(graph())
    tasks = {(e.order, e.task_id) for e in events if e.superstep == 1 and e.source_id in ("left", "right")}
    assert tasks == {(0, "1:left:0"), (1, "1:right:0"), (2, "1:left:1"), (3, "1:right:1")}
    of_one = [e.type for e in events if e.task_id == "1:left:1"]
    assert of_one == ["executor_invoked", "output", "executor_completed"]
    unplanned = {e.type for e in events if e.order is None}
    assert unplanned == {"started", "status", "superstep_started", "superstep_completed", "state_updated"}
    assert {e.type for e in events if e.task_id is None} == unplanned


async def test_what_takes_time_says_how_long_it_took():
    """The clock for durations ticks once per reading, so a duration counts the readings in between."""
    events = await observed(graph())
    timed = {e.type for e in events if e.duration_s is not None}
    assert timed == {"executor_completed", "superstep_completed", "status"}
    assert [e.duration_s is None for e in events if e.type == "status"] == [True, True, False]
    assert all(e.duration_s is not None for e in events if e.type in ("executor_completed", "superstep_completed"))
    (split,) = [e for e in events if e.type == "executor_completed" and e.source_id == "split"]
    assert split.duration_s == pytest.approx(0.001)
    final: Any = events[-1].duration_s
    assert final > max(e.duration_s or 0 for e in events[:-1])


async def test_within_a_superstep_everything_has_its_place():
    events = await observed(graph(checkpoint_storage=InMemoryCheckpointStorage()))
    ranks = {"superstep_started": 0, "state_updated": 2, "checkpoint_saved": 3, "superstep_completed": 4, "status": 5}
    for step, group in itertools.groupby(events, key=lambda e: e.superstep):
        kinds = [e for e in group if e.type != "started"]
        if step == 0:
            kinds = kinds[1:]  # the first status stands before the start executor
        middle = [
            e for e in kinds if not (e.type == "status" and e.state is not WorkflowRunState.IDLE_WITH_PENDING_REQUESTS)
        ]
        placed = [ranks.get(e.type, 1) for e in middle]
        assert placed == sorted(placed), [e.type for e in middle]
    assert [e.data.iteration for e in events if e.type == "checkpoint_saved"] == [0, 1, 2]


async def test_changes_of_shared_state_are_reported_with_their_writers():
    events = await observed(graph())
    changes = [e.data for e in events if e.type == "state_updated"]
    assert [list(c) for c in changes] == [["text"], ["asked"]]
    written = json.loads(json.dumps([e.to_json_dict()["data"] for e in events if e.type == "state_updated"]))
    assert written == [
        {"text": {"old": "absent", "new": "x", "writers": ["split"]}},
        {"asked": {"old": "absent", "new": True, "writers": ["ask"]}},
    ]


async def test_plain_and_observed_runs_differ_in_observation_events_and_stamps_alone():
    plain = [e async for e in graph().run("x", stream=True, options=RunOptions(ids=CountingIds()))]
    seen = [e for e in await observed(graph()) if e.type != "state_updated"]
    assert [facts(e) for e in seen] == [facts(e) for e in plain]


@pytest.mark.parametrize("resumed", [False, True], ids=["continued", "resumed"])
async def test_a_continuation_begins_at_the_superstep_where_the_run_before_ended(resumed):
    storage = InMemoryCheckpointStorage()
    workflow = graph(checkpoint_storage=storage)
    (last, *_) = reversed((await workflow.run("x", options=options())).checkpoints)
    given: dict[str, Any] = {"checkpoint_id": last.checkpoint_id} if resumed else {}
    if resumed:
        workflow = graph(checkpoint_storage=storage)
    stream = workflow.run(responses={"request-1": "yes"}, stream=True, options=options(), **given)
    events = [e async for e in stream]
    assert [e.superstep for e in events if e.type in ("started", "status")] == ([0, 0, 3] if resumed else [2, 2, 3])
    assert {e.superstep for e in events if e.source_id == "ask" or e.iteration} == {3}
    assert [e.superstep for e in events if e.type == "checkpoint_saved"] == ([3] if resumed else [2, 3])


@pytest.mark.parametrize("observed", [False, True])
@given(st.lists(st.sampled_from(["event", "brief", "take"]), max_size=12), st.integers(0, 12))
def test_the_events_from_a_number_on_are_the_end_of_all(observed, writes, number):
    log = ObservedEventLog("run", TickingClock()) if observed else EventLog()
    for write in writes:
        if write == "take":
            log.take()
        elif write == "brief":
            log.record_invoked(delivery("in"))
        else:
            log.status(WorkflowRunState.IDLE)
    assert [facts(event) for event in log.events_from(number)] == [facts(event) for event in log.events()[number:]]
    assert len(log) == len(log.events())

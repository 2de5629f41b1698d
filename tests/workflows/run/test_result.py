import copy
import operator
import pickle
from typing import Any

import pytest

from agentbench._clock import CountingIds, TickingClock
from agentbench.messages.update import AgentResponseUpdate
from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.engine.event_log import EventLog
from agentbench.workflows.events.events import WorkflowEvent, WorkflowRunState
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.function_executor import executor
from agentbench.workflows.executors.options import RunOptions
from agentbench.workflows.run.result import WorkflowRunResult
from tests.parts.errors import raises

IDLE = WorkflowEvent.status(WorkflowRunState.IDLE)


def finished_log():
    """A log with every kind of record, closed; its events have one identity, so that lists of them can be compared."""
    log = EventLog()
    log.append(WorkflowEvent.started())
    log.status(WorkflowRunState.IN_PROGRESS)
    log.superstep_started(1)
    log.append(WorkflowEvent("output", 0, executor_id="a"))
    log.append(WorkflowEvent("intermediate", "half", executor_id="a"))
    log.append(WorkflowEvent.request_info("r", "a", "question", str))
    log.append(WorkflowEvent("output", None, executor_id="b"))
    log.superstep_completed(1, None)
    log.status(WorkflowRunState.IDLE)
    log.take()
    return log


def fresh_and_plain():
    """A result that nobody has read yet, and the plain list of what it holds."""
    log = finished_log()
    plain = [e for e in log.events() if e.type not in ("started", "status")]
    return WorkflowRunResult.from_log(log), plain


@executor
async def shout(text: str, ctx: WorkflowContext[str, str]):
    await ctx.yield_output(text.upper())


def shouting():
    return WorkflowBuilder(name="w", start_executor=shout).build()


# ---- built by hand -------------------------------------------------------------------------------


def test_a_result_is_a_list_of_events():
    events = [WorkflowEvent("output", 1), WorkflowEvent.warning("w")]
    result = WorkflowRunResult(events)
    assert isinstance(result, list)
    assert result == events


def test_outputs_are_the_data_of_output_events_falsy_ones_too():
    falsy: list[Any] = [0, "", None, []]
    result = WorkflowRunResult([WorkflowEvent("output", d) for d in falsy] + [WorkflowEvent("other", 1)])
    assert result.outputs == result.get_outputs() == falsy


def test_intermediate_outputs_include_the_legacy_type():
    result = WorkflowRunResult([WorkflowEvent("intermediate", 1), WorkflowEvent("output", 2), WorkflowEvent("data", 3)])
    assert result.intermediate_outputs == result.get_intermediate_outputs() == [1, 3]


def test_requests_are_found_in_order():
    asked = [WorkflowEvent.request_info(f"R{i}", "a", i, str) for i in range(2)]
    assert WorkflowRunResult([asked[0], WorkflowEvent.warning("w"), asked[1]]).get_request_info_events() == asked


def test_status_events_stand_apart_and_tell_the_final_state():
    working = WorkflowEvent.status(WorkflowRunState.IN_PROGRESS)
    result = WorkflowRunResult([], [working, IDLE])
    assert result == []
    assert result.status_timeline() == [working, IDLE]
    assert result.final_state is result.get_final_state() is WorkflowRunState.IDLE


def test_a_result_without_status_has_no_final_state():
    with raises(RuntimeError, "status"):
        WorkflowRunResult([WorkflowEvent("output", 1)]).get_final_state()


def test_a_result_prints_its_state_and_outputs():
    assert (
        repr(WorkflowRunResult([WorkflowEvent("output", 1)], [IDLE]))
        == "WorkflowRunResult(IDLE, 1 events, outputs=[1])"
    )
    assert repr(WorkflowRunResult()) == "WorkflowRunResult(no status, 0 events, outputs=[])"


def test_a_result_prints_the_streamed_answers_of_two_agents_as_two_answers():
    pieces = [("a", "It "), ("b", "Good "), ("a", "rains."), ("b", "news.")]
    updates = [AgentResponseUpdate(text=text, agent_id=agent) for agent, text in pieces]
    events = [WorkflowEvent("output", each, executor_id=each.agent_id) for each in updates]
    text = repr(WorkflowRunResult(events, [IDLE]))
    assert "It rains." in text
    assert "Good news." in text
    assert "Update" not in text


# ---- of a run ------------------------------------------------------------------------------------


async def test_the_result_of_a_run_holds_everything_but_started_and_status():
    result = await shouting().run("a")
    assert [e.type for e in result] == [
        "executor_invoked",
        "output",
        "executor_completed",
        "superstep_started",
        "superstep_completed",
    ]
    assert len(result) == 5


async def test_status_events_are_in_the_list_on_request():
    result = await shouting().run("a", include_status_events=True)
    assert [e.state for e in result if e.type == "status"] == [WorkflowRunState.IN_PROGRESS, WorkflowRunState.IDLE]
    assert [e for e in result if e.type == "status"] == result.status_timeline()
    assert "started" not in {e.type for e in result}


READINGS = {
    "len": len,
    "bool": bool,
    "iterate": lambda r: list(iter(r)),
    "list": list,
    "reversed": lambda r: list(reversed(r)),
    "slice": lambda r: r[1:3],
    "star": lambda r: [*r],
    "contains": lambda r: r[1] in r,
    "count": lambda r: r.count(r[1]),
    "index": lambda r: r.index(r[1]),
    "copy": lambda r: r.copy(),
    "equal": lambda r: r == list(r),
    "plus": lambda r: r + [1],  # noqa: RUF005 - the operator is what is tested
    "plus on the right": lambda r: [1] + r,  # noqa: RUF005 - as above
    "times": lambda r: r * 2,
    "extend another": lambda r: extended([1], r),
    "add into another": lambda r: operator.iadd([1], r),
    "into a slice of another": lambda r: spliced([1, 2], r),
    "zip": lambda r: list(zip(r, r, strict=True)),
    "shallow copy": lambda r: list(copy.copy(r)),
    "match": lambda r: matched(r),
}


def extended(target, more):
    target.extend(more)
    return target


def spliced(target, more):
    target[1:1] = more
    return target


def matched(value):
    match value:
        case [first, *_]:
            return first
        case _:
            return None


@pytest.mark.parametrize("reading", READINGS.values(), ids=READINGS)
def test_reading_a_fresh_result_is_reading_the_list_of_its_events(reading):
    fresh, plain = fresh_and_plain()
    assert reading(fresh) == reading(plain)


def assigned(r):
    r[0] = "x"


def deleted_slice(r):
    del r[1:]


CHANGES = {
    "append": lambda r: r.append("x"),
    "pop": lambda r: r.pop(),
    "delete slice": deleted_slice,
    "assign": assigned,
    "add in place": lambda r: operator.iadd(r, ["x"]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changing_a_fresh_result_is_changing_the_list_of_its_events(change):
    fresh, plain = fresh_and_plain()
    assert change(fresh) == change(plain)
    assert list(fresh) == plain


def test_no_way_to_read_or_change_a_list_is_forgotten():
    overridden = set(dir(type(WorkflowRunResult.from_log(EventLog()))))
    inherited = {
        name
        for name in vars(list)
        if getattr(type(WorkflowRunResult.from_log(EventLog())), name) is vars(list)[name] or name not in overridden
    }
    # These neither look into the list nor change it.
    assert inherited <= {
        "__class_getitem__",
        "__new__",
        "__init__",
        "__getattribute__",
        "__doc__",
        "__hash__",
        "__sizeof__",
    }


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))])
async def test_a_fresh_result_can_be_copied_and_pickled(copied):
    options = RunOptions(observe=True, clock=TickingClock(), ids=CountingIds())
    result = await shouting().run("a", options=options)
    twin = copied(result)
    assert type(twin) is WorkflowRunResult
    assert [e.to_json_dict() for e in twin] == [e.to_json_dict() for e in result]
    assert twin.final_state is WorkflowRunState.IDLE
    assert twin.outputs == ["A"]


async def test_what_a_result_of_a_handle_says_does_not_change_while_its_run_goes_on():
    run = shouting().start("a")
    first = await run.result()
    await run.try_send_message("b")
    second = await run.result()
    assert first.outputs == ["A"]
    assert [e.data for e in first if e.type == "output"] == ["A"]
    assert second.outputs == ["A", "B"]

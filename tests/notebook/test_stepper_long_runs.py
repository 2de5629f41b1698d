"""Long runs in a stepper: what a superstep costs does not grow with those before it."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench import WorkflowBuilder, WorkflowContext, WorkflowRun, executor
from agentbench.notebook import Stepper, stepper


@executor(id="down")
async def down(left: int, ctx: WorkflowContext[int, str]) -> None:
    if left:
        await ctx.send_message(left - 1)
    else:
        await ctx.yield_output("zero")


@executor(id="on")
async def on(left: int, ctx: WorkflowContext[int]) -> None:
    await ctx.send_message(left)


def counting(start: int) -> Stepper:
    flow = WorkflowBuilder(start_executor=down, max_iterations=10_000).add_edge(down, on).add_edge(on, down).build()
    return stepper(flow, start)


def test_a_superstep_does_not_copy_the_events_of_those_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    panel = counting(5)
    reads = 0
    whole: Any = WorkflowRun.events

    def read(run: WorkflowRun) -> object:
        nonlocal reads
        reads += 1
        return whole.fget(run)

    monkeypatch.setattr(WorkflowRun, "events", property(read))
    panel.step(3)
    panel.run()
    assert (panel.status, panel.superstep, reads) == ("done", 10, 0)
    panel.close()


def test_the_stops_of_the_scrubber_are_made_once() -> None:
    panel = counting(3)
    panel.step(3)
    before = panel._screen.state.stops
    panel.run()
    after = panel._screen.state.stops
    assert [label for label, _ in after] == [f"superstep {number}" for number in range(7)]
    assert all(old is new for old, new in zip(before, after[:3], strict=True))
    panel.close()


def test_each_report_holds_the_events_of_its_own_superstep() -> None:
    panel = counting(2)
    panel.run()
    assert [event for report in panel.reports for event in report.events] == panel.handle.events
    assert [report.superstep for report in panel.reports] == [0, 1, 2, 3, 4]
    panel.close()

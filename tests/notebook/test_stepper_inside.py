"""Stepping inside a sub-workflow: a person sees each of its supersteps before the one around it is over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agentbench import WorkflowBuilder, WorkflowContext, WorkflowExecutor, executor
from agentbench.notebook import stepper


@executor(id="draft")
async def draft(text: str, ctx: WorkflowContext[str]) -> None:
    await ctx.send_message(f"{text}!")


@executor(id="check")
async def check(text: str, ctx: WorkflowContext[str, str]) -> None:
    await ctx.yield_output(f"{text}?")


@executor(id="publish")
async def publish(text: str, ctx: WorkflowContext[str, str]) -> None:
    await ctx.yield_output(f"published {text}")


def office() -> Any:
    inner = WorkflowBuilder(name="desk", start_executor=draft).add_edge(draft, check).build()
    desk = WorkflowExecutor(inner, "desk")
    return WorkflowBuilder(name="office", start_executor=desk).add_edge(desk, publish).build()


@pytest.fixture
def panel() -> Iterator[Any]:
    made = stepper(office(), "rain")
    yield made
    made.close()


def screen(panel: Any) -> Any:
    return panel._screen.state


def test_a_step_inside_pauses_amid_the_superstep_around(panel):
    report = panel.step(inside=True)
    assert panel.status == "paused"
    assert str(report.pause_reason) == "inside desk, after its superstep 0"
    assert "inside desk, after its superstep 0" in panel.text
    states = screen(panel).states
    assert (states["desk"], states["desk/draft"]) == ("running", "done")
    assert states.get("desk/check", "idle") in ("idle", "queued")
    assert panel.reports == []


def test_the_superstep_around_is_one_however_it_was_stepped(panel):
    while panel.status != "done":
        panel.step(inside=True)
    plain: Any = stepper(office(), "rain")
    plain.run()
    assert panel.result.get_outputs() == plain.result.get_outputs() == ["published rain!?"]
    assert [report.superstep for report in panel.reports] == [0, 1]
    types = [[[event.type for event in report.events] for report in each.reports] for each in (panel, plain)]
    assert types[0] == types[1]
    plain.close()


def test_step_and_run_go_on_from_inside(panel):
    panel.step(inside=True)
    report = panel.step()
    assert report.pause_reason is None
    assert report.superstep == 0
    assert panel.run() == "done"


def test_stop_ends_a_run_that_waits_inside(panel):
    panel.step(inside=True)
    panel.stop()
    assert panel.status == "cancelled"


@executor(id="first")
async def first(text: str, ctx: WorkflowContext[str]) -> None:
    await ctx.send_message(text)


def test_a_branch_leaves_the_inside():
    inner = WorkflowBuilder(start_executor=draft).add_edge(draft, check).build()
    desk = WorkflowExecutor(inner, "desk")
    workflow = WorkflowBuilder(start_executor=first).add_edge(first, desk).add_edge(desk, publish).build()
    panel: Any = stepper(workflow, "rain")
    panel.step()
    panel.step(inside=True)
    old = panel.handle
    panel.branch()
    assert panel.run() == "done"
    assert panel.result.get_outputs() == ["published rain!?"]
    assert str(old.status) == "CANCELLED"
    assert [report.superstep for report in panel.reports][-2:] == [1, 2]
    panel.close()


def test_only_workflows_with_sub_workflows_offer_it(panel):
    assert {each.name: each.enabled for each in screen(panel).run_menu}["step_inside"]
    flat = stepper(WorkflowBuilder(start_executor=check).build(), "rain")
    assert not {each.name: each.enabled for each in screen(flat).run_menu}["step_inside"]
    flat.close()

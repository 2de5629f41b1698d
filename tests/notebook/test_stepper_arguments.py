"""What a stepper is given by code: what makes no sense is refused at the call, with what was expected."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agentbench import (
    Executor,
    InMemoryCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    WorkflowRun,
    executor,
    handler,
    response_handler,
)
from agentbench.exceptions import StepperStateError
from agentbench.notebook import Stepper, StepperStatus, stepper
from tests.parts.errors import raises


class Ask(Executor):
    @handler
    async def ask(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.request_info(text, bool)

    @response_handler
    async def answered(self, asked: str, ok: bool, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(asked if ok else "no")


def asking() -> Workflow:
    return WorkflowBuilder(start_executor=Ask(id="ask"), name="asking").build()


@pytest.fixture
def panel() -> Iterator[Stepper]:
    made = stepper(asking(), "Publish?")
    yield made
    made.close()


NONSENSE: dict[str, Callable[[Stepper], Any]] = {
    "half a step": lambda panel: panel.step(2.5),  # type: ignore[arg-type]
    "a step that is true": lambda panel: panel.step(True),
    "steps in words": lambda panel: panel.step("2"),  # type: ignore[arg-type]
    "no step back": lambda panel: panel.back(0),
    "back to the front": lambda panel: panel.back(-1),
    "no step forward": lambda panel: panel.forward(0),
    "until before the beginning": lambda panel: panel.run(until=-3),
    "until a thing": lambda panel: panel.run(until=object()),  # type: ignore[arg-type]
    "until half a superstep": lambda panel: panel.run(until=1.5),  # type: ignore[arg-type]
    "until true": lambda panel: panel.run(until=True),
    "no supersteps at most": lambda _: stepper(asking(), "x", max_supersteps=0),
    "a request that is not": lambda panel: panel.respond("zz", True),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_what_makes_no_sense_is_refused_and_nothing_happens(panel: Stepper, name: str) -> None:
    with pytest.raises((TypeError, ValueError), match=r"[Ee]xpected|There is no request"):
        NONSENSE[name](panel)
    assert (panel.status, panel.superstep) == ("ready", None)


def test_a_stepper_that_waits_says_how_it_is_answered(panel: Stepper) -> None:
    panel.run()
    with raises(StepperStateError, "respond(request_id, answer), stop()"):
        panel.run()


# --- what it says by code ---------------------------------------------------------------------------------------------


class Many(Executor):
    """Asks one question for each letter, or fails without one."""

    @handler
    async def ask(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        if not text:
            raise ValueError("nothing to ask")
        for letter in text:
            await ctx.request_info(f"Is it {letter}?", bool)

    @response_handler
    async def answered(self, asked: str, ok: bool, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(asked if ok else "no")


def many(text: str, **more: Any) -> Stepper:
    return stepper(WorkflowBuilder(start_executor=Many(id="many"), name="many").build(), text, **more)


def test_its_text_holds_the_questions_but_not_all_of_very_many() -> None:
    panel = many("abc" * 9)
    panel.run()
    lines = [line for line in panel.text.splitlines() if line.startswith("‖")]
    assert len(lines) == 21
    assert lines[0] == f"‖ many asks Is it a?; answer {panel.pending[0].request_id}"
    assert lines[-1] == "‖ and 7 more requests"
    panel.close()


def test_its_text_says_what_made_the_run_fail() -> None:
    panel = many("")
    panel.run()
    assert "many failed: ValueError: nothing to ask" in panel.text
    panel.close()


def test_its_text_says_why_a_condition_paused_the_run() -> None:
    panel = many("ab")
    panel.run(until=lambda report: report.superstep < 1 // 0)
    assert "until= raised ZeroDivisionError" in panel.text
    panel.close()


@pytest.mark.parametrize("documented", [Stepper, stepper, StepperStatus])
def test_the_examples_run_as_they_are_written(documented: object) -> None:
    found = re.search(r"^( *)Example:\n((?:\1 +\S.*\n|\n)+)", documented.__doc__ or "", re.MULTILINE)
    assert found is not None
    imports = """
        from agentbench import Approval, Executor, WorkflowBuilder, WorkflowContext, handler, response_handler
        from agentbench.notebook import StepperStatus, stepper
        from typing import Never
    """
    workflow = WorkflowBuilder(start_executor=Ask(id="review")).build()
    exec(
        compile(textwrap.dedent(imports) + textwrap.dedent(found[2]), "example", "exec"),
        {"__name__": "example", "workflow": workflow},
    )


def test_without_an_input_the_arguments_of_the_stepper_are_named():
    with raises(ValueError, "checkpoint="):
        stepper(asking(), storage=InMemoryCheckpointStorage())


# ---- stepper long runs


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
    assert [label for label, _ in after] == ["input", *(f"superstep {number}" for number in range(7))]
    assert all(old is new for old, new in zip(before, after[:4], strict=True))
    panel.close()


def test_each_report_holds_the_events_of_its_own_superstep() -> None:
    panel = counting(2)
    panel.run()
    assert [event for report in panel.reports for event in report.events] == panel.handle.events
    assert [report.superstep for report in panel.reports] == [0, 1, 2, 3, 4]
    panel.close()


# ---- stepper inside


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
def panel_of_stepper_inside() -> Iterator[Any]:
    made = stepper(office(), "rain")
    yield made
    made.close()


def screen(panel_of_stepper_inside: Any) -> Any:
    return panel_of_stepper_inside._screen.state


def test_a_step_inside_pauses_amid_the_superstep_around(panel_of_stepper_inside):
    report = panel_of_stepper_inside.step(inside=True)
    assert panel_of_stepper_inside.status == "paused"
    assert str(report.pause_reason) == "inside desk, after its superstep 0"
    assert "inside desk, after its superstep 0" in panel_of_stepper_inside.text
    states = screen(panel_of_stepper_inside).states
    assert (states["desk"], states["desk/draft"]) == ("running", "done")
    assert states.get("desk/check", "idle") in ("idle", "queued")
    assert panel_of_stepper_inside.reports == []


def test_the_superstep_around_is_one_however_it_was_stepped(panel_of_stepper_inside):
    while panel_of_stepper_inside.status != "done":
        panel_of_stepper_inside.step(inside=True)
    plain: Any = stepper(office(), "rain")
    plain.run()
    assert panel_of_stepper_inside.result.get_outputs() == plain.result.get_outputs() == ["published rain!?"]
    assert [report.superstep for report in panel_of_stepper_inside.reports] == [0, 1]
    types = [
        [[event.type for event in report.events] for report in each.reports]
        for each in (panel_of_stepper_inside, plain)
    ]
    assert types[0] == types[1]
    plain.close()


def test_step_and_run_go_on_from_inside(panel_of_stepper_inside):
    panel_of_stepper_inside.step(inside=True)
    report = panel_of_stepper_inside.step()
    assert report.pause_reason is None
    assert report.superstep == 0
    assert panel_of_stepper_inside.run() == "done"


def test_stop_ends_a_run_that_waits_inside(panel_of_stepper_inside):
    panel_of_stepper_inside.step(inside=True)
    panel_of_stepper_inside.stop()
    assert panel_of_stepper_inside.status == "cancelled"


@executor(id="first")
async def first(text: str, ctx: WorkflowContext[str]) -> None:
    await ctx.send_message(text)


def test_a_branch_leaves_the_inside():
    inner = WorkflowBuilder(start_executor=draft).add_edge(draft, check).build()
    desk = WorkflowExecutor(inner, "desk")
    workflow = WorkflowBuilder(start_executor=first).add_edge(first, desk).add_edge(desk, publish).build()
    panel_of_stepper_inside: Any = stepper(workflow, "rain")
    panel_of_stepper_inside.step()
    panel_of_stepper_inside.step(inside=True)
    old = panel_of_stepper_inside.handle
    panel_of_stepper_inside.branch()
    assert panel_of_stepper_inside.run() == "done"
    assert panel_of_stepper_inside.result.get_outputs() == ["published rain!?"]
    assert str(old.status) == "CANCELLED"
    assert [report.superstep for report in panel_of_stepper_inside.reports][-2:] == [1, 2]
    panel_of_stepper_inside.close()


def test_only_workflows_with_sub_workflows_offer_it(panel_of_stepper_inside):
    assert {each.name: each.enabled for each in screen(panel_of_stepper_inside).run_menu}["step_inside"]
    flat = stepper(WorkflowBuilder(start_executor=check).build(), "rain")
    assert not {each.name: each.enabled for each in screen(flat).run_menu}["step_inside"]
    flat.close()

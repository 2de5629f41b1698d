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

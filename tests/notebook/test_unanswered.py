"""A run that ends while a question inside one of its nodes is unanswered says so, wherever its status is shown."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

pytest.importorskip("anywidget")

from agentbench import (
    Executor,
    SubWorkflowRequestMessage,
    SubWorkflowResponseMessage,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    handler,
    response_handler,
)
from agentbench.notebook import progress, stepper
from agentbench.notebook.stepping.view.screen_state import screen_of
from agentbench.workflows.events.events import count_unanswered

WORDS = "finished, 1 question unanswered"


class Ask(Executor):
    @handler
    async def ask(self, text: str, ctx: WorkflowContext) -> None:
        await ctx.request_info(text, str)

    @response_handler
    async def on_answer(self, asked: str, answer: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(f"{asked} {answer}")


class Around(Executor):
    """Gets the question of the workflow inside, and answers it or not."""

    answers = False

    @handler
    async def on_output(self, text: str, ctx: WorkflowContext) -> None:
        """The output of the workflow inside comes here too."""

    @handler
    async def on_request(
        self, request: SubWorkflowRequestMessage, ctx: WorkflowContext[SubWorkflowResponseMessage]
    ) -> None:
        if self.answers:
            await ctx.send_message(request.create_response("yes"), target_id=request.executor_id)


def asking(*, answers: bool = False, depth: int = 1) -> Workflow:
    inner = WorkflowBuilder(start_executor=Ask("ask"), name="inner").build()
    for level in range(depth - 1):
        inner = WorkflowBuilder(start_executor=WorkflowExecutor(inner, f"level{level}"), name=f"level{level}").build()
    node, around = WorkflowExecutor(inner, "inside"), Around("around")
    around.answers = answers
    return WorkflowBuilder(start_executor=node, name="outer").add_edge(node, around).add_edge(around, node).build()


async def test_the_result_of_such_a_run_has_a_warning_that_names_the_node_and_the_remedy() -> None:
    result = await asking().run("Ready?")
    assert [text for text in result.warnings if "'inside'" in text and "propagate_request=True" in text]
    assert count_unanswered(result) == 1
    assert WORDS in result._repr_mimebundle_()["text/plain"]


async def test_a_question_that_was_answered_or_never_asked_is_no_matter() -> None:
    result = await asking(answers=True).run("Ready?")
    assert count_unanswered(result) == 0
    assert "unanswered" not in " ".join(result.warnings)
    assert "unanswered" not in result._repr_mimebundle_()["text/plain"]


async def test_a_question_two_workflows_inside_counts_once() -> None:
    assert count_unanswered(await asking(depth=3).run("Ready?")) == 1


async def test_the_card_and_the_bar_of_a_run_say_it() -> None:
    run = asking().start("Ready?")
    bar = progress(run)
    await bar
    assert WORDS in repr(bar)
    assert WORDS in run._repr_mimebundle_()["text/plain"]
    assert "ab_is_unanswered" in run._repr_mimebundle_()["text/html"]


def test_a_stepper_says_it_in_amber() -> None:
    panel: Any = stepper(asking(), "Ready?")
    panel.run()
    screen = screen_of(panel._session.model)
    assert (screen.header.sign, screen.header.status) == ("⚠", WORDS)
    assert screen.banner.tone == "warn"
    assert screen.banner.text.startswith("Finished, 1 question unanswered")
    assert WORDS in panel.text
    panel.close()


async def test_the_warning_survives_copies() -> None:
    [warning] = [event.data for event in await asking().run("Ready?") if count_unanswered([event])]
    for again in (copy.deepcopy(warning), pickle.loads(pickle.dumps(warning))):
        assert (again, again.n_requests) == (warning, 1)

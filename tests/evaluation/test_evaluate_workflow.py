"""Workflows evaluated: as a whole, agent by agent, from a result that is there."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentbench import (
    Agent,
    AgentExecutorResponse,
    Executor,
    Message,
    ScriptedChatClient,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    evaluate_workflow,
    evaluator,
    executor,
    handler,
    keyword_check,
    response_handler,
)
from agentbench.batch import run_many
from tests.evaluation.test_evaluate_agent import Service
from tests.parts.errors import raises


def agent(name: str, *answers: Any) -> Agent:
    return Agent(ScriptedChatClient([*answers], on_exhausted="repeat_last"), name=name)


def draft_and_review(*drafts: Any) -> Any:
    writer, reviewer = agent("writer", *drafts), agent("reviewer", "Good.")
    return WorkflowBuilder(start_executor=writer, name="paper").add_edge(writer, reviewer).build()


async def test_the_answer_and_each_agent_are_scored():
    service = Service()
    [local, seen] = await evaluate_workflow(
        workflow=draft_and_review("Rain falls.", "Snow falls."),
        queries=["Rain?", "Snow?"],
        expected_output=["r", "s"],
        evaluators=[keyword_check("good"), service],
    )
    assert (local.passed, local.run_id, local.provider) == (2, "Eval: paper (Local)", "Local")
    assert {name: (part.passed, part.failed) for name, part in local.sub_results.items()} == {
        "writer": (0, 2), "reviewer": (2, 0),
    }  # fmt: skip
    assert [each.input_text for each in local.items] == ["Rain?", "Snow?"]
    assert [each.output_text for each in local.sub_results["writer"].items] == ["Rain falls.", "Snow falls."]
    assert local.sub_results["reviewer"].items[1].input_text == "Snow?"  # the user's part of the conversation
    assert not local.all_passed
    assert seen.sub_results["writer"].passed == 2


async def test_expected_output_is_of_the_whole():
    seen: list[tuple[str, str]] = []

    @evaluator
    def note(response: str, expected_output: str) -> bool:
        seen.append((response, expected_output))
        return True

    await evaluate_workflow(
        workflow=draft_and_review("Rain."), queries="Rain?", expected_output="r", evaluators=note, num_repetitions=2
    )
    assert sorted(seen) == [("Good.", "")] * 2 + [("Good.", "r")] * 2 + [("Rain.", "")] * 2


async def test_every_query_has_a_workflow_of_its_own():
    workflow = draft_and_review("x")
    [results] = await evaluate_workflow(
        workflow=workflow, queries=["first", "second"], evaluators=keyword_check(), max_concurrency=2
    )
    assert [each.input_text for each in results.sub_results["writer"].items] == ["first", "second"]
    assert not (await workflow.run("third")).carried_over


async def test_a_result_that_is_there():
    workflow = draft_and_review("Rain.")
    result = await workflow.run("Rain?")
    [results] = await evaluate_workflow(workflow=workflow, workflow_result=result, evaluators=keyword_check("good"))
    assert (results.items[0].input_text, results.items[0].output_text) == ("Rain?", "Good.")
    assert [*results.sub_results] == ["writer", "reviewer"]
    [parts] = await evaluate_workflow(
        workflow=workflow, workflow_result=result, evaluators=keyword_check("rain"), include_overall=False
    )
    assert (parts.items, parts.result_counts) == ([], {"passed": 1, "failed": 1, "errored": 0})
    [whole] = await evaluate_workflow(
        workflow=workflow, workflow_result=result, evaluators=keyword_check("good"), include_per_agent=False
    )
    assert (whole.all_passed, whole.sub_results) == (True, {})


async def test_other_executors_are_part_of_the_whole_only():
    @executor(id="length")
    async def length(response: AgentExecutorResponse, ctx: WorkflowContext[None, int]) -> None:
        await ctx.yield_output(len(response.agent_response.text))

    writer = agent("writer", "four")
    workflow = WorkflowBuilder(start_executor=writer, output_from=[length]).add_edge(writer, length).build()
    [results] = await evaluate_workflow(workflow=workflow, queries="?", evaluators=keyword_check("4"))
    assert (results.items[0].output_text, [*results.sub_results]) == ("4", ["writer"])


async def test_a_sub_workflow_counts_by_its_answer():
    inner = WorkflowExecutor(draft_and_review("Rain."), id="paper", allow_direct_output=True)
    outer = WorkflowBuilder(start_executor=inner).build()
    [results] = await evaluate_workflow(
        workflow=outer, queries=[Message("user", ["Rain?"])], evaluators=keyword_check("good")
    )
    assert results.all_passed


async def test_a_run_without_output_or_with_an_error_is_an_error_of_its_item():
    @executor(id="picky")
    async def picky(text: str, ctx: WorkflowContext[None, str]) -> None:
        if text == "fail":
            raise ConnectionError("down")
        if text != "silent":
            await ctx.yield_output(text)

    workflow = WorkflowBuilder(start_executor=picky, name="picky").build()
    [results] = await evaluate_workflow(
        workflow=workflow, queries=["a", "fail", "silent"], evaluators=keyword_check("a")
    )
    assert [each.status for each in results.items] == ["pass", "error", "error"]
    assert results.items[1].error_code == "ConnectionError"
    assert results.items[2].error_code == "ValueError"
    assert "IDLE" in str(results.items[2].error_message)
    silent = await workflow.clone().run("silent")
    with raises(ValueError, "picky"):
        await evaluate_workflow(workflow=workflow, workflow_result=silent, evaluators=keyword_check("a"))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "nothing to evaluate"),
        ({"queries": "a", "expected_output": ["a", "b"]}, "expected_output"),
        ({"queries": "a", "num_repetitions": 0}, "num_repetitions"),
    ],
)
async def test_what_cannot_be_evaluated(arguments, text):
    with raises(ValueError, text):
        await evaluate_workflow(workflow=draft_and_review("x"), evaluators=keyword_check(), **arguments)


async def test_runs_that_are_done_are_not_run_again(tmp_path):
    workflow = draft_and_review("Rain.", "Snow.")
    calls = workflow.executors["writer"].agent.client.calls
    found = [
        await evaluate_workflow(
            workflow=workflow,
            queries=["Rain?", "Snow?"],
            evaluators=keyword_check("good"),
            into=tmp_path / "runs.db",
        )
        for _ in range(2)
    ]
    assert len(calls) == 2
    assert found[0][0].to_rows() == found[1][0].to_rows()
    assert [*found[1][0].sub_results] == ["writer", "reviewer"]
    for name, part in found[0][0].sub_results.items():
        assert part.to_rows() == found[1][0].sub_results[name].to_rows()


async def test_an_interrupted_run_begins_again_so_that_no_turn_is_missing(tmp_path):
    workflow = draft_and_review("Rain.")
    reviewer = workflow.executors["reviewer"].agent
    answer, is_asked = reviewer.run, asyncio.Event()

    async def hang(*args: Any, **options: Any) -> Any:
        is_asked.set()
        await asyncio.Event().wait()

    def evaluation() -> Any:
        return evaluate_workflow(
            workflow=workflow, queries="Rain?", evaluators=keyword_check("good"), into=tmp_path / "runs.db"
        )

    reviewer.run = hang
    running = asyncio.ensure_future(evaluation())
    await is_asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    reviewer.run = answer
    [results] = await evaluation()
    assert results.passed == 1
    assert {name: part.total for name, part in results.sub_results.items()} == {"writer": 1, "reviewer": 1}


class Picky(Executor):
    @handler
    async def begin(self, text: str, ctx: WorkflowContext[None, str]) -> None:
        if text == "fail":
            raise ConnectionError("down")
        if text != "silent":
            await ctx.yield_output(text)
        if text == "ask":
            await ctx.request_info("Really?", str)

    @response_handler
    async def go_on(self, request: str, answer: str, ctx: WorkflowContext[None, str]) -> None:
        await ctx.yield_output(answer)


async def test_the_rows_of_a_batch_are_scored_as_they_are():
    workflow = WorkflowBuilder(start_executor=Picky("picky"), name="picky").build()
    batch = await run_many(workflow, ["a", "b", "fail", "silent", "ask"], retry=0)
    [results] = await evaluate_workflow(
        batch=batch, expected_output=list("aaaaa"), evaluators=keyword_check("a"), include_per_agent=True
    )
    assert (results.run_id, results.sub_results) == ("Eval: picky", {})
    assert [each.status for each in results.items] == ["pass", "fail", "error", "error", "error"]
    assert [each.input_text for each in results.items] == ["a", "b", "fail", "silent", "ask"]
    assert [each.error_code for each in results.items[2:]] == ["ConnectionError", "ValueError", "BatchError"]
    assert results.items[2].error_message == "response: down"
    assert len(batch.waiting) == 1  # nothing was run


async def test_the_last_answer_in_a_batch_is_that_of_the_workflow():
    batch = await run_many(draft_and_review("Rain."), ["Rain?"])
    [results] = await evaluate_workflow(batch=batch, evaluators=keyword_check("good"))
    assert (results.items[0].output_text, results.passed) == ("Good.", 1)


async def test_a_run_that_asks_after_an_output_is_scored_by_the_output():
    workflow = WorkflowBuilder(start_executor=Picky("picky")).build()
    [results] = await evaluate_workflow(workflow=workflow, queries="ask", evaluators=keyword_check("ask"))
    assert results.all_passed


async def test_inputs_and_outputs_may_be_any_objects():
    class Point:
        def __init__(self, x: int) -> None:
            self.x = x

        def __str__(self) -> str:
            return f"at {self.x}"

    @executor(id="move")
    async def move(point: Point, ctx: WorkflowContext[None, Point]) -> None:
        await ctx.yield_output(Point(point.x + 1))

    workflow = WorkflowBuilder(start_executor=move).build()
    [results] = await evaluate_workflow(workflow=workflow, queries=[Point(1), Point(1)], evaluators=keyword_check())
    assert [(each.input_text, each.output_text) for each in results.items] == [("at 1", "at 2")] * 2

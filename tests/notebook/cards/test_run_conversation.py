"""`transcript` of a run of a workflow: who said what, in order."""

from __future__ import annotations

import itertools
from typing import Any, Never

import pytest

from agentbench import (
    Agent,
    AgentExecutor,
    AgentExecutorResponse,
    Executor,
    ScriptedChatClient,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    response_handler,
)
from agentbench.notebook import transcript
from agentbench.orchestrations import ConcurrentBuilder, GroupChatBuilder, SequentialBuilder


def agent(name: str, *texts: str) -> Agent:
    return Agent(ScriptedChatClient(list(texts) or [f"I am {name}."], on_exhausted="repeat_last"), name=name)


def lines(run: Any) -> list[tuple[str, str]]:
    return [(message.author_name or message.role, message.text) for message in transcript(run).messages]


class Review(Executor):
    @handler
    async def ask(self, draft: AgentExecutorResponse, ctx: WorkflowContext) -> None:
        await ctx.request_info(f"Print {draft.agent_response.text!r}?", bool)

    @response_handler
    async def decide(self, question: str, answer: bool, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output("printed" if answer else "dropped")


def reviewed() -> Workflow:
    writer = AgentExecutor(agent("writer", "A haiku."))
    return WorkflowBuilder(start_executor=writer).add_edge(writer, Review("review")).build()


CHAIN = [("user", "Go"), ("a", "I am a."), ("b", "I am b.")]


@pytest.mark.parametrize(
    ("builder", "stream"), list(itertools.product([SequentialBuilder, ConcurrentBuilder], [False, True]))
)
async def test_each_message_is_there_once_in_the_order_in_which_it_was_said(builder: Any, stream: bool):
    workflow = builder(participants=[agent("a"), agent("b")]).build()
    result = await workflow.run("Go", stream=True).get_final_response() if stream else await workflow.run("Go")
    assert lines(result) == CHAIN


async def test_the_same_words_twice_were_said_twice():
    builder = GroupChatBuilder(participants=[agent("a", "Yes."), agent("b")], selection_func=lambda state: "a")
    result = await builder.with_max_rounds(2).build().run("Go")
    assert [line for line in lines(result) if line[0] == "a"] == [("a", "Yes."), ("a", "Yes.")]


async def test_questions_to_people_and_their_answers_are_in_it():
    async with reviewed().start("Write.") as run:
        asked = await run.result()
        before = [("user", "Write."), ("writer", "A haiku."), ("review", "Print 'A haiku.'?")]
        assert lines(run) == lines(asked) == before
        await run.respond(run.pending_requests[0], True)
        await run.result()
        assert lines(run) == [*before, ("user", "True"), ("review", "printed")]


async def test_a_stepper_can_be_read_before_the_run_is_over():
    stepper = reviewed().stepper("Write.")
    await stepper.astep()
    assert lines(stepper)[:2] == [("user", "Write."), ("writer", "A haiku.")]
    stepper.close()

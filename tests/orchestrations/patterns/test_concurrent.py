"""All at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentbench import (
    AgentExecutorRequest,
    AgentExecutorResponse,
    AgentWorkflowBuilder,
    BaseChatClient,
    ChatResponse,
    Message,
    WorkflowContext,
    executor,
)
from agentbench.orchestrations import AgentRequestInfoResponse, ConcurrentBuilder
from tests.orchestrations.nodes import agent, asked
from tests.orchestrations.patterns.teams import replace_agent
from tests.orchestrations.patterns.test_all_patterns import Broken
from tests.parts.errors import raises


class Slow(BaseChatClient):
    async def _inner_get_response(self, *, messages: Any, **kwargs: Any) -> ChatResponse:
        await asyncio.sleep(0.05)
        return ChatResponse(messages=[Message("assistant", ["slow"])])


async def test_answers_come_in_the_order_of_participants_whoever_is_faster():
    workflow = ConcurrentBuilder(participants=[agent("a"), agent("b"), agent("c")]).build()
    replace_agent(workflow, "a", Slow())
    [response] = (await workflow.run("hi")).outputs
    assert [message.text for message in response.messages] == ["slow", "B", "C"]
    assert [message.author_name for message in response.messages] == ["a", "b", "c"]


async def test_a_request_may_be_the_input():
    a = agent("a")
    await ConcurrentBuilder(participants=[a, agent("b")]).build().run(AgentExecutorRequest([Message("user", ["hi"])]))
    assert asked(a) == [["hi"]]


async def test_one_participant_will_do():
    [response] = (await ConcurrentBuilder(participants=[agent("a")]).build().run("hi")).outputs
    assert response.text == "A"


@pytest.mark.parametrize("count", [1, 3])
async def test_aggregators_of_your_own(count):
    def joined(results: list[AgentExecutorResponse]) -> str:
        return "+".join(result.agent_response.text for result in results)

    async def yielding(results: list[AgentExecutorResponse], ctx: WorkflowContext[Any, int]) -> None:
        await ctx.yield_output(len(results))

    @executor(id="best")
    async def best(results: list[AgentExecutorResponse], ctx: WorkflowContext[None, str]) -> None:
        await ctx.yield_output(results[-1].executor_id)

    names = "abc"[:count]
    for aggregator, output, name in (
        (joined, "+".join(names.upper()), "joined"),
        (yielding, count, "yielding"),
        (lambda results: None, None, "aggregator"),
        (best, names[-1], "best"),
    ):
        builder = ConcurrentBuilder(participants=[agent(each) for each in names]).with_aggregator(aggregator)
        workflow = builder.build()
        assert name in workflow.executors
        assert (await workflow.run("hi")).outputs == ([] if output is None else [output])
        with raises(ValueError, "already"):
            builder.with_aggregator(joined)
    with raises(TypeError, "aggregator"):
        ConcurrentBuilder(participants=[agent("a")]).with_aggregator("join")  # type: ignore[arg-type]


async def test_a_failure_may_be_an_answer():
    workflow = ConcurrentBuilder(participants=[agent("a"), agent("b")], on_error="collect").build()
    replace_agent(workflow, "b", Broken())
    [response] = (await workflow.run("hi")).outputs
    good, bad = response.messages
    assert good.text == "A"
    assert (bad.contents[0].type, bad.author_name) == ("error", "b")
    assert "the model is away" in str(bad.contents[0].message)
    with raises(ValueError, "'ignore'", "on_error"):
        ConcurrentBuilder(participants=[agent("a")], on_error="ignore")  # type: ignore[arg-type]


async def test_reviews_are_answered_one_by_one_or_together():
    workflow = ConcurrentBuilder(participants=[agent("a"), agent("b")]).with_request_info().build()
    first, second = (await workflow.run("hi")).get_request_info_events()
    result = await workflow.run(responses={second.request_id: AgentRequestInfoResponse.approve()})
    assert result.outputs == []
    [response] = (await workflow.run(responses={first.request_id: AgentRequestInfoResponse.approve()})).outputs
    assert [message.text for message in response.messages] == ["A", "B"]


async def test_somebody_who_says_nothing_leaves_a_warning():
    @executor(id="silent")
    async def silent(request: AgentExecutorRequest, ctx: WorkflowContext[AgentExecutorResponse]) -> None:
        return

    result = await ConcurrentBuilder(participants=[agent("a"), silent]).build().run("hi")
    assert result.outputs == []
    assert any("silent" in warning for warning in result.warnings)


async def test_in_one_call():
    workflow = AgentWorkflowBuilder.build_concurrent(agent("a"), agent("b"), aggregator=len, name="two")
    assert ((await workflow.run("hi")).outputs, workflow.name) == ([2], "two")
    [response] = (await AgentWorkflowBuilder.build_concurrent([agent("a"), agent("b")]).run("hi")).outputs
    assert len(response.messages) == 2

"""Agents one after the other."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench import (
    AgentExecutor,
    AgentExecutorResponse,
    AgentHostOptions,
    AgentWorkflowBuilder,
    InMemoryCheckpointStorage,
    WorkflowContext,
    executor,
)
from agentbench.orchestrations import SequentialBuilder, build_sequential
from tests.orchestrations.nodes import agent, asked
from tests.parts.errors import raises


async def test_each_agent_goes_on_from_the_one_before_and_the_last_one_is_the_output():
    a, b, c = agent("a"), agent("b"), agent("c")
    storage = InMemoryCheckpointStorage()
    workflow = build_sequential(a, b, c, name="three", checkpoint_storage=storage)
    result = await workflow.run("hi")
    assert (asked(b), asked(c)) == ([["hi", "A"]], [["hi", "A", "B"]])
    assert [output.text for output in result.outputs] == ["C"]
    assert workflow.name == "three"
    assert await storage.get_latest(workflow_name="three")


async def test_one_list_one_agent_and_the_other_spelling_will_do():
    for workflow in (build_sequential([agent("a")]), AgentWorkflowBuilder.build_sequential(agent("a"))):
        assert [output.text for output in (await workflow.run("hi")).outputs] == ["A"]


async def test_agents_may_get_the_last_answer_alone():
    a, b, c = agent("a"), agent("b"), agent("c")
    await build_sequential(a, b, c, chain_only_agent_responses=True).run("hi")
    assert (asked(b), asked(c)) == ([["A"]], [["B"]])


async def test_answers_of_others_may_be_shown_as_those_of_a_user():
    a, b, c = agent("a"), agent("b"), agent("c")
    result = await build_sequential(a, b, c, reassign_other_agents_as_users=True, output_from="all").run("hi")
    assert c.client.asked[0].roles == ["user", "user", "user"]
    sent = [event.data[0] for event in result if event.type == "executor_completed"]
    assert [message.role for message in sent[-1].full_conversation] == ["user", "assistant", "assistant", "assistant"]


async def test_the_builder_and_the_function_make_the_same_workflow():
    def participants() -> list[object]:
        return [agent("a"), agent("b")]

    settings: dict[str, Any] = {"name": "two", "reassign_other_agents_as_users": True, "output_from": "a"}
    one, other = (
        build_sequential(participants(), **settings),
        SequentialBuilder(participants=participants(), **settings).build(),
    )
    assert one.graph_signature == other.graph_signature
    assert [o.text for o in (await one.run("hi")).outputs] == [o.text for o in (await other.run("hi")).outputs] == ["A"]


async def test_executors_may_stand_between_agents():
    @executor(id="shorten")
    async def shorten(response: AgentExecutorResponse, ctx: WorkflowContext[AgentExecutorResponse]) -> None:
        await ctx.send_message(response.with_text("short"))

    b = agent("b")
    await build_sequential(agent("a"), shorten, AgentExecutor(b)).run("hi")
    assert asked(b) == [["hi", "short"]]


@pytest.mark.parametrize(
    ("designation", "outputs", "intermediate"),
    [
        ({}, ["C"], []),
        ({"output_from": "all"}, ["A", "B", "C"], []),
        ({"output_from": ["a", "c"]}, ["A", "C"], []),
        ({"output_from": "a", "intermediate_output_from": "all_other"}, ["A"], ["B", "C"]),
        ({"intermediate_output_from": "all"}, [], ["A", "B", "C"]),
    ],
)
async def test_outputs_are_chosen_by_name(designation, outputs, intermediate):
    result = await build_sequential(agent("a"), agent("b"), agent("c"), **designation).run("hi")
    assert [output.text for output in result.outputs] == outputs
    assert [event.data.text for event in result if event.type == "intermediate"] == intermediate


async def test_outputs_are_chosen_by_agent():
    a, b = agent("a"), agent("b")
    assert [o.text for o in (await build_sequential(a, b, output_from=[a]).run("hi")).outputs] == ["A"]


@pytest.mark.parametrize("collect", [list, tuple, iter])
async def test_participants_may_come_in_one_collection(collect):
    workflow = build_sequential(collect([agent("a"), agent("b")]))
    assert [o.text for o in (await workflow.run("hi")).outputs] == ["B"]


def test_what_cannot_be_a_chain_is_refused():
    a = agent("a")
    for refused in ([], [a, a], [a, agent("a")]):
        with raises(ValueError, "participant"):
            build_sequential(*refused)
    with raises(ValueError, "'x'"):
        build_sequential(a, output_from=["x"])
    with raises(TypeError, "node"):
        build_sequential(a, 5)
    with raises(TypeError, "options"):
        build_sequential(a, options=AgentHostOptions(), chain_only_agent_responses=True)

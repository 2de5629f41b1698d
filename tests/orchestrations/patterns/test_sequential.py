"""One after the other."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench import (
    AgentExecutorResponse,
    AgentHostOptions,
    AgentWorkflowBuilder,
    InMemoryCheckpointStorage,
    Message,
    WorkflowContext,
    executor,
)
from agentbench.orchestrations import AgentRequestInfoResponse, SequentialBuilder, build_sequential
from tests.orchestrations.nodes import agent, asked
from tests.parts.errors import raises


async def test_each_hears_what_was_said_before_with_its_author():
    a, b, c = agent("a"), agent("b"), agent("c")
    workflow = SequentialBuilder(participants=[a, b, c], name="three").build()
    result = await workflow.run("hi")
    assert asked(c) == [["hi", "A", "B"]]
    assert [message.author_name for message in c.client.asked[0].messages] == [None, "a", "b"]
    assert [output.text for output in result.outputs] == ["C"]
    assert [*workflow.executors] == ["input-conversation", "a", "b", "c"]


async def test_a_turn_of_the_user_is_added_where_the_conversation_ends_with_an_assistant():
    a, b = agent("a"), agent("b")
    result = await SequentialBuilder(participants=[a, b], ensure_trailing_user_turn=True).build().run("hi")
    assert [message.role for message in a.client.asked[0].messages] == ["user"]
    assert [message.role for message in b.client.asked[0].messages] == ["user", "assistant", "user"]
    assert [output.text for output in result.outputs] == ["B"]


async def test_the_added_turn_is_not_part_of_what_the_next_agent_gets():
    agents = [agent("a"), agent("b"), agent("c")]
    await SequentialBuilder(participants=agents, ensure_trailing_user_turn=True).build().run("hi")
    assert [message.role for message in agents[2].client.asked[0].messages] == [
        "user",
        "assistant",
        "assistant",
        "user",
    ]


async def test_answers_alone():
    a, b, c = agent("a"), agent("b"), agent("c")
    await SequentialBuilder(participants=[a, b, c], chain_only_agent_responses=True).build().run("hi")
    assert (asked(b), asked(c)) == ([["A"]], [["B"]])


async def test_only_the_last_agent_is_streamed():
    builder = SequentialBuilder(participants=[agent("a"), agent("b")])
    streamed = await builder.build().run("hi", stream=True).get_final_response()
    assert "".join(update.text for update in streamed.outputs) == "B"


async def test_executors_in_the_middle_and_at_the_end():
    @executor(id="shorten")
    async def shorten(response: AgentExecutorResponse, ctx: WorkflowContext[list[Message]]) -> None:
        await ctx.send_message([*response.conversation[:1], Message("assistant", ["short"])])

    @executor(id="count")
    async def count(response: AgentExecutorResponse, ctx: WorkflowContext[None, int]) -> None:
        await ctx.yield_output(len(response.conversation))

    b = agent("b")
    result = await SequentialBuilder(participants=[agent("a"), shorten, b, count]).build().run("hi")
    assert (asked(b), result.outputs) == ([["hi", "short"]], [3])


async def test_a_revision_keeps_the_task_and_the_first_draft():
    a, b = agent("a", "first", "second"), agent("b")
    workflow = SequentialBuilder(participants=[a, b]).with_request_info(agents=[a]).build()
    [request] = (await workflow.run("task")).get_request_info_events()
    assert request.data.agent_response.text == "first"
    again = AgentRequestInfoResponse.from_messages([Message("user", ["Better!"])])
    [request] = (await workflow.run(responses={request.request_id: again})).get_request_info_events()
    await workflow.run(responses={request.request_id: AgentRequestInfoResponse.approve()})
    assert asked(a)[-1] == ["task", "first", "Better!"]
    assert asked(b) == [["task", "first", "Better!", "second"]]


async def test_a_draft_of_the_last_one_is_no_output_until_it_is_approved():
    storage = InMemoryCheckpointStorage()
    builder = SequentialBuilder(participants=[agent("a"), agent("b")], checkpoint_storage=storage).with_request_info(
        agents=["b"]
    )
    result = await builder.build().run("hi")
    assert (result.outputs, [output.text for output in result.intermediate_outputs]) == ([], ["B"])
    [request] = result.get_request_info_events()
    answers = {request.request_id: AgentRequestInfoResponse.approve()}
    later = builder.build()  # in another object, from the checkpoint
    resumed = await later.run(checkpoint_id=result.checkpoints[-1], checkpoint_storage=storage)
    assert [each.request_id for each in resumed.get_request_info_events()] == [request.request_id]
    assert [output.text for output in (await later.run(responses=answers)).outputs] == ["B"]


async def test_all_answers_are_reviewed_also_when_streamed():
    workflow = SequentialBuilder(participants=[agent("a"), agent("b")]).with_request_info().build()
    result = await workflow.run("hi", stream=True).get_final_response()
    for name in ("a", "b"):
        [request] = result.get_request_info_events()
        assert request.data.executor_id == name
        answers = {request.request_id: AgentRequestInfoResponse.approve()}
        result = await workflow.run(responses=answers, stream=True).get_final_response()
    assert "".join(update.text for update in result.outputs) == "B"


def test_who_cannot_take_part():
    a = agent("a")
    for participants, error, text in (
        ([], ValueError, "no participant"),
        ([a, a], ValueError, "twice"),
        ([a, agent("a")], ValueError, "Two participants have the name 'a'"),
        ([a, "b"], TypeError, "not a node"),
    ):
        with pytest.raises(error, match=text):
            SequentialBuilder(participants=participants)
    with raises(TypeError, "options"):
        build_sequential(a, options=AgentHostOptions(), chain_only_agent_responses=True)


async def test_participants_may_come_in_one_collection_and_an_output_may_be_named_by_its_agent():
    a = agent("a", *"AA")
    for workflow in (
        build_sequential(iter([a])),
        AgentWorkflowBuilder.build_sequential(a, agent("b"), output_from=[a]),
    ):
        assert [output.text for output in (await workflow.run("hi")).outputs] == ["A"]


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

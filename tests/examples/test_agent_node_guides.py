"""Programs of guides to agents as nodes, of both dialects, as they are written there but for the client."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench import (
    Agent,
    AgentExecutor,
    AgentExecutorRequest,
    AgentExecutorResponse,
    AgentResponse,
    AgentResponseUpdate,
    AgentWorkflowBuilder,
    AIAgentHostOptions,
    EchoChatClient,
    InProcessExecution,
    Message,
    TurnToken,
    WorkflowBuilder,
    WorkflowContext,
    bind_as_executor,
    executor,
)

client = EchoChatClient("")
writer_agent = client.as_agent(name="Writer", instructions="...")
reviewer_agent = client.as_agent(name="Reviewer", instructions="...")


def told(outputs: list[Any]) -> list[tuple[str | None, str]]:
    return [(output.messages[-1].author_name, output.text) for output in outputs]


@pytest.mark.parametrize(
    "build",
    [
        lambda: WorkflowBuilder(start_executor=writer_agent).add_edge(writer_agent, reviewer_agent).build(),
        lambda: WorkflowBuilder(writer_agent).add_edge(writer_agent, reviewer_agent).build(),
        lambda: AgentWorkflowBuilder.build_sequential([writer_agent, reviewer_agent], output_from="all"),
    ],
)
async def test_agents_are_wrapped_without_being_asked(build):
    result = await build().run("A haiku")
    assert told(result.get_outputs()) == [("Writer", "A haiku"), ("Reviewer", "A haiku")]


async def test_an_executor_that_someone_made_takes_a_request_and_streams_or_not():
    writer_executor = AgentExecutor(writer_agent, id="my-writer")
    reviewer_executor = AgentExecutor(reviewer_agent, id="my-reviewer")
    workflow = WorkflowBuilder(start_executor=writer_executor).add_edge(writer_executor, reviewer_executor).build()
    request = AgentExecutorRequest(
        messages=[Message("user", text="Hello, world!")],
        should_respond=True,
    )
    assert told((await workflow.run(request)).get_outputs())[0] == ("Writer", "Hello, world!")

    printed = ""
    events = workflow.run("Write a story about a cat.", stream=True)
    async for event in events:
        if event.type == "output" and isinstance(event.data, AgentResponseUpdate):
            printed += event.data.text
    assert printed == "Write a story about a cat." * 2

    result = await workflow.run("Write a story about a cat.")
    texts = [output.text for output in result.get_outputs() if isinstance(output, AgentResponse)]
    assert texts == ["Write a story about a cat."] * 2


async def test_two_executors_share_a_session():
    shared_session = writer_agent.create_session()
    writer_executor = AgentExecutor(writer_agent, session=shared_session)
    reviewer_executor = AgentExecutor(reviewer_agent, session=shared_session)
    assert writer_executor.session is reviewer_executor.session is shared_session


async def test_background_waits_for_the_prompt():
    orchestrator = Agent(client=client, name="orchestrator", instructions="Route requests.")
    workflow = WorkflowBuilder(start_executor=AgentExecutor(orchestrator)).build()
    background_request = AgentExecutorRequest(
        messages=[Message("user", ["Background: the user's name is Alice."])],
        should_respond=False,
    )
    prompt_request = AgentExecutorRequest(
        messages=[Message("user", ["What is my name?"])],
        should_respond=True,
    )
    assert (await workflow.run(background_request)).get_outputs() == []
    assert told((await workflow.run(prompt_request)).get_outputs()) == [("orchestrator", "What is my name?")]


async def test_a_transform_between_two_agents_keeps_the_conversation():
    @executor(
        id="summarizer",
        input=AgentExecutorResponse,
        output=AgentExecutorResponse,
    )
    async def summarize_response(
        response: AgentExecutorResponse,
        ctx: WorkflowContext[AgentExecutorResponse],
    ) -> None:
        short_text = response.agent_response.text[:5] + "..."
        await ctx.send_message(response.with_text(short_text))

    reviewer_exec_custom = AgentExecutor(
        reviewer_agent,
        context_mode="custom",
        context_filter=lambda msgs: [m for m in msgs if m.role == "user"],
    )
    workflow = (
        WorkflowBuilder(start_executor=writer_agent)
        .add_edge(writer_agent, summarize_response)
        .add_edge(summarize_response, reviewer_exec_custom)
        .build()
    )
    result = await workflow.run("A long haiku")
    assert told(result.get_outputs())[-1] == ("Reviewer", "A long haiku")
    sent = [event.data[0] for event in result if event.type == "executor_completed"]
    assert [message.text for message in sent[1].full_conversation] == ["A long haiku", "A lon..."]


async def test_a_writer_and_a_critic_in_a_chain():
    writer = Agent(client=client, name="writer", instructions="Write a short essay on the given topic.")
    critic = Agent(client=client, name="critic", instructions="Critique the essay and suggest improvements.")
    writer_exec = AgentExecutor(writer)
    critic_exec = AgentExecutor(critic, context_mode="full")
    workflow = (
        WorkflowBuilder(name="write_and_critique")
        .add_executor(writer_exec)
        .add_executor(critic_exec)
        .connect(writer_exec, critic_exec)
        .output_from(writer_exec)
        .output_from(critic_exec)
        .build()
    )
    result = await workflow.run("Write about the benefits of testing.")
    assert str(result.outputs[0]) == str(result.outputs[1]) == "Write about the benefits of testing."


async def test_a_bound_agent_runs_on_a_token_and_hands_over_to_a_plain_one():
    options = AIAgentHostOptions(
        emit_agent_update_events=True,
        emit_agent_response_events=True,
        reassign_other_agents_as_users=True,
        forward_incoming_messages=True,
    )
    writer_binding = bind_as_executor(writer_agent, options)
    workflow = WorkflowBuilder(writer_binding).add_edge(writer_binding, reviewer_agent).build()
    run = await InProcessExecution.run_streaming(workflow, "hello")
    assert await run.try_send_message(TurnToken(emit_events=True))
    outputs = [event async for event in run.watch_stream() if event.type == "output"]
    assert [(event.executor_id, type(event.data)) for event in outputs] == [
        ("Writer", AgentResponseUpdate),
        ("Writer", AgentResponse),
        ("Reviewer", AgentResponseUpdate),
    ]


async def test_a_chain_of_translators_needs_one_token():
    french, spanish, english = (client.as_agent(name=name) for name in ("French", "Spanish", "English"))
    workflow = WorkflowBuilder(french, agent_mode="turns").add_edge(french, spanish).add_edge(spanish, english).build()
    run = await InProcessExecution.run_streaming(workflow, "hello")
    await run.try_send_message(TurnToken(emit_events=True))
    authors = [event.executor_id async for event in run.watch_stream() if event.type == "output"]
    assert authors == ["French", "Spanish", "English"]

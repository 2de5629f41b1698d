"""Laws of chains of agents, whatever their length, their context modes and what their models say."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentbench import (
    Agent,
    AgentExecutor,
    AgentExecutorResponse,
    AgentHostOptions,
    InMemoryCheckpointStorage,
    Message,
    TurnToken,
    Workflow,
    WorkflowBuilder,
    WorkflowRunState,
)
from agentbench.orchestrations import build_sequential
from tests.agents.fake_clients import Model

ANSWER = st.text("ab ", min_size=1, max_size=6).map(str.strip).filter(bool)
CHAIN = st.lists(st.tuples(ANSWER, st.sampled_from(["full", "last_agent"])), min_size=1, max_size=4)
Plan = list[tuple[str, Any]]


def build(plan: Plan, storage: Any = None) -> Workflow:
    nodes = [
        AgentExecutor(Agent(Model(*[answer] * 9), name=f"a{number}"), context_mode=mode)
        for number, (answer, mode) in enumerate(plan)
    ]
    builder = WorkflowBuilder(start_executor=nodes[0], name="w", checkpoint_storage=storage, output_from=[nodes[-1]])
    return (builder.add_chain(nodes) if len(nodes) > 1 else builder).build()


def expected(plan: Plan) -> list[str]:
    """The conversation at the end of a chain."""
    conversation, last = ["hi"], ["hi"]
    for number, (answer, mode) in enumerate(plan):
        conversation = [*(last if mode == "last_agent" and number else conversation), answer]
        last = [answer]
    return conversation


def conversation(events: Any) -> list[str]:
    """The conversation that the last node sent on."""
    sent = [
        data
        for event in events
        if event.type == "executor_completed"
        for data in event.data or ()
        if isinstance(data, AgentExecutorResponse)
    ]
    return [message.text for message in sent[-1].full_conversation or ()]


@given(CHAIN)
def test_streamed_stepped_and_plain_runs_pass_the_same_conversation_on(plan):
    async def check() -> None:
        plain = await build(plan).run("hi")
        streamed = await build(plan).run("hi", stream=True).get_final_response()
        stepped = build(plan).start("hi")
        while stepped.status is not WorkflowRunState.IDLE:
            await stepped.step()
        assert conversation(plain) == conversation(streamed) == conversation(stepped.events) == expected(plan)
        assert "".join(update.text for update in streamed.outputs) == plain.outputs[0].text == plan[-1][0]

    asyncio.run(check())


@given(CHAIN)
def test_a_chain_goes_on_from_any_checkpoint_as_if_it_had_never_stopped(plan):
    async def check() -> None:
        storage = InMemoryCheckpointStorage()
        first = build(plan, storage)
        await first.run("hi")
        again = conversation(await first.run("again"))
        saved = await storage.list_checkpoints(workflow_name="w")
        for checkpoint in saved[: len(plan)]:
            workflow = build(plan)
            result = await workflow.run(checkpoint_id=checkpoint.checkpoint_id, checkpoint_storage=storage)
            if checkpoint.iteration_count + 1 < len(plan):
                assert conversation(result) == expected(plan)
            assert conversation(await workflow.run("again")) == again

    asyncio.run(check())


@given(CHAIN, st.data())
def test_a_handle_goes_back_and_forks_with_the_conversations_of_that_time(plan, data):
    async def check() -> None:
        run = build(plan, InMemoryCheckpointStorage()).start("hi")
        await run.result()
        await run.try_send_message("again")
        await run.result()
        again = conversation(run.events)
        info = data.draw(st.sampled_from(run.checkpoints[: len(plan)]))
        fork = await run.fork(info)
        await run.restore_checkpoint(info)
        for each in (fork, run):
            await each.result()
            await each.try_send_message("again")
            await each.result()
            assert conversation(each.events) == again

    asyncio.run(check())


@given(st.lists(ANSWER, min_size=1, max_size=4))
def test_agents_in_turns_see_and_say_what_agents_that_respond_do(answers):
    async def said(options: Any, message: Any) -> Any:
        agents = [Agent(Model(answer), name=f"a{number}") for number, answer in enumerate(answers)]
        result = await build_sequential(*agents, options=options, output_from="all").run(message)
        models: list[Any] = [agent.client for agent in agents]
        return [model.asked[0].texts for model in models], [output.text for output in result.outputs]

    async def check() -> None:
        in_turns = AgentHostOptions(emit_agent_response_events=True)
        assert await said(in_turns, [Message("user", "hi"), TurnToken()]) == await said(None, "hi")

    asyncio.run(check())

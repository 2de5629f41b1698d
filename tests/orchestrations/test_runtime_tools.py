"""Tools that are passed to one run of a workflow, for all of its agents."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench import (
    Agent,
    InMemoryCheckpointStorage,
    Message,
    RunContext,
    StateGraph,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    WorkflowInvocationKwargs,
    executor,
    tool,
)
from agentbench import workflow as workflow_function
from agentbench.orchestrations import HandoffBuilder
from agentbench.stategraph import START, AgentState
from tests.agents.fake_clients import call
from tests.orchestrations.nodes import ForeignAgent, agent
from tests.parts.errors import raises


@tool
def clock() -> str:
    "Tell the time."
    return "noon"


@tool
def weather() -> str:
    "Tell the weather."
    return "rain"


@tool(approval_mode="always_require")
def send(to: str) -> str:
    "Send a letter."
    return f"sent to {to}"


def offered(of: Agent) -> list[list[str]]:
    """Return the names of the tools in each call of the agent's model."""
    return [[each.name for each in asked.options.get("tools") or ()] for asked in of.client.asked]


def team(**settings: Any) -> tuple[Agent, Agent, Workflow]:
    first, second = agent("first", tools=[weather]), agent("second")
    return first, second, WorkflowBuilder(first, **settings).add_edge(first, second).build()


async def test_all_agents_of_a_run_get_its_tools_beside_their_own():
    first, second, workflow = team()
    await workflow.run("Go", tools=[clock])
    assert (offered(first), offered(second)) == ([["weather", "clock"]], [["clock"]])
    await workflow.run("Again")
    assert (offered(first)[1], offered(second)[1]) == (["weather"], [])


async def test_one_tool_or_function_needs_no_list_and_its_calls_are_carried_out():
    def add(a: int, b: int) -> int:
        "Add."
        return a + b

    clerk = agent("clerk", call("add", "c1", a=2, b=3), "five")
    result = await WorkflowBuilder(clerk).build().run("2 + 3?", tools=add)
    assert [output.text for output in result.outputs] == ["five"]
    assert "5" in [content.result for asked in clerk.client.asked for m in asked.messages for content in m.contents]


async def test_handlers_see_the_tools_of_the_run():
    @executor
    async def show(text: str, ctx: WorkflowContext[Any, list[Any]]) -> None:
        await ctx.yield_output(ctx.get_runtime_tools())

    workflow = WorkflowBuilder(start_executor=show).build()
    assert (await workflow.run("x", tools=[clock])).outputs == [[clock]]
    assert (await workflow.run("x")).outputs == [[]]


async def test_a_tool_with_the_name_of_an_agents_own_one_is_refused_unless_it_is_the_same():
    first, _, workflow = team()
    with raises(ValueError, "'weather'"):
        await workflow.run("Go", tools=[tool(name="weather")(lambda: "snow")])
    await workflow.run("Again", tools=[weather])
    assert offered(first) == [["weather"]]


async def test_tools_that_cannot_be_tools_are_refused_by_the_call():
    _, _, workflow = team()
    for given in ("clock", 5, {clock.name}):
        with raises(TypeError, "tools is", "list"):
            _ = workflow.run("Go", tools=given)


async def test_a_list_of_tools_may_be_changed_after_the_call():
    first, _, workflow = team()
    tools: list[Any] = [clock]
    run = workflow.start("Go", tools=tools)
    tools.append(send)
    await run.result()
    assert offered(first) == [["weather", "clock"]]


@pytest.mark.parametrize("depth", [1, 2])
async def test_nested_workflows_get_the_tools(depth):
    first, second, workflow = team()
    for level in range(depth):
        node = WorkflowExecutor(workflow, id=f"inner {level}", allow_direct_output=True)
        workflow = WorkflowBuilder(start_executor=node, name=f"level {level}").build()
    await workflow.run("Go", tools=[clock])
    assert (offered(first), offered(second)) == ([["weather", "clock"]], [["clock"]])


async def test_an_agent_in_a_state_graph_inside_the_workflow_gets_them_too():
    clerk = agent("clerk")
    graph = StateGraph(AgentState, name="graph").add_node("clerk", clerk).add_edge(START, "clerk").compile()
    await WorkflowBuilder(start_executor=graph).build().run([Message("user", ["Go"])], tools=[clock])
    assert offered(clerk) == [["clock"]]


async def test_an_approval_is_carried_out_with_the_tool_of_the_run():
    clerk = agent("clerk", call("send", "c1", to="Ada"), "done")
    workflow = WorkflowBuilder(clerk).build()
    (request,) = (await workflow.run("Write", tools=[send])).get_request_info_events()
    result = await workflow.run(responses={request: request.data.to_function_approval_response(True)})
    assert [output.text for output in result.outputs] == ["done"]
    assert offered(clerk) == [["send"], ["send"]]


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize(
    ("again", "result"),
    [
        ({}, None),
        ({"tools": [send, clock]}, "sent to Ada"),
        ({"tools": [clock]}, 'Error: Requested function "send" not found.'),
        ({"tools": []}, 'Error: Requested function "send" not found.'),
    ],
    ids=["none", "more", "others", "empty"],
)
async def test_a_run_with_responses_keeps_the_tools_of_the_instance_until_it_gets_others(durable, again, result):
    storage = InMemoryCheckpointStorage()
    clerk = agent("clerk", call("send", "c1", to="Ada"), "done")
    workflow = WorkflowBuilder(clerk, checkpoint_storage=storage).build()
    (request,) = (await workflow.run("Write", tools=[send])).get_request_info_events()
    checkpoint_id = None
    if durable:
        checkpoint_id, clerk = workflow.get_last_checkpoint_id(), agent("clerk", "done")
        workflow = WorkflowBuilder(clerk, checkpoint_storage=storage).build()
    answer = {request.request_id: request.data.to_function_approval_response(True)}
    await workflow.run(checkpoint_id=checkpoint_id, responses=answer, **again)
    missing = 'Error: Requested function "send" not found.' if durable else "sent to Ada"
    contents = [content for message in clerk.client.asked[-1].messages for content in message.contents]
    assert [one.result for one in contents if one.type == "function_result"] == [result or missing]


async def test_started_runs_and_their_forks_have_their_own_tools():
    first, second, workflow = team(checkpoint_storage=InMemoryCheckpointStorage())
    run = workflow.start("Go", tools=[clock])
    await run.step()
    fork = await run.fork()
    other = workflow.start("Go")
    for each in (run, fork, other):
        await each.result()
    assert offered(first) == [["weather", "clock"], ["weather"]]
    assert offered(second) == [["clock"], ["clock"], []]


async def test_a_workflow_as_an_agent_passes_them_on_also_inside_a_workflow():
    first, _, workflow = team()
    await workflow.as_agent("team").run("Go", tools=[clock])
    await WorkflowBuilder(workflow.as_agent("team")).build().run("Go", tools=[clock])
    kwargs = WorkflowInvocationKwargs(global_kwargs={"user": "Ada"})
    await workflow.as_agent("team").run("Go", function_invocation_kwargs=kwargs)
    assert offered(first) == [["weather", "clock"], ["weather", "clock"], ["weather"]]


async def test_a_workflow_function_passes_them_on_also_as_an_agent_in_a_workflow():
    clerk = agent("clerk")

    @workflow_function
    async def ask(question: str, ctx: RunContext) -> str:
        if question == "Shall I?":
            await ctx.request_info(question, bool)
        return (await clerk.run(question, tools=ctx.get_runtime_tools())).text

    result = await WorkflowBuilder(ask.as_agent()).build().run("Time?", tools=[clock])
    await ask.run("Time?")
    (request,) = (await ask.run("Shall I?", tools=clock)).get_request_info_events()
    await ask.run(responses={request: True})

    assert result.warnings == []
    assert offered(clerk) == [["clock"], [], ["clock"]]
    with raises(TypeError, "tools is", "list"):
        _ = ask.run("Time?", tools="clock")


async def test_agents_that_hand_over_keep_the_tools_for_that():
    one, two = (agent(name, require_per_service_call_history_persistence=True) for name in ("one", "two"))
    await HandoffBuilder(participants=[one, two]).with_start_agent(one).build().run("Go", tools=[clock])
    assert [sorted(names) for names in offered(one)] == [["clock", "handoff_to_two"]]


async def test_an_agent_whose_run_takes_no_tools_is_named_in_a_warning():
    workflow = WorkflowBuilder(ForeignAgent()).build()
    result = await workflow.run("Go", tools=[clock])
    (warning,) = [event for event in result if event.type == "warning"]
    assert (warning.executor_id, [output.text for output in result.outputs]) == ("stranger", ["Good day"])
    assert (await workflow.run("Go")).warnings == []


async def test_tools_are_in_no_checkpoint():
    storage = InMemoryCheckpointStorage()
    _, _, workflow = team(checkpoint_storage=storage, checkpoint_run_kwargs=True)
    await workflow.run("Go", tools=[clock])
    saved = await storage.list_checkpoints(workflow_name=workflow.name)
    assert "clock" not in "".join(each.to_json() for each in saved)

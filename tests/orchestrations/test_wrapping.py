"""Agents handed to a `WorkflowBuilder`: one node each, recognised by its name."""

from __future__ import annotations

import pickle
from typing import Any, NoReturn

import pytest

from agentbench import (
    Agent,
    AgentExecutor,
    AgentSession,
    Case,
    Default,
    EchoChatClient,
    InMemoryCheckpointStorage,
    WorkflowBuilder,
    WorkflowExecutor,
)
from agentbench.agents.agent.base_agent import BaseAgent
from tests.agents.fake_clients import Model
from tests.orchestrations.nodes import ForeignAgent, agent, asked
from tests.parts.errors import raises


async def test_agents_are_wrapped_in_both_dialects():
    for build in (
        lambda a, b: WorkflowBuilder(start_executor=a).add_edge(a, b),
        lambda a, b: WorkflowBuilder(a).add_edge(a, b),
        lambda a, b: WorkflowBuilder().add_executor(a).add_executor(b).connect(a, b).output_from(a).output_from(b),
        lambda a, b: WorkflowBuilder().set_start(a).add_chain([a, b]),
        lambda a, b: WorkflowBuilder().switch(a, [Case(lambda _: True, b), Default(ForeignAgent())]),
        lambda a, b: WorkflowBuilder(output_from=[a, b]).connect(a, b).connect("b", ForeignAgent()),
    ):
        a, b = agent("a"), agent("b")
        workflow = build(a, b).build()
        result = await workflow.run("hi")
        assert isinstance(workflow.executors["a"], AgentExecutor)
        assert [output.text for output in result.outputs][:2] == ["A", "B"]
        assert asked(b) == [["hi", "A"]]


def test_one_agent_is_one_node_however_often_it_is_named():
    a, b, c = agent("a"), agent("b"), agent("c")
    workflow = WorkflowBuilder(a).add_edge(a, b).add_edge(a, c).add_edge(b, c).build()
    assert list(workflow.executors) == ["a", "b", "c"]


def test_two_agents_of_one_name_are_refused():
    with raises(ValueError, "'a'"):
        WorkflowBuilder().add_edge(agent("a"), agent("a"))


def test_a_node_is_named_by_the_agents_name_or_by_an_id_that_someone_chose():
    assert AgentExecutor(Agent(Model(), name="n", id="i")).id == "n"
    assert AgentExecutor(Agent(Model(), id="i")).id == "i"
    assert AgentExecutor(Agent(Model(), name="n"), id="own").id == "own"
    stranger: Any = ForeignAgent(name=None)
    assert AgentExecutor(stranger).id == "stranger-1"
    with raises(ValueError, "neither"):
        WorkflowBuilder(Agent(Model()))


@pytest.mark.parametrize("thing", [Agent, BaseAgent(name="without run"), AgentSession()])
def test_what_is_no_agent_is_refused(thing):
    with raises(TypeError, "node"):
        WorkflowBuilder(thing)


@pytest.mark.parametrize("thing", [EchoChatClient(), AgentExecutor(agent("a")), WorkflowBuilder(agent("a")).build()])
def test_an_agent_node_refuses_what_is_no_agent(thing):
    with raises(TypeError, "as_agent"):
        AgentExecutor(thing)


# ---- several runs ----------------------------------------------------------------------------------


async def test_runs_of_an_instance_are_one_conversation_and_started_runs_each_their_own():
    a = agent("a")
    workflow = WorkflowBuilder(a).build()
    await workflow.run("one")
    await workflow.run("two")
    assert asked(a)[-1] == ["one", "A", "two"]
    await workflow.start("three").result()
    assert asked(a)[-1] == ["three"]
    await workflow.clone().run("four")
    assert asked(a)[-1] == ["four"]
    await workflow.run("five")
    assert asked(a)[-1] == ["one", "A", "two", "A", "five"]


async def test_started_runs_of_a_workflow_around_have_conversations_of_their_own_too():
    a = agent("a")
    inner = WorkflowExecutor(WorkflowBuilder(a).build(), "inner", allow_direct_output=True)
    workflow = WorkflowBuilder(start_executor=inner).build()
    await workflow.run("one")
    await workflow.start("two").result()
    await workflow.run("three")
    assert asked(a) == [["one"], ["two"], ["one", "A", "three"]]


@pytest.mark.parametrize("how", ["run", "start", "clone", "copied clone", "copied build"])
async def test_nodes_with_one_session_share_it_in_every_run(how):
    a, b, c = agent("a"), agent("b"), agent("c")
    session = a.create_session()
    nodes = [AgentExecutor(one, session=session, context_mode="last_agent") for one in (a, b)]
    builder = WorkflowBuilder(start_executor=nodes[0]).add_chain([*nodes, c])
    workflow = builder.build(copy_executors=how == "copied build")
    if how == "start":
        await workflow.start("hi").result()
    elif how in ("clone", "copied clone"):
        await workflow.clone(copy_executors=how == "copied clone").run("hi")
    else:
        await workflow.run("hi")
    assert asked(b) == [["hi", "A", "A"]]  # its history, then the answer of a
    assert bool(session.state) is (how == "run")


async def test_a_pickled_workflow_of_agents_answers_as_before():
    a, b = agent("a"), agent("b")
    workflow = pickle.loads(pickle.dumps(WorkflowBuilder(a).add_edge(a, b).build()))
    assert [output.text for output in (await workflow.run("hi")).outputs] == ["A", "B"]


async def test_copied_executors_share_the_agent():
    class Closed(Model):
        def __deepcopy__(self, memo: object) -> NoReturn:
            raise TypeError("holds a connection")

    a = Agent(Closed("A"), name="a")
    assert (await WorkflowBuilder(a).build().clone(copy_executors=True).run("hi")).outputs[0].text == "A"


# ---- checkpoints -----------------------------------------------------------------------------------


async def test_nodes_with_one_session_share_it_after_a_restore():
    def build(storage):
        a, b = agent("a"), agent("b")
        session = a.create_session()
        nodes = [AgentExecutor(one, session=session, context_mode="last_agent") for one in (a, b)]
        return (a, b), WorkflowBuilder(nodes[0], name="w", checkpoint_storage=storage).add_chain(nodes).build()

    storage = InMemoryCheckpointStorage()
    _, first = build(storage)
    await first.run("hi")
    last: Any = await storage.get_latest(workflow_name="w")
    for drive in ("run", "start"):
        (a, b), workflow = build(storage)
        if drive == "run":
            await workflow.run(checkpoint_id=last.checkpoint_id)
            await workflow.run("again")
        else:
            await workflow.start("again", resume_from=last).result()
        assert asked(a) == [["hi", "A", "A", "B", "again"]]
        assert asked(b) == [["hi", "A", "A", "B", "again", "A", "A"]]

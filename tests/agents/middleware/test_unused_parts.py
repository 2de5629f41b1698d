"""Loops and queues of messages add no call to the runs of agents that do not use them."""

from __future__ import annotations

import sys
from collections import Counter
from types import FrameType
from typing import Any

import pytest

import agentbench.agents.harness.loop_conditions
import agentbench.agents.middleware.bundle
import agentbench.agents.middleware.judge
import agentbench.agents.middleware.loop
import agentbench.agents.sessions.injection
from agentbench import (
    Agent,
    AgentExecutor,
    AgentLoopMiddleware,
    Call,
    InMemoryHistoryProvider,
    MessageInjectionMiddleware,
    RunOptions,
    ScriptedChatClient,
    WorkflowBuilder,
    chat_middleware,
    enqueue_messages,
    tool,
)

PARTS = {
    module.__file__: module.__name__.rpartition(".")[2]
    for module in (
        agentbench.agents.harness.loop_conditions,
        agentbench.agents.middleware.bundle,
        agentbench.agents.middleware.judge,
        agentbench.agents.middleware.loop,
        agentbench.agents.sessions.injection,
    )
}


@tool
def look() -> str:
    return "seen"


@chat_middleware
async def plain(context: Any, call_next: Any) -> None:
    await call_next()


class Calls(Counter[str]):
    """The calls of functions in the optional parts of agents, by module, while it is entered."""

    def __enter__(self) -> Calls:
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename in PARTS:
            self[PARTS[frame.f_code.co_filename]] += 1


def agent_with(*middleware: Any) -> Agent:
    return Agent(
        ScriptedChatClient([Call("look"), "done"], on_exhausted="repeat_last"),
        name="looker",
        tools=[look],
        middleware=middleware,
        context_providers=[InMemoryHistoryProvider()],
        require_per_service_call_history_persistence=True,
    )


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("middleware", [(), (plain,)], ids=["no middleware", "other middleware"])
async def test_a_run_without_them_calls_nothing_of_them(stream: bool, middleware: tuple[Any, ...]) -> None:
    agent = agent_with(*middleware)
    session = agent.create_session()
    with Calls() as calls:
        if stream:
            async for _ in agent.run("q", session=session, stream=True):
                pass
        else:
            await agent.run("q", session=session)

    assert calls == {}


async def test_an_observed_node_without_them_calls_nothing_of_them() -> None:
    workflow = WorkflowBuilder(start_executor=AgentExecutor(agent_with())).build()
    with Calls() as calls:
        await workflow.run("q", options=RunOptions(observe=True))

    assert calls == {}


@pytest.mark.parametrize("in_workflow", [False, True])
async def test_the_calls_of_runs_that_use_them_are_counted(in_workflow: bool) -> None:
    agent = agent_with(MessageInjectionMiddleware(), AgentLoopMiddleware(max_iterations=2))
    session = agent.create_session()
    enqueue_messages(session, "Look twice.")
    workflow = WorkflowBuilder(start_executor=AgentExecutor(agent, session=session)).build()
    with Calls() as calls:
        await (workflow.run("q", options=RunOptions(observe=True)) if in_workflow else agent.run("q", session=session))

    assert {*calls} == {"injection", "loop"}

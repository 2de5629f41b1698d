"""Wherever a run calls a model, a redo answers from the recording and sends nothing that was not allowed."""

from __future__ import annotations

import asyncio
from typing import Any, Never

from agentbench import (
    Executor,
    InMemoryCheckpointStorage,
    RunOptions,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    executor,
    handler,
)
from agentbench.revisions import UnrecordedCallError
from agentbench.stategraph import END, START, AgentState, CompiledGraph, StateGraph
from agentbench.testing import ScriptedChatClient
from agentbench.workflows.run.run import WorkflowRun
from tests.parts.errors import raises


class Numbered(ScriptedChatClient):
    """Repeats each request, with the number of the answer."""

    def __init__(self) -> None:
        super().__init__([lambda messages, _: f"{messages[-1].text} #{len(self.calls)}"], on_exhausted="repeat_last")


async def recorded(workflow: Workflow, message: Any = "late") -> WorkflowRun:
    options = RunOptions(record=True)
    run = workflow.start(message, checkpoint_storage=InMemoryCheckpointStorage(), options=options)
    await run.result()
    return run


@executor(id="start")
async def start(text: str, ctx: WorkflowContext[str]) -> None:
    await ctx.send_message(text)


@executor(id="end")
async def end(text: str, ctx: WorkflowContext[Never, str]) -> None:
    await ctx.yield_output(text)


async def test_the_model_calls_of_a_condition_are_recorded_and_new_ones_wait_or_are_refused() -> None:
    client = Numbered()

    def build(question: str) -> Workflow:
        async def is_late(text: str) -> bool:
            return bool((await client.get_response(f"{question} {text}")).text)

        return WorkflowBuilder(start_executor=start).add_edge(start, end, condition=is_late).build()

    run = await recorded(build("Is it?"))
    assert [(each.executor_id, each.superstep) for each in run.recording.recorded] == [("", 1)]
    same = await run.redo(since=1, workflow=build("Is it?"), new_calls="refuse")
    assert (await same.result()).get_outputs() == ["late"]
    refused = await run.redo(since=1, workflow=build("Really?"), new_calls="refuse")
    with raises(UnrecordedCallError, executor_id=""):
        await refused.result()
    asked = await run.redo(since=0, workflow=build("Really?"))
    asked.pause_when(lambda report, plan: bool(plan))
    await asked.result()
    await asked.result()
    assert (asked.new_call.prompt, len(client.calls)) == ("Really? late", 1)
    asked.allow_new_calls()
    await asked.result()
    assert (asked.outputs, len(client.calls)) == (["late"], 2)


async def test_the_model_calls_of_conditions_of_state_graphs_are_recorded_too() -> None:
    client = Numbered()

    class State(AgentState):
        note: str = ""

    def build(question: str) -> CompiledGraph[State]:
        async def choose(state: State) -> str:
            return "write" if (await client.get_response(question)).text else END

        graph = StateGraph(State).add_node("read", lambda state: {"note": "a"})
        graph.add_node("write", lambda state: {"note": "b"})
        graph.add_edge(START, "read").add_conditional_edges("read", choose, ["write", END])
        return graph.add_edge("write", END).compile()

    run = await build("Go on?").astart({}, {"thread_id": "t"}, record=True)
    await run.result()
    since = next(info.iteration for info in run.checkpoints if "read" in info.writers)
    same = await run.redo(since=since, workflow=build("Go on?"), new_calls="refuse")
    await same.result()
    assert (same.state["note"], len(client.calls)) == ("b", 1)
    asked = await run.redo(since=since, workflow=build("Stop?"))
    await asked.result()
    assert (asked.new_call.prompt, len(client.calls)) == ("Stop?", 1)

"""What a branch of a run tells of its edits."""

from __future__ import annotations

from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.handlers import handler


class Plan(Executor):
    @handler
    async def plan(self, text: str, ctx: WorkflowContext[str]) -> None:
        ctx.set_state("score", 1)
        await ctx.send_message(text)


class Write(Executor):
    @handler
    async def write(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(f"{text} {ctx.get_state('score')}")


async def test_a_fork_with_edits_begins_with_an_event_of_before_and_after() -> None:
    plan, write = Plan(id="plan"), Write(id="write")
    workflow = WorkflowBuilder(start_executor=plan).add_edge(plan, write).build()
    run = workflow.start("x", checkpoint_storage=InMemoryCheckpointStorage())
    await run.step()
    plain = await run.fork(workflow=workflow.clone())
    fork = await run.fork(state_updates={"score": 2, "new": 3}, messages={"plan": ["y"]}, workflow=workflow.clone())
    heard: list[str] = []
    fork.listen(lambda events: heard.extend(event.type for event in events))
    await fork.result()
    [told] = [event for event in fork.events if event.type == "state_edited"]
    assert told.data == {
        "state.score": {"before": 1, "after": 2},
        "state.new": {"before": None, "after": 3},
        "messages.plan": {"before": ["x"], "after": ["y"]},
    }
    assert heard[0] == "state_edited"
    assert fork.outputs == ["y 2"]
    assert [event.type for event in plain.events] == []

"""Checkpoints of another graph from which a workflow continues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.exceptions import CheckpointNotFoundError
from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.handlers import handler, response_handler
from agentbench.workflows.executors.message import WorkflowMessage
from agentbench.workflows.persist.migration import migrate_checkpoint, split_by_graph
from agentbench.workflows.run.workflow import Workflow


@dataclass
class Question:
    prompt: str


class Pass(Executor):
    """Counts its messages and sends each on."""

    def __init__(self, name: str) -> None:
        super().__init__(id=name)
        self.got = 0

    @handler
    async def go(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        self.got += 1
        ctx.set_state(self.id, text)
        await ctx.send_message(text + self.id)
        await ctx.yield_output(text)

    async def on_checkpoint_save(self) -> dict[str, Any]:
        return {"got": self.got}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        self.got = state["got"]


class Ask(Executor):
    @handler
    async def go(self, text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.request_info(Question(text), bool)

    @response_handler
    async def on_answer(self, asked: Question, answer: bool, ctx: WorkflowContext) -> None:
        """Takes any answer."""


def chained(*ids: str, name: str = "flow") -> Workflow:
    executors: list[Executor] = [Ask(id=each) if each == "ask" else Pass(each) for each in ids]
    return WorkflowBuilder(start_executor=executors[0], name=name).add_chain(executors).build()


async def saved(workflow: Workflow, storage: InMemoryCheckpointStorage, supersteps: int) -> CheckpointInfo:
    run = workflow.start("x", checkpoint_storage=storage)
    for _ in range(supersteps):
        await run.step()
    info = run.last_checkpoint
    assert info is not None
    await run.cancel()
    return info


async def test_a_checkpoint_of_the_same_graph_is_not_copied() -> None:
    storage = InMemoryCheckpointStorage()
    info = await saved(chained("a", "b", "c"), storage, 2)
    assert await migrate_checkpoint(storage, info, chained("a", "b", "c").graph) == (info, [])
    assert len(await storage.list_infos()) == 2


async def test_one_of_another_graph_is_copied_and_the_run_continues_in_the_new_graph() -> None:
    storage = InMemoryCheckpointStorage()
    info = await saved(chained("a", "b", "c"), storage, 2)
    original = (await storage.load(info.checkpoint_id)).to_dict()
    longer = chained("a", "b", "c", "d")
    copy, left_out = await migrate_checkpoint(storage, info.checkpoint_id, longer.graph)
    assert left_out == []
    assert (copy.source, copy.forked_from, copy.previous_checkpoint_id) == ("update", *[info.checkpoint_id] * 2)
    assert (copy.iteration, copy.n_messages, copy.run_id) == (info.iteration, 1, None)
    run = longer.start(checkpoint_storage=storage, resume_from=copy)
    await run.result()
    assert run.state == {"a": "x", "b": "xa", "c": "xab", "d": "xabc"}
    assert [executor.got for executor in longer.get_executors_list() if isinstance(executor, Pass)] == [1, 1, 1, 1]
    assert (await storage.load(info.checkpoint_id)).to_dict() == original


async def test_parts_that_the_graph_has_no_executor_for_are_left_out_and_listed() -> None:
    storage = InMemoryCheckpointStorage()
    info = await saved(chained("a", "b", "c"), storage, 2)
    copy, left_out = await migrate_checkpoint(storage, info, chained("a", "c").graph)
    assert left_out == [
        "left out: 1 message of 'b', which has no outgoing edge here",
        "left out: the state of executor 'b', which is not there",
    ]
    held = await storage.load(copy.checkpoint_id)
    assert held.messages == {}
    assert set(held.state["_executor_state"]) == {"a", "c"}
    assert (held.state["a"], held.state["b"]) == ("x", "xa")


async def test_requests_of_executors_that_are_gone_are_left_out() -> None:
    storage = InMemoryCheckpointStorage()
    info = await saved(chained("a", "ask"), storage, 2)
    copy, left_out = await migrate_checkpoint(storage, info, chained("a", "b").graph)
    assert (info.n_requests, copy.n_requests) == (1, 0)
    assert "of 'ask', which is not there" in " ".join(left_out)
    same, nothing = await migrate_checkpoint(storage, info, chained("a", "b", "ask").graph)
    assert (same.n_requests, nothing) == (1, [])


async def test_fan_ins_that_are_gone_are_left_out() -> None:
    waiting = {"some fan-in": {"a": [WorkflowMessage("x", "a")]}}
    held = WorkflowCheckpoint("flow", "hash", state={"_fan_in_buffers": waiting})
    content, left_out = split_by_graph(held, chained("a", "b").graph)
    assert content["state"] == {"_fan_in_buffers": {}}
    assert left_out == ["left out: messages that wait at fan-in 'some fan-in', which is not there"]
    assert held.state == {"_fan_in_buffers": waiting}


async def test_an_unknown_checkpoint_is_refused() -> None:
    with pytest.raises(CheckpointNotFoundError):
        await migrate_checkpoint(InMemoryCheckpointStorage(), "nothing", chained("a", "b").graph)

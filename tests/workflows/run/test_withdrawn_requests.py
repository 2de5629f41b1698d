"""`cancel_pending_requests`: a run goes on without some of its responses; and the facts about the last run."""

import asyncio
from typing import Any

import pytest

from agentbench import (
    Executor,
    FileCheckpointStorage,
    InMemoryCheckpointStorage,
    RunOptions,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    WorkflowRunState,
    handler,
    response_handler,
)
from agentbench.exceptions import WorkflowBusyError
from agentbench.workflows.events.events import WithdrawnWarning
from tests.parts.errors import raises
from tests.parts.executors import Fail, Wait, chain

IDLE, WAITING = WorkflowRunState.IDLE, WorkflowRunState.IDLE_WITH_PENDING_REQUESTS


class Ask(Executor):
    """Requests something for each word of a text; takes any response, whatever its type."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[str, Any]) -> None:
        for word in text.split():
            await ctx.request_info(word, Any, request_id=word)

    @response_handler
    async def on_answer(self, word: str, answer: Any, ctx: WorkflowContext[str, Any]) -> None:
        await ctx.yield_output(f"{word}{answer}")


class AskOnly(Executor):
    """Makes a request, but takes no response."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext) -> None:
        await ctx.request_info(text, str, request_id=text)


def asking(**settings: Any) -> Workflow:
    return WorkflowBuilder(name="asking", start_executor=Ask("ask"), **settings).build()


def around(inner: Workflow, name: str, **settings: Any) -> Workflow:
    node = WorkflowExecutor(inner, id=f"{name} node", propagate_request=True, allow_direct_output=True)
    return WorkflowBuilder(name=name, start_executor=node, **settings).build()


def withdrawn(events: Any) -> list[str]:
    return [event.data.request_id for event in events if isinstance(event.data, WithdrawnWarning)]


# ---- the last run of a workflow ----------------------------------------------------------------------


async def test_status_is_that_of_the_run_now_or_of_the_last_one():
    workflow = asking()
    assert workflow.status is IDLE
    await workflow.run("a")
    assert workflow.status is WAITING
    await workflow.run(responses={"a": 1})
    assert workflow.status is IDLE
    await workflow.run("b")
    workflow.reset()
    assert workflow.status is IDLE


async def test_status_while_a_handler_waits_and_after_it_was_cancelled():
    node = Wait("wait")
    workflow = chain(node)
    call = asyncio.ensure_future(workflow.run("x"))
    await node.entered.wait()
    assert workflow.status == WorkflowRunState.IN_PROGRESS
    call.cancel()
    await asyncio.wait([call])
    assert str(workflow.status) == str(WorkflowRunState.CANCELLED)


async def test_status_after_a_failure_and_of_a_handle_that_uses_the_instance():
    workflow = chain(Fail("fail"))
    with raises(KeyError):
        await workflow.run("x")
    assert workflow.status is WorkflowRunState.FAILED
    assert workflow.clone().status is IDLE
    run = workflow.start("x", keep_state=True)
    with raises(KeyError):
        await run.result()
    assert workflow.status is run.status is WorkflowRunState.FAILED
    await run.cancel()
    workflow.reset()
    assert workflow.status is IDLE


async def test_the_last_checkpoint_is_that_of_the_last_run():
    workflow = asking()
    await workflow.run("a")
    assert workflow.get_last_checkpoint_id() is None
    await workflow.cancel_pending_requests()
    storage = InMemoryCheckpointStorage()
    result = await workflow.run("b", checkpoint_storage=storage)
    assert workflow.get_last_checkpoint_id() == result.checkpoints[-1].checkpoint_id


# ---- withdrawing ---------------------------------------------------------------------------------


async def test_a_withdrawn_request_is_reported_and_its_response_handler_is_not_called():
    workflow = asking()
    await workflow.run("a b")
    result = await workflow.cancel_pending_requests("a")
    assert (withdrawn(result), result.outputs, workflow.status) == (["a"], [], WAITING)
    assert [event.executor_id for event in result if event.type == "warning"] == ["ask"]
    assert (await workflow.run(responses={"b": 1})).outputs == ["b1"]
    assert workflow.status is IDLE


async def test_all_open_requests_are_withdrawn_by_default_and_again_there_is_nothing_to_do():
    workflow = asking()
    await workflow.run("a b")
    assert withdrawn(await workflow.cancel_pending_requests()) == ["a", "b"]
    again = await workflow.cancel_pending_requests()
    assert ([*again], again.get_final_state()) == ([], IDLE)
    assert (await workflow.run("c")).carried_over is None


async def test_a_request_that_nobody_takes_a_response_to_can_be_withdrawn():
    workflow = WorkflowBuilder(start_executor=AskOnly("only")).build()
    with pytest.warns(match="response_handler"):
        result = await workflow.run("a")
    (request,) = result.get_request_info_events()
    assert withdrawn(await workflow.cancel_pending_requests([request])) == ["a"]
    assert workflow.status is IDLE


async def test_a_request_that_is_not_open_cannot_be_withdrawn():
    workflow = asking()
    await workflow.run("a")
    with raises(ValueError, "b"):
        await workflow.cancel_pending_requests(["a", "b"])
    assert withdrawn(await workflow.cancel_pending_requests(["a"])) == ["a"]
    with raises(TypeError, 7):
        await workflow.cancel_pending_requests(7)


async def test_a_running_workflow_cannot_withdraw():
    node = Wait("wait")
    workflow = chain(node)
    run = workflow.start("x", keep_state=True)
    await run.plan()
    with raises(WorkflowBusyError):
        await workflow.cancel_pending_requests()
    await run.cancel()


# ---- handles ---------------------------------------------------------------------------------------


async def test_a_handle_goes_on_without_the_response():
    run = asking().start("a b")
    await run.result()
    await run.cancel_pending_requests("a")
    assert [event.request_id for event in run.pending_requests] == ["b"]
    (planned,) = await run.plan()
    assert planned.target == "ask"
    await run.respond("b", 1)
    result = await run.result()
    assert (withdrawn(result), result.outputs, run.status) == (["a"], ["b1"], IDLE)


async def test_a_request_that_is_being_withdrawn_takes_no_response():
    run = asking().start("a")
    await run.result()
    await run.cancel_pending_requests()
    with raises(RuntimeError):
        await run.respond("a", 1)
    assert withdrawn(await run.result()) == ["a"]


# ---- checkpoints -----------------------------------------------------------------------------------


@pytest.mark.parametrize("durable", [False, True])
async def test_the_requests_of_a_checkpoint_are_withdrawn_in_another_process(durable, tmp_path):
    storage: Any = FileCheckpointStorage(tmp_path) if durable else InMemoryCheckpointStorage()
    first = asking(checkpoint_storage=storage)
    await first.run("a b")
    second = asking(checkpoint_storage=storage)
    result = await second.cancel_pending_requests("a", checkpoint_id=first.get_last_checkpoint_id())
    assert (withdrawn(result), [event.request_id for event in result.get_request_info_events()]) == (["a"], ["b"])
    third = asking(checkpoint_storage=storage)
    result = await third.run(checkpoint_id=second.get_last_checkpoint_id(), responses={"b": 1})
    assert (result.outputs, third.status) == (["b1"], IDLE)


async def test_a_checkpoint_between_a_withdrawal_and_its_superstep_can_be_continued(tmp_path):
    workflow = asking(checkpoint_storage=FileCheckpointStorage(tmp_path))
    await workflow.run("a b")
    result = await workflow.cancel_pending_requests("a")
    (queued, _) = result.checkpoints
    assert queued.source == "answer"
    again = asking(checkpoint_storage=FileCheckpointStorage(tmp_path))
    await again.run(checkpoint_id=queued)
    assert (await again.run(responses={"b": 1})).outputs == ["b1"]


async def test_requests_that_were_withdrawn_elsewhere_cannot_be_answered_from_the_same_checkpoint(tmp_path):
    storage = FileCheckpointStorage(tmp_path)
    first = asking(checkpoint_storage=storage)
    await first.run("a")
    checkpoint_id = first.get_last_checkpoint_id()
    await first.cancel_pending_requests()
    with raises(WorkflowBusyError):
        await asking(checkpoint_storage=storage).run(checkpoint_id=checkpoint_id, responses={"a": 1})


async def test_a_checkpoint_without_a_storage_is_refused():
    with raises(ValueError, "storage"):
        await asking().cancel_pending_requests(checkpoint_id="c1")


# ---- workflows inside nodes ----------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("order", ["answer first", "withdraw first"])
async def test_the_answer_to_another_request_of_an_inner_run_is_not_lost(depth, order, tmp_path):
    workflow = asking()
    for level in range(depth):
        workflow = around(workflow, f"level {level}", checkpoint_storage=FileCheckpointStorage(tmp_path))
    await workflow.run("a b")
    if order == "answer first":
        await workflow.run(responses={"b": 1})
        result = await workflow.cancel_pending_requests("a")
        assert withdrawn(result) == ["a"]
    else:
        assert withdrawn(await workflow.cancel_pending_requests("a")) == ["a"]
        result = await workflow.run(responses={"b": 1})
        assert withdrawn(result) == []
    assert (result.outputs, workflow.status) == (["b1"], IDLE)


async def test_an_inner_run_without_requests_ends():
    workflow = around(asking(), "outer")
    await workflow.run("a b")
    result = await workflow.cancel_pending_requests()
    assert (withdrawn(result), result.outputs) == (["a", "b"], [])
    await workflow.run("c")
    assert (await workflow.run(responses={"c": 1})).outputs == ["c1"]


async def test_observers_see_each_withdrawal_once_outside_and_once_inside():
    workflow = around(asking(), "outer")
    run = workflow.start("x", options=RunOptions(observe=True))
    await run.result()
    await run.cancel_pending_requests()
    events = await run.result()
    inner = [event.data for event in events if event.type == "sub_workflow"]
    assert (withdrawn(events), withdrawn(inner)) == (["x"], ["x"])

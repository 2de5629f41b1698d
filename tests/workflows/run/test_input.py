"""The input of a run as a position: kept with its first checkpoint, and a place to branch off."""

from typing import Never

import pytest

from agentbench import Executor, WorkflowBuilder, WorkflowContext, handler
from agentbench.checkpoints import FileCheckpointStorage, InMemoryCheckpointStorage
from agentbench.checkpoints.metadata import INPUT
from agentbench.exceptions import WorkflowCheckpointException
from agentbench.workflows.executors.options import RunOptions


class Shout(Executor):
    @handler
    async def shout(self, text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(text.upper())


class End(Executor):
    @handler
    async def end(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(text + "!")


def build():
    shout, end = Shout("shout"), End("end")
    return WorkflowBuilder(start_executor=shout, name="shouting").add_edge(shout, end).build()


@pytest.fixture(params=["memory", "file"])
def storage(request, tmp_path):
    return InMemoryCheckpointStorage() if request.param == "memory" else FileCheckpointStorage(tmp_path)


async def test_a_handle_stores_its_input_with_the_first_checkpoint_only(storage):
    run = build().start("hi", checkpoint_storage=storage)
    await run.result()
    saved = await storage.list_checkpoints(workflow_name="shouting")
    assert [INPUT in each.metadata for each in saved] == [True, False]
    assert run.input == "hi"


async def test_a_plain_run_stores_no_input(storage):
    await build().run("hi", checkpoint_storage=storage)
    saved = await storage.list_checkpoints(workflow_name="shouting")
    assert not any(INPUT in each.metadata for each in saved)


async def test_a_resumed_run_and_its_forks_know_the_input(storage):
    first = build().start("hi", checkpoint_storage=storage)
    await first.result()
    last = first.last_checkpoint.checkpoint_id
    resumed = build().start(resume_from=last, checkpoint_storage=storage)
    assert resumed.input == "hi"
    assert (await (await resumed.fork("input")).result()).get_outputs() == ["HI!"]
    assert (await resumed.fork(last)).input == "hi"


async def test_a_fork_from_the_input_is_a_branch_with_its_own_input(storage):
    run = build().start("hi", checkpoint_storage=storage)
    await run.result()
    fork = await run.fork("input", message="ho")
    assert (await fork.result()).get_outputs() == ["HO!"]
    assert (fork.input, fork.origin, fork.checkpoints[0].previous_checkpoint_id) == ("ho", run, None)
    assert run.outputs == ["HI!"]


async def test_an_input_that_cannot_be_stored_does_not_fail_the_run(storage):
    class Odd(str):
        __reduce_ex__ = None  # type: ignore[assignment]

    odd = Odd("hi")
    run = build().start(odd, checkpoint_storage=storage)
    assert (await run.result()).get_outputs() == ["HI!"]
    assert run.input == odd


async def test_an_unknown_input_is_an_error_that_says_what_to_pass():
    storage = InMemoryCheckpointStorage()
    await build().run("hi", checkpoint_storage=storage)
    last = (await storage.list_checkpoint_ids(workflow_name="shouting"))[-1]
    run = build().start(resume_from=last, checkpoint_storage=storage)
    assert run.input is None
    with pytest.raises(WorkflowCheckpointException):
        await run.fork("input")


@pytest.mark.parametrize("handle", [True, False])
async def test_with_save_input_a_checkpoint_before_superstep_0_runs_the_start_executor_again(storage, handle):
    options = RunOptions(save_input=True)
    if handle:
        await build().start("hi", checkpoint_storage=storage, options=options).result()
    else:
        await build().run("hi", checkpoint_storage=storage, options=options)
    saved = await storage.list_checkpoints(workflow_name="shouting")
    assert [each.iteration_count for each in saved] == [-1, 0, 1]
    assert saved[1].previous_checkpoint_id == saved[0].checkpoint_id
    first = saved[0].checkpoint_id
    result = await build().run(checkpoint_id=first, checkpoint_storage=storage)
    assert result.get_outputs() == ["HI!"]
    resumed = build().start(resume_from=first, checkpoint_storage=storage)
    report = await resumed.step()
    assert report.superstep == 0
    assert (await resumed.result()).get_outputs() == ["HI!"]


async def test_a_built_workflow_may_save_its_inputs_before_superstep_0(storage):
    shout, end = Shout("shout"), End("end")
    builder = WorkflowBuilder(start_executor=shout, name="shouting", save_input=True)
    workflow = builder.add_edge(shout, end).build()
    await workflow.run("hi", checkpoint_storage=storage)
    saved = await storage.list_checkpoints(workflow_name="shouting")
    assert [each.iteration_count for each in saved] == [-1, 0, 1]


async def test_an_edited_copy_of_a_saved_input_is_the_input_of_its_branch(storage):
    run = build().start("hi", checkpoint_storage=storage, options=RunOptions(save_input=True))
    await run.result()
    fork = await run.fork(run.checkpoints[0], messages={"Workflow": ["ho"]})
    assert ((await fork.result()).get_outputs(), fork.input, run.input) == (["HO!"], "ho", "hi")


async def test_the_input_stays_as_it_was_given_even_if_an_executor_changes_it(storage):
    class Pop(Executor):
        @handler
        async def pop(self, items: list[str], ctx: WorkflowContext[Never, str]) -> None:
            await ctx.yield_output(items.pop())

    def popping():
        return WorkflowBuilder(start_executor=Pop("pop"), name="popping").build()

    run = popping().start(["a", "b"], checkpoint_storage=storage)
    await run.result()
    later = popping().start(resume_from=run.last_checkpoint, checkpoint_storage=storage)
    assert run.input == later.input == ["a", "b"]
    assert (await (await run.fork("input")).result()).get_outputs() == ["b"]


async def test_the_input_is_unknown_where_the_beginning_of_the_chain_was_deleted(storage):
    run = build().start("hi", checkpoint_storage=storage)
    await run.result()
    await storage.delete(run.checkpoints[0].checkpoint_id)
    assert build().start(resume_from=run.last_checkpoint, checkpoint_storage=storage).input is None

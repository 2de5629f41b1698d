"""What becomes of a run whose checkpoints cannot be saved, and of its chain."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentbench import (
    CheckpointInfo,
    InMemoryCheckpointStorage,
    RunOptions,
    Workflow,
    WorkflowCheckpoint,
    WorkflowCheckpointException,
    WorkflowRunState,
)
from agentbench.checkpoints.access import list_infos, list_lineage
from agentbench.exceptions import WorkflowBusyError
from tests.parts.errors import raises, warns
from tests.parts.executors import Pass, Show, brief, chain, collect
from tests.workflows.storages import FailingStorage, OwnStorage
from tests.workflows.test_resume import Ask, Broken

DISK_FULL = OSError("disk full")


def four(storage: Any, **settings: Any) -> Workflow:
    executors = [Pass("a"), Pass("b"), Pass("c"), Show("d")]
    return chain(*executors, name="four", checkpoint_storage=storage, **settings)


async def warned(running: Any) -> Any:
    """What a run returns whose first failed save is a Python warning too."""
    with warns(RuntimeWarning, "checkpoint") as seen:
        result = await running
    assert len(seen) == 1
    return result


def warnings_of(events: Any) -> list[str]:
    return [e.data for e in events if e.type == "warning"]


def links(storage: OwnStorage) -> list[tuple[int, int, int | None]]:
    """Superstep, number and the superstep of the one before, in the order of saving."""
    steps: dict[str | None, int | None] = {None: None}
    steps.update({key: c.iteration_count for key, c in storage.kept.items()})
    return [(c.iteration_count, c.metadata["seq"], steps[c.previous_checkpoint_id]) for c in storage.kept.values()]


# ---- plain runs ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failing", "left"),
    [
        ({1}, [(1, 1, None), (2, 2, 1), (3, 3, 2)]),
        ({2}, [(0, 1, None), (2, 2, 0), (3, 3, 2)]),
        ({4}, [(0, 1, None), (1, 2, 0), (2, 3, 1)]),
        ({2, 3}, [(0, 1, None), (3, 2, 0)]),
        (set(), []),
    ],
)
async def test_a_run_goes_on_and_its_chain_leaves_out_what_was_not_saved(failing: set[int], left: list[Any]):
    storage = FailingStorage(DISK_FULL, save=failing)
    result = await warned(four(storage).run("x"))
    assert result.outputs == ["x>a>b>c!"]
    assert links(storage) == left
    assert len(warnings_of(result)) == (len(failing) or 4)


async def test_the_warning_points_at_the_line_that_awaits_the_run():
    with warns(RuntimeWarning, "0") as seen:
        await four(FailingStorage(DISK_FULL, save={1})).run("x")
    assert [warning.filename for warning in seen] == [__file__]


async def test_a_handle_warns_once_however_many_rounds_its_run_has():
    storage = FailingStorage(DISK_FULL, save=set())
    run = four(storage).start("x")
    assert (await warned(run.result())).outputs == ["x>a>b>c!"]
    assert await run.try_send_message("y")
    assert (await run.result()).outputs == ["x>a>b>c!", "y>a>b>c!"]
    assert len(warnings_of(run.events)) == 4 + 5


async def test_the_number_of_a_save_that_arrived_although_it_failed_is_not_used_again():
    class Unsure(OwnStorage):
        """Keeps the second checkpoint, then loses the connection."""

        async def save(self, checkpoint: WorkflowCheckpoint) -> str:
            await super().save(checkpoint)
            if len(self.kept) == 2:
                raise ConnectionError
            return checkpoint.checkpoint_id

    storage = Unsure()
    assert len(warnings_of(await warned(four(storage).run("x")))) == 1
    assert links(storage) == [(0, 1, None), (1, 2, 0), (2, 3, 0), (3, 4, 2)]


async def test_a_latest_checkpoint_that_cannot_be_read_does_not_stop_the_saving():
    storage = FailingStorage(DISK_FULL, get_latest={1})
    result = await four(storage).run("x")
    (warning,) = warnings_of(result)
    assert warning.startswith("The latest checkpoint of chain 'four' cannot be read: OSError: disk full.")
    assert links(storage) == [(0, 1, None), (1, 2, 0), (2, 3, 1), (3, 4, 2)]


# ---- strict runs ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("nth", "done"), [(1, []), (2, [0]), (4, [0, 1, 2])])
async def test_a_strict_run_ends_where_the_save_fails_and_resumes_from_the_last_that_was_saved(nth: int, done: Any):
    storage = FailingStorage(DISK_FULL, save={nth})
    workflow = four(storage, strict_checkpoints=True)
    events: list[Any] = []
    with raises(WorkflowCheckpointException, nth - 1, "OSError"):
        await collect(workflow.run("x", stream=True), events)
    assert brief(events)[-2:] == ["failed", "status FAILED"]
    assert f"superstep_completed {nth - 1}" not in brief(events)
    assert [c.iteration_count for c in storage.kept.values()] == done
    if done:
        result = await workflow.run(checkpoint_id=list(storage.kept)[-1])
        assert result.outputs == ["x>a>b>c!"]
    else:
        assert (await workflow.run("again")).outputs == ["again>a>b>c!"]


@pytest.mark.parametrize(
    ("built", "run", "strict"),
    [(False, None, False), (True, None, True), (False, True, True), (True, False, False), (True, True, True)],
)
async def test_a_run_may_be_stricter_or_laxer_than_its_workflow(built: bool, run: bool | None, strict: bool):
    workflow = four(FailingStorage(DISK_FULL, save=set()), strict_checkpoints=built)
    running = workflow.run("x", options=RunOptions(strict_checkpoints=run))
    if strict:
        with raises(WorkflowCheckpointException, "disk"):
            await running
    else:
        assert (await warned(running)).outputs == ["x>a>b>c!"]


async def test_a_strict_handle_fails_in_the_step_that_was_not_saved_and_can_be_put_back():
    storage = FailingStorage(DISK_FULL, save={3})
    run = four(storage, strict_checkpoints=True).start("x")
    await run.step()
    await run.step()
    with raises(WorkflowCheckpointException, "disk"):
        await run.step()
    assert run.status is WorkflowRunState.FAILED
    assert run.last_checkpoint is not None
    await run.restore_checkpoint(run.last_checkpoint)
    assert (await run.result()).outputs[-1] == "x>a>b>c!"
    assert links(storage) == [(0, 1, None), (1, 2, 0), (2, 3, 1), (3, 4, 2)]


@pytest.mark.parametrize(
    ("save", "told"),
    [
        (ValueError("no"), "on_checkpoint_save of executor 'b' raised ValueError: no"),
        (5, "on_checkpoint_save of executor 'b' returned 5; expected a dict with text keys"),
        ({1: 2}, "returned {1: 2}; expected a dict with text keys"),
    ],
)
async def test_a_hook_that_fails_is_named_in_the_error_of_a_strict_run(save: Any, told: str):
    broken = Broken("b")
    broken.save = save
    storage = InMemoryCheckpointStorage()
    workflow = chain(Pass("a"), broken, Show("c"), name="w", checkpoint_storage=storage, strict_checkpoints=True)
    with pytest.raises(WorkflowCheckpointException) as caught:
        await workflow.run("x")
    assert told in str(caught.value)
    assert await storage.list_checkpoint_ids(workflow_name="w") == []


async def test_a_hook_that_fails_while_it_restores_leaves_state_messages_and_requests_alone():
    class Second(Broken):
        """Fails at the second restore."""

    storage = InMemoryCheckpointStorage()
    broken = Second("s")
    workflow = chain(Ask("ask"), broken, name="w", checkpoint_storage=storage)
    await workflow.run("x")
    point = await storage.get_latest(workflow_name="w")
    assert point is not None
    workflow.state.import_state({"mine": 1})
    broken.restore = ValueError("no")
    with raises(WorkflowCheckpointException, "'s'"):
        await workflow.run(checkpoint_id=point.checkpoint_id)
    assert workflow.state.export_state() == {"mine": 1}
    assert (await workflow.run(responses={"R0": "word"})).outputs[0][3] == "word"


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ({"messages": {"a": ["text"]}}, "message 0 of 'a' came back from the storage as a str"),
        ({"messages": {"a": "text"}}, "message 0 of 'a' came back from the storage as a str"),
        ({"messages": None}, "cannot be restored: AttributeError"),
        ({"pending_request_info_events": {"r": "text"}}, "the request 'r' came back from the storage as a str"),
        ({"state": {"_fan_in_buffers": {"k": {"a": ["text"]}}}}, "fan-in 'k' cannot be restored: message 0 of 'a'"),
        ({"state": {"_executor_state": {"zz": {}}}}, "state of executor 'zz', which this workflow lacks"),
        ({"state": 5}, "cannot be restored: TypeError"),
    ],
)
async def test_a_damaged_checkpoint_is_refused_before_anything_changes(damage: dict[str, Any], told: str):
    storage = OwnStorage()
    workflow = four(storage)
    workflow.state.import_state({"mine": 1})
    await storage.save(WorkflowCheckpoint("four", workflow.graph_signature_hash, "cp", **damage))
    with raises(WorkflowCheckpointException, "'cp'") as caught:
        await workflow.run(checkpoint_id="cp")
    assert told in str(caught.value)
    assert workflow.state.export_state() == {"mine": 1}


# ---- cancelled while saving ------------------------------------------------------------------------


class HangingStorage(OwnStorage):
    """Waits in one save until it is let go, before or after it has kept the checkpoint."""

    def __init__(self, nth: int, *, keeps_first: bool) -> None:
        super().__init__()
        self.nth, self.keeps_first = nth, keeps_first
        self.saves = 0
        self.reached, self.gate = asyncio.Event(), asyncio.Event()

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        self.saves += 1
        if self.keeps_first:
            await super().save(checkpoint)
        if self.saves == self.nth:
            self.reached.set()
            await self.gate.wait()
        return await super().save(checkpoint)


@pytest.mark.parametrize("keeps_first", [True, False])
async def test_a_run_that_is_cancelled_while_it_saves_frees_the_instance_and_resumes(keeps_first: bool):
    storage = HangingStorage(2, keeps_first=keeps_first)
    workflow = four(storage)
    task = asyncio.ensure_future(workflow.run("x"))
    await storage.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for checkpoint_id in list(storage.kept):
        assert (await workflow.run(checkpoint_id=checkpoint_id)).outputs == ["x>a>b>c!"]
    numbers = [c.metadata["seq"] for c in storage.kept.values()]
    assert numbers == list(range(1, len(numbers) + 1))


# ---- several writers of one chain ------------------------------------------------------------------


@pytest.mark.parametrize("kind", [InMemoryCheckpointStorage, OwnStorage])
async def test_two_runs_on_one_chain_are_two_branches_and_nothing_is_lost(kind: Any):
    storage = kind()
    runs = [four(storage).start(text) for text in "xy"]
    for _ in range(4):
        for run in runs:
            await run.step()
    assert [run.outputs for run in runs] == [["x>a>b>c!"], ["y>a>b>c!"]]
    assert len(await list_infos(storage, workflow_name="four")) == 8
    for run in runs:
        assert await list_lineage(storage, run.checkpoints[-1].checkpoint_id) == run.checkpoints


@pytest.mark.parametrize("kind", [InMemoryCheckpointStorage, OwnStorage])
@pytest.mark.parametrize("strict", [False, True])
async def test_a_run_that_checks_the_head_ends_when_another_run_saves_to_the_chain(kind: Any, strict: bool):
    storage = kind()
    mine = four(storage, strict_checkpoints=strict).start("x", options=RunOptions(check_head=True))
    await mine.step()
    await mine.step()
    other = four(storage).start("y")
    await other.step()
    with raises(WorkflowBusyError, "'four'", "3", "2"):
        await mine.step()
    assert mine.status is WorkflowRunState.FAILED
    assert [info.iteration for info in mine.checkpoints] == [0, 1]
    assert (await other.result()).outputs == ["y>a>b>c!"]


async def test_a_run_that_knows_an_older_head_saves_nothing():
    storage = InMemoryCheckpointStorage()
    known = four(storage).start("x")
    await known.step()
    seq = known.checkpoints[-1].seq
    resumed = four(storage).start(resume_from=known.checkpoints[-1], options=RunOptions(check_head=seq))
    await known.step()

    with raises(WorkflowBusyError, seq + 1, seq):
        await resumed.step()


async def test_of_two_runs_that_resume_one_chain_and_check_its_head_one_goes_on():
    storage = InMemoryCheckpointStorage()
    first = four(storage).start("x")
    await first.step()
    assert first.last_checkpoint is not None
    options = RunOptions(check_head=True)
    runs = [four(storage).start(resume_from=first.last_checkpoint, options=options) for _ in range(2)]
    results = await asyncio.gather(*(run.result() for run in runs), return_exceptions=True)
    assert sum(isinstance(result, WorkflowBusyError) for result in results) == 1
    infos: list[CheckpointInfo] = await list_infos(storage, workflow_name="four")
    assert [info.seq for info in infos] == list(range(1, len(infos) + 1))

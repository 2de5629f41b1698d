"""Anything with the six methods is a storage, whatever its habits."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench import (
    CheckpointStorage,
    Executor,
    Workflow,
    WorkflowCheckpoint,
    WorkflowCheckpointException,
    WorkflowContext,
    handler,
)
from agentbench.checkpoints import fork_checkpoint
from agentbench.checkpoints.access import list_infos, list_lineage
from agentbench.exceptions import CheckpointNotFoundError
from tests.parts.errors import raises, warns
from tests.parts.executors import Pass, Show, chain
from tests.workflows.storages import BackwardsStorage, BareStorage, FailingStorage, OwnStorage


class Grow(Executor):
    """Changes a list in shared state, one of its own, and the message, all in place."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.seen: list[str] = []

    @handler
    async def on_texts(self, texts: list[str], ctx: WorkflowContext[list[str], Any]) -> None:
        self.seen.append(self.id)
        shared = ctx.get_state("shared", [])
        shared.append(self.id)
        ctx.set_state("shared", shared)
        await ctx.yield_output((list(texts), list(self.seen), list(shared)))
        texts.append(self.id)
        await ctx.send_message(texts)

    async def on_checkpoint_save(self) -> dict[str, Any]:
        return {"seen": self.seen}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        self.seen = state["seen"]


def growing(storage: Any = None) -> Workflow:
    return chain(Grow("a"), Grow("b"), Grow("c"), name="grows", checkpoint_storage=storage)


def three(storage: Any = None, **settings: Any) -> Workflow:
    return chain(Pass("a"), Pass("b"), Show("c"), name="three", checkpoint_storage=storage, **settings)


every_kind = pytest.mark.parametrize("kind", [OwnStorage, BackwardsStorage, BareStorage])


@every_kind
async def test_a_run_is_resumed_three_times_from_each_checkpoint_with_the_same_result(kind: Any):
    storage = kind()
    assert isinstance(kind(), CheckpointStorage)
    whole = await growing(storage).run(["x"])
    points = sorted(storage.kept.values(), key=lambda c: c.iteration_count)
    for point in points:
        results = [
            (await growing().run(checkpoint_id=point.checkpoint_id, checkpoint_storage=storage)).outputs
            for _ in range(3)
        ]
        assert results == [whole.outputs[point.iteration_count + 1 :]] * 3, point.iteration_count


async def test_what_a_run_does_later_does_not_reach_a_storage_that_keeps_what_it_gets():
    storage = OwnStorage()
    await growing(storage).run(["x"])
    assert [c.state["shared"] for c in storage.kept.values()] == [["a"], ["a", "b"], list("abc"), list("abc")]
    assert [c.state["_executor_state"]["c"]["seen"] for c in storage.kept.values()] == [[], [], ["c"], ["c"]]
    assert [[m.data for sent in c.messages.values() for m in sent] for c in storage.kept.values()] == [
        [["x", "a"]],
        [["x", "a", "b"]],
        [["x", "a", "b", "c"]],
        [],
    ]


@every_kind
async def test_forks_and_restores_leave_the_objects_that_a_storage_keeps_alone(kind: Any):
    storage = kind()
    run = growing(storage).start(["x"])
    await run.result()
    before = {key: WorkflowCheckpoint.from_json(c.to_json()) for key, c in storage.kept.items()}
    fork = await run.fork(run.checkpoints[1], state_updates={"shared": ["edited"]}, workflow=growing())
    assert (await fork.result()).outputs == [(["x", "a", "b"], ["c"], ["edited", "c"])]
    await run.restore_checkpoint(run.checkpoints[0])
    await run.result()
    assert {key: storage.kept[key] for key in before} == before


async def test_state_that_cannot_be_copied_goes_to_a_storage_that_may_know_what_to_do_with_it():
    class Lock(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[str]) -> None:
            ctx.set_state("numbers", (n for n in [1]))
            await ctx.send_message(text)

    storage = OwnStorage()
    result = await chain(Lock("lock"), Show("show"), checkpoint_storage=storage).run("x")
    assert [e for e in result if e.type == "warning"] == []
    assert len(storage.kept) == 2


# ---- order, numbers, losses ------------------------------------------------------------------------


async def test_a_chain_is_in_order_although_the_storage_lists_it_backwards():
    storage = BackwardsStorage()
    run = three(storage).start("x")
    await run.result()
    assert await list_infos(storage, workflow_name="three") == run.checkpoints
    assert await list_lineage(storage, run.checkpoints[-1].checkpoint_id) == run.checkpoints
    await three(storage).run(checkpoint_id=run.checkpoints[1].checkpoint_id)
    assert [i.seq for i in await list_infos(storage, workflow_name="three")] == [1, 2, 3, 4]


async def test_without_metadata_links_are_all_there_is_and_enough():
    storage = BareStorage()
    run = three(storage).start("x")
    await run.result()
    fork = await run.fork(run.checkpoints[0], workflow=three())
    await fork.result()
    path = await list_lineage(storage, fork.checkpoints[-1].checkpoint_id)
    assert [info.iteration for info in path] == [0, 0, 1, 2]
    assert [info.seq for info in path] == [0] * 4


async def test_a_lost_checkpoint_is_an_error_of_its_own_and_no_one_elses():
    storage = OwnStorage()
    run = three(storage).start("x")
    await run.result()
    lost, middle, last = run.checkpoints
    del storage.kept[lost.checkpoint_id]
    for call in (
        lambda: three().run(checkpoint_id=lost.checkpoint_id, checkpoint_storage=storage),
        lambda: run.restore_checkpoint(lost),
        lambda: run.fork(lost),
        lambda: fork_checkpoint(storage, lost.checkpoint_id),
        lambda: list_lineage(storage, lost.checkpoint_id),
    ):
        with pytest.raises(CheckpointNotFoundError, match=lost.checkpoint_id):
            await call()
    assert await list_lineage(storage, last.checkpoint_id) == [middle, last]
    assert (await (await run.fork(middle)).result()).outputs == ["x>a>b!"]


# ---- what is no storage, or hardly -----------------------------------------------------------------


class PlainMethods(OwnStorage):
    def save(self, checkpoint: WorkflowCheckpoint) -> str:  # type: ignore[override]
        return checkpoint.checkpoint_id

    def load(self, checkpoint_id: str) -> Any:
        return self.kept[checkpoint_id]


async def test_a_method_that_is_not_async_is_named():
    storage: Any = PlainMethods()
    with warns(RuntimeWarning, "save()"):
        result = await three(storage).run("x")
    warnings = [e.data for e in result if e.type == "warning"]
    assert len(warnings) == 3
    assert "PlainMethods.save()" in warnings[0]
    assert "Write `async def save`" in warnings[0]
    with raises(WorkflowCheckpointException, "PlainMethods.save()"):
        await three(storage, strict_checkpoints=True).run("x")
    with raises(WorkflowCheckpointException, "KeyError"):
        await three(storage).run(checkpoint_id="cp")
    storage.kept["cp"] = WorkflowCheckpoint("three", "hash")
    with raises(WorkflowCheckpointException, "load()"):
        await three(storage).run(checkpoint_id="cp")


def test_the_error_names_the_methods_that_a_storage_lacks():
    class Half:
        async def save(self, checkpoint: WorkflowCheckpoint) -> str:
            return checkpoint.checkpoint_id

        async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
            raise KeyError(checkpoint_id)

    half: Any = Half()
    with raises(TypeError, "list_checkpoints", "list_checkpoint_ids", "get_latest"):
        three(half)


def test_an_address_is_no_storage_and_its_password_is_not_in_the_error():
    address: Any = "redis://me:s3cret@localhost"
    with raises(TypeError, "CheckpointStorage") as caught:
        three(address)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("stored", [{"workflow_name": "three"}, "text", 5])
async def test_what_is_loaded_must_be_a_checkpoint(stored: Any):
    storage = OwnStorage()
    storage.kept["cp"] = stored
    with raises(WorkflowCheckpointException, "'cp'", "OwnStorage.load"):
        await three().run(checkpoint_id="cp", checkpoint_storage=storage)


class OddError(Exception):
    """Says nothing."""


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ZeroDivisionError("by zero"), "ZeroDivisionError: by zero."),
        (OddError(), "OddError."),
        (OSError(28, "full"), "full."),
    ],
)
async def test_odd_exceptions_of_a_storage_become_checkpoint_errors_with_their_cause(error: Exception, told: str):
    storage = FailingStorage(error, load=set())
    await three(storage).run("x")
    checkpoint_id = next(iter(storage.kept))
    with pytest.raises(WorkflowCheckpointException) as caught:
        await three(storage).run(checkpoint_id=checkpoint_id)
    assert str(caught.value).startswith(f"Checkpoint {checkpoint_id!r} cannot be loaded: ")
    assert str(caught.value).endswith(told)
    assert caught.value.__cause__ is error


async def test_a_fork_that_cannot_be_saved_is_taken_back_and_says_why():
    storage = FailingStorage(OSError("disk full"), save={6})
    run = three(storage).start("x")
    await run.result()
    with raises(WorkflowCheckpointException, "OSError"):
        await fork_checkpoint(storage, run.checkpoints[1].checkpoint_id, workflow_name="other", with_history=True)
    assert await list_infos(storage, workflow_name="other") == []
    assert len(storage.kept) == 3

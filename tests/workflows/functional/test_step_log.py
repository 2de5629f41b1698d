"""What a functional workflow records of its steps: written once, and nobody else can change it."""

import copy
from pathlib import Path
from typing import Any

import pytest

from agentbench import (
    FileCheckpointStorage,
    InMemoryCheckpointStorage,
    RunContext,
    WorkflowRunnerException,
    register_state_type,
    step,
    workflow,
)
from agentbench.checkpoints import SQLCheckpointStorage, fork_checkpoint
from agentbench.workflows.functional.step_log import StepLog
from tests.parts.errors import raises


@step
async def split(texts: list[str]) -> list[str]:
    texts.append("seen")
    return [text.upper() for text in texts]


@workflow
async def careless(text: str, ctx: RunContext) -> list[list[str]]:
    given = [text]
    found = await split(given)
    seen = [[*given], [*found]]
    given.clear()
    found.append("added by the caller")
    await ctx.request_info("go on?", bool)
    return seen


def storages(folder: Path) -> list[Any]:
    return [
        InMemoryCheckpointStorage(),
        FileCheckpointStorage(folder),
        SQLCheckpointStorage(folder / "steps.db"),
    ]


async def test_who_changes_a_result_or_an_argument_changes_nothing_in_the_record(tmp_path: Path):
    for storage in storages(tmp_path):
        await careless.run("a", checkpoint_storage=storage)
        for _ in range(2):  # a replay gives its result away too
            saved = await storage.get_latest(workflow_name="careless")
            assert saved.state["_step_cache"] == {"split::0": ["A", "SEEN"]}
            assert saved.state["_step_changes"] == {"split::0": {0: ["a", "seen"]}}
            saved.state["_step_cache"]["split::0"].append("added by a reader")
            result = await careless.run(
                checkpoint_id=saved.checkpoint_id, checkpoint_storage=storage, responses={"auto::0": True}
            )
            assert result.get_outputs() == [[["a", "seen"], ["A", "SEEN"]]]
            await careless.run("a", checkpoint_storage=storage)


async def test_a_result_is_not_written_again_however_many_steps_follow(tmp_path: Path):
    class Page:
        written = 0

    def write(_: Page) -> dict[str, Any]:
        Page.written += 1
        return {}

    register_state_type(Page, encode=write, decode=lambda _: Page())

    @step
    async def read(number: int) -> Page:
        return Page()

    @workflow
    async def book(length: int) -> None:
        for number in range(length):
            await read(number)

    for storage in (FileCheckpointStorage(tmp_path), SQLCheckpointStorage(tmp_path / "steps.db")):
        Page.written = 0
        await book.run(40, checkpoint_storage=storage)
        assert Page.written < 2 * 40


@pytest.mark.parametrize("names", [("_step_cache",), ("_step_cache", "_step_arguments", "_step_changes")])
async def test_records_that_are_plain_dictionaries_are_read(tmp_path: Path, names: tuple[str, ...]):
    """So they were in checkpoints of earlier versions, and so they are when somebody edited them."""
    storage = FileCheckpointStorage(tmp_path)
    await careless.run("a", checkpoint_storage=storage)
    saved = await storage.get_latest(workflow_name="careless")
    assert saved is not None
    old = await fork_checkpoint(
        storage, saved.checkpoint_id, state_updates={name: dict(saved.state[name]) for name in names}
    )
    result = await careless.run(
        checkpoint_id=old.checkpoint_id, checkpoint_storage=storage, responses={"auto::0": True}
    )
    assert [event.type for event in result].count("executor_bypassed") == 1
    assert result.get_outputs() == [[["a", "seen"], ["A", "SEEN"]]]


async def test_arguments_are_still_compared_after_a_restart(tmp_path: Path):
    texts = ["a"]

    @workflow
    async def fickle(ctx: RunContext) -> None:
        await split([*texts])
        await ctx.request_info("go on?", bool)

    storage = FileCheckpointStorage(tmp_path)
    await fickle.run(checkpoint_storage=storage)
    saved = await storage.get_latest(workflow_name="fickle")
    assert saved is not None
    texts[:] = ["b"]
    with raises(WorkflowRunnerException, "'split::0'"):
        await fickle.run(checkpoint_id=saved.checkpoint_id, checkpoint_storage=storage, responses={"auto::0": True})


async def test_pickles_contain_the_results_as_a_plain_dictionary(tmp_path: Path):
    @step
    async def letters(text: str) -> list[str]:
        return [*text]

    @workflow
    async def short() -> list[str]:
        return await letters("ab")

    storage = FileCheckpointStorage(tmp_path, codec="pickle")
    await short.run(checkpoint_storage=storage)
    saved = (await storage.list_checkpoints(workflow_name="short"))[0]
    assert type(saved.state["_step_cache"]) is dict
    result = await short.run(checkpoint_id=saved.checkpoint_id, checkpoint_storage=storage)
    assert result.get_outputs() == [["a", "b"]]


def test_a_copy_of_a_log_does_not_grow_with_it_and_can_be_edited():
    log = StepLog({"a::0": 1})
    copied = copy.deepcopy(log)
    log["b::0"] = 2
    copied["a::0"] = 3
    assert log == {"a::0": 1, "b::0": 2}
    assert copied == {"a::0": 3}
    assert repr(copied) == "{'a::0': 3}"

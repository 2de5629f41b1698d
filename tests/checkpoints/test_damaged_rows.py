"""Databases that were changed behind the library's back: a checkpoint comes back as it was saved, or is named."""

from __future__ import annotations

import asyncio
import logging
import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any, Never

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench import (
    Executor,
    SQLCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowCheckpointException,
    WorkflowContext,
    handler,
    response_handler,
)
from tests.parts.errors import raises

pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed (extra sql)")


def checkpoint(seq: int) -> WorkflowCheckpoint:
    state = {"step": seq, "talk": [f"{n} ".ljust(90, "x") for n in range(2 * seq)]}
    signature = {"start": "a", "executors": {f"executor-{n}": "tests.Executor" for n in range(20)}}
    metadata = {"seq": seq, "source": "step", "run_id": "r1", "note": "é", "graph_signature": signature}
    return WorkflowCheckpoint("flow", "hash", f"cp{seq:03}", state=state, iteration_count=seq, metadata=metadata)


def rows_of(folder: Path) -> dict[str, WorkflowCheckpoint]:
    saved = {each.checkpoint_id: each for each in map(checkpoint, (16, 35, 82, 119))}
    storage = SQLCheckpointStorage(folder / "runs.db")
    for each in saved.values():
        asyncio.run(storage.save(each))
    storage.close()
    return saved


CHANGES = {
    "no head": "UPDATE agentbench_records SET head = '{\"format\":1}' WHERE seq = ?",
    "another number": "UPDATE agentbench_records SET seq = 7 WHERE seq = ?",
    "another run": "UPDATE agentbench_records SET run_id = 'r2' WHERE seq = ?",
    "no number": "UPDATE agentbench_records SET seq = 'many' WHERE seq = ?",
    "a head of another": "UPDATE agentbench_records SET head = (SELECT head FROM agentbench_records WHERE seq = 35) "
    "WHERE seq = ?",
    "no bytes": "UPDATE agentbench_records SET head = 3 WHERE seq = ?",
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("seq", [82, 119])
async def test_a_damaged_head_names_only_itself(
    tmp_path: Path, change: str, seq: int, caplog: pytest.LogCaptureFixture
) -> None:
    saved = await asyncio.to_thread(rows_of, tmp_path)
    with sqlite3.connect(tmp_path / "runs.db") as database:
        assert database.execute(CHANGES[change], [seq]).rowcount == 1
    database.close()
    storage, damaged = SQLCheckpointStorage(tmp_path / "runs.db"), f"cp{seq:03}"
    left = [each for each in saved if each != damaged]
    with caplog.at_level(logging.WARNING):
        assert [info.checkpoint_id for info in await storage.list_infos()] == left
        assert await storage.list_checkpoints(workflow_name="flow") == [saved[each] for each in left]
    assert f"'{damaged}'" in caplog.text
    (newest,) = await storage.list_infos(workflow_name="flow", limit=1)
    assert newest.checkpoint_id == left[-1]
    with raises(WorkflowCheckpointException, f"'{damaged}'"):
        await storage.load(damaged)
    assert await storage.delete(damaged)
    assert await storage.get_latest(workflow_name="flow") == saved[left[-1]]
    storage.close()


class Asker(Executor):
    @handler
    async def ask(self, question: str, ctx: WorkflowContext) -> None:
        await ctx.request_info(question, bool)

    @response_handler
    async def answer(self, question: str, answer: bool, ctx: WorkflowContext[Never, bool]) -> None:
        await ctx.yield_output(answer)


async def test_no_request_is_answered_after_a_checkpoint_that_may_be_an_answer_and_cannot_be_read(
    tmp_path: Path,
) -> None:
    def opened() -> tuple[Workflow, SQLCheckpointStorage]:
        storage = SQLCheckpointStorage(tmp_path / "runs.db")
        built = WorkflowBuilder(start_executor=Asker("asker"), name="flow", checkpoint_storage=storage).build()
        return built, storage

    workflow, storage = opened()
    (request,) = (await workflow.run("Ship?")).get_request_info_events()
    (asked,) = await storage.list_infos(workflow_name="flow")
    fork = WorkflowCheckpoint("flow", "hash", "fork", asked.checkpoint_id, metadata={"seq": asked.seq + 1})
    await storage.save(fork)
    storage.close()
    with sqlite3.connect(tmp_path / "runs.db") as database:
        assert database.execute(CHANGES["no head"], [asked.seq + 1]).rowcount == 1
    database.close()
    workflow, storage = opened()
    answers = {request.request_id: True}
    with raises(WorkflowCheckpointException, "'fork'"):
        await workflow.run(checkpoint_id=asked.checkpoint_id, responses=answers)
    assert await storage.delete("fork")
    result = await workflow.run(checkpoint_id=asked.checkpoint_id, responses=answers)
    assert (result.get_outputs(), result.warnings) == ([True], [])
    storage.close()


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, WorkflowCheckpoint]]:
    folder = tmp_path_factory.mktemp("pristine")
    return folder / "runs.db", rows_of(folder)


@given(place=st.floats(0, 1), bit=st.integers(0, 7))
def test_no_flipped_bit_is_served(
    pristine: Any, tmp_path_factory: pytest.TempPathFactory, place: float, bit: int
) -> None:
    source, saved = pristine
    data = bytearray(source.read_bytes())
    data[int(place * (len(data) - 1))] ^= 1 << bit
    folder = tmp_path_factory.mktemp("damaged")
    (folder / "runs.db").write_bytes(data)
    try:
        asyncio.run(judge(SQLCheckpointStorage(folder / "runs.db"), saved))
    finally:
        shutil.rmtree(folder)


async def judge(storage: SQLCheckpointStorage, saved: dict[str, WorkflowCheckpoint]) -> None:
    for checkpoint_id, expected in saved.items():
        with suppress(WorkflowCheckpointException):
            assert await storage.load(checkpoint_id) == expected
    try:
        infos = await storage.list_infos(workflow_name="flow")
        listed = [(each.checkpoint_id, each.seq, each.iteration, each.run_id) for each in infos]
    except WorkflowCheckpointException:
        return
    finally:
        storage.close()
    expected_list = [(each.checkpoint_id, each.metadata["seq"], each.iteration_count, "r1") for each in saved.values()]
    assert [each for each in expected_list if each in listed] == listed

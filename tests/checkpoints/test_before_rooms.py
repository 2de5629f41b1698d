"""What was saved before the library had rooms is read, and runs go on from it."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentbench import (
    AgentSession,
    Approval,
    CheckpointStorage,
    Content,
    FileCheckpointStorage,
    FileHistoryProvider,
    InMemoryCheckpointStorage,
    Message,
    SQLCheckpointStorage,
    WorkflowCheckpoint,
    WorkflowEvent,
    WorkflowMessage,
    WorkflowRunState,
)
from tests.checkpoints.old_flow import CHAIN, PICKLED, Draft, build

DATA = Path(__file__).parent / "data" / "before_rooms"
RESULT = "tea | tea | s1: Hello?"


def from_json_lines(folder: Path) -> CheckpointStorage:
    storage = InMemoryCheckpointStorage()
    for line in (folder / "checkpoints.jsonl").read_text().splitlines():
        asyncio.run(storage.save(WorkflowCheckpoint.from_json(line)))
    return storage


def from_files(folder: Path) -> CheckpointStorage:
    return FileCheckpointStorage(folder / "files")


def from_pickles(folder: Path) -> CheckpointStorage:
    return FileCheckpointStorage(folder / "pickled", codec="pickle", allowed_checkpoint_types=PICKLED)


def from_any_pickles(folder: Path) -> CheckpointStorage:
    return FileCheckpointStorage(folder / "pickled", codec="pickle", allowed_checkpoint_types={"*"})


def from_database(folder: Path) -> CheckpointStorage:
    return SQLCheckpointStorage(folder / "checkpoints.db")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DATA, tmp_path / "data"))


@pytest.fixture(params=[from_json_lines, from_files, from_pickles, from_any_pickles, from_database])
def storage(request: pytest.FixtureRequest, folder: Path) -> Iterator[Any]:
    open_: Callable[[Path], Any] = request.param
    if open_ is from_database:
        pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed (extra sql)")
    if open_ not in (from_pickles, from_any_pickles):  # which hold no arrays
        for package in ("numpy", "pandas"):
            pytest.importorskip(package, reason=f"{package} is not installed (extra notebook)")
    opened = open_(folder)
    yield opened
    getattr(opened, "close", lambda: None)()


def has_tables(storage: CheckpointStorage) -> bool:
    return "pickle" not in repr(storage)


async def test_all_values_are_what_they_were(storage: CheckpointStorage) -> None:
    checkpoints = await storage.list_checkpoints(workflow_name=CHAIN)
    assert [each.metadata["source"] for each in checkpoints] == ["input", "step", "step", "answer", "step", "step"]
    assert checkpoints[0].metadata["tags"] == ["old"]
    state = checkpoints[2].state
    assert isinstance(state["session"], AgentSession)
    assert state["session"].state["turns"][0] == Message("user", [Content.from_text("Hello?")])
    assert state["status"] == [WorkflowRunState.IN_PROGRESS, Approval(True)]
    assert state["types"] == [Message, WorkflowRunState, list[Content]]
    assert state["plain"]["t"] == (1, b"x")
    if has_tables(storage):
        counts = state["_executor_state"]["count"]["counts"]
        assert (str(counts.dtype), counts.tolist()) == ("int32", [0, 1, 0])
    (waiting,) = state["_fan_in_buffers"].values()
    assert isinstance(waiting["count"][0], WorkflowMessage)
    assert isinstance(waiting["count"][0].data, Draft)
    (request,) = checkpoints[2].pending_request_info_events.values()
    assert isinstance(request, WorkflowEvent)
    assert (request.data.draft.message.text, request.response_type) == ("tea", Approval)
    (answer,) = checkpoints[3].messages["internal:review"]
    assert answer.original_request_info_event.request_id == request.request_id


async def test_a_run_goes_on_from_each_of_them(storage: CheckpointStorage) -> None:
    *unfinished, finished = await storage.list_checkpoint_ids(workflow_name=CHAIN)
    for checkpoint_id in unfinished:
        workflow = build(storage, tables=has_tables(storage))
        result = await workflow.run(checkpoint_id=checkpoint_id)
        for request in result.get_request_info_events():
            result = await workflow.run(responses={request.request_id: Approval(True)})
        assert result.get_outputs() == [RESULT]
    assert (await build(storage, tables=has_tables(storage)).run(checkpoint_id=finished)).get_outputs() == []


async def test_a_session_and_its_history_are_read(folder: Path) -> None:
    session = AgentSession.from_dict(json.loads((folder / "session.json").read_text()))
    assert session.session_id == "s2"
    assert session.state["mine"]["message"] == Message("user", ["kept"])
    messages = await FileHistoryProvider(folder / "history").get_messages("s2")
    assert [each.text for each in messages] == ["Hello?", "Good day.", "Which tea?", "Green."]

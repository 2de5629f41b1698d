import base64
import json
import logging
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentbench import WorkflowMessage
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.file import FileCheckpointStorage
from agentbench.exceptions import UnstorableValueError, WorkflowCheckpointException
from agentbench.serialization.pickled import encode_checkpoint_value
from tests.parts.errors import raises

FLOW = "flow"
# Written by agent-framework-core 1.7.0.
FOREIGN: dict[str, Any] = {
    "workflow_name": "flow",
    "graph_signature_hash": "8f47623a3e0e54e911e012414fdb61a8a6d35a5885c62bd9b5765f3a17ce8b0d",
    "checkpoint_id": "40bc8443-30e4-4c8d-be24-001b9b3a5617",
    "previous_checkpoint_id": None,
    "timestamp": "2026-11-22T01:55:34.978697+00:00",
    "messages": {
        "a": [
            {
                "__pickled__": "gAWV3AAAAAAAAACMKmFnZW50X2ZyYW1ld29yay5fd29ya2Zsb3dzLl9ydW5uZXJfY29udGV4dJSMD1dvcmtm"
                "bG93TWVzc2FnZZSTlCmBlH2UKIwEZGF0YZRLAowJc291cmNlX2lklIwBYZSMCXRhcmdldF9pZJROjAR0eXBl"
                "lGgAjAtNZXNzYWdlVHlwZZSTlIwIc3RhbmRhcmSUhZRSlIwOdHJhY2VfY29udGV4dHOUTowPc291cmNlX3Nw"
                "YW5faWRzlE6MG29yaWdpbmFsX3JlcXVlc3RfaW5mb19ldmVudJROdWIu",
                "__type__": "agent_framework._workflows._runner_context:WorkflowMessage",
            }
        ]
    },
    "state": {
        "_workflow_run_kwargs": {},
        "t": {"__pickled__": "gAWVBwAAAAAAAABLAUsBhpQu", "__type__": "builtins:tuple"},
        "_executor_state": {"a": {}, "b": {}},
    },
    "pending_request_info_events": {},
    "iteration_count": 0,
    "metadata": {},
    "version": "1.0",
}


class Mine:
    """A class that no codec knows."""

    def __init__(self, value=0):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, Mine) and self.value == other.value

    __hash__ = None  # type: ignore[assignment]


class Trap:
    """Leaves a trace when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (Path.write_text, (self.path, "unpickled"))


def checkpoint(seq, **fields):
    fields = {"checkpoint_id": f"cp{seq}", "metadata": {"seq": seq}, "state": {"step": seq}, **fields}
    return WorkflowCheckpoint(FLOW, "hash", **fields)


@pytest.fixture
def open_storage(tmp_path):
    opened = []

    def open_storage(folder="checkpoints", **options):
        opened.append(FileCheckpointStorage(tmp_path / folder, **options))
        return opened[-1]

    yield open_storage
    for storage in opened:
        storage.close()


# ------------------------------------------------------------------------------------------------------- protocol


async def test_it_has_a_path_and_shows_it(open_storage, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert repr(FileCheckpointStorage("here")) == f"FileCheckpointStorage({str(tmp_path / 'here')!r})"
    assert repr(open_storage(codec="pickle")).endswith('checkpoints\', codec="pickle")')
    assert (tmp_path / "here").is_dir()
    assert FileCheckpointStorage("somewhere").storage_path == Path.cwd() / "somewhere"


def test_an_unknown_codec_is_refused(tmp_path):
    with raises(ValueError, "'yaml'", '"json"', '"pickle"'):
        FileCheckpointStorage(tmp_path, codec="yaml")  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------------------- files


async def test_a_chain_takes_room_for_what_is_new_and_not_for_its_history(open_storage, tmp_path):
    sizes = {}
    for length in (100, 500):
        storage = open_storage(f"{length}")
        conversation: list[str] = []
        for seq in range(1, length + 1):
            conversation = [*conversation, f"{seq:08}" + "x" * 192]
            await storage.save(checkpoint(seq, state={"conversation": conversation}))
        sizes[length] = sum(file.stat().st_size for file in (tmp_path / f"{length}").iterdir())
    assert sizes[500] <= 6 * sizes[100]
    assert sizes[500] <= 1 << 20


# -------------------------------------------------------------------------------------------------- pickled format


def test_what_can_unpickle_is_loaded_only_by_request(tmp_path: Path) -> None:
    script = """
import asyncio, sys
from agentbench import FileCheckpointStorage, WorkflowCheckpoint
async def use(**settings):
    storage = FileCheckpointStorage(sys.argv[1], **settings)
    saved = WorkflowCheckpoint(workflow_name="flow", graph_signature_hash="0", state={"n": 1})
    await storage.load(await storage.save(saved))
    print("agentbench.serialization.pickled" in sys.modules)
asyncio.run(use())
asyncio.run(use(codec="pickle"))
"""
    command = [sys.executable, "-c", script, str(tmp_path)]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout.split() == ["False", "True"]


async def test_a_checkpoint_of_agent_framework_is_read(open_storage, tmp_path):
    storage = open_storage(codec="pickle")
    (tmp_path / "checkpoints" / f"{FOREIGN['checkpoint_id']}.json").write_text(json.dumps(FOREIGN, indent=2))
    loaded = await storage.load(FOREIGN["checkpoint_id"])
    assert loaded.state == {"_workflow_run_kwargs": {}, "t": (1, 1), "_executor_state": {"a": {}, "b": {}}}
    (message,) = loaded.messages["a"]
    assert isinstance(message, WorkflowMessage)
    assert (message.data, message.source_id) == (2, "a")
    (info,) = await storage.list_infos(workflow_name=FLOW)
    assert (info.timestamp, info.n_messages, info.iteration) == (FOREIGN["timestamp"], 1, 0)
    (listed,) = await storage.list_checkpoints(workflow_name=FLOW)
    assert listed.state == loaded.state


async def test_what_is_written_is_one_file_in_the_pickled_format(open_storage, tmp_path):
    storage = open_storage(codec="pickle")
    saved = checkpoint(1, state={"pair": (1, 2), "n": 3}, metadata={"seq": 1, "graph_signature": {"a": 1}})
    await storage.save(saved)
    written = json.loads((tmp_path / "checkpoints" / "cp1.json").read_text())
    assert written.keys() == FOREIGN.keys()
    assert written["state"] == {"pair": encode_checkpoint_value((1, 2)), "n": 3}
    assert [name for name in os.listdir(tmp_path / "checkpoints") if name.endswith(".parts")] == []
    assert await storage.load("cp1") == saved
    assert await storage.list_checkpoints(workflow_name=FLOW) == [saved]
    assert await open_storage(codec="pickle").get_latest(workflow_name=FLOW) == saved


async def test_both_formats_make_one_chain(open_storage):
    plain, pickled = open_storage(), open_storage(codec="pickle")
    saved = [checkpoint(seq) for seq in range(1, 5)]
    for storage, each in zip([plain, pickled, plain, pickled], saved, strict=True):
        await storage.save_if_head(each, each.metadata["seq"] - 1)
    assert await pickled.list_checkpoints(workflow_name=FLOW) == saved
    assert [each.checkpoint_id for each in await pickled.list_infos(limit=2)] == ["cp3", "cp4"]
    for storage in (plain, open_storage()):
        assert await storage.list_checkpoints(workflow_name=FLOW) == [saved[0], saved[2]]
        assert await storage.list_checkpoint_ids(workflow_name=FLOW) == ["cp1", "cp2", "cp3", "cp4"]
    assert await pickled.delete("cp1")
    assert await pickled.prune(workflow_name=FLOW, keep=1) == 2
    assert await open_storage(codec="pickle").list_checkpoints(workflow_name=FLOW) == saved[3:]


async def test_only_allowed_types_are_unpickled(open_storage):
    mine = f"{Mine.__module__}:{Mine.__qualname__}"
    saved = checkpoint(1, state={"mine": Mine(7)})
    with raises(UnstorableValueError, "'mine'", "state[", mine, "allowed_checkpoint_types"):
        await open_storage(codec="pickle").save(saved)
    assert await open_storage(codec="pickle").list_checkpoint_ids(workflow_name=FLOW) == []
    await open_storage(codec="pickle", allowed_checkpoint_types={mine}).save(saved)
    with raises(WorkflowCheckpointException, "'cp1'", "Mine"):
        await open_storage(codec="pickle").load("cp1")
    for allowed in ({mine}, {"*"}):
        assert await open_storage(codec="pickle", allowed_checkpoint_types=allowed).load("cp1") == saved


def test_allowed_types_are_checked_when_the_storage_is_made(open_storage):
    with raises(ValueError, "'shop.Order'", "'module:qualname'"):
        open_storage(codec="pickle", allowed_checkpoint_types={"shop.Order"})


async def test_a_blocked_checkpoint_hides_no_other(open_storage, tmp_path, caplog):
    storage = open_storage(codec="pickle")
    await storage.save(checkpoint(1))
    await storage.save(checkpoint(3))
    payload = base64.b64encode(pickle.dumps(Trap(tmp_path / "trace"))).decode()
    planted = {**FOREIGN, "checkpoint_id": "planted", "metadata": {"seq": 2}}
    for place in ("state", "metadata"):
        content = {**planted, place: {"seq": 2, "it": {"__pickled__": payload, "__type__": "builtins:int"}}}
        (tmp_path / "checkpoints" / "planted.json").write_text(json.dumps(content))
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            listed = await storage.list_checkpoints(workflow_name=FLOW)
        assert [each.checkpoint_id for each in listed] == ["cp1", "cp3"]
        assert "'planted'" in caplog.text
        with raises(WorkflowCheckpointException, "'planted'"):
            await storage.load("planted")
        assert await storage.list_checkpoint_ids(workflow_name=FLOW) == ["cp1", "planted", "cp3"]
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize(
    "changes",
    [{"messages": 3}, {"metadata": [1]}, {"extra": 1}, {"state": "text"}, {"pending_request_info_events": 1.5}],
)
async def test_a_malformed_file_in_the_pickled_format_is_named(open_storage, tmp_path, changes):
    storage = open_storage(codec="pickle")
    await storage.save(checkpoint(1))
    content = {**FOREIGN, "checkpoint_id": "odd", **changes}
    (tmp_path / "checkpoints" / "odd.json").write_text(json.dumps(content))
    assert "cp1" in [each.checkpoint_id for each in await storage.list_checkpoints(workflow_name=FLOW)]
    if changes != {"state": "text"}:
        with raises(WorkflowCheckpointException, "'odd'"):
            await storage.load("odd")


async def test_metadata_that_a_list_cannot_show_is_still_loaded(open_storage):
    storage = open_storage(codec="pickle", allowed_checkpoint_types={"*"})
    saved = checkpoint(1, metadata={"seq": 1, "mine": Mine(1), "note": "text"})
    await storage.save(saved)
    (info,) = await storage.list_infos(workflow_name=FLOW)
    assert info.metadata == {"seq": 1, "note": "text"}
    assert await storage.load("cp1") == saved


async def test_what_cannot_be_pickled_is_refused_and_leaves_no_trace(open_storage):
    storage = open_storage(codec="pickle")
    with raises(WorkflowCheckpointException, "pickled"):
        await storage.save(checkpoint(1, state={"function": lambda: None}))
    assert await storage.list_checkpoint_ids(workflow_name=FLOW) == []


def test_no_folder_at_all_is_refused() -> None:
    with raises(ValueError, "storage_path"):
        FileCheckpointStorage("")

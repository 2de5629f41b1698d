"""Folders that somebody else has had hands on: errors that name the checkpoint, and never a hidden neighbour."""

import asyncio
import logging
import os
import shutil
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.file import FileCheckpointStorage
from agentbench.checkpoints.file_storage.folder import journal_name
from agentbench.exceptions import WorkflowCheckpointException
from tests.parts.errors import raises

FLOW = "flow"
JOURNAL = journal_name(FLOW)


def checkpoint(seq, **fields):
    fields = {"state": {"step": seq, "conversation": [f"message {n} " + "x" * 80 for n in range(seq)]}, **fields}
    fields = {"checkpoint_id": f"cp{seq:03}", "metadata": {"seq": seq}, **fields}
    return WorkflowCheckpoint(FLOW, "hash", **fields)


async def ids_of(storage):
    return [each.checkpoint_id for each in await storage.list_checkpoints(workflow_name=FLOW)]


@pytest.fixture
def folder(tmp_path):
    """Three checkpoints, and one of another chain."""
    storage = FileCheckpointStorage(tmp_path / "checkpoints")
    for each in (checkpoint(1), checkpoint(2), checkpoint(3), WorkflowCheckpoint("another", "hash", "other")):
        asyncio.run(storage.save(each))
    storage.close()
    return tmp_path / "checkpoints"


@pytest.fixture
def storage(folder):
    storage = FileCheckpointStorage(folder)
    yield storage
    storage.close()


# ------------------------------------------------------------------------------------------------------- ids and names

UNSAFE = ["", ".", "..", "../cp1", "/etc/passwd", "sub\\cp1", "C:\\cp1", "cp1\0.txt", "cp1.", "cp1 ", "CON", "nul.txt"]


async def test_an_id_that_could_name_no_file_of_the_folder_is_refused_everywhere(storage):
    for unsafe in [*UNSAFE, "x" * 300, "\ud800"]:
        for attempt in (
            storage.save(checkpoint(9, checkpoint_id=unsafe)),
            storage.load(unsafe),
            storage.delete(unsafe),
        ):
            with raises(WorkflowCheckpointException, "id"):
                await attempt
    for odd in (".hidden", "a b", "ü😀", "console", "a:b", "x.json", 'a"],"head":', "CP001", "~", "x" * 250):
        await storage.save(checkpoint(9, checkpoint_id=odd))
        assert (await storage.load(odd)).checkpoint_id == odd
        assert await ids_of(storage) == ["cp001", "cp002", "cp003", odd]
        assert await storage.delete(odd)


async def test_a_chain_may_have_any_name(storage, folder):
    for name in ("", "../up", "a/b", "\0", "CON", "x" * 5000, "\ud800", "Flow", "flow ", "流れ"):
        await storage.save(WorkflowCheckpoint(name, "hash", checkpoint_id="mine", state={"long": "y" * 5000}))
        fresh = FileCheckpointStorage(folder)
        assert (await fresh.load("mine")).state == {"long": "y" * 5000}
        assert await fresh.list_workflow_names() == sorted([FLOW, "another", name])
        assert {path.parent for path in folder.rglob("*")} == {folder}
        await fresh.delete_chain(name)
        fresh.close()


async def test_what_looks_like_a_mark_in_the_users_data_is_data(storage):
    marks = {
        "__pickled__": "gASVBQAAAAAAAABLBy4=",
        "__t__": "part",
        "v": "p" * 28,
        "t": '{"sum":"\n"removed":["cp001"]}',
    }
    saved = checkpoint(9, state={"one": marks, "many": [dict(marks) for _ in range(40)]}, metadata={"seq": 9, **marks})
    await storage.save(saved)
    assert await storage.load("cp009") == saved
    assert await ids_of(storage) == ["cp001", "cp002", "cp003", "cp009"]


# ------------------------------------------------------------------------------------------------------- planted files


def plant_folder(path):
    path.mkdir()


def plant_large_file(path):
    path.touch()
    os.truncate(path, 1 << 40)


def plant_link(path):
    path.symlink_to(path.parent.parent / "outside")


def plant_newer(path):
    path.write_text(f'{{"agentbench_chain": 2, "workflow_name": "{FLOW}", "generation": 7}}\n["something else"]\n')


PLANTED = [plant_folder, os.mkfifo, plant_large_file, plant_link, plant_newer]


@pytest.mark.parametrize("name", ["planted.json", JOURNAL])
@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
async def test_what_is_no_file_of_ours_hides_no_neighbour_and_is_never_written_to(folder, plant, name, caplog):
    path, outside = folder / name, folder.parent / "outside"
    path.unlink(missing_ok=True)
    outside.write_text("precious")
    plant(path)
    storage = FileCheckpointStorage(folder)
    with caplog.at_level(logging.WARNING):
        if name == JOURNAL:
            for attempt in (storage.get_latest(workflow_name=FLOW), storage.save(checkpoint(4)), ids_of(storage)):
                with pytest.raises(WorkflowCheckpointException, match=FLOW):
                    await attempt
        else:
            assert await ids_of(storage) == ["cp001", "cp002", "cp003"]
            with raises(WorkflowCheckpointException, "planted"):
                await storage.load("planted")
            await storage.save(checkpoint(4))
        assert (await storage.load("other")).checkpoint_id == "other"
        assert "another" in await storage.list_workflow_names()
    assert name in caplog.text
    assert outside.read_text() == "precious"
    assert path.is_symlink() is (plant is plant_link)
    storage.close()


async def test_a_link_in_the_place_of_the_lock_is_not_followed(folder, tmp_path):
    (tmp_path / "victim").write_text("precious")
    (folder / ".agentbench.lock").unlink()
    (folder / ".agentbench.lock").symlink_to(tmp_path / "victim")
    with pytest.raises(WorkflowCheckpointException, match=str(folder)):
        await FileCheckpointStorage(folder).save(checkpoint(4))
    assert (tmp_path / "victim").read_text() == "precious"


# -------------------------------------------------------------------------------------------------------- damaged lines


async def test_a_damaged_checkpoint_is_named_hides_no_other_and_can_be_deleted_or_saved_again(folder, caplog):
    path = folder / JOURNAL
    path.write_bytes(path.read_bytes().replace(b'"step":2', b'"step":7'))
    storage = FileCheckpointStorage(folder)
    for _ in range(2):
        with caplog.at_level(logging.WARNING):
            assert await ids_of(storage) == ["cp001", "cp003"]
        assert "'cp002'" in caplog.text
        with raises(WorkflowCheckpointException, "'cp002'"):
            await storage.load("cp002")
        caplog.clear()
        await storage.delete("cp001")  # sweeps
        await storage.save(checkpoint(1))
    assert await storage.delete("cp002")
    assert not await storage.delete("cp002")
    await storage.save(checkpoint(2))
    for opened in (storage, FileCheckpointStorage(folder)):
        assert await ids_of(opened) == ["cp001", "cp002", "cp003"]
        assert (await opened.load("cp002")).state == checkpoint(2).state
        opened.close()


async def test_no_older_checkpoint_passes_for_a_damaged_newest_one(folder):
    path = folder / JOURNAL
    path.write_bytes(path.read_bytes().replace(b'"step":3', b'"step":7'))
    storage = FileCheckpointStorage(folder)
    with raises(WorkflowCheckpointException, "'cp003'"):
        await storage.get_latest(workflow_name=FLOW)
    assert await storage.delete("cp003")
    assert await storage.get_latest(workflow_name=FLOW) == await storage.load("cp002")


async def test_no_older_checkpoint_passes_for_a_newest_one_whose_line_runs_into_the_one_before(folder):
    storage = FileCheckpointStorage(folder)
    await storage.save(checkpoint(4, state={"text": "a part of its own " * 100}))
    path = folder / JOURNAL
    part, _, newest = path.read_bytes().rstrip(b"\n").rpartition(b"\n")
    path.write_bytes(part + newest + b"\n")
    with raises(WorkflowCheckpointException, "'cp004'"):
        await FileCheckpointStorage(folder).get_latest(workflow_name=FLOW)


async def test_a_damaged_first_line_is_mended_by_the_next_save(folder, caplog):
    path = folder / JOURNAL
    path.write_bytes(b"X" + path.read_bytes()[1:])
    storage = FileCheckpointStorage(folder)
    with caplog.at_level(logging.WARNING):
        assert await storage.list_workflow_names() == ["another"]
    assert JOURNAL in caplog.text
    assert await ids_of(storage) == ["cp001", "cp002", "cp003"]
    await storage.save(checkpoint(4))
    assert await FileCheckpointStorage(folder).list_workflow_names() == ["another", FLOW]
    assert await ids_of(storage) == ["cp001", "cp002", "cp003", "cp004"]


# ----------------------------------------------------------------------------------------------------------------- fuzz


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pristine") / "checkpoints"
    storage = FileCheckpointStorage(folder)
    signature = {"start": "a", "executors": {f"executor-{n}": "tests.Executor" for n in range(20)}}
    saved = [checkpoint(seq, metadata={"seq": seq, "graph_signature": signature}) for seq in (16, 35, 82, 119, 348)]
    for each in saved:
        asyncio.run(storage.save(each))
    storage.close()
    return folder / JOURNAL, {each.checkpoint_id: each for each in saved}


damages = st.tuples(
    st.sampled_from(["flip", "cut", "insert", "overwrite"]),
    st.floats(0, 1),
    st.integers(0, 7),
    st.one_of(st.binary(min_size=1, max_size=12), st.sampled_from([b"\n", b"\n\n"])),
)


def apply(damage, data):
    kind, place, bit, extra = damage
    at = int(place * (len(data) - 1))
    if kind == "flip":
        return data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]
    if kind == "cut":
        return data[:at]
    return data[:at] + extra + data[at if kind == "insert" else at + len(extra) :]


@given(damage=damages)
def test_after_any_damage_what_is_loaded_is_what_was_saved(pristine, tmp_path_factory, damage):
    source, saved = pristine
    folder = tmp_path_factory.mktemp("damaged")
    (folder / JOURNAL).write_bytes(apply(damage, source.read_bytes()))
    storage = FileCheckpointStorage(folder)
    try:
        asyncio.run(judge(storage, saved, folder))
    finally:
        storage.close()
        shutil.rmtree(folder)


async def test_reading_a_file_whose_first_line_is_damaged_changes_nothing_and_the_next_save_repairs_it(
    pristine, tmp_path
):
    source, saved = pristine
    damaged = b"X" + source.read_bytes()[1:]
    (tmp_path / JOURNAL).write_bytes(damaged)
    storage = FileCheckpointStorage(tmp_path)
    first = next(iter(saved.values()))
    await ids_of(storage)  # as in `judge`

    assert await storage.load(first.checkpoint_id) == first
    assert (tmp_path / JOURNAL).read_bytes() == damaged
    await storage.save(replace(first, checkpoint_id="one-more"))
    assert not (tmp_path / JOURNAL).read_bytes().startswith(b"X")
    assert len(await FileCheckpointStorage(tmp_path).list_checkpoint_ids(workflow_name=FLOW)) == len(saved) + 1


async def error_of(storage, saved):
    """The error of loading a checkpoint; none if it is as it was saved."""
    try:
        assert await storage.load(saved.checkpoint_id) == saved
    except WorkflowCheckpointException as error:
        return error
    return None


async def judge(storage, saved, folder):
    await ids_of(storage)  # a chain whose first line is damaged is found by its name
    lost = set()
    for checkpoint_id, expected in saved.items():
        error = await error_of(storage, expected)
        if error is not None:
            assert repr(checkpoint_id) in str(error)
            lost.add(checkpoint_id)
    listed = await storage.list_checkpoints(workflow_name=FLOW)
    found = [each.checkpoint_id for each in listed]
    assert set(saved) - set(found) <= lost
    assert found == [each for each in saved if each in found]
    for each in listed:
        if each.checkpoint_id not in lost:
            assert each == saved[each.checkpoint_id]
        else:
            with pytest.raises(WorkflowCheckpointException, match=repr(each.checkpoint_id)):
                each.state  # noqa: B018
    new = checkpoint(400)
    await storage.save(new)
    assert await FileCheckpointStorage(folder).load("cp400") == new
    assert await storage.get_latest(workflow_name=FLOW) == new

"""Folders that somebody else has had hands on: errors that name the checkpoint, and never a hidden neighbour."""

import asyncio
import base64
import json
import logging
import os
import pickle
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.file import FileCheckpointStorage
from agentbench.checkpoints.file_storage.manifest import LARGEST_MANIFEST
from agentbench.exceptions import WorkflowCheckpointException

FLOW = "flow"


def checkpoint(seq, **fields):
    fields = {"state": {"step": seq, "conversation": [f"message {n} " + "x" * 80 for n in range(seq)]}, **fields}
    fields = {"checkpoint_id": f"cp{seq}", "metadata": {"seq": seq}, **fields}
    return WorkflowCheckpoint(FLOW, "hash", **fields)


async def ids_of(storage):
    return [each.checkpoint_id for each in await storage.list_checkpoints(workflow_name=FLOW)]


async def latest_of(storage):
    latest = await storage.get_latest(workflow_name=FLOW)
    return latest and latest.checkpoint_id


@pytest.fixture
def folder(tmp_path):
    """Two good checkpoints."""
    folder = tmp_path / "checkpoints"
    storage = FileCheckpointStorage(folder)
    asyncio.run(storage.save(checkpoint(1)))
    asyncio.run(storage.save(checkpoint(2)))
    storage.close()
    return folder


@pytest.fixture
def storage(folder):
    storage = FileCheckpointStorage(folder)
    yield storage
    storage.close()


# ------------------------------------------------------------------------------------------------------------- ids

UNSAFE = [
    "",
    ".",
    "..",
    "../cp1",
    "/etc/passwd",
    "sub/cp1",
    "sub\\cp1",
    "C:\\cp1",
    "cp1\0.txt",
    "cp1.",
    "cp1 ",
    "CON",
    "nul.txt",
    "com1",
    "x" * 300,
    "\ud800",
]


async def test_an_id_that_names_no_file_of_the_folder_is_refused_everywhere(storage):
    for unsafe in UNSAFE:
        saving = storage.save(checkpoint(3, checkpoint_id=unsafe))
        for attempt in (saving, storage.load(unsafe), storage.delete(unsafe)):
            with pytest.raises(WorkflowCheckpointException, match="cannot be the id"):
                await attempt
    assert await ids_of(storage) == ["cp1", "cp2"]


async def test_any_other_id_names_a_file(storage, folder):
    for odd in (".hidden", "a b", "ü😀", "console", "a:b", "x.json", "-", "~", "x" * 250):
        await storage.save(checkpoint(3, checkpoint_id=odd))
        assert (folder / f"{odd}.json").is_file()
        assert (await storage.load(odd)).checkpoint_id == odd
        assert await storage.list_checkpoint_ids(workflow_name=FLOW) == ["cp1", "cp2", odd]
        assert await storage.delete(odd)


async def test_a_chain_may_have_any_name(storage, folder):
    for name in ("", "../up", "a/b", "\0", "CON", "x" * 5000, "\ud800", "Flow", "flow ", "流れ"):
        await storage.save(WorkflowCheckpoint(name, "hash", checkpoint_id="other", state={"long": "y" * 5000}))
        fresh = FileCheckpointStorage(folder)
        assert (await fresh.load("other")).state == {"long": "y" * 5000}
        assert await fresh.list_workflow_names() == sorted([FLOW, name])
        assert await ids_of(fresh) == ["cp1", "cp2"]
        assert {path.parent for path in folder.rglob("*")} == {folder}
        await fresh.delete_chain(name)
        fresh.close()


async def test_where_names_of_files_ignore_case_the_second_of_two_ids_is_refused(storage, folder):
    # What such a file system does: the name of the new file finds the old one.
    shutil.copy(folder / "cp1.json", folder / "CP1.json")
    with pytest.raises(WorkflowCheckpointException, match=r"'CP1'.*holds the checkpoint 'cp1'.*upper and lower case"):
        await storage.save(checkpoint(3, checkpoint_id="CP1"))
    with pytest.raises(WorkflowCheckpointException, match="holds the checkpoint 'cp1'"):
        await storage.load("CP1")
    with pytest.raises(WorkflowCheckpointException, match="holds the checkpoint 'cp1'"):
        await storage.delete("CP1")


# ------------------------------------------------------------------------------------------------ what is no file


def plant_link(path):
    target = path.parent.parent / "outside.json"
    shutil.copy(path.parent / "cp1.json", target)
    path.symlink_to(target)


def plant_dangling_link(path):
    path.symlink_to(path.parent.parent / "nowhere")


def plant_folder(path):
    path.mkdir()


def plant_pipe(path):
    os.mkfifo(path)


def plant_large_file(path):
    path.touch()
    os.truncate(path, LARGEST_MANIFEST + 1)


@pytest.mark.parametrize(
    "plant",
    [plant_link, plant_dangling_link, plant_folder, plant_pipe, plant_large_file],
    ids=lambda plant: plant.__name__,
)
async def test_what_is_no_small_plain_file_is_neither_read_nor_hides_its_neighbours(storage, folder, plant, caplog):
    plant(folder / "planted.json")
    with caplog.at_level(logging.WARNING):
        assert await ids_of(storage) == ["cp1", "cp2"]
    assert "planted" in caplog.text
    assert await latest_of(storage) == "cp2"
    assert await storage.list_checkpoint_ids(workflow_name=FLOW) == ["cp1", "cp2"]
    with pytest.raises(WorkflowCheckpointException, match="planted"):
        await storage.load("planted")
    await storage.save(checkpoint(3))
    assert await ids_of(storage) == ["cp1", "cp2", "cp3"]


async def test_a_link_in_the_place_of_a_new_checkpoint_is_replaced_and_not_written_through(storage, folder, tmp_path):
    (tmp_path / "victim").write_text("precious")
    (folder / "cp3.json").symlink_to(tmp_path / "victim")
    await storage.save(checkpoint(3))
    assert not (folder / "cp3.json").is_symlink()
    assert (tmp_path / "victim").read_text() == "precious"
    assert await storage.load("cp3") == checkpoint(3, timestamp=(await storage.load("cp3")).timestamp)


@pytest.mark.parametrize("pattern", ["*.parts", ".agentbench.index", ".agentbench.lock"])
async def test_links_in_the_place_of_the_other_files_are_not_written_through(folder, tmp_path, pattern):
    (path,) = folder.glob(pattern)
    content = path.read_bytes()
    victim = tmp_path / "victim"
    victim.write_bytes(content)
    path.unlink()
    path.symlink_to(victim)
    storage = FileCheckpointStorage(folder)
    if pattern == ".agentbench.index":
        await storage.save(checkpoint(3))
        assert await ids_of(storage) == ["cp1", "cp2", "cp3"]
    else:
        with pytest.raises(WorkflowCheckpointException, match=str(folder)):
            await storage.save(checkpoint(3))
    assert victim.read_bytes() == content
    storage.close()


async def test_a_folder_in_the_place_of_a_new_checkpoint_is_an_error(storage, folder):
    (folder / "cp3.json").mkdir()
    with pytest.raises(WorkflowCheckpointException, match=r"'cp3'.*is a folder"):
        await storage.save(checkpoint(3))
    assert await ids_of(storage) == ["cp1", "cp2"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
async def test_a_file_that_may_not_be_read_does_not_hide_its_neighbours(storage, folder):
    (folder / "cp1.json").chmod(0)
    assert await ids_of(storage) == ["cp2"]
    with pytest.raises(WorkflowCheckpointException, match="cp1"):
        await storage.load("cp1")


# ------------------------------------------------------------------------------------------------------ bad contents


class Bomb:
    """Leaves a trace when it is unpickled."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return (Path.write_text, (Path(self.trace), "unpickled"))


def reference_file(state, checkpoint_id="planted", **fields):
    content = {
        "workflow_name": FLOW,
        "graph_signature_hash": "hash",
        "checkpoint_id": checkpoint_id,
        "previous_checkpoint_id": None,
        "timestamp": "2030-01-01T00:00:00+00:00",
        "messages": {},
        "state": state,
        "pending_request_info_events": {},
        "iteration_count": 0,
        "metadata": {},
        "version": "1.0",
        **fields,
    }
    return json.dumps(content, indent=2)


async def test_a_planted_pickle_is_listed_by_id_but_never_read(folder, tmp_path, caplog):
    payload = base64.b64encode(pickle.dumps(Bomb(str(tmp_path / "trace")))).decode()
    state = {"value": {"__pickled__": payload, "__type__": "builtins:int"}}
    (folder / "planted.json").write_text(reference_file(state, metadata={"seq": 1}))
    for storage in (FileCheckpointStorage(folder), FileCheckpointStorage(folder, allowed_checkpoint_types=["a:B"])):
        with pytest.raises(WorkflowCheckpointException, match=r"'planted'.*codec=\"pickle\""):
            await storage.load("planted")
        with caplog.at_level(logging.WARNING):
            assert await ids_of(storage) == ["cp1", "cp2"]
        assert "'planted'" in caplog.text
        assert await storage.list_checkpoint_ids(workflow_name=FLOW) == ["cp1", "planted", "cp2"]
        assert await latest_of(storage) == "cp2"
        storage.close()
    assert not (tmp_path / "trace").exists()


async def test_the_latest_checkpoint_in_the_pickled_format_is_an_error_and_no_older_one(storage, folder):
    (folder / "planted.json").write_text(reference_file({}, metadata={"seq": 9}))
    with pytest.raises(WorkflowCheckpointException, match=r"'planted'.*codec=\"pickle\""):
        await storage.get_latest(workflow_name=FLOW)


def damaged(**changes):
    def change(text):
        first, rest = text.split("\n", 1)
        for before, after in changes.values():
            assert before in first
            first = first.replace(before, after)
        return f"{first}\n{rest}"

    return change


BAD = {
    "empty": lambda text: "",
    "no JSON": lambda text: "hello",
    "binary": lambda text: "\x00\xff" * 100,
    "cut off": lambda text: text[:-40],
    "only the first line": lambda text: text.split("\n")[0],
    "deep": lambda text: "[" * 1_000_000,
    "deep in our format": lambda text: '{"agentbench_checkpoint":1,"sum":"' + "[" * 1_000_000,
    "a list": lambda text: "[]",
    "another document": lambda text: '{"name": "package", "version": "1"}',
    "of wrong types": lambda text: '{"checkpoint_id": 1, "workflow_name": [], "state": null, "metadata": 3}',
    "of a later version": damaged(version=('checkpoint":1', 'checkpoint":22')),
    "of another sum": damaged(sum=('"sum":"', '"sum":"0')),
    "of another chain": damaged(chain=('"chain":"flow"', '"chain":"other"')),
    "of another number": damaged(seq=('"seq":1', '"seq":7')),
    "changed inside": lambda text: text.replace('"step":1', '"step":2'),
}


@pytest.mark.parametrize("bad", BAD)
async def test_a_damaged_checkpoint_is_named_and_hides_no_other(folder, bad, caplog):
    path = folder / "cp1.json"
    path.write_text(BAD[bad](path.read_text()), encoding="latin-1")
    storage = FileCheckpointStorage(folder)
    with pytest.raises(WorkflowCheckpointException, match="'cp1'"):
        await storage.load("cp1")
    with caplog.at_level(logging.WARNING):
        assert await ids_of(storage) == ["cp2"]
    assert "'cp1'" in caplog.text
    assert await latest_of(storage) == "cp2"
    assert await storage.delete("cp1")
    assert not await storage.delete("cp1")
    again = checkpoint(1)
    await storage.save(again)
    assert await storage.load("cp1") == again
    assert await ids_of(storage) == ["cp1", "cp2"]
    storage.close()


@pytest.mark.parametrize("bad", ["empty", "of a later version", "changed inside"])
async def test_a_damaged_checkpoint_can_be_saved_again(folder, bad):
    path = folder / "cp1.json"
    path.write_text(BAD[bad](path.read_text()))
    storage = FileCheckpointStorage(folder)
    again = checkpoint(1)
    await storage.save(again)
    assert await storage.load("cp1") == again
    assert await ids_of(storage) == ["cp1", "cp2"]
    storage.close()


async def test_the_damaged_latest_checkpoint_makes_way_for_the_one_before_with_a_warning(folder, caplog):
    path = folder / "cp2.json"
    path.write_text(path.read_text().replace('"step":2', '"step":3'))
    storage = FileCheckpointStorage(folder)
    with caplog.at_level(logging.WARNING):
        assert await latest_of(storage) == "cp1"
    assert "'cp2'" in caplog.text
    storage.close()


async def test_one_id_in_two_files_is_one_checkpoint(storage, folder, caplog):
    (folder / "copy of cp1.json").write_bytes((folder / "cp1.json").read_bytes())
    with caplog.at_level(logging.WARNING):
        assert await ids_of(storage) == ["cp1", "cp2"]
    assert "copy of cp1.json" in caplog.text
    with pytest.raises(WorkflowCheckpointException, match="holds the checkpoint 'cp1'"):
        await storage.load("copy of cp1")


async def test_what_looks_like_a_mark_in_the_users_data_is_data(storage):
    marks = {
        "__pickled__": "gASVBQAAAAAAAABLBy4=",
        "__type__": "builtins:int",
        "__t__": "part",
        "v": "p" * 28,
        "text": '{"agentbench_checkpoint":1}\n"head":{}',
    }
    saved = checkpoint(3, state={"one": marks, "many": [dict(marks) for _ in range(40)]})
    await storage.save(saved)
    assert await storage.load("cp3") == saved


async def test_lost_parts_are_missed_by_those_who_need_them_only(folder):
    storage = FileCheckpointStorage(folder)
    await storage.save(checkpoint(3, state={"small": 1}))
    storage.close()
    for pack in folder.glob("*.parts"):
        pack.unlink()
    storage = FileCheckpointStorage(folder)
    assert (await storage.load("cp3")).state == {"small": 1}
    assert await ids_of(storage) == ["cp1", "cp2", "cp3"]
    long = checkpoint(40)
    await storage.save(long)
    assert await storage.load("cp40") == long
    storage.close()


async def test_a_sweep_frees_nothing_while_a_checkpoint_of_a_later_version_is_there(folder):
    storage = FileCheckpointStorage(folder)
    needed = checkpoint(40)
    await storage.save(needed)
    storage.close()
    path = folder / "cp40.json"
    text = path.read_text()
    path.write_text(text.replace('checkpoint":1,', 'checkpoint":2,', 1))
    storage = FileCheckpointStorage(folder)
    assert await storage.delete("cp1")
    path.write_text(text)
    assert await storage.load("cp40") == needed
    storage.close()


# ------------------------------------------------------------------------------------------------------------- fuzz


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pristine") / "checkpoints"
    storage = FileCheckpointStorage(folder)
    saved = [checkpoint(seq) for seq in (1, 2, 3, 18, 19)]
    for each in saved:
        asyncio.run(storage.save(each))
    storage.close()
    return folder, {each.checkpoint_id: each for each in saved}


@st.composite
def damages(draw):
    """One thing that may happen to the bytes of one file."""
    kind = draw(st.sampled_from(["flip", "cut", "insert", "overwrite"]))
    return kind, draw(st.floats(0, 1)), draw(st.integers(0, 7)), draw(st.binary(min_size=1, max_size=12))


def apply(damage, data):
    kind, place, bit, extra = damage
    at = int(place * max(len(data) - 1, 0))
    if kind == "flip" and data:
        return data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]
    if kind == "cut":
        return data[:at]
    if kind == "insert":
        return data[:at] + extra + data[at:]
    return data[:at] + extra + data[at + len(extra) :]


@settings(max_examples=150)
@given(which=st.integers(0, 7), damage=damages(), keeps_time=st.booleans())
def test_after_any_damage_what_is_loaded_is_what_was_saved(pristine, tmp_path_factory, which, damage, keeps_time):
    source, saved = pristine
    folder = tmp_path_factory.mktemp("damaged") / "checkpoints"
    shutil.copytree(source, folder)
    names = sorted(os.listdir(folder))
    path = folder / names[which % len(names)]
    status = path.stat()
    path.write_bytes(apply(damage, path.read_bytes()))
    if keeps_time:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    storage = FileCheckpointStorage(folder)
    try:
        asyncio.run(judge(storage, saved, path, may_be_listed=keeps_time))
    finally:
        storage.close()
        shutil.rmtree(folder)


async def error_of(storage, saved):
    """The error of loading a checkpoint; none if it is as it was saved."""
    try:
        assert await storage.load(saved.checkpoint_id) == saved
    except WorkflowCheckpointException as error:
        return error
    return None


async def judge(storage, saved, path, *, may_be_listed):
    is_pack = path.suffix == ".parts"
    lost = set()
    for checkpoint_id, expected in saved.items():
        error = await error_of(storage, expected)
        if error is not None:
            assert repr(checkpoint_id) in str(error)
            assert is_pack or path.stem == checkpoint_id
            lost.add(checkpoint_id)
    listed = await storage.list_checkpoints(workflow_name=FLOW)
    found = [each.checkpoint_id for each in listed]
    hidden = set() if is_pack else lost - set(found) if may_be_listed else lost
    assert found == [each for each in saved if each not in hidden]
    for each in listed:
        if each.checkpoint_id not in lost:
            assert each == saved[each.checkpoint_id]
        else:
            with pytest.raises(WorkflowCheckpointException, match=repr(each.checkpoint_id)):
                each.state  # noqa: B018
    new = checkpoint(20)
    await storage.save(new)
    assert await storage.load("cp20") == new
    assert await storage.get_latest(workflow_name=FLOW) == new

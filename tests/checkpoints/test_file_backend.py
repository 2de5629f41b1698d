"""Folders of checkpoints: several processes at once, what others do to the files, and failures of the disk."""

import asyncio
import json
import os
import resource
import shutil
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from agentbench._files.lock import FolderLock
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.file import FileCheckpointStorage
from agentbench.checkpoints.file_storage.backend import FileBackend
from agentbench.checkpoints.file_storage.folder import journal_name
from agentbench.checkpoints.parts.backend import CheckpointRecord, StalePartsError
from agentbench.checkpoints.parts.parts import part_id
from agentbench.exceptions import WorkflowBusyError, WorkflowCheckpointException
from tests.parts.errors import raises

ROOT = Path(__file__).parents[2]
CHAIN = "a chain / with: any name"
JOURNAL = journal_name(CHAIN)


def record(checkpoint_id, seq=1, *, chain=CHAIN, parts=(), timestamp="2026-01-01T00:00:00.000000+00:00", run_id="run"):
    content = json.dumps({"state": list(parts)})
    return CheckpointRecord(checkpoint_id, chain, seq, timestamp, run_id, json.dumps({"n": seq}), content)


def parts_of(*values):
    texts = map(json.dumps, values)
    return {part_id(text): text for text in texts}


def save(backend, checkpoint_id, seq=1, *values, **fields):
    parts = parts_of(*values)
    saved = record(checkpoint_id, seq, parts=parts, **fields)
    backend.put(saved, parts, generation=backend.generation(saved.workflow_name))
    return saved


def run_here(function, *args):
    """Call a function of this file in a process of its own, and return what it prints."""
    command = [sys.executable, "-m", "tests.checkpoints.test_file_backend", function.__name__, *args]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, timeout=120).stdout


def bare(saved):
    return replace(saved, content="")


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path / "made" / "with parents")


@pytest.fixture
def make(folder):
    made = []

    def make(path=folder, **options):
        made.append(FileBackend(path, **options))
        return made[-1]

    yield make
    for backend in made:
        backend.close()


@pytest.fixture
def backend(make):
    return make()


# --------------------------------------------------------------------------------------------------- several writers


def write_chain(folder, name):
    backend = FileBackend(folder)
    for n in range(1, 41):
        while True:
            try:
                save(backend, f"{name}-{n}", n, f"{name} part {n}", "shared")
                break
            except StalePartsError:
                continue
        if n % 10 == 0:
            backend.delete(CHAIN, [f"{name}-{n - 5}"], sweep=True)


def test_processes_that_write_and_sweep_one_chain_at_once_lose_nothing(folder, make):
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda name: run_here(write_chain, folder, name), "abc"))
    left = [n for n in range(1, 41) if n not in (5, 15, 25, 35)]
    backend = make()
    assert sorted(backend.ids(CHAIN)) == sorted(f"{name}-{n}" for name in "abc" for n in left)
    for head in backend.heads(CHAIN):
        wanted = json.loads(backend.get(head.checkpoint_id).content)["state"]
        assert len(wanted) == 2
        assert backend.parts(CHAIN, wanted).keys() == set(wanted)


def use_many_chains(folder):
    """In a process of its own: fewer files may be open than there are chains."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (90, 90))
    backend = FileBackend(folder)
    names = [f"chain {n}" for n in range(120)]
    saved = [save(backend, f"{name}, 1", 1, name, chain=name) for name in names]
    for each in (backend, FileBackend(folder)):
        backend.close()
        assert [each.get(one.checkpoint_id) for one in saved] == saved
        assert each.chains() == sorted(names)
        assert all(each.parts(name, list(parts_of(name))) == parts_of(name) for name in names)


def test_more_chains_than_files_may_be_open_are_all_found(folder):
    run_here(use_many_chains, folder)


def test_a_chain_that_was_rewritten_while_its_file_was_not_open_is_read_anew(backend, make, folder):
    save(backend, "one", 1, "a")
    for n in range(70):  # lets go of the first
        save(backend, f"other {n}", chain=f"chain {n}")
    path, first = Path(folder, JOURNAL), Path(folder, "first")
    os.link(path, first)
    other = make()
    save(other, "two", 2, "b" * 500)
    other.delete(CHAIN, ["one"], sweep=True)
    first.write_bytes(path.read_bytes())
    first.replace(path)  # as where a file system gives the number of a removed file to the next one
    assert backend.ids(CHAIN) == ["two"]
    assert backend.get("two").content == json.dumps({"state": list(parts_of("b" * 500))})
    assert backend.get("one") is None


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_does_not_share_the_lock_of_its_parent(backend):
    save(backend, "one", 1)
    backend._folder.lock.acquire()
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write_end, b"taken" if backend._folder.lock.attempt() else b"kept out")
        finally:
            os._exit(0)
    os.close(write_end)
    os.waitpid(child, 0)
    with os.fdopen(read_end, "rb") as answer:
        assert answer.read() == b"kept out"
    backend._folder.lock.release()


HOLD = """
import sys
from agentbench._files.lock import FolderLock
lock = FolderLock(sys.argv[1])
lock.acquire()
print("held", flush=True)
sys.stdin.readline()
lock.release()
"""


def test_an_impatient_save_is_refused_at_once_and_changes_nothing(backend, folder):
    one = save(backend, "one", 1, "a")
    generation, files = backend.generation(CHAIN), {path.name: path.read_bytes() for path in Path(folder).iterdir()}
    two, parts = record("two", 2, parts=parts_of("b")), parts_of("b")
    command = [sys.executable, "-c", HOLD, os.path.join(folder, ".agentbench.lock")]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(BlockingIOError):
            backend.put(two, parts, generation=generation, expected_seq=1, patient=False)
        assert {path.name: path.read_bytes() for path in Path(folder).iterdir()} == files
        assert backend.heads(CHAIN) == [bare(one)]  # reading needs no lock
        holder.stdin.write("\n")
        holder.stdin.flush()
        backend.put(two, parts, generation=generation, expected_seq=1)  # waits for it
    assert backend.heads(CHAIN) == [bare(one), bare(two)]
    os.unlink(os.path.join(folder, ".agentbench.lock"))
    backend.put(record("three", 3), {}, generation=generation, patient=False)
    assert backend.ids(CHAIN) == ["one", "two", "three"]


def test_a_writer_that_never_ends_is_named_instead_of_waited_for(backend, folder):
    save(backend, "one", 1)
    backend._folder.lock._patience_s = 0.01
    holder = FolderLock(os.path.join(folder, ".agentbench.lock"))
    assert holder.attempt()
    with raises(WorkflowCheckpointException, "process"):
        save(backend, "two", 2)
    holder.release()
    holder.close()
    save(backend, "two", 2)


# ------------------------------------------------------------------------------------------- the folder is the truth


def test_a_save_is_one_append_and_looks_at_no_other_checkpoint(backend, folder, monkeypatch):
    for n in range(1, 20):
        save(backend, f"cp{n}", n, "a")
    files, size = sorted(os.listdir(folder)), os.path.getsize(os.path.join(folder, JOURNAL))
    assert files == [".agentbench.lock", JOURNAL]
    for name in ("scandir", "listdir", "open"):
        monkeypatch.delattr(os, name)
    save(backend, "cp20", 20, "a", "b")
    monkeypatch.undo()
    assert sorted(os.listdir(folder)) == files
    assert os.path.getsize(os.path.join(folder, JOURNAL)) - size < 300


def test_a_chain_is_a_file_that_may_be_copied_exchanged_and_removed(backend, make, tmp_path, folder):
    other = make(str(tmp_path / "other"))
    one = save(other, "one", 1, "a")
    save(backend, "two", 2, chain="another")
    backend.heads(CHAIN)
    shutil.copy(tmp_path / "other" / JOURNAL, folder)
    for each in (backend, make()):
        assert each.chains() == [CHAIN, "another"]
        assert each.get("one") == one
        assert each.parts(CHAIN, list(parts_of("a"))) == parts_of("a")
    two = save(backend, "two", 2)
    assert backend.heads("another") == []
    assert make().latest(CHAIN) == two
    os.unlink(os.path.join(folder, JOURNAL))
    for each in (backend, make()):
        assert each.get("one") is None
        assert each.chains() == []
    with pytest.raises(WorkflowBusyError, match=r"does not exist|sequence number 0"):
        backend.put(record("three", 3), {}, generation=backend.generation(CHAIN), expected_seq=2)


def test_after_an_older_copy_was_put_back_what_it_lacks_is_written_again(tmp_path):
    """The program goes on, so it remembers more than the file holds now."""
    storage, path = FileCheckpointStorage(tmp_path), tmp_path / JOURNAL

    def checkpoint(seq):
        state = {"talk": [f"{n} ".ljust(200, "x") for n in range(10 * seq)]}
        return WorkflowCheckpoint(CHAIN, "hash", f"cp{seq}", state=state, metadata={"seq": seq})

    async def work():
        await storage.save(checkpoint(1))
        copy = path.read_bytes()
        await storage.save(checkpoint(2))
        path.write_bytes(copy)
        await storage.save(checkpoint(3))
        for opened in (storage, FileCheckpointStorage(tmp_path)):
            assert await opened.list_checkpoint_ids(workflow_name=CHAIN) == ["cp1", "cp3"]
            assert (await opened.load("cp3")).state == checkpoint(3).state
            opened.close()

    asyncio.run(work())


def test_a_folder_that_was_deleted_is_an_error_and_one_made_anew_is_another(backend, folder):
    save(backend, "one", 1, "a")
    generation = backend.generation(CHAIN)
    shutil.rmtree(folder)
    attempts = [
        lambda: backend.put(record("two", 2), {}, generation=generation),
        lambda: backend.get("one"),
        lambda: backend.latest(CHAIN),
        lambda: backend.ids(CHAIN),
        lambda: backend.delete(CHAIN, ["one"], sweep=True),
    ]
    for attempt in attempts:
        with raises(WorkflowCheckpointException, "exists"):
            attempt()
    os.mkdir(folder)
    with pytest.raises(StalePartsError):
        backend.put(record("two", 2, parts=parts_of("a")), {}, generation=generation)
    assert backend.heads(CHAIN) == []
    two = save(backend, "two", 2, "a")
    assert backend.heads(CHAIN) == [bare(two)]
    assert backend.parts(CHAIN, list(parts_of("a"))) == parts_of("a")


# ----------------------------------------------------------------------------------------------------------- the disk


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_files_are_for_their_owner_only_under_any_umask(tmp_path, make, umask):
    before = os.umask(umask)
    try:
        backend = make(str(tmp_path / "private"))
        save(backend, "one", 1, "a")
        backend.delete(CHAIN, ["one"], sweep=True)
        save(backend, "two", 2, "a")
    finally:
        os.umask(before)
    paths = list((tmp_path / "private").iterdir())
    assert len(paths) == 2
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o600}
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o700


def test_what_a_killed_process_left_half_written_is_removed_by_the_next_writer(backend, make, folder):
    save(backend, "one", 1)
    left, foreign = Path(folder, ".0123456789ab-17-4.tmp"), Path(folder, "mine.tmp")
    for path in (left, foreign):
        path.write_text("{")
    with open(os.path.join(folder, JOURNAL), "ab") as file:
        file.write(b'["p012345678901234567890123456","cut o')
    other = make()
    for each in (other, backend):
        assert each.ids(CHAIN) == ["one"]
    save(other, "two", 2)
    assert backend.ids(CHAIN) == make().ids(CHAIN) == ["one", "two"]
    assert b"cut o" not in Path(folder, JOURNAL).read_bytes()
    assert not left.exists()
    assert foreign.exists()


def test_with_fsync_a_save_has_reached_the_disk_when_it_returns(make, monkeypatch):
    backend = make(fsync=True)
    calls, fsync, rename = [], os.fsync, os.replace

    def synced(descriptor):
        calls.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}"))[-4:])
        fsync(descriptor)

    def renamed(source, target):
        calls.append("rename")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    save(backend, "one", 1, "a")
    new_file = [".tmp", "rename", "ents"]
    assert calls == [*new_file, "ints"]  # the new file, its name, the folder; what was appended
    save(backend, "two", 2, "b")
    assert calls[4:] == ["ints"]
    backend.delete(CHAIN, ["two"], sweep=True)
    assert calls[5:] == ["ints", *new_file, "ents"]


def fill_up(folder):
    """In a process of its own: files must not grow any more."""
    backend = FileBackend(folder)
    save(backend, "one", 1, "a" * 100)
    largest = os.path.getsize(os.path.join(folder, JOURNAL)) + 50
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    for values in (["b" * 2000], range(100)):
        with raises(OSError, "large") as caught:
            save(backend, "two", 2, *values)
        assert Path(caught.value.filename).parent == Path(folder)
        print(*backend.ids(CHAIN))


def test_a_full_disk_leaves_what_was_saved_and_nothing_half_written(folder, make):
    assert run_here(fill_up, folder).splitlines() == ["one", "one"]
    backend = make()
    assert backend.parts(CHAIN, list(parts_of("a" * 100))) == parts_of("a" * 100)
    assert save(backend, "two", 2, "b" * 2000) == backend.latest(CHAIN)


def test_a_file_in_the_place_of_the_folder_is_an_error_that_names_it(tmp_path):
    (tmp_path / "taken").write_text("")
    for path in (tmp_path / "taken", tmp_path / "taken" / "below"):
        with pytest.raises(WorkflowCheckpointException, match=r"taken.*[Ee]xpected a folder"):
            FileBackend(str(path))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])

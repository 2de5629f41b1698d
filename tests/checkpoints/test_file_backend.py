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
from agentbench.checkpoints.file_storage.backend import FileBackend
from agentbench.checkpoints.file_storage.index import FolderIndex
from agentbench.checkpoints.file_storage.manifest import read_manifest
from agentbench.checkpoints.file_storage.names import pack_name
from agentbench.checkpoints.parts.backend import CheckpointRecord, StalePartsError
from agentbench.checkpoints.parts.parts import part_id
from agentbench.exceptions import WorkflowBusyError, WorkflowCheckpointException

ROOT = Path(__file__).parents[2]
CHAIN = "a chain / with: any name"


def record(checkpoint_id, seq=1, *, chain=CHAIN, parts=(), timestamp="2026-01-01T00:00:00.000000+00:00", run_id="run"):
    content = json.dumps({"state": list(parts)})
    return CheckpointRecord(checkpoint_id, chain, seq, timestamp, run_id, json.dumps({"n": seq}), content)


def parts_of(*values):
    texts = map(json.dumps, values)
    return {part_id(text): text for text in texts}


def save(backend, checkpoint_id, seq=1, *values, **fields):
    parts = parts_of(*values)
    kept = record(checkpoint_id, seq, parts=parts, **fields)
    backend.put(kept, parts, generation=backend.generation(kept.workflow_name))
    return kept


def run_here(function, *args):
    """Call a function of this file in a process of its own, and return what it prints."""
    command = [sys.executable, "-m", "tests.checkpoints.test_file_backend", function.__name__, *args]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, timeout=120).stdout


def bare(kept):
    return replace(kept, content="")


def outline(kept):
    return replace(kept, head="", content="")


def contents_of(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


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


# ---------------------------------------------------------------------------------------------------- others see it


def test_two_writers_see_each_other_at_every_save(backend, make):
    other = make()
    generation = backend.generation(CHAIN)
    backend.put(record("one", 1), {}, generation=generation, expected_seq=0)
    seen = other.generation(CHAIN)
    other.put(record("two", 2), {}, generation=seen, expected_seq=1)
    with pytest.raises(WorkflowBusyError, match="sequence number 2, expected 1"):
        backend.put(record("late", 2), {}, generation=generation, expected_seq=1)
    backend.put(record("three", 3), {}, generation=generation, expected_seq=2)
    assert other.ids(CHAIN) == backend.ids(CHAIN) == ["one", "two", "three"]
    assert backend.get("late") is None


def test_only_one_of_two_writers_begins_a_chain(backend, make):
    other = make()
    mine, yours = backend.generation(CHAIN), other.generation(CHAIN)
    backend.put(record("one"), {}, generation=mine)
    with pytest.raises(StalePartsError):
        other.put(record("two"), {}, generation=yours)
    other.put(record("two"), {}, generation=other.generation(CHAIN))


def test_a_save_that_relies_on_parts_that_another_writer_swept_is_stale(backend, make):
    other = make()
    save(backend, "one", 1, "a")
    generation = other.generation(CHAIN)
    backend.delete(CHAIN, ["one"], sweep=True)
    with pytest.raises(StalePartsError):
        other.put(record("two", parts=parts_of("a")), {}, generation=generation)
    assert other.ids(CHAIN) == []


def test_outlines_are_listed_without_reading_files_that_are_as_they_were(backend, make, tmp_path, monkeypatch):
    saved = [save(backend, f"cp{n}", n) for n in range(1, 30)]
    other = make(str(tmp_path / "other"))
    copied = save(other, "copied", 7, run_id=None)
    exchanged = save(other, "cp3", 3, run_id="of another run")
    for name in ("copied.json", "cp3.json"):
        shutil.copy(os.path.join(other._folder.path, name), backend._folder.path)
    os.unlink(os.path.join(backend._folder.path, "cp1.json"))
    read = []

    def counted(path):
        read.append(os.path.basename(path))
        return read_manifest(path)

    monkeypatch.setattr("agentbench.checkpoints.file_storage.index.read_manifest", counted)
    monkeypatch.setattr("agentbench.checkpoints.file_storage.backend.read_manifest", counted)
    expected = [saved[1], exchanged, *saved[3:7], copied, *saved[7:]]
    for each in (make(), backend):
        read.clear()
        assert each.outlines(CHAIN) == [outline(kept) for kept in expected]
        assert sorted(read) == ["copied.json", "cp3.json"]


def test_more_chains_than_may_be_open_at_once_are_all_found(backend):
    for n in range(80):
        save(backend, f"cp{n}", 1, f"part {n}", chain=f"chain {n}")
    for n in range(80):
        assert backend.parts(f"chain {n}", list(parts_of(f"part {n}"))) == parts_of(f"part {n}")


# ------------------------------------------------------------------------------------------- the folder is the truth


def test_files_that_were_copied_in_are_found(backend, make, tmp_path):
    other = make(str(tmp_path / "other"))
    one = save(other, "one", 1, "a")
    save(backend, "two", 2)
    backend.heads(CHAIN)
    for name in os.listdir(other._folder.path):
        if name.endswith((".json", ".parts")):
            shutil.copy(os.path.join(other._folder.path, name), backend._folder.path)
    assert backend.ids(CHAIN) == make().ids(CHAIN) == ["one", "two"]
    assert backend.get("one") == one
    assert make().parts(CHAIN, list(parts_of("a"))) == parts_of("a")


def test_a_copied_in_checkpoint_may_be_the_latest_and_can_be_deleted(backend, make, tmp_path):
    other = make(str(tmp_path / "other"))
    newest = save(other, "newest", 9)
    save(backend, "two", 2)
    shutil.copy(os.path.join(other._folder.path, "newest.json"), backend._folder.path)
    assert backend.latest(CHAIN) == newest
    assert make().delete(CHAIN, ["newest"], sweep=True) == 1
    assert backend.latest(CHAIN).checkpoint_id == "two"


def test_the_latest_is_searched_again_when_files_came_and_went(backend, make, tmp_path):
    other = make(str(tmp_path / "other"))
    newest = save(other, "newest", 9)
    one = save(backend, "one", 1)
    reader = make()
    path = os.path.join(backend._folder.path, "newest.json")
    for _ in range(2):
        assert reader.latest(CHAIN) == one
        assert reader.heads(CHAIN, limit=1) == [bare(one)]
        shutil.copy(os.path.join(other._folder.path, "newest.json"), path)
        assert reader.heads(CHAIN, limit=1) == [bare(newest)]
        assert reader.latest(CHAIN) == newest
        os.unlink(path)


def test_a_damaged_line_of_the_index_costs_a_look_at_one_file(backend, make, monkeypatch):
    saved = [save(backend, f"cp{n}", n) for n in range(1, 10)]
    index = Path(backend._folder.path, ".agentbench.index")
    index.write_bytes(index.read_bytes().replace(b"cp4.json", b"cp5.json"))
    read = []

    def counted(path):
        read.append(os.path.basename(path))
        return read_manifest(path)

    monkeypatch.setattr("agentbench.checkpoints.file_storage.index.read_manifest", counted)
    assert make().outlines(CHAIN) == [outline(kept) for kept in saved]
    assert read == ["cp4.json"]


def test_files_that_were_removed_are_gone(backend, make):
    save(backend, "one", 1)
    save(backend, "two", 2)
    other = make()
    other.ids(CHAIN)
    os.unlink(os.path.join(backend._folder.path, "two.json"))
    for each in (backend, other, make()):
        assert each.latest(CHAIN).checkpoint_id == "one"
        assert each.ids(CHAIN) == ["one"]
        assert each.get("two") is None


def test_the_head_check_notices_that_the_head_was_removed_by_hand(backend):
    save(backend, "one", 1)
    save(backend, "two", 2)
    os.unlink(os.path.join(backend._folder.path, "two.json"))
    generation = backend.generation(CHAIN)
    with pytest.raises(WorkflowBusyError, match="sequence number 1"):
        backend.put(record("three", 3), {}, generation=generation, expected_seq=2)


def test_a_file_that_was_exchanged_is_read_again(backend, make, tmp_path):
    other = make(str(tmp_path / "other"))
    exchanged = save(other, "one", 1, chain="another, with a longer name")
    save(backend, "one", 1)
    reader, limited = make(), make()
    assert len(reader.heads(CHAIN)) == len(limited.heads(CHAIN, limit=1)) == 1
    shutil.copy(os.path.join(other._folder.path, "one.json"), backend._folder.path)
    assert reader.heads(CHAIN) == limited.heads(CHAIN, limit=1) == []
    assert reader.heads("another, with a longer name") == [bare(exchanged)]


@pytest.mark.parametrize("content", [None, b"", b"nonsense\n" * 50, b"00000000 [1]\n", b"[" * 5000])
def test_the_index_is_only_a_cache(backend, make, content):
    saved = [bare(save(backend, f"cp{n}", n)) for n in range(1, 60)]
    index = os.path.join(backend._folder.path, ".agentbench.index")
    os.unlink(index)
    if content is not None:
        with open(index, "wb") as file:
            file.write(content)
    for each in (backend, make(), make()):
        assert each.heads(CHAIN) == saved
    last = save(make(), "last", 60)
    assert backend.latest(CHAIN) == make().latest(CHAIN) == last


def test_an_index_that_lies_is_found_out(backend, make, folder):
    saved = [bare(save(backend, f"cp{n}", n)) for n in range(1, 4)]
    liar = FolderIndex(folder, os.path.join(folder, ".agentbench.index"))
    liar.follow()
    liar.add(liar.chain(CHAIN)[0]._replace(seq=7, run_id="another run"))
    liar.add(liar.chain(CHAIN)[0]._replace(name="../escape.json", seq=8))
    liar.log.close()
    assert make().heads(CHAIN) == saved
    assert make().latest(CHAIN).checkpoint_id == "cp3"


def test_the_index_does_not_grow_for_ever(backend):
    for n in range(1, 1000):
        save(backend, f"cp{n}", n)
        if n > 5:
            backend.delete(CHAIN, [f"cp{n - 5}"], sweep=n % 50 == 0)
    assert backend.ids(CHAIN) == [f"cp{n}" for n in range(995, 1000)]
    assert os.path.getsize(os.path.join(backend._folder.path, ".agentbench.index")) < 100_000


def test_saving_looks_at_no_other_checkpoint(backend, monkeypatch):
    for n in range(1, 20):
        save(backend, f"cp{n}", n)
    looks = []

    def counted(call):
        def look(*args, **named):
            looks.append(args)
            return call(*args, **named)

        return look

    for name in ("scandir", "listdir", "open"):
        monkeypatch.setattr(os, name, counted(getattr(os, name)))
    save(backend, "cp20", 20, "a")
    assert len(looks) == 1, looks  # the new file


def test_the_first_save_into_a_folder_reads_no_other_checkpoint_either(backend, make, monkeypatch):
    for n in range(1, 20):
        save(backend, f"cp{n}", n)
    os.unlink(os.path.join(backend._folder.path, ".agentbench.index"))
    other = make()
    generation = other.generation(CHAIN)
    monkeypatch.delattr("agentbench.checkpoints.file_storage.index.read_manifest")
    other.put(record("cp20", 20), {}, generation=generation, expected_seq=19, patient=False)
    monkeypatch.undo()
    assert len(other.ids(CHAIN)) == 20


# ----------------------------------------------------------------------------------------------------------- files


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
    names = os.listdir(backend._folder.path)
    assert len(names) == 4, names
    assert {stat.S_IMODE(os.stat(os.path.join(backend._folder.path, name)).st_mode) for name in names} == {0o600}
    assert stat.S_IMODE(os.stat(backend._folder.path).st_mode) == 0o700


def test_what_a_killed_process_left_half_written_is_removed_by_the_next_writer(backend, make):
    save(backend, "one", 1)
    left = os.path.join(backend._folder.path, ".0123456789ab-17-4.tmp")
    foreign = os.path.join(backend._folder.path, "mine.tmp")
    for path in (left, foreign):
        with open(path, "w") as file:
            file.write("{")
    other = make()
    assert other.ids(CHAIN) == ["one"]
    save(other, "two", 2)
    assert not os.path.exists(left)
    assert os.path.exists(foreign)


def test_with_fsync_everything_reaches_the_disk_before_the_name_does(make, monkeypatch):
    backend = make(fsync=True)
    save(backend, "one", 1, "a")
    calls = []
    fsync, rename = os.fsync, os.replace

    def synced(descriptor):
        calls.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")).split("-")[0].split(".")[0])
        fsync(descriptor)

    def renamed(source, target):
        calls.append("rename")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    save(backend, "two", 2, "b")
    assert calls == ["a", "", "rename", "with parents"]  # the pack, the manifest, its name, the folder
    backend.delete(CHAIN, ["two"], sweep=False)
    assert calls[4:] == ["with parents"]


# -------------------------------------------------------------------------------------------------------- failures


def test_a_folder_that_was_deleted_is_an_error_and_no_empty_list(backend):
    save(backend, "one", 1, "a")
    generation = backend.generation(CHAIN)
    shutil.rmtree(backend._folder.path)
    attempts = [
        lambda: backend.put(record("two", 2), {}, generation=generation),
        lambda: backend.get("one"),
        lambda: backend.latest(CHAIN),
        lambda: backend.ids(CHAIN),
        lambda: backend.delete(CHAIN, ["one"], sweep=True),
    ]
    for attempt in attempts:
        with pytest.raises(WorkflowCheckpointException, match="is gone"):
            attempt()


def test_a_folder_that_was_made_anew_meanwhile_is_another_one(backend):
    save(backend, "one", 1, "a")
    generation = backend.generation(CHAIN)
    shutil.rmtree(backend._folder.path)
    os.mkdir(backend._folder.path)
    with pytest.raises(StalePartsError):
        backend.put(record("two", 2, parts=parts_of("a")), {}, generation=generation)
    two = save(backend, "two", 2, "a")
    assert backend.heads(CHAIN) == [bare(two)]
    assert backend.parts(CHAIN, list(parts_of("a"))) == parts_of("a")


def test_a_file_in_the_place_of_the_folder_is_an_error_that_names_it(tmp_path):
    (tmp_path / "taken").write_text("")
    for path in (tmp_path / "taken", tmp_path / "taken" / "below"):
        with pytest.raises(WorkflowCheckpointException, match=r"taken.*[Ee]xpected a folder"):
            FileBackend(str(path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_for_reading_only_can_be_read(backend, make):
    one = save(backend, "one", 1, "a")
    os.chmod(backend._folder.path, 0o500)
    try:
        other = make()
        assert other.heads(CHAIN) == [bare(one)]
        with pytest.raises(WorkflowCheckpointException, match="cannot be written to"):
            save(other, "two", 2)
    finally:
        os.chmod(backend._folder.path, 0o700)


def test_a_writer_that_never_ends_is_named_instead_of_waited_for(backend, folder):
    save(backend, "one", 1)
    backend._folder.lock._patience_s = 0.01
    holder = FolderLock(os.path.join(folder, ".agentbench.lock"))
    assert holder.attempt()
    try:
        with pytest.raises(WorkflowCheckpointException, match="Another process"):
            save(backend, "two", 2)
        assert backend.ids(CHAIN) == ["one"]  # reading needs no lock
    finally:
        holder.release()
        holder.close()
    save(backend, "two", 2)


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
    generation, files = backend.generation(CHAIN), contents_of(folder)
    two, parts = record("two", 2, parts=parts_of("b")), parts_of("b")
    command = [sys.executable, "-c", HOLD, os.path.join(folder, ".agentbench.lock")]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(BlockingIOError):
            backend.put(two, parts, generation=generation, expected_seq=1, patient=False)
        assert contents_of(folder) == files
        assert backend.heads(CHAIN) == [bare(one)]
        holder.stdin.write("\n")
        holder.stdin.flush()
        backend.put(two, parts, generation=generation, expected_seq=1)  # waits for it
    assert backend.heads(CHAIN) == [bare(one), bare(two)]
    backend.put(record("three", 3), {}, generation=generation, patient=False)
    assert backend.ids(CHAIN) == ["one", "two", "three"]


def test_a_removed_lock_file_blocks_no_writer(backend, folder):
    save(backend, "one", 1)
    generation = backend.generation(CHAIN)
    os.unlink(os.path.join(folder, ".agentbench.lock"))
    backend.put(record("two", 2), {}, generation=generation, patient=False)
    assert backend.ids(CHAIN) == ["one", "two"]


def fill_up(folder):
    """In a process of its own: files must not grow any more."""
    backend = FileBackend(folder)
    save(backend, "one", 1, "a" * 100)
    largest = max(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)) + 50
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    for attempt in (("part", 2, "b" * 2000), ("manifest", 3, *range(100))):
        with pytest.raises(OSError, match="too large") as caught:
            save(backend, *attempt)
        print(attempt[0], caught.value.strerror, *backend.ids(CHAIN), *sorted(os.listdir(folder)))


def test_a_full_disk_leaves_what_was_saved_and_nothing_half_written(folder, make):
    told = run_here(fill_up, folder).splitlines()
    files = f".agentbench.index .agentbench.lock {pack_name(CHAIN)} one.json"
    assert told == [f"part File too large one {files}", f"manifest File too large one {files}"]
    backend = make()
    assert backend.parts(CHAIN, list(parts_of("a" * 100))) == parts_of("a" * 100)
    assert save(backend, "two", 2, "b" * 2000) == backend.latest(CHAIN)


def test_a_log_that_cannot_be_written_costs_time_and_nothing_else(backend, make, monkeypatch):
    save(backend, "one", 1)
    other = make()
    other.ids(CHAIN)
    append = backend._index.log.append.__func__
    with monkeypatch.context() as patch:

        def fail(log, lines):
            if log is backend._index.log:
                raise OSError(28, "No space left on device")
            return append(log, lines)

        patch.setattr("agentbench._files.line_file.LineFile.append", fail)
        save(backend, "two", 2)
    generation = other.generation(CHAIN)
    with pytest.raises(WorkflowBusyError, match="sequence number 2"):
        other.put(record("three", 2), {}, generation=generation, expected_seq=1)
    assert make().ids(CHAIN) == ["one", "two"]


# ------------------------------------------------------------------------------------------------------- processes


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
        kept = backend.get(head.checkpoint_id)
        wanted = json.loads(kept.content)["state"]
        assert len(wanted) == 2
        assert backend.parts(CHAIN, wanted).keys() == set(wanted)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_does_not_share_the_lock_of_its_parent(backend, folder):
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


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])

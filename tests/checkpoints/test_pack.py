import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench._files.line_file import LineFile
from agentbench.checkpoints.file_storage.pack import PartsPack
from agentbench.checkpoints.parts.parts import part_id, verify_part


def parts_of(*values):
    texts = map(json.dumps, values)
    return {part_id(text): text for text in texts}


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "chain.parts")


@pytest.fixture
def pack(path):
    pack = PartsPack(path, "chain")
    pack.follow()
    pack.start_over(7)
    yield pack
    pack.close()


def opened(path, name="chain"):
    pack = PartsPack(path, name)
    pack.follow()
    return pack


def test_a_part_that_is_there_is_not_written_again(pack, path):
    parts = parts_of("a", "b")
    pack.append(parts)
    size = os.path.getsize(path)
    pack.append(parts)
    assert os.path.getsize(path) == size


def test_a_torn_last_line_is_passed_over_and_cut_off_before_the_next_one(pack, path):
    pack.append(parts_of("a"))
    whole = os.path.getsize(path)
    torn = parts_of("torn")
    with open(path, "ab") as file:
        file.write(next(f"{name} {text[:3]}" for name, text in torn.items()).encode())
    writer = opened(path)
    assert writer.fetch(torn.keys()) == {}
    writer.append(parts_of("b"))
    assert opened(path).fetch({**parts_of("a", "b"), **torn}) == parts_of("a", "b")
    with open(path, "rb") as file:
        assert file.read()[whole:] == b"".join(f"{i} {t}\n".encode() for i, t in parts_of("b").items())


def test_a_reader_of_a_replaced_pack_looks_for_what_it_lacks_in_the_new_one(pack, path):
    reader = opened(path)
    kept, new = parts_of("kept"), parts_of("new")
    pack.append(kept)
    pack.start_over(8, set(kept))
    pack.append(new)
    assert reader.fetch({**kept, **new}) == {**kept, **new}


@pytest.mark.parametrize(
    "header",
    [b"", b"{", b"[" * 100_000, b'{"agentbench_parts": 2, "workflow_name": "chain", "generation": 7}', b"[1]", b"null"],
)
def test_a_damaged_first_line_is_written_anew_above_the_parts(pack, path, header):
    parts = parts_of("a", "b")
    pack.append(parts)
    pack.close()
    with open(path, "rb") as file:
        lines = file.read().split(b"\n")
    with open(path, "wb") as file:
        file.write(b"\n".join([header, *lines[1:]]))
    writer = opened(path)
    assert writer.generation is None
    assert writer.fetch(parts.keys()) == parts
    writer.start_over(7)
    assert opened(path).generation == 7
    assert opened(path).fetch(parts.keys()) == parts


def test_the_pack_of_another_chain_is_not_taken_for_ones_own(pack, path):
    assert opened(path, "another").generation is None


def test_a_part_that_was_damaged_on_the_disk_is_written_again_by_the_next_who_has_it(pack, path):
    (name,) = parts = parts_of("precious")
    pack.append(parts)
    with open(path, "r+b") as file:
        data = file.read()
        file.seek(data.index(b"precious"))
        file.write(b"X")
    assert not verify_part(name, opened(path).fetch([name])[name])
    writer = opened(path)
    writer.append(parts)
    assert opened(path).fetch([name]) == parts


def test_what_a_failed_append_left_half_written_is_cut_off_by_the_next(pack, path, monkeypatch):
    pack.append(parts_of("a"))
    reader = opened(path)
    write = os.write

    def short_of_space(descriptor, data):
        if len(data) > 40:
            return write(descriptor, data[:40])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", short_of_space)
        with pytest.raises(OSError, match="No space"):
            pack.append(parts_of("b" * 60))
    assert opened(path).fetch(parts_of("a", "b" * 60)) == parts_of("a")
    pack.follow()
    pack.append(parts_of("c"))
    for each in (pack, reader, opened(path)):
        assert each.fetch(parts_of("a", "b" * 60, "c")) == parts_of("a", "c")


def test_whole_lines_of_a_failed_append_stay_where_others_have_read_them(pack, path, monkeypatch):
    reader = opened(path)
    write = os.write
    short, long = parts_of("short"), parts_of("long" * 100)

    def short_of_space(descriptor, data):
        if len(data) > 100:
            return write(descriptor, data[:100])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", short_of_space)
        with pytest.raises(OSError, match="No space"):
            pack.append({**short, **long})
    assert reader.fetch({**short, **long}) == short
    pack.follow()
    pack.append(parts_of("later"))
    assert reader.fetch({**short, **long, **parts_of("later")}) == {**short, **parts_of("later")}


@given(st.lists(st.lists(st.text(max_size=40), max_size=5), max_size=6), st.integers(0, 400))
def test_parts_before_a_torn_end_are_found(tmp_path_factory, batches, cut):
    path = str(tmp_path_factory.mktemp("pack") / "chain.parts")
    pack = opened(path)
    pack.start_over(1)
    ends = []
    for batch in batches:
        pack.append(parts_of(*batch))
        ends.append((os.path.getsize(path), parts_of(*batch)))
    size = max(0, os.path.getsize(path) - cut)
    os.truncate(path, size)
    reader = opened(path)
    for end, parts in ends:
        if end <= size:
            assert reader.fetch(parts.keys()) == parts
    writer = opened(path)
    if writer.generation is None:
        writer.start_over(7)
    writer.append(parts_of("later"))
    assert opened(path).fetch(parts_of("later")) == parts_of("later")
    for each in (pack, reader, writer):
        each.close()


def test_lines_are_read_from_where_the_last_read_ended(tmp_path):
    path = str(tmp_path / "lines")
    writer, reader = LineFile(path), LineFile(path)
    assert reader.follow() == (False, 0, b"")
    writer.replace(b"one\n")
    assert reader.follow() == (True, 0, b"one\n")
    writer.follow()
    assert writer.append(b"two\nthree\n") == 4
    assert reader.follow() == (False, 4, b"two\nthree\n")
    assert reader.follow() == (False, 14, b"")
    assert reader.read(4, 3) == b"two"
    os.truncate(path, 2)
    assert reader.follow() == (True, 0, b"")
    os.unlink(path)
    assert reader.follow() == (True, 0, b"")
    assert reader.follow() == (False, 0, b"")
    writer.close()

"""The file of a cassette: several writers, cut ends, replacement."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentbench.agents.clients.cassette.cassette import Cassette
from agentbench.agents.clients.cassette.lines import header_line
from agentbench.messages.message import Message
from tests.parts.errors import raises

HEADER = header_line(client="Fake", model=None)


def add(cassette: Cassette, text: str, secrets: Any = ()) -> None:
    request = cassette.request([cassette.message(Message("user", [text]))], {}, model=None)
    cassette.add(request, {"response": {}}, header=HEADER, secrets=secrets)


def prompts(cassette: Cassette) -> list[str]:
    cassette.read()
    return [call.prompt for call in cassette.lines.calls]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "deep" / "talk.jsonl")


@pytest.fixture
def cassette(path: str) -> Cassette:
    """A cassette with one call."""
    cassette = Cassette(path)
    assert prompts(cassette) == []
    assert not os.path.exists(os.path.dirname(path))
    add(cassette, "a")
    return cassette


def content(path: str) -> bytes:
    return Path(path).read_bytes()


def test_two_of_them_read_what_the_other_wrote(cassette: Cassette, path: str) -> None:
    other = Cassette(path)
    add(other, "b")
    add(cassette, "b")
    assert prompts(cassette) == prompts(other) == ["a", "b", "b"]
    calls = [json.loads(line) for line in content(path).splitlines() if b'"call":' in line]
    assert [(call["call"], call["messages"]) for call in calls] == [(1, ["m1"]), (2, ["m2"]), (3, ["m2"])]


PROCESS = """
import sys
from tests.agents.clients.cassette.test_cassette import Cassette, add
path, name = sys.argv[1:]
cassette = Cassette(path)
for turn in range(20):
    add(cassette, f"{name}-{turn}")
"""


def test_processes_that_write_at_once_lose_nothing(path: str) -> None:
    started = [subprocess.Popen([sys.executable, "-c", PROCESS, path, name]) for name in "ab"]
    assert [process.wait(timeout=60) for process in started] == [0, 0]
    cassette = Cassette(path)
    assert sorted(prompts(cassette)) == sorted(f"{name}-{turn}" for name in "ab" for turn in range(20))
    assert [call.number for call in cassette.lines.calls] == list(range(1, 41))


@pytest.mark.usefixtures("cassette")
def test_a_cut_last_line_is_skipped_with_one_warning_and_overwritten(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    whole = content(path)
    Path(path).write_bytes(whole + '{"message": "m2", "role": "user", "contents": [{"text": "ü'.encode()[:-1])
    cassette = Cassette(path)
    with caplog.at_level(logging.WARNING, "agentbench"):
        assert prompts(cassette) == prompts(cassette) == ["a"]
    (record,) = caplog.records
    assert f"{path}, line 4" in record.getMessage()
    add(cassette, "b")
    assert content(path).startswith(whole)
    assert prompts(Cassette(path)) == ["a", "b"]


@pytest.mark.usefixtures("cassette")
def test_a_last_line_without_a_line_end_counts_and_gets_one(path: str, caplog: pytest.LogCaptureFixture) -> None:
    Path(path).write_bytes(content(path).rstrip(b"\n"))
    one, two = Cassette(path), Cassette(path)
    assert prompts(one) == ["a"]
    add(two, "b")
    assert prompts(one) == ["a", "b"]
    assert [call.line for call in one.lines.calls] == [call.line for call in two.lines.calls] == [3, 5]
    assert not caplog.records


@pytest.mark.usefixtures("cassette")
def test_a_bad_line_with_a_line_end_names_file_and_line(path: str) -> None:
    whole = content(path)
    for bad, line in ((whole.replace(b'"role"', b"role"), 2), (whole + b"<<<<<<< HEAD\n", 4)):
        Path(path).write_bytes(bad)
        with raises(ValueError, "talk.jsonl", line, "JSON"):
            Cassette(path).read()


@pytest.mark.usefixtures("cassette")
def test_lines_that_windows_or_an_editor_left_are_read(path: str) -> None:
    Path(path).write_bytes(content(path).replace(b"\n", b"\r\n") + b"\r\n")
    cassette = Cassette(path)
    assert prompts(cassette) == ["a"]
    add(cassette, "b")
    assert prompts(Cassette(path)) == ["a", "b"]


def test_a_replaced_file_is_read_anew(cassette: Cassette, path: str) -> None:
    add(cassette, "b")
    other = Cassette(path)
    assert prompts(other) == ["a", "b"]
    other.serve(other.request([other.message(Message("user", ["b"]))], {}, model=None))
    assert other.prune() == 1
    assert prompts(cassette) == prompts(other) == ["b"]
    assert cassette.unused == cassette.lines.calls
    add(cassette, "c")
    assert prompts(other) == ["b", "c"]


def test_a_file_that_was_edited_in_place_or_deleted_is_read_anew(cassette: Cassette, path: str) -> None:
    with open(path, "r+b") as file:
        text = file.read().replace(b'"a"', b'"z"')
        file.seek(0)
        file.write(text)
    os.utime(path, ns=(1, 1))
    assert prompts(cassette) == ["z"]
    os.unlink(path)
    add(cassette, "b")
    assert prompts(cassette) == prompts(Cassette(path)) == ["b"]


class FullDisk(io.FileIO):
    def write(self, data: Any) -> int:
        super().write(data[:9])
        raise OSError(28, "No space left on device")


def test_a_full_disk_leaves_the_file_as_it_was(cassette: Cassette, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = content(path)
    with monkeypatch.context() as patched:
        patched.setattr(f"{Cassette.__module__}.open", lambda place, mode, **_: FullDisk(place, mode), raising=False)
        with raises(OSError, "No space"):
            add(cassette, "b")
    assert content(path) == before
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", lambda *_: os.stat(path + "/"))
        with pytest.raises(NotADirectoryError):
            add(Cassette(path, anew=True), "b")
    assert content(path) == before
    assert os.listdir(os.path.dirname(path)) == ["talk.jsonl"]
    add(cassette, "b")
    assert prompts(cassette) == ["a", "b"]


@pytest.mark.usefixtures("cassette")
def test_a_replaced_file_retains_its_mode_and_its_link(path: str, tmp_path: Path) -> None:
    os.chmod(path, 0o640)
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    cassette = Cassette(str(link), anew=True)
    add(cassette, "b")
    assert link.is_symlink()
    assert os.stat(path).st_mode & 0o777 == 0o640
    assert prompts(Cassette(path)) == ["b"]

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

from agentbench.agents.clients.cassette.file import CassetteFile
from agentbench.agents.clients.cassette.lines import CassetteLines, header_line, pruned_lines

HEADER = header_line(client="Fake", model=None)


def lines_of(text: str) -> Any:
    request = {"messages": [{"role": "user", "contents": [{"type": "text", "text": text}]}], "tools": [], "options": {}}

    def new(lines: CassetteLines) -> list[str]:
        return [*([] if lines.header else [HEADER]), *lines.lines_for(request, {"response": {}})]

    return new


def prompts(file: CassetteFile) -> list[str]:
    file.refresh()
    return [call.prompt for call in file.lines.calls]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "talk.jsonl"


def test_the_first_write_makes_folder_and_file(path: Path) -> None:
    file = CassetteFile(path)
    assert prompts(file) == []
    assert not path.parent.exists()
    file.append(lines_of("a"))
    assert [json.loads(line).get("call") for line in path.read_text().splitlines()] == [None, None, 1]


def test_a_write_reads_only_what_is_new(path: Path) -> None:
    file = CassetteFile(path)
    file.append(lines_of("a"))
    first = file.lines.calls[0]
    file.append(lines_of("b"))
    assert file.lines.calls[0] is first
    assert prompts(file) == ["a", "b"]


def test_two_of_them_see_what_the_other_wrote(path: Path) -> None:
    one, two = CassetteFile(path), CassetteFile(path)
    one.append(lines_of("a"))
    two.append(lines_of("b"))
    one.append(lines_of("b"))
    assert prompts(one) == prompts(two) == ["a", "b", "b"]
    calls = [json.loads(line) for line in path.read_text().splitlines() if '"call":' in line]
    assert [(call["call"], call["messages"]) for call in calls] == [(1, ["m1"]), (2, ["m2"]), (3, ["m2"])]


PROCESS = """
import sys
from agentbench.agents.clients.cassette.file import CassetteFile
from agentbench.agents.clients.cassette.lines import header_line
path, name = sys.argv[1:]
def new(lines, turn):
    message = {"role": "user", "contents": [{"type": "text", "text": f"{name}-{turn}"}]}
    head = [] if lines.header else [header_line(client="Fake", model=None)]
    return [*head, *lines.lines_for({"messages": [message], "tools": [], "options": {}}, {"response": {}})]
file = CassetteFile(path)
for turn in range(20):
    file.append(lambda lines: new(lines, turn))
"""


def test_processes_that_write_at_once_lose_nothing(path: Path) -> None:
    started = [subprocess.Popen([sys.executable, "-c", PROCESS, str(path), name]) for name in "ab"]
    assert [process.wait(timeout=60) for process in started] == [0, 0]
    file = CassetteFile(path)
    assert sorted(prompts(file)) == sorted(f"{name}-{turn}" for name in "ab" for turn in range(20))
    assert [call.number for call in file.lines.calls] == list(range(1, 41))


def test_a_cut_last_line_is_skipped_with_one_warning_and_overwritten(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    CassetteFile(path).append(lines_of("a"))
    whole = path.read_bytes()
    path.write_bytes(whole + '{"message": "m2", "role": "user", "contents": [{"text": "ü'.encode()[:-1])
    file = CassetteFile(path)
    with caplog.at_level(logging.WARNING, "agentbench"):
        assert prompts(file) == prompts(file) == ["a"]
    (record,) = caplog.records
    assert f"{path}, line 4 is cut off" in record.getMessage()
    file.append(lines_of("b"))
    assert path.read_bytes().startswith(whole)
    assert prompts(CassetteFile(path)) == ["a", "b"]


def test_a_file_cut_anywhere_can_be_recorded_on(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = CassetteFile(path)
    file.append(lines_of("a"))
    file.append(lines_of("b"))
    whole = path.read_bytes()
    for cut in (7, 77, 147):
        path.write_bytes(whole[:-cut])
        CassetteFile(path).append(lines_of("c"))
        caplog.clear()
        assert prompts(CassetteFile(path))[-1] == "c"
        assert not caplog.records


def test_a_last_line_without_a_line_end_counts_and_gets_one(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    CassetteFile(path).append(lines_of("a"))
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    one, two = CassetteFile(path), CassetteFile(path)
    assert prompts(one) == ["a"]
    two.append(lines_of("b"))
    assert prompts(one) == ["a", "b"]
    assert [call.line for call in one.lines.calls] == [call.line for call in two.lines.calls] == [3, 5]
    assert not caplog.records


def test_a_bad_line_elsewhere_names_file_and_line(path: Path) -> None:
    CassetteFile(path).append(lines_of("a"))
    path.write_text(path.read_text().replace('"role"', "role"))
    with pytest.raises(ValueError, match=r"talk\.jsonl, line 2: it is not JSON .* Mend the line, or delete the file"):
        CassetteFile(path).refresh()


def test_a_bad_last_line_with_a_line_end_is_no_cut_line(path: Path) -> None:
    CassetteFile(path).append(lines_of("a"))
    path.write_text(path.read_text() + "<<<<<<< HEAD\n")
    with pytest.raises(ValueError, match="line 4: it is not JSON"):
        CassetteFile(path).refresh()


def test_lines_that_windows_or_an_editor_left_are_read(path: Path) -> None:
    CassetteFile(path).append(lines_of("a"))
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n") + b"\r\n")
    file = CassetteFile(path)
    assert prompts(file) == ["a"]
    file.append(lines_of("b"))
    assert prompts(CassetteFile(path)) == ["a", "b"]


def test_a_replaced_file_is_read_anew(path: Path) -> None:
    one, two = CassetteFile(path), CassetteFile(path)
    one.append(lines_of("a"))
    one.append(lines_of("b"))
    assert prompts(two) == ["a", "b"]
    assert one.lines.header is not None
    one.replace(pruned_lines(one.lines.header, one.lines.calls[1:]))
    assert prompts(one) == prompts(two) == ["b"]
    two.append(lines_of("c"))
    assert prompts(one) == ["b", "c"]


def test_a_file_that_somebody_edited_in_place_is_read_anew(path: Path) -> None:
    file = CassetteFile(path)
    file.append(lines_of("a"))
    with path.open("r+b") as other:
        text = other.read().replace(b'"a"', b'"z"')
        other.seek(0)
        other.write(text)
    os.utime(path, ns=(1, 1))
    assert prompts(file) == ["z"]


def test_a_file_that_was_deleted_begins_anew(path: Path) -> None:
    file = CassetteFile(path)
    file.append(lines_of("a"))
    path.unlink()
    file.append(lines_of("b"))
    assert prompts(file) == prompts(CassetteFile(path)) == ["b"]


def test_lines_that_cannot_be_made_leave_nothing_behind(path: Path) -> None:
    def refuse(lines: CassetteLines) -> list[str]:
        raise KeyError(lines)

    with pytest.raises(KeyError):
        CassetteFile(path).append(refuse)
    assert not path.exists()


def test_a_disk_that_is_full_leaves_the_file_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = CassetteFile(path)
    file.append(lines_of("a"))
    before = path.read_bytes()

    class FullDisk(io.FileIO):
        def write(self, data: Any) -> int:
            super().write(data[:9])
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(
            f"{CassetteFile.__module__}.open", lambda place, mode, **_: FullDisk(place, mode), raising=False
        )
        with pytest.raises(OSError, match="No space"):
            file.append(lines_of("b"))
    assert path.read_bytes() == before
    file.append(lines_of("b"))
    assert prompts(file) == ["a", "b"]


def test_a_replacement_that_fails_leaves_the_file_as_it_was(path: Path) -> None:
    file = CassetteFile(path)
    file.append(lines_of("a"))
    before = path.read_bytes()

    def lines() -> Any:
        yield HEADER
        raise KeyError

    with pytest.raises(KeyError):
        file.replace(lines())
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_replaced_file_keeps_its_mode_and_its_link(path: Path, tmp_path: Path) -> None:
    CassetteFile(path).append(lines_of("a"))
    path.chmod(0o640)
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    file = CassetteFile(link)
    assert prompts(file) == ["a"]
    file.replace([HEADER])
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert path.read_text() == f"{HEADER}\n"


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_read_only_file_is_read_and_not_written(path: Path) -> None:
    CassetteFile(path).append(lines_of("a"))
    path.chmod(0o444)
    file = CassetteFile(path)
    assert prompts(file) == ["a"]
    with pytest.raises(PermissionError):
        file.append(lines_of("b"))

"""Conversations in files, and which file a session has."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import textwrap
import threading
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench import AgentSession, Content, FileHistoryProvider, Message
from agentbench._files.lock import FolderLock
from agentbench._files.private_file import open_private, write_all
from agentbench._files.stored_text import folder_ignores_case, stem_of
from agentbench.exceptions import HistoryFileError
from tests.agents.fake_clients import Model
from tests.agents.sessions.runs import texts, turn
from tests.parts.errors import raises

ROOT = Path(__file__).parents[3]
MODULE = "agentbench.agents.history.file_history"


def message(text: str) -> Message:
    return Message("user", [text])


async def saved(folder: Path, *said: str, **more: Any) -> FileHistoryProvider:
    history = FileHistoryProvider(folder, **more)
    await history.save_messages("s", [message(text) for text in said])
    return history


# ---- layout ----------------------------------------


async def test_a_session_is_a_file_and_a_message_a_line(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "down"
    history = await saved(folder, "hé", "two\nlines")
    lines = (folder / "s.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["contents"][0]["text"] for line in lines] == ["hé", "two\nlines"]
    assert "hé" in lines[0]
    assert await history.get_messages("s") == [message("hé"), message("two\nlines")]


@pytest.mark.skipif(sys.platform == "win32", reason="modes are of POSIX")
async def test_a_conversation_is_for_its_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        await saved(tmp_path / "new", "x")
    finally:
        os.umask(before)
    assert (tmp_path / "new" / "s.jsonl").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


async def test_two_turns_are_four_lines_and_a_restart_goes_on(tmp_path: Path) -> None:
    session = AgentSession(session_id="s")
    seen = [texts(await turn(session, [FileHistoryProvider(tmp_path)], question)) for question in ("q1", "q2")]
    assert seen == [["q1"], ["q1", "ok", "q2"]]
    kept = await FileHistoryProvider(str(tmp_path)).get_messages("s")
    assert [(each.role, each.text) for each in kept] == [
        ("user", "q1"),
        ("assistant", "ok"),
        ("user", "q2"),
        ("assistant", "ok"),
    ]
    assert session.state == {"file_history": {}}


@pytest.mark.parametrize(
    ("session_id", "name"),
    [
        ("abc", "abc.jsonl"),
        (None, "default.jsonl"),
        ("..", "~session-Li4.jsonl"),
    ],
)
async def test_any_id_has_a_file_in_the_folder(tmp_path: Path, session_id: str | None, name: str) -> None:
    history = FileHistoryProvider(tmp_path / "h")
    await history.save_messages(session_id, [message("x")])
    assert os.listdir(tmp_path / "h") == [name]
    assert texts(await history.get_messages(session_id)) == ["x"]


async def test_where_case_is_ignored_ids_that_differ_by_it_have_two_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentbench.agents.history.file_history.folder_ignores_case", lambda folder: True)
    history = FileHistoryProvider(tmp_path)
    for session_id in ("abc", "ABC", "aBc"):
        await history.save_messages(session_id, [message(session_id)])
    assert len({name.casefold() for name in os.listdir(tmp_path)}) == 3
    assert texts(await history.get_messages("ABC")) == ["ABC"]


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
async def test_a_link_that_leads_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    history = FileHistoryProvider(tmp_path / "h")
    (tmp_path / "secret").write_text("", "utf-8")
    (tmp_path / "h" / "s.jsonl").symlink_to(tmp_path / "secret")
    for attempt in (history.get_messages("s"), history.save_messages("s", [message("x")]), history.delete("s")):
        with raises(HistoryFileError, "'s'"):
            await attempt
    assert (tmp_path / "secret").read_text("utf-8") == ""


async def test_messages_of_all_kinds_come_back(tmp_path: Path) -> None:
    given = [
        Message("assistant", [Content.from_function_call("c", "f", arguments={"type": "message"})], author_name="a"),
        Message("tool", [Content.from_function_result("c", result={"a": 1})]),
        Message("user", [Content.from_data(b"\x00", "image/png"), "\ud800"], message_id=7),
        Message("user", ["x"], additional_properties={"at": datetime(2024, 1, 2, tzinfo=UTC), "_excluded": True}),
    ]
    history = FileHistoryProvider(tmp_path)
    await history.save_messages("s", given)
    assert await history.get_messages("s") == given
    assert (await history.get_messages("s"))[-1].additional_properties == given[-1].additional_properties
    assert len(await FileHistoryProvider(tmp_path, skip_excluded=True).get_messages("s")) == 3


async def test_what_cannot_be_written_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    history = await saved(tmp_path, "x")
    broken = Message("user", ["y"], additional_properties={"lock": threading.Lock()})
    with raises(TypeError, "message['additional_properties']['lock']"):
        await history.save_messages("s", [message("new"), broken])
    assert texts(await history.get_messages("s")) == ["x"]


# ---- reading ----------------------------------------


async def test_a_session_without_a_file_has_no_messages(tmp_path: Path) -> None:
    history = FileHistoryProvider(tmp_path / "h")
    assert await history.get_messages("nobody") == []
    (tmp_path / "h").rmdir()
    assert await history.get_messages("nobody") == []
    await history.save_messages("s", [message("x")])
    assert texts(await history.get_messages("s")) == ["x"]


async def test_a_run_reads_only_the_lines_that_are_new_and_a_file_that_was_changed_anew(tmp_path: Path) -> None:
    loaded: list[str] = []

    def loads(line: str) -> Any:
        loaded.append(line)
        return json.loads(line)

    history, path = await saved(tmp_path, "zero", loads=loads), tmp_path / "s.jsonl"
    model, session = Model(), AgentSession(session_id="s")
    agent = model.as_agent(context_providers=[history])

    async def lines_read() -> int:
        before, stored = len(loaded), await FileHistoryProvider(tmp_path).get_messages("s")
        await agent.run("more", session=session)
        assert model.asked[-1].messages == [*stored, message("more")]
        return len(loaded) - before

    assert [await lines_read() for _ in range(4)] == [1, 2, 2, 2]
    await saved(tmp_path, "by another one")
    assert await lines_read() == 10
    path.write_bytes(path.read_bytes().replace(b"zero", b"null"))  # of the same length
    os.utime(path, (1, 1))  # a time of its own, however fast this was
    assert await lines_read() == 12
    path.write_bytes(path.read_bytes() + b'{"broken')
    await lines_read()
    assert await history.delete("s")
    assert [await lines_read(), await lines_read()] == [0, 2]


async def test_blank_lines_are_skipped(tmp_path: Path) -> None:
    history = await saved(tmp_path, "a")
    with (tmp_path / "s.jsonl").open("a", encoding="utf-8") as file:
        file.write("\n   \n\r\n")
    await history.save_messages("s", [message("b")])
    assert texts(await history.get_messages("s")) == ["a", "b"]


@pytest.mark.parametrize(
    "bad", ['{"type":', "[1]", "5", '{"role": "user", "contents": [{"no": "type"}]}', "{}", "\udcff"]
)
async def test_a_line_that_is_no_message_is_named(tmp_path: Path, bad: str) -> None:
    history = await saved(tmp_path, "a", "b")
    with (tmp_path / "s.jsonl").open("ab") as file:
        file.write(bad.encode("utf-8", "surrogateescape") + b"\n")
    await history.save_messages("s", [message("c")])
    with raises(HistoryFileError, "3", "s.jsonl") as caught:
        await history.get_messages("s")
    assert (caught.value.path, caught.value.line) == (str(tmp_path / "s.jsonl"), 3)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limits of file sizes")
def test_a_save_that_the_system_refuses_names_the_file_and_adds_nothing(tmp_path: Path) -> None:
    program = """
        import asyncio, resource, signal, sys
        from agentbench import FileHistoryProvider, Message

        async def main():
            history = FileHistoryProvider(sys.argv[1])
            await history.save_messages("s", [Message("user", ["first"])])
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
            try:
                await history.save_messages("s", [Message("user", ["x" * 500])] * 20)
            except OSError as error:
                print(error.filename, [message.text for message in await history.get_messages("s")])

        asyncio.run(main())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{tmp_path / 's.jsonl'} ['first']\n"


# ---- a write that was broken off ----------------------------------------


async def test_a_line_broken_off_at_any_byte_is_left_out_and_the_next_one_begins_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    history = await saved(tmp_path, "a")
    path = tmp_path / "s.jsonl"
    first = path.read_bytes()
    await history.save_messages("s", [message("bé")])
    last = path.read_bytes()[len(first) :]
    for length in range(len(last)):
        path.write_bytes(first + last[:length])
        caplog.clear()
        is_whole, is_there = length == len(last) - 1, length > 0
        expected = ["a", "bé"] if is_whole else ["a"]
        with caplog.at_level(logging.WARNING, "agentbench"):
            assert texts(await history.get_messages("s")) == expected
            assert ("Line 2 of" in caplog.text) == (is_there and not is_whole)
            await history.save_messages("s", [message("c")])
        assert ("Removed" in caplog.text) == (is_there and not is_whole)
        assert path.read_bytes().endswith(b"\n")
        assert texts(await history.get_messages("s")) == [*expected, "c"]
        assert "bé" not in caplog.text


async def test_a_long_line_that_was_broken_off_is_cut_off_whole(tmp_path: Path) -> None:
    history = await saved(tmp_path, "a")
    path = tmp_path / "s.jsonl"
    with path.open("ab") as file:
        file.write(b'{"type": "message", "x": "' + b"y" * 50_000)
    await history.save_messages("s", [message("c")])
    assert texts(await history.get_messages("s")) == ["a", "c"]


# ---- codecs ----------------------------------------


async def test_lines_may_be_written_and_read_in_another_way(tmp_path: Path) -> None:
    seen: list[Any] = []

    def loads(line: str) -> Any:
        seen.append(type(line))
        return json.loads(line[1:])

    history = await saved(tmp_path, "é", dumps=lambda data: b"#" + json.dumps(data).encode(), loads=loads)
    assert texts(await history.get_messages("s")) == ["é"]
    assert seen == [str]


@pytest.mark.parametrize(
    ("dumps", "error", "words"),
    [
        (lambda data: json.dumps(data, indent=1), ValueError, "more than one line"),
        (lambda data: b"{}\n", ValueError, "more than one line"),
        (lambda data: data, TypeError, "dict"),
        (lambda data: None, TypeError, "NoneType"),
    ],
)
async def test_what_is_not_one_line_is_refused(tmp_path: Path, dumps: Any, error: type[Exception], words: str) -> None:
    with raises(error, words):
        await saved(tmp_path, "x", dumps=dumps)
    assert os.listdir(tmp_path) == []


# ---- deleting ----------------------------------------


@pytest.mark.parametrize("between_processes", [False, True])
async def test_a_session_can_be_deleted(tmp_path: Path, between_processes: bool) -> None:
    history = await saved(tmp_path, "x", between_processes=between_processes)
    assert await history.delete("other") is False
    assert await history.delete("s") is True
    assert await history.delete("s") is False
    assert await history.get_messages("s") == []
    await history.save_messages("s", [message("new")])
    assert texts(await history.get_messages("s")) == ["new"]


# ---- at the same time ----------------------------------------


async def test_files_are_read_and_written_on_other_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[int] = set()

    def noted(*given: Any) -> int:
        threads.add(threading.get_ident())
        return open_private(*given)

    monkeypatch.setattr(f"{MODULE}.open_private", noted)
    history = await saved(tmp_path, "x")
    await history.get_messages("s")
    assert threads
    assert threading.get_ident() not in threads


def test_threads_with_loops_of_their_own_lose_nothing(tmp_path: Path) -> None:
    history = FileHistoryProvider(tmp_path)

    async def save(name: str) -> None:
        for number in range(20):
            await history.save_messages("s", [message(f"{name}{number}"), message(f"{name}{number}")])
            await history.get_messages("s")

    threads = [threading.Thread(target=lambda name=name: asyncio.run(save(name))) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = texts(asyncio.run(history.get_messages("s")))
    assert len(kept) == 160
    assert kept[::2] == kept[1::2]


PROGRAM = """
import asyncio, sys
from agentbench import FileHistoryProvider, Message

async def main(folder, name):
    history = FileHistoryProvider(folder, between_processes=True)
    for number in range(60):
        await history.save_messages("s", [Message("user", [f"{name}{number}" * 300])] * 2)
        if number % 20 == 10 and name == "a":
            await history.delete("other")

asyncio.run(main(*sys.argv[1:]))
"""


def test_processes_that_save_at_once_lose_nothing(tmp_path: Path) -> None:
    # One of them finds a line that was broken off, and cuts it off while the other writes.
    (tmp_path / "s.jsonl").write_bytes(b'{"type": "mess')
    programs = [
        subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path), name], cwd=ROOT, stderr=subprocess.PIPE)
        for name in "ab"
    ]
    for program in programs:
        _, complaint = program.communicate()
        assert program.returncode == 0, complaint.decode()
    kept = texts(asyncio.run(FileHistoryProvider(tmp_path, between_processes=True).get_messages("s")))
    assert len(kept) == 240
    assert kept[::2] == kept[1::2]
    for name in "ab":
        mine = [text for text in kept[::2] if text.startswith(name)]
        assert mine == [f"{name}{number}" * 300 for number in range(60)]


async def test_a_process_that_holds_the_lock_for_too_long_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{MODULE}.FolderLock", partial(FolderLock, patience_s=0.0))
    history = await saved(tmp_path, "x", between_processes=True)
    lock = FolderLock(os.path.join(tmp_path, ".history.lock"))
    assert lock.attempt()
    try:
        with pytest.raises(TimeoutError):
            await history.save_messages("s", [message("y")])
    finally:
        lock.release()
        lock.close()
    await history.save_messages("s", [message("z")])
    assert texts(await history.get_messages("s")) == ["x", "z"]


async def test_a_save_whose_caller_is_gone_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history, begun, go_on = FileHistoryProvider(tmp_path), threading.Event(), threading.Event()

    def slow(descriptor: int, data: bytes, path: str) -> None:
        begun.set()
        go_on.wait()
        write_all(descriptor, data, path)

    monkeypatch.setattr(f"{MODULE}.write_all", slow)
    task = asyncio.ensure_future(history.save_messages("s", [message("a")]))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    after = asyncio.ensure_future(history.save_messages("s", [message("b")]))
    await asyncio.sleep(0)
    go_on.set()
    await after
    assert texts(await history.get_messages("s")) == ["a", "b"]


def test_an_id_that_can_name_a_file_anywhere_is_its_own_name() -> None:
    for session_id in ("abc", "über", "a.b", "a_b-c", "9", "日本", "ABC", "console", "com", "a.con"):
        assert stem_of(session_id) == session_id
    assert stem_of(None) == stem_of("") == "default"


@pytest.mark.parametrize(
    ("session_id", "stem"),
    [
        ("a/b", "~session-YS9i"),
        ("..", "~session-Li4"),
        ("CON", "~session-Q09O"),
        ("a ", "~session-YSA"),
        ("~session-YS9i", "~session-fnNlc3Npb24tWVM5aQ"),
        ("\ud800", "~session-7aCA"),
    ],
)
def test_any_other_id_is_encoded(session_id: str, stem: str) -> None:
    assert stem_of(session_id) == stem


def test_what_some_system_takes_for_something_else_is_encoded() -> None:
    devices = ("con", "Prn.txt", "aux", "NUL", "nul.a.b", "com1", "LPT9.x", "COM¹")
    for session_id in (".", ".h", "x.", *devices, "a b", "a\nb", "a\x00b", "a\\b", "a:b", "??>", "\u202ea"):
        assert stem_of(session_id).startswith("~session-")


@pytest.mark.parametrize("session_id", ["a" * 1000, "a/" * 1000, "é" * 130])
def test_an_id_that_is_too_long_for_a_name_is_shortened_and_unique(session_id: str) -> None:
    for ignores_case in (False, True):
        stem = stem_of(session_id, ignores_case=ignores_case)
        assert len(stem.encode()) + len(".jsonl") <= 255
        assert stem != stem_of(session_id + "b", ignores_case=ignores_case)


ids = st.text(max_size=20) | st.sampled_from(["a", "A", "ß", "ss", "SS", "a/b", "A/B", "default", "", "é", "e\u0301"])


@given(ids, ids)
def test_two_ids_never_share_a_file(one: str, other: str) -> None:
    one, other = one or "default", other or "default"
    assert (stem_of(one) == stem_of(other)) == (one == other)
    folded = [stem_of(each, ignores_case=True) for each in (one, other)]
    assert (folded[0].casefold() == folded[1].casefold()) == (one == other)


@given(ids)
def test_a_file_is_always_one_of_the_folder_itself(session_id: str) -> None:
    stem = stem_of(session_id)
    assert os.path.basename(stem) == stem
    assert stem not in ("", ".", "..")
    assert not set(stem) & set('\\/:*?"<>|\0')


def test_it_is_found_out_whether_a_folder_ignores_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert folder_ignores_case(str(tmp_path)) is (tmp_path / "A").exists()
    exists = os.path.exists
    monkeypatch.setattr(os.path, "exists", lambda path: exists(path) or exists(path[:-1] + path[-1].lower()))
    assert folder_ignores_case(str(tmp_path)) is True
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_taken_as_it_is(tmp_path: Path) -> None:
    assert folder_ignores_case(str(tmp_path / "nowhere")) is False

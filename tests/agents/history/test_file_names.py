"""Which file a session has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.agents.history.file_history import folder_ignores_case, stem_of


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

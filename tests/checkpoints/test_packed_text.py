from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.checkpoints.sql_storage import packing
from agentbench.checkpoints.sql_storage.packing import decode_name, encode_name, pack, unpack

TEXTS = st.text(st.characters(codec=None))
WORDS = st.lists(st.sampled_from(["", "\0", "\1", "ab", "\ud800", "x" * 3000]), max_size=6).map("".join)


@given(TEXTS, TEXTS)
def test_names_keep_equality_order_and_beginnings(one: str, two: str) -> None:
    a, b = encode_name(one), encode_name(two)
    assert decode_name(a) == one
    assert (a < b) == (one < two)
    assert b.startswith(a) == two.startswith(one)
    assert b"\xff" not in a


@given(TEXTS | WORDS, st.sampled_from([0, 1, 128, 10_000]))
def test_texts_of_any_length_come_back(text: str, shortest: int) -> None:
    assert unpack(pack(text, shortest)) == text


def test_only_long_texts_are_deflated_and_only_if_that_helps() -> None:
    assert pack('"' + "x" * 500 + '"', 1000) == b'"' + b"x" * 500 + b'"'
    assert len(pack('"' + "x" * 500 + '"', 100)) < 50
    assert len(pack('"' + "x" * 50_000 + '"', 100)) < 500
    assert pack("abcdefghi", 0) == b"abcdefghi"


@pytest.mark.parametrize("cut", [1, 5, -1])
def test_what_is_damaged_is_no_json(cut: int) -> None:
    data = pack('"' + "some words, " * 30 + '"', 0)
    assert data[0] == 1
    assert not unpack(data[:cut]).startswith('"')
    assert unpack(b'\xff"') == repr(b'\xff"')
    assert decode_name(b"\xff") == repr(b"\xff")


def test_what_would_fill_the_memory_is_not_inflated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "_LONGEST", 100_000)
    largest, bomb = pack('"' + "x" * 99_990 + '"', 0), pack('"' + "x" * 10_000_000 + '"', 0)
    assert len(unpack(largest)) == 99_992
    assert not unpack(bomb).startswith('"')
    assert len(unpack(bomb)) < 1_000_000

"""What is written is read back, the same in value and type, and is written the same way everywhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from agentbench.serialization.json_text import from_json, to_json
from tests.serialization.samples import EXAMPLES, Color, Note, same, values

ROOT = Path(__file__).resolve().parents[2]


@given(values())
def test_every_value_comes_back_as_it_was(value: Any) -> None:
    assert same(from_json(to_json(value)), value)


@given(values())
def test_a_text_is_one_line_of_json_and_says_the_same_the_second_time(value: Any) -> None:
    text = to_json(value)
    json.loads(text)
    assert "\n" not in text
    assert to_json(from_json(text)) == text
    text.encode()


@pytest.mark.parametrize("value", EXAMPLES, ids=range(len(EXAMPLES)))
def test_remarkable_values_come_back_as_they_were(value: Any) -> None:
    assert same(from_json(to_json(value)), value)


def test_the_order_in_which_a_set_was_filled_does_not_show() -> None:
    members = {"a", 1, (1, "x"), frozenset({2, 3}), Color.RED, None, 2.5}
    shrunk = {*range(1000), *members} - set(range(2, 1000)) - {0}
    assert to_json(shrunk) == to_json(members)


def test_the_order_in_which_attributes_were_set_does_not_show() -> None:
    early, late = Note("a"), Note("b", [1])
    del late.text
    late.text, late.tags = "a", []
    assert list(vars(early)) != list(vars(late))
    assert to_json(early) == to_json(late)


def test_the_text_is_the_same_in_every_process() -> None:
    code = (
        "from agentbench.serialization.json_text import to_json; from tests.serialization.samples import *\n"
        "print(to_json([set('abcdefg'), {(1, 'x'), (2, 'y'), frozenset('xyz')}, Order(item={'p', 'q', 'r'}, more=1),"
        " Right.READ | Right.WRITE, {Color.RED, Word.YES, 'z'}]))"
    )
    texts = set()
    for seed in ("1", "2", "3"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        texts.add(done.stdout)
    assert len(texts) == 1


def test_plain_json_stays_plain_json() -> None:
    value = {"a": [1, 2.5, True, None, "é"], "b": {"c": []}}
    assert to_json(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def test_a_lone_surrogate_is_escaped_so_that_the_text_can_be_written_as_utf_8() -> None:
    assert to_json(["\ud800"]) == '["\\ud800"]'
    assert from_json(to_json({"\ud800": "\udfff"})) == {"\ud800": "\udfff"}

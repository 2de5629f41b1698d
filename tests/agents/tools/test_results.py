"""What a function returned, as contents."""

from __future__ import annotations

import copy
import enum
import pickle
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel

from agentbench.agents.tools.results import SKIP_PARSING, parse_result
from agentbench.messages.content.content import Content
from agentbench.settings import SecretString


class Reading(BaseModel):
    x: int = 1
    y: float | None = None


@dataclass
class Day:
    on: date
    tags: set[str]
    sky: Any


class Sky(enum.Enum):
    CLEAR = "clear"


class WithDict:
    def to_dict(self) -> dict[str, int]:
        return {"q": 1}


class WithText:
    text = "hello"


class Colour(enum.StrEnum):
    RED = "red"


class Deep:
    def __str__(self) -> str:
        return "deep"


ITSELF: list[Any] = []
ITSELF.append(ITSELF)


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (None, ""),
        (3, "3"),
        (True, "true"),
        ({"a": [Reading()]}, '{"a": [{"x": 1, "y": null}]}'),
        (WithDict(), '{"q": 1}'),
        (Day(date(2026, 1, 2), {"cold"}, Sky.CLEAR), '{"on": "2026-01-02", "tags": ["cold"], "sky": "clear"}'),
        ([{"sky": Sky.CLEAR, "tags": {"cold"}}], '[{"sky": "clear", "tags": ["cold"]}]'),
        (float("nan"), "null"),
        (WithText(), "hello"),
        (Colour.RED, "red"),
        (Deep(), '"deep"'),
        ({(1, 2): 3}, '{"[1, 2]": 3}'),
        (ITSELF, '["<list>"]'),
        (SecretString("plain"), "•••"),
        ({"key": SecretString("plain")}, '{"key": "•••"}'),
        ({"name": "東京", "note": "naïve 🙂"}, '{"name": "東京", "note": "naïve 🙂"}'),
        ({"token": "a value that the model asked for"}, '{"token": "a value that the model asked for"}'),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_plain_results_become_one_text(result: object, text: str) -> None:
    contents = parse_result(result)
    assert [(content.type, content.text) for content in contents] == [("text", text)]
    assert type(contents[0].text) is str


def test_a_content_stays_itself() -> None:
    image = Content.from_data(b"x", "image/png")
    assert parse_result(image)[0] is image


def test_of_a_list_that_holds_contents_the_other_items_become_text() -> None:
    image = Content.from_data(b"x", "image/png")
    contents = parse_result(["see", image, 3, Reading(), None])
    assert contents[1] is image
    assert [contents[i].text for i in (0, 2, 3, 4)] == ["see", "3", '{"x": 1, "y": null}', ""]


def test_skip_parsing_is_one_object_with_a_name() -> None:
    assert repr(SKIP_PARSING) == "SKIP_PARSING"
    assert copy.deepcopy(SKIP_PARSING) is SKIP_PARSING
    assert pickle.loads(pickle.dumps(SKIP_PARSING)) is SKIP_PARSING


def test_values_of_numpy_are_written_as_those_of_python():
    numpy = pytest.importorskip("numpy")
    for value, text in ((numpy.array([[1.5, 2.0]]), "[[1.5, 2.0]]"), (numpy.float32(0.5), "0.5")):
        assert parse_result(value)[0].text == text

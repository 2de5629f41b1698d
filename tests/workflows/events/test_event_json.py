import json
import math
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.serialization.plain import OF_LOGS, to_plain
from agentbench.workflows.events.events import (
    WorkflowErrorDetails,
    WorkflowEvent,
    WorkflowEventType,
    WorkflowRunState,
)
from tests.ids import steady


@dataclass
class Point:
    x: int
    tags: set[str]


class Mood(Enum):
    GOOD = "good"


class Person(pydantic.BaseModel):
    name: str


class Opaque:
    pass


class Silent:
    def __str__(self):
        raise RuntimeError("no text")


class Undumpable:
    def model_dump(self, *, mode):
        raise RuntimeError("no dump")

    def __str__(self):
        return "undumpable"


def json_value(value: Any) -> Any:
    return to_plain(value, mask=True, limits=OF_LOGS)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, "a"), [1, "a"]),
        ({3, 1, 2}, [1, 2, 3]),
        ({1: {"k": None}}, {"1": {"k": None}}),
        pytest.param(Point(1, {"b", "a"}), {"x": 1, "tags": ["a", "b"]}, id="a set in a dataclass"),
        (Mood.GOOD, "good"),
        (Person(name="Ann"), {"name": "Ann"}),
        (KeyError("k"), {"error_type": "KeyError", "message": "'k'"}),
        (int, "builtins.int"),
        (Path("a") / "b", "a/b"),
        (Opaque(), "<Opaque>"),  # without its address, which differs from run to run
        (Silent(), "<Silent>"),
        (Undumpable(), "undumpable"),
        (math.inf, None),
    ],
    ids=steady,
)
def test_every_value_has_a_json_form(value, expected):
    assert json_value(value) == expected


def test_long_texts_and_lists_and_deep_nests_are_cut():
    assert json_value("x" * 20_001).endswith("(20001 characters)")
    assert len(json_value(list(range(5000)))) == 1000
    endless: list[Any] = []
    endless.append(endless)
    assert "<list>" in json.dumps(json_value(endless))


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=5),
    lambda inner: st.lists(inner) | st.dictionaries(st.integers() | st.text(), inner) | st.tuples(inner, inner),
    max_leaves=20,
)


@given(json_like)
def test_the_form_is_always_strict_json(value):
    json.dumps(json_value(value), allow_nan=False)


def test_events_of_every_type_have_a_json_form():
    for kind in WorkflowEventType:
        event = WorkflowEvent(kind, Opaque(), executor_id="a", request_id="r", response_type=list[int])
        written = json.loads(json.dumps(event.to_json_dict()))
        assert (written["type"], written["data"]) == (kind.value, "<Opaque>")


def test_the_form_of_an_event_holds_the_fields_that_are_set():
    assert WorkflowEvent.status(WorkflowRunState.IDLE).to_json_dict() == {
        "type": "status",
        "origin": "FRAMEWORK",
        "state": "IDLE",
    }
    assert WorkflowEvent("output", 0).to_json_dict()["data"] == 0
    assert "data" not in WorkflowEvent("output").to_json_dict()


def test_details_of_a_failed_executor_are_written_once():
    written = WorkflowEvent.executor_failed(
        "a", WorkflowErrorDetails("ValueError", "no", executor_id="a")
    ).to_json_dict()
    assert "data" not in written
    assert written["details"] == {
        "error_type": "ValueError",
        "message": "no",
        "traceback": None,
        "executor_id": "a",
        "extra": None,
    }


def test_a_request_names_its_types():
    written = WorkflowEvent.request_info("r", "a", Person(name="Ann"), list[str]).to_json_dict()
    assert written == {
        "type": "request_info",
        "origin": "EXECUTOR",
        "data": {"name": "Ann"},
        "request_id": "r",
        "source_executor_id": "a",
        "request_type": "Person",
        "response_type": "list[str]",
    }

"""Edits of what a checkpoint holds: where they go, what may be there, and what a run gets."""

from __future__ import annotations

import copy
import json
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from agentbench import WorkflowCheckpoint, WorkflowMessage
from agentbench.checkpoints.editing import StagedEdits, StepperEdits, make_edit, updates_of
from agentbench.checkpoints.paths import find_place, replace_at
from agentbench.exceptions import InvalidEdit
from agentbench.notebook import Edit
from agentbench.notebook.forms.text_values import LONGEST, text_of, value_of
from tests.parts.errors import raises


@dataclass
class Draft:
    title: str
    score: float | None = None
    tags: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Counted:
    words: int
    total: int = field(init=False, default=0)


class Point(NamedTuple):
    x: int
    y: int


class Review(BaseModel):
    stars: int = Field(ge=1, le=5)
    text: str = ""


def checkpoint(messages: dict[str, list[Any]] | None = None, /, **state: Any) -> WorkflowCheckpoint:
    return WorkflowCheckpoint(
        "flow",
        "hash",
        state={**state, "_executor_state": {}},
        messages={
            source: [WorkflowMessage(value, source) for value in values] for source, values in (messages or {}).items()
        },
    )


HELD: dict[str, Any] = {
    "score": 0.4,
    "count": 3,
    "note": None,
    "draft": Draft("Cats", tags=["a"]),
    "items": [1, [2, 3]],
    "pair": (1, "x"),
    "point": Point(1, 2),
    "review": Review(stars=3),
    "by.dots": {"a.b": 1, "7": "text", 8: "number"},
    "counted": Counted(3),
    "many": defaultdict(list, a=[1]),
    "api_key": "sk-secret-123",
}


def test_a_value_takes_its_place_and_nothing_else_changes() -> None:
    for path, value, key, expected in [
        ("score", 0.9, "score", 0.9),
        ("score", "0.9", "score", 0.9),
        ("count", 4, "count", 4),
        ("note", {"any": 1}, "note", {"any": 1}),
        ("draft.title", "Dogs", "draft", Draft("Dogs", tags=["a"])),
        ("draft.score", 0.5, "draft", Draft("Cats", 0.5, ["a"])),
        ("draft.tags.0", "b", "draft", Draft("Cats", tags=["b"])),
        ("draft", {"title": "Dogs"}, "draft", Draft("Dogs")),
        ("items.0", 9, "items", [9, [2, 3]]),
        ("items.1.1", 9, "items", [1, [2, 9]]),
        ("pair.1", "y", "pair", (1, "y")),
        ("point.y", 5, "point", Point(1, 5)),
        ("point.0", 5, "point", Point(5, 2)),
        ("review.stars", 5, "review", Review(stars=5)),
        ("by.dots.a.b", 2, "by.dots", {"a.b": 2, "7": "text", 8: "number"}),
        ("by.dots.7", "t", "by.dots", {"a.b": 1, "7": "t", 8: "number"}),
        ("by.dots.8", "n", "by.dots", {"a.b": 1, "7": "text", 8: "n"}),
        ("counted.words", 4, "counted", Counted(4)),
        ("many.a.0", 2, "many", defaultdict(list, a=[2])),
    ]:
        held = checkpoint(**copy.deepcopy(HELD))
        edit = make_edit(held, path, value)
        assert updates_of(held, [edit]).state == {key: expected}
        assert type(updates_of(held, [edit]).state[key]) is type(expected)
        assert held.state == {**HELD, "_executor_state": {}}


def test_what_does_not_fit_is_refused_with_the_path_and_the_reason() -> None:
    path: Any
    for path, value, told in [
        ("scor", 1, "the state has no 'scor'; it has score, count, note"),
        ("draft.tite", "x", "'draft', a Draft, has no 'tite'; it has title, score, tags"),
        ("score.x", 1, "'score', a float, has no 'x', and no values inside"),
        ("items.5", 1, "'items', a list, has no '5'; it has 0, 1"),
        ("items.-1", 1, "has no '-1'"),
        ("_executor_state", {}, "the state has no '_executor_state'"),
        ("", 1, "the path is empty"),
        (3, 1, "a path is text"),
        ("count", 0.5, "valid integer"),
        ("draft.score", "high", "valid number"),
        ("review.stars", 6, "less than or equal to 5"),
        ("draft", {"titel": "x"}, "title: Field required"),
        ("note", threading.Lock(), "lock"),
        ("messages[0]", 1, "0 are queued here"),
    ]:
        with pytest.raises(InvalidEdit) as refused:
            make_edit(checkpoint(**HELD), path, value)
        assert refused.value.path == path
        assert told in refused.value.problem


def test_a_refused_value_is_not_repeated_by_the_error() -> None:
    with pytest.raises(InvalidEdit) as refused:
        make_edit(checkpoint(limit=3), "limit", "sk-secret-123")
    assert "sk-secret-123" not in str(refused.value)


# --- messages ---------------------------------------------------------------------------------------------------------


# --- how they show ----------------------------------------------------------------------------------------------------


def test_staged_edits_show_as_a_diff() -> None:
    held = checkpoint(**HELD)
    edits = StagedEdits([make_edit(held, "score", 0.9), make_edit(held, "draft.title", "<script>")])
    bundle = edits._repr_mimebundle_()
    assert bundle["text/plain"] == "~ score: 0.4 -> 0.9\n~ draft.title: 'Cats' -> '<script>'"
    assert "<script>" not in bundle["text/html"]
    assert repr(edits) == "StagedEdits(score: 0.4 -> 0.9, draft.title: 'Cats' -> '<script>')"
    assert StagedEdits()._repr_mimebundle_()["text/plain"] == "No edits are staged."


def test_secrets_are_masked() -> None:
    edit = make_edit(checkpoint(**HELD), "api_key", "sk-other-456")
    shown = [repr(edit), str(edit), *map(str, StagedEdits([edit])._repr_mimebundle_().values())]
    assert not any("sk-" in text for text in shown)


def test_edits_wait_with_the_checkpoint_that_they_are_edits_of() -> None:
    stepper_edits, first, second = StepperEdits(), Edit("a", 1, 2), Edit("a", 1, 3)
    stepper_edits.stage("cp-1", first)
    stepper_edits.stage("cp-1", Edit("b", 1, 2))
    stepper_edits.stage("cp-1", second)
    stepper_edits.stage("cp-2", first)
    assert [edit.path for edit in stepper_edits.of("cp-1")] == ["b", "a"]
    assert stepper_edits.of("cp-1")[1] is second
    stepper_edits.discard("cp-1", "a")
    stepper_edits.discard("cp-1", "unknown")
    assert [edit.path for edit in stepper_edits.of("cp-1")] == ["b"]
    stepper_edits.discard("cp-1")
    assert (stepper_edits.of("cp-1"), stepper_edits.of("cp-2"), stepper_edits.of(None)) == ((), (first,), ())


# --- a law ------------------------------------------------------------------------------------------------------------

_LEAVES = st.integers() | st.text(max_size=3) | st.none()
_KEYS = st.text("ab.0", min_size=1, max_size=3)
_VALUES = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3), max_leaves=12
)


@dataclass
class Finding:
    id: str
    text: str = ""


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("items[0].name", ("items", 0, "name")),
        ("items.0.name", ("items", 0, "name")),
        ("items[0]['name']", ("items", 0, "name")),
        ("users['a b'].age", ("users", "a b", "age")),
        ('users["it\'s"].age', ("users", "it's", "age")),
        ("users.a b.age", ("users", "a b", "age")),
        ("by_number[7]", ("by_number", 7)),
        ("by_number.7", ("by_number", 7)),
        ("['x[0]']", ("x[0]",)),
        ("x[0]", ("x[0]",)),
        ("findings[id='rain'].text", ("findings", 1, "text")),
        ("findings[1].text", ("findings", 1, "text")),
        ("grid[1][0]", ("grid", 1, 0)),
    ],
)
def test_a_path_is_read_as_python_writes_it_with_dots_and_as_a_difference_names_it(path, steps) -> None:
    root = {
        "items": [{"name": "a"}],
        "users": {"a b": {"age": 1}, "it's": {"age": 2}},
        "by_number": {7: "x"},
        "x[0]": 1,
        "findings": [Finding("sun"), Finding("rain")],
        "grid": [[1], [2]],
    }
    assert find_place(root, path).steps == steps


@pytest.mark.parametrize("path", ["items[5]", "items[x]", "items[id='x']", "items[0", "items[]", "user.name"])
def test_a_path_that_leads_nowhere_says_how_paths_are_written(path) -> None:
    with raises(LookupError, "items[0].name"):
        find_place({"items": [1], "user": 1}, path)


def test_a_place_has_one_edit_however_its_path_is_written() -> None:
    checkpoint = WorkflowCheckpoint("flow", "hash", state={"items": [1, 2], "messages": ["state"]})
    checkpoint.messages = {"a": [WorkflowMessage(["queued"], "a")]}
    stepper_edits = StepperEdits()
    for path, value in (("items.0", 5), ("items[0]", 6)):
        stepper_edits.stage("c", make_edit(checkpoint, path, value, stepper_edits.of("c")))
    assert [(edit.path, edit.before, edit.after) for edit in stepper_edits.of("c")] == [("items[0]", 1, 6)]
    stepper_edits.discard("c", "items.0")
    assert stepper_edits.of("c") == ()
    assert make_edit(checkpoint, "messages[0]", "new").before == "state"
    assert make_edit(checkpoint, "pending_messages[0][0]", "new").before == "queued"


def test_keys_with_dots_are_found_where_a_longer_one_leads_nowhere() -> None:
    assert find_place({"a": {".0": 1}, "a.": []}, "a..0").steps == ("a", ".0")


@given(st.dictionaries(_KEYS, _VALUES, min_size=1), st.data())
def test_what_is_put_somewhere_is_found_there_and_the_rest_is_as_it_was(root: dict[str, Any], data: Any) -> None:
    value: Any = root
    steps: list[Any] = []
    while isinstance(value, (dict, list)) and value and (not steps or data.draw(st.booleans())):
        step = data.draw(st.sampled_from(list(value) if isinstance(value, dict) else list(range(len(value)))))
        steps.append(step)
        value = value[step]
    before = copy.deepcopy(root)
    after = replace_at(root, tuple(steps), "new")
    assert root == before
    found: Any = after
    for step in steps:
        found = found[step]
    assert found == "new"
    assert replace_at(after, tuple(steps), value) == before
    place = find_place(root, ".".join(map(str, steps)))
    assert find_place(replace_at(root, place.steps, "new"), ".".join(map(str, place.steps))).value == "new"


# ---- edit text

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@dataclass
class Dated:
    title: str
    on: date


@given(JSON)
def test_an_unedited_text_comes_back_as_the_same_value(value: Any) -> None:
    try:
        text = text_of(value).text
    except ValueError:
        return  # a secret's name among the keys
    again = value_of(text, value)
    assert again == value
    assert type(again) is type(value)


def test_texts_are_not_quoted_and_stay_texts() -> None:
    assert text_of('say "hi"\n').text == 'say "hi"\n'
    assert value_of("12", "11") == "12"


@pytest.mark.parametrize(
    ("value", "text", "told"),
    [
        (3, "3", "a whole number"),
        (0.5, "0.5", "a number"),
        (True, "true", "true or false"),
        (None, "null", "JSON; null for None"),
        ({"a": [1, "ä"]}, '{"a": [1, "ä"]}', "JSON"),
        ((1, 2), "[1, 2]", "JSON"),
        (Dated("T", date(2024, 1, 2)), '{"title":"T","on":"2024-01-02"}', "JSON of a Dated"),
    ],
)
def test_other_values_are_json(value: object, text: str, told: str) -> None:
    shown = text_of(value)
    assert (shown.text, shown.help) == (text, told)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ([Dated("T", date(2024, 1, 2))], "list"),
        ([(1, 2)], "list"),
        ({1: "a"}, "dict"),
        (float("nan"), "float"),
        (object(), "object"),
        ({"password": "x"}, "secret"),
        ("x" * (LONGEST + 1), "100,001"),
    ],
)
def test_what_would_lose_something_as_text_is_refused(value: object, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        text_of(value)


@pytest.mark.parametrize(
    ("text", "before", "told"),
    [
        ("", 1, "Expected a whole number, such as 3"),
        ("1,5", 0.5, "Expected a number, such as 0.5"),
        ("True", False, "Expected true or false"),
        ("[1, 2", [], "Not valid JSON: .*column 6"),
        ('{\n"a": }', {}, "line 2, column 6"),
        ("NaN", 0.5, "NaN is not a JSON number"),
        ("Infinity", None, "Infinity is not a JSON number"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_is_expected(text: str, before: object, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        value_of(text, before)


def test_json_of_a_number_beyond_the_floats_of_a_page_keeps_all_digits() -> None:
    assert value_of(json.dumps(2**60 + 1), 1) == 2**60 + 1

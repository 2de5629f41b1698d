from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from typing import Annotated, Any, Literal

import pandas

from agentbench import Approval, WorkflowEvent
from agentbench.notebook import request_form
from agentbench.notebook.forms.questions import Option, read_request, request_kind


class Mood(Enum):
    GOOD = 1
    BAD = 2


@dataclass
class Draft:
    question: str
    text: str
    password: str = "hunter2"


def asked(data: Any, response_type: Any) -> Any:
    return read_request(WorkflowEvent.request_info("r1", "review", data, response_type))


def test_the_response_type_and_the_options_decide_the_kind():
    for data, response_type, kind in [
        ("ok?", bool, "approval"),
        ("ok?", Approval, "approval"),
        ("ok?", Approval | None, "approval"),
        ("which?", Literal["a", "b"], "choice"),
        ("which?", Mood, "choice"),
        ({"options": ["a"]}, str, "choice"),
        ({"options": ["a"]}, bool, "approval"),
        ({"options": []}, str, "text"),
        ("name?", str, "text"),
        ("name?", Annotated[str, "hint"], "text"),
        ("how many?", int, "form"),
        ("what?", dict[str, int], "form"),
        ("what?", int | str, "form"),
        ("what?", int | str | None, "form"),
        ("name?", Annotated[str | None, "hint"], "text"),
        ("what?", Any, "form"),
    ]:
        assert request_kind(data, response_type) == kind


def test_the_rest_of_the_data_is_the_context_with_secrets_masked():
    question = asked(Draft("Publish?", "Once upon a time"), bool)
    assert question.prompt == "Publish?"
    assert question.context == "text: Once upon a time\npassword: •••"


def test_data_without_a_question_is_shown_as_it_is():
    question = asked([1, 2], str)
    assert (question.prompt, question.context) == ("review needs an answer", "[1, 2]")
    assert asked(None, str).context == ""


def test_options_come_as_values_pairs_or_a_mapping():
    pair = (Option("Left", 1), Option("Right", 2))
    assert asked({"options": [("Left", 1), ("Right", 2)]}, int).options == pair
    assert asked({"choices": {"Left": 1, "Right": 2}}, int).options == pair
    assert asked({"options": ["a", Mood.GOOD]}, Any).options == (Option("a", "a"), Option("GOOD", Mood.GOOD))
    assert asked({"options": [1, "1"]}, Any).options == (Option("1", 1), Option("'1'", "1"))


def test_enum_members_are_shown_by_name_and_returned_themselves():
    assert asked("?", Mood | None).options == (Option("GOOD", Mood.GOOD), Option("BAD", Mood.BAD))


class Picture:
    def _repr_html_(self) -> str:
        return "<b>picture</b>"


def test_what_shows_itself_in_a_cell_is_displayed_as_it_is_beside_the_text():
    picture, table = Picture(), pandas.DataFrame({"a": [1]})
    question = asked({"prompt": "Which?", "table": table, "picture": picture, "text": "T"}, str)
    assert (question.context, question.objects) == ("text: T", (("table", table), ("picture", picture)))
    question = asked(table, str)
    assert (question.context, question.objects) == ("", (("", table),))
    asking = WorkflowEvent.request_info("r1", "review", {"prompt": "Which?", "table": table}, str)
    assert "table:    a\n0  1" in request_form(asking, respond=print).text


def test_deadlines_are_read_as_utc():
    at = datetime(2024, 1, 1, 12, tzinfo=UTC)
    assert asked({"deadline": "2024-01-01T12:00:00Z"}, str).deadline == at
    assert asked({"expires_at": at.astimezone(timezone(timedelta(hours=2)))}, str).deadline == at
    assert asked({"deadline": datetime(2024, 1, 1, 12)}, str).deadline == at
    assert asked({"deadline": "soon"}, str).deadline is None
    assert asked({"deadline": 3}, str).deadline is None

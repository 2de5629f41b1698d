from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

import pytest

from agentbench import Approval, WorkflowEvent
from agentbench.exceptions import NotebookError
from agentbench.notebook import Form, FormState
from agentbench.notebook.forms.form import form, request_form
from agentbench.notebook.forms.page import FormPanel
from tests.notebook.attacks import ATTACKS
from tests.parts.errors import raises

pytestmark = pytest.mark.usefixtures("ticking")

RLO = "\u202e"


class Page:
    """One view of a form, as the browser would drive it."""

    def __init__(self, shown: Form, view: str = "v1") -> None:
        self.view = view
        self.heard: list[dict[str, Any]] = []
        self.panel: FormPanel = shown.widget
        before = self.panel.send

        def send(content: dict[str, Any], buffers: Any = None) -> None:
            self.heard.append(content)
            before(content, buffers)

        self.panel.send = send

    def say(self, kind: Any, **more: Any) -> None:
        message = {"method": "custom", "content": {"kind": kind, "view": self.view, **more}}
        self.panel._handle_msg({"content": {"data": message}, "buffers": []})

    def last(self, kind: str) -> dict[str, Any]:
        return next(message for message in reversed(self.heard) if message["kind"] == kind)

    def status(self) -> dict[str, Any]:
        return next(each.get("status", each) for each in reversed(self.heard) if "status" in (each["kind"], *each))

    def labels(self) -> list[str]:
        return next(message["labels"] for message in reversed(self.heard) if "labels" in message)

    def content(self) -> dict[str, Any]:
        self.say("ready")
        return {**self.last("form")["content"], "fields": self.last("form")["nodes"]}


def ask(data: Any, response_type: Any, answers: list[Any] | None = None) -> Form:
    taken = [] if answers is None else answers
    request = WorkflowEvent.request_info("r1", "review", data, response_type)
    return request_form(request, respond=lambda request_id, value: taken.append(value))


def test_a_new_view_gets_the_form_the_drafts_and_the_state():
    asked = ask("Title?", str)
    asked.set_raw("value", "so far")
    page = Page(asked)
    assert page.content()["title"] == "Question from review"
    assert page.last("form")["raw"] == {"value": {"text": "so far"}}
    assert page.last("form")["status"] == {
        "state": "editing", "live": True, "errors": {}, "note": ""
    }  # fmt: skip
    assert page.last("form")["view"] == "v1"


def test_approvals_have_reject_on_the_left_and_nothing_preset():
    content = Page(ask({"arguments": {"a": 1}, "editable": True}, Approval)).content()
    assert [action["name"] for action in content["actions"]] == ["reject", "edit", "approve"]
    reason, edited = content["fields"]
    assert (reason["path"], edited["hiddenAtFirst"], edited["suggestion"]) == ("reason", True, '{\n  "a": 1\n}')
    assert [action["name"] for action in Page(ask("ok?", bool)).content()["actions"]] == ["reject", "approve"]


def test_the_button_says_that_it_approves_changes():
    page = Page(ask({"arguments": {"a": 1}, "editable": True}, Approval))
    page.say("edit", raw={"edited": {"text": '{\n  "a": 1\n}'}})
    assert page.labels()[-1] == "Approve"
    page.say("edit", raw={"edited": {"text": '{"a": 2}'}})
    assert page.labels() == ["Reject", "Edit arguments", "Approve with changes"]


def test_typing_is_checked_and_only_that_field_complains():
    asked = ask({"reason_required": True}, Approval)
    page = Page(asked)
    page.say("edit", raw={"reason": {"text": "because"}})
    assert asked.raw == {"reason": "because"}
    assert page.status()["errors"] == {}
    number = form(int)
    page = Page(number)
    page.say("edit", raw={"value": {"text": "1,5"}})
    assert "comma" in page.status()["errors"]["value"]


def test_a_failed_press_names_the_field_that_gets_the_focus():
    asked = ask("How many?", int)
    page = Page(asked)
    page.say("press", action="submit", raw={"value": {"text": "many"}})
    assert page.last("focus") == {"kind": "focus", "view": "v1", "path": "value"}
    assert page.status()["note"] == "1 problem"
    assert asked.raw == {"value": "many"}


def test_options_come_back_by_position():
    answers: list[Any] = []
    asked = ask("?", Literal[1, "1", 2, 3, 4], answers)
    Page(asked).say("press", action="submit", raw={"value": {"option": 1}})
    assert answers == ["1"]


def test_rows_are_changed_by_their_own_names_however_they_have_moved():
    made = form(list[str], value=["a", "b", "c"])
    page = Page(made)
    (rows,) = page.content()["fields"]
    first, _, third = (row["path"] for row in rows["children"])
    page.say("rows", path=rows["path"], do="up", row=third)
    page.say("rows", path=rows["path"], do="remove", row=first)
    page.say("edit", raw={third: {"text": "C"}, first: {"text": "gone"}})
    page.say("rows", path=rows["path"], do="add")
    assert page.last("focus")["path"] == page.last("state")["nodes"][0]["children"][-1]["path"]
    assert made.raw == {"value[0]": "C", "value[1]": "b", "value": "3"}
    page.say("rows", path=rows["path"], do="lines", texts=["x", "y"])
    assert made.value == ["x", "y"]


def test_the_content_of_a_file_comes_beside_the_message_and_never_goes_back():
    made = form(bytes)
    page = Page(made)
    message = {"method": "custom", "content": {"kind": "file", "view": "v1", "path": "value"}}
    page.panel._handle_msg({"content": {"data": message}, "buffers": [memoryview(b"\x00hi")]})
    assert made.value == b"\x00hi"
    assert page.last("state")["raw"] == {"value": {"size": 3}}


def test_json_of_the_form_is_typed_and_sent_to_other_views():
    made = form(dict[str, int], value={"a": 1})
    page = Page(made)
    page.say("json", do="open")
    # What a view has typed itself is not written into it again, but this it has not typed.
    assert (page.last("state")["from"], page.last("state")["text"]) == (None, '{\n  "a": 1\n}')
    page.say("json", text='{"a": ')
    assert (page.last("state")["from"], page.last("state")["text"]) == ("v1", '{"a": ')
    assert "Not valid JSON" in page.status()["errors"]["json"]
    page.say("json", do="close")
    assert page.last("state")["text"] == '{"a": '
    page.say("json", text='{"a": 2}')
    page.say("json", do="close")
    assert page.last("state")["text"] is None
    assert made.value == {"a": 2}


def test_typed_texts_are_not_sent_after_the_answer_is_accepted():
    made = form(list[str], value=["S3CRET"])
    page = Page(made)
    page.say("press", action="submit")
    assert page.last("state")["raw"] == {}
    assert "S3CRET" not in str(page.last("state")["nodes"])


INVALID_MESSAGES: list[dict[str, Any]] = [
    {"kind": 3},
    {"kind": "explode"},
    {"kind": "edit", "raw": "text"},
    {"kind": "edit", "raw": {"nowhere": {"text": "x"}, "value": 3}},
    {"kind": "edit", "raw": {"value": {"option": 99}}},
    {"kind": "edit", "raw": {"approved": {"text": "Approve"}}},
    {"kind": "press", "action": "nowhere"},
    {"kind": "press", "action": 3},
    {"kind": "full", "part": "__dict__"},
]


def test_invalid_messages_change_nothing():
    answers: list[Any] = []
    for asked in (ask("?", Approval, answers), ask("?", int, answers)):
        for message in INVALID_MESSAGES:
            Page(asked).say(**message)
            assert asked.raw == {}, message
            assert asked.state is FormState.EDITING
    assert answers == []


def test_a_deadline_that_passes_is_noticed_when_the_page_says_it_is_due():
    asked = ask({"prompt": "?", "deadline": "2024-01-01T00:00:00.001Z"}, str)
    page = Page(asked)
    page.say("due")
    page.say("due")
    assert page.status()["state"] == "expired"
    assert page.status()["note"] == "Too late: the deadline was 2024-01-01 00:00:00 UTC."


def test_the_button_that_withdraws_is_there_if_the_run_can_go_on_without_an_answer():
    withdrawn: list[str] = []
    request = WorkflowEvent.request_info("r1", "review", "Title?", str)
    asked = request_form(request, respond=lambda *_: None, withdraw=withdrawn.append)
    page = Page(asked)
    assert page.content()["withdraws"]
    assert "form.withdraw()" in asked.text
    page.say("withdraw")
    assert withdrawn == ["r1"]
    assert page.status()["state"] == asked.state == FormState.WITHDRAWN
    assert page.status()["note"].startswith("Withdrawn here at ")
    page.say("withdraw")
    assert withdrawn == ["r1"]


def test_a_form_without_the_button_ignores_its_message():
    asked = ask("Title?", str)
    page = Page(asked)
    assert not page.content()["withdraws"]
    page.say("withdraw")
    assert asked.state is FormState.EDITING
    with raises(NotebookError, "'r1'"):
        asked.withdraw()


def test_a_withdrawal_that_the_run_refuses_keeps_the_typed_text():
    def refuse(_: str) -> None:
        raise ValueError("not now")

    request = WorkflowEvent.request_info("r1", "review", "Title?", str)
    asked = request_form(request, respond=lambda *_: None, withdraw=refuse)
    asked.set_raw("value", "typed")
    assert not asked.withdraw()
    assert (asked.state, asked.refusal, asked.raw) == (FormState.REFUSED, "not now", {"value": "typed"})


def test_a_submitted_value_can_be_changed_from_the_page():
    made = form(int, value=3)
    page = Page(made)
    page.say("press", action="submit")
    assert page.status()["state"] == "answered"
    page.say("reopen")
    assert page.status()["state"] == "editing"
    assert page.last("state")["raw"] == {"value": {"text": "3"}}


def test_a_change_is_sent_to_other_views_than_the_one_that_typed_it():
    asked = ask("Title?", str)
    page = Page(asked)
    page.say("edit", raw={"value": {"text": "a"}})
    assert page.last("state")["from"] == "v1"
    asked.set_raw("value", "by code")
    assert page.last("state")["from"] is None
    assert page.last("state")["raw"] == {"value": {"text": "by code"}}


def test_long_texts_are_cut_and_the_whole_is_sent_on_request():
    asked = ask({"prompt": "p" * 5000, "text": RLO + "c" * 5000}, str)
    page = Page(asked)
    content = page.content()
    assert content["cut"] == ["prompt", "context"]
    assert len(content["prompt"]) < 2200
    page.say("full", part="context")
    assert page.last("full")["text"] == "text: \\u202e" + "c" * 5000


class Shy:
    def _repr_html_(self) -> str | None:
        return None

    def __repr__(self) -> str:
        return "<Shy>"


class Login(Shy):
    def __init__(self) -> None:
        self.password = "hunter2"

    def _repr_html_(self) -> str:
        return self.password


def test_an_object_without_a_display_or_with_a_secret_is_text():
    for data, text in (({"prompt": "?", "who": Shy()}, "who: <Shy>"), (Login(), "password: •••")):
        content = Page(ask(data, str)).content()
        assert (content["context"], content["displays"]) == (text, [])


def test_foreign_text_of_a_request_reaches_the_page_readable():
    for attack in ATTACKS:
        asked = ask({"prompt": attack, "text": attack, "options": [attack, "b"]}, str)
        page = Page(asked)
        page.say("press", action="choose-0")
        assert asked.value == attack
        told = [page.content(), page.status(), asked.text]
        assert not re.search("[\x00-\x08\x1b\x7f-\x9f\u200b\u202e\u2066\ud800]", "".join(map(str, _texts(told))))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)

"""New messages are made to follow a history."""

from __future__ import annotations

import pytest

from agentbench import Content, Message
from agentbench.agents.history.open_calls import following, last_said, results_besides, without_questions


def call(*ids: str, at_service: bool = False) -> Message:
    properties = {"server_label": "docs"} if at_service else None
    contents = [Content.from_function_call(each, "f", additional_properties=properties) for each in ids]
    return Message("assistant", contents)


def result(*ids: str, said: str = "ok") -> Message:
    return Message("tool", [Content.from_function_result(each, result=said) for each in ids])


def other(call_id: str) -> Message:
    return Message("assistant", [Content.from_function_call(call_id, "f", arguments={"x": 1})])


def question(call_id: str) -> Content:
    return Content.from_function_approval_request(call_id, Content.from_function_call(call_id, "f"))


UNANSWERED = "Error: Tool call was not answered."
HI = Message("user", ["hi"])


@pytest.mark.parametrize(
    ("history", "new", "expected"),
    [
        ([], [HI], [HI]),
        ([HI], [call("a"), result("a")], [call("a"), result("a")]),
        ([HI, call("a", "b")], [result("a", "b")], [result("a", "b")]),
        ([call("a"), result("a")], [HI], [HI]),
        ([call("a", "b")], [result("a")], [result("b", said=UNANSWERED), result("a")]),
        ([call("a", "b")], [HI], [result("a", "b", said=UNANSWERED), HI]),
        ([call("a")], [call("a"), result("a")], [result("a")]),
        ([call("a")], [call("a", "b"), result("a", "b")], [result("a"), call("b"), result("b")]),
        ([call("a")], [HI, call("a"), result("a")], [result("a"), HI]),
        ([call("a"), result("a"), HI], [call("a"), result("a")], [call("a"), result("a")]),
        ([call("a"), result("a"), HI, call("a")], [HI], [result("a", said=UNANSWERED), HI]),
        ([call("a")], [other("a"), result("a")], [result("a", said=UNANSWERED), other("a"), result("a")]),
        ([call("a", at_service=True)], [HI], [HI]),
    ],
)
def test_no_call_is_told_twice_and_none_stays_without_a_result(
    history: list[Message], new: list[Message], expected: list[Message]
) -> None:
    before = [message.to_dict() for message in (*history, *new)]
    assert following(history, new) == expected
    assert [message.to_dict() for message in (*history, *new)] == before


def test_questions_to_a_person_are_left_out() -> None:
    both = Message("assistant", [*call("a").contents, question("a")])
    answer = Message("user", [question("a").to_function_approval_response(True)])
    assert without_questions([HI, both, answer]) == [HI, call("a")]
    assert len(both.contents) == 2


def test_questions_of_the_service_stay() -> None:
    asked = Content.from_function_approval_request("a", call("a", at_service=True).contents[0])
    messages = [Message("assistant", [asked])]
    assert without_questions(messages)[0] is messages[0]


def test_results_that_were_not_saved_are_found() -> None:
    assert results_besides([call("a", "b"), result("a"), result("b")], [result("a")]) == result("b").contents
    assert results_besides([HI], []) == []


def test_what_was_said_after_the_last_results_is_found() -> None:
    last = Message("assistant", ["end"])
    assert last_said([call("a"), result("a"), last]) == [last]
    assert last_said([call("a"), result("a")]) == []
    assert last_said([last]) == [last]

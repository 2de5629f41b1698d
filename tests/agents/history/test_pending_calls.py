"""New messages are brought into the form in which services accept them behind a history."""

from __future__ import annotations

import pytest

from agentbench import Content, Message
from agentbench.agents.history.pending_calls import UNANSWERED, PendingCalls, has_pending_calls, replace_messages
from agentbench.agents.sessions.session_context import add_source


def call(*ids: str, at_service: bool = False) -> Message:
    properties = {"server_label": "docs"} if at_service else None
    contents = [Content.from_function_call(each, "f", additional_properties=properties) for each in ids]
    return Message("assistant", contents)


def result(*ids: str, text: str = "ok") -> Message:
    return Message("tool", [Content.from_function_result(each, result=text) for each in ids])


def other(call_id: str) -> Message:
    return Message("assistant", [Content.from_function_call(call_id, "f", arguments={"x": 1})])


def question(call_id: str) -> Content:
    return Content.from_function_approval_request(call_id, Content.from_function_call(call_id, "f"))


HI, HELLO = Message("user", ["hi"]), Message("assistant", ["hello"])


def following(history: list[Message], new: list[Message]) -> tuple[list[Message], list[Message]]:
    """What the model gets of new messages, and what is stored of them."""
    before = add_source(history, "history")
    if not has_pending_calls([*before, *new]):
        return new, new
    seen, replaced = PendingCalls([*before, *new]).resolve()
    at = max((index + 1 for index, message in enumerate(seen) if any(message is one for one in before)), default=0)
    return seen[at:], replace_messages(new, replaced)


@pytest.mark.parametrize(
    ("history", "new", "expected"),
    [
        ([], [HI], [HI]),
        ([HI], [call("a"), result("a")], [call("a"), result("a")]),
        ([HI, call("a", "b")], [result("a", "b")], [result("a", "b")]),
        ([call("a"), result("a")], [HI], [HI]),
        ([call("a", "b")], [result("a")], [result("a"), result("b", text=UNANSWERED)]),
        ([call("a", "b")], [HI], [result("a", "b", text=UNANSWERED), HI]),
        ([call("a")], [call("a"), result("a")], [result("a")]),
        ([call("a")], [call("a", "b"), result("a", "b")], [result("a"), call("b"), result("b")]),
        ([call("a")], [HI, call("a"), result("a")], [result("a"), HI]),
        ([call("a"), result("a"), HI], [call("a"), result("a")], [call("a"), result("a")]),
        ([call("a"), result("a"), HI, call("a")], [HI], [result("a", text=UNANSWERED), HI]),
        ([call("a")], [other("a"), result("a")], [result("a", text=UNANSWERED), other("a"), result("a")]),
        ([call("a"), result("a", text=UNANSWERED), HI, HELLO], [result("a")], [call("a"), result("a")]),
        ([call("a", at_service=True)], [HI], [HI]),
    ],
)
def test_no_call_is_repeated_and_none_stays_without_a_result(
    history: list[Message], new: list[Message], expected: list[Message]
) -> None:
    before = [message.to_dict() for message in (*history, *new)]
    seen, stored = following(history, new)
    assert seen == expected
    assert stored == expected
    assert [message.to_dict() for message in (*history, *new)] == before


def test_requests_and_answers_are_left_out_unless_they_are_the_services() -> None:
    both = Message("assistant", [*call("a").contents, question("a")])
    hosted = Message("assistant", [Content.from_function_approval_request("h", call("h", at_service=True).contents[0])])
    seen = PendingCalls([HI, both, result("a"), hosted]).resolve()[0]
    assert seen == [HI, call("a"), result("a"), hosted]
    assert seen[-1] is hosted
    assert len(both.contents) == 2

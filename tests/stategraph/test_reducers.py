"""Reducers: what becomes of a value and an update, by law and by example."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench import Content, Message
from agentbench.stategraph.reducers import (
    REMOVE_ALL_MESSAGES,
    RemoveMessage,
    add_messages,
    append_items,
    remove_tool_messages,
    replace_messages,
    replace_value,
    upsert_messages,
)
from tests.parts.errors import raises

ids = st.one_of(st.none(), st.integers(0, 4), st.sampled_from(["0", "1", "a"]))
messages = st.lists(
    st.builds(
        lambda i, text, delta: Message("user", text, message_id=i, delta=delta), ids, st.text(max_size=3), st.booleans()
    )
)


def texts(found: list[Message]) -> list[str]:
    return [message.text for message in found]


@given(messages, messages)
def test_add_messages_keeps_the_left_and_adds_each_new_id_once(left, right):
    before = [*left], [*right]
    merged = add_messages(left, right)
    assert (left, right) == before
    assert merged[: len(left)] == left
    known = {message.message_id for message in left} - {None}
    expected = []
    for message in right:
        if not message.delta and message.message_id not in known:
            expected.append(message)
            known |= {message.message_id} - {None}
    assert [id(message) for message in merged[len(left) :]] == [id(message) for message in expected]


@given(messages)
def test_nothing_added_changes_nothing(left):
    assert add_messages(left, []) == left == add_messages(left, None)
    assert add_messages(left, left)[: len(left)] == left


def test_ids_differ_by_type():
    merged = add_messages([Message("user", "a", message_id=1)], Message("user", "b", message_id="1"))
    assert texts(merged) == ["a", "b"]


def test_a_value_that_is_missing_is_an_empty_list():
    message = Message("user", "a", message_id=1)
    assert add_messages(None, message) == [message]
    assert append_items(None, None) == []
    assert upsert_messages(None, message) == [message]


def test_replace():
    message, piece = Message("user", "a", message_id=1), Message("user", "b", delta=True)
    assert replace_messages([message], [piece]) == []
    assert replace_messages([], message) == [message]
    assert replace_value("old", None) is None


def test_append_items_compares_ids_of_attributes_and_keys():
    one, two, none = {"id": 1}, SimpleNamespace(id=2), {"id": None}
    assert append_items([one, none], [{"id": 1}, two, none, none]) == [one, none, two, none, none]
    assert append_items([{"id": True}], [{"id": 1}]) == [{"id": True}, {"id": 1}]
    assert append_items([{"id": [1]}], [{"id": [1]}, {"id": [2]}]) == [{"id": [1]}, {"id": [2]}]


def test_append_items_names_the_item_that_has_no_id():
    with raises(TypeError, "1"):
        append_items([], [{"id": 1}, "x"])


def test_upsert_replaces_adds_and_removes():
    left = [Message("user", "a", message_id=1), Message("user", "b"), Message("user", "c", message_id="c")]
    changed = upsert_messages(left, [Message("user", "A", message_id=1), Message("user", "d", message_id=4)])
    assert texts(changed) == ["A", "b", "c", "d"]
    assert texts(upsert_messages(left, RemoveMessage("c"))) == ["a", "b"]
    assert texts(upsert_messages(left, [RemoveMessage("*"), Message("user", "x", message_id=9)])) == ["x"]
    assert upsert_messages(left, [Message("user", "x", delta=True)]) == left


def test_finished_exchanges_with_tools_are_removed():
    question = Message("user", "Weather?")
    call = Message("assistant", [Content.from_function_call("c1", "weather", arguments={})])
    result = Message("tool", [Content.from_function_result("c1", result="rain")])
    answer = Message("assistant", "It rains.")
    assert remove_tool_messages([question, call, result, answer]) == [question, answer]
    assert remove_tool_messages([question, call, result]) == [question, call, result]
    assert remove_tool_messages([call, result, question, call, answer]) == [call, result, question, answer]


def test_add_messages_removes_messages_and_keeps_the_first_of_an_id():
    there = [Message("user", [text], message_id=text) for text in "abc"]
    other, last = Message("user", ["B"], message_id="b"), Message("assistant", ["d"], message_id="d")
    kept = add_messages(there, [RemoveMessage(id="a"), other, last])
    assert [message.text for message in kept] == ["b", "c", "d"]
    assert add_messages(there, [last, RemoveMessage(REMOVE_ALL_MESSAGES), other]) == [other]
    assert add_messages(there, RemoveMessage("unknown")) == there


@pytest.mark.parametrize("arguments", [{}, {"message_id": "a", "id": "a"}])
def test_a_removed_message_has_one_id(arguments: dict[str, str]):
    with pytest.raises(TypeError):
        RemoveMessage(**arguments)


@pytest.mark.parametrize("reducer", [add_messages, upsert_messages, replace_messages])
def test_reducers_called_by_hand_take_short_forms(reducer: Any):
    for said in (("ai", "Hi"), [("ai", "Hi")], {"role": "ai", "content": "Hi"}, Message("assistant", ["Hi"])):
        (message,) = reducer([], said)
        assert (message.role, message.text) == ("assistant", "Hi")
    assert texts(reducer(None, "Hi")) == ["Hi"]
    with raises(TypeError, "5", "content"):
        reducer([], 5)
    with raises(TypeError, "robot"):
        reducer([], [("robot", "Hi")])


def test_the_messages_so_far_may_have_short_forms_too():
    assert texts(add_messages([("user", "a"), Message("assistant", ["b"])], "c")) == ["a", "b", "c"]
    assert texts(
        upsert_messages({"role": "user", "content": "a", "id": "1"}, {"role": "user", "content": "b", "id": "1"})
    ) == ["b"]

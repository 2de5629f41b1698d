"""Items: where a conversation is cut."""

from __future__ import annotations

import pytest

from agentbench import Content, ConversationSplit, EvalItem, Message
from tests.evaluation.conversations import said


def test_the_last_turn_and_the_whole_conversation():
    item = EvalItem(said("2 + 2?", "4", "And 3 + 3?", "6"))
    assert (item.query, item.response) == ("2 + 2? And 3 + 3?", "6")
    item.split_strategy = ConversationSplit.FULL
    assert (item.query, item.response) == ("2 + 2?", "4 6")
    asked, answered = item.split_messages(ConversationSplit.LAST_TURN)
    assert (len(asked), len(answered)) == (3, 1)


def test_a_function_cuts_where_it_likes():
    item = EvalItem(said("a", "b", "c", "d"), split_strategy=lambda messages: (messages[:1], messages[3:]))
    assert (item.query, item.response) == ("a", "d")


@pytest.mark.parametrize("split", [*ConversationSplit])
def test_without_a_user_all_is_response(split):
    item = EvalItem([Message("system", ["Be brief."]), Message("assistant", ["Hello"])], split_strategy=split)
    assert (item.query, item.response) == ("", "Hello")
    only_system = EvalItem([Message("system", ["Be brief."])])
    assert (only_system.query, only_system.response) == ("", "")


def test_one_item_per_turn_with_all_that_came_before():
    call, result = Content.from_function_call("c", "add"), Content.from_function_result("c", result="3")
    first, second = said("1 + 2?", "3"), said("Sure?", "Yes")
    between = [Message("assistant", [call]), Message("tool", [result])]
    items = EvalItem.per_turn_items([first[0], *between, first[1], *second], tools=["add"], context="sums")
    assert [(item.query, item.response) for item in items] == [("1 + 2?", "3"), ("1 + 2? Sure?", "Yes")]
    assert [len(item.conversation) for item in items] == [4, 6]
    assert [call.name for call in items[0].tool_calls] == ["add"]
    assert (items[1].tools, items[1].context) == (["add"], "sums")
    assert EvalItem.per_turn_items([Message("assistant", ["Hello"])]) == []

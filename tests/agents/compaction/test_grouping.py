"""Which messages belong together, and how that is written on them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench import _clock
from agentbench.agents.compaction.grouping import (
    CharacterEstimatorTokenizer,
    CompactionStrategy,
    TokenizerProtocol,
    annotate_message_groups,
    group_messages,
)
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message


def user(text: str = "q") -> Message:
    return Message("user", text)


def says(text: str = "a") -> Message:
    return Message("assistant", text)


def thinks(text: str = "hm") -> Message:
    return Message("assistant", [Content.from_text_reasoning(text=text)])


def calls(*ids: str, thought: bool = False) -> Message:
    contents = [Content.from_text_reasoning(text="hm")] if thought else []
    return Message("assistant", [*contents, *(Content.from_function_call(one, "f") for one in ids)])


def results(*ids: str) -> Message:
    return Message("tool", [Content.from_function_result(one, result="r") for one in ids])


SYSTEM = Message("system", "be kind")


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([], []),
        ([SYSTEM, user(), says()], [("system", [0]), ("user", [1]), ("assistant_text", [2])]),
        ([Message("developer", "x"), Message("narrator", "y")], [("system", [0]), ("user", [1])]),
        (
            [user(), calls("1", "2"), results("1", "2"), says()],
            [("user", [0]), ("tool_call", [1, 2]), ("assistant_text", [3])],
        ),
        ([calls("1", "2"), results("1"), results("2")], [("tool_call", [0, 1, 2])]),
        ([calls("1", thought=True), results("1")], [("tool_call", [0, 1])]),
        (
            [thinks(), thinks(), calls("1"), thinks(), results("1"), says()],
            [("tool_call", [0, 1, 2, 3, 4]), ("assistant_text", [5])],
        ),
        ([thinks(), says()], [("assistant_text", [0]), ("assistant_text", [1])]),
        ([thinks(), user()], [("assistant_text", [0]), ("user", [1])]),
        ([results("9"), results("8"), says()], [("tool_call", [0, 1]), ("assistant_text", [2])]),
        ([calls("1"), user("wait"), results("1")], [("tool_call", [0, 2]), ("user", [1])]),
        ([calls("1"), calls("2"), results("1", "2")], [("tool_call", [0, 1, 2])]),
        ([calls("1"), results("1"), calls("1"), results("1")], [("tool_call", [0, 1]), ("tool_call", [2, 3])]),
        (
            [calls("1"), user("a"), calls("2"), user("b"), results("2", "1")],
            [("tool_call", [0, 2, 4]), ("user", [1]), ("user", [3])],
        ),
        ([Message("assistant", [])], [("assistant_text", [0])]),
    ],
)
def test_messages_are_grouped(messages: list[Message], expected: list[Any]) -> None:
    assert [tuple(group) for group in group_messages(messages)] == expected


def test_groups_are_written_on_the_messages() -> None:
    _clock.set_runtime_defaults(ids=_clock.CountingIds())
    messages = [user(), calls("1", thought=True), results("1")]

    ids = annotate_message_groups(messages)

    assert ids == ["group-1", "group-2"]
    assert [message.additional_properties for message in messages] == [
        {"_group": {"id": "group-1", "kind": "user", "index": 0, "has_reasoning": False}, "_excluded": False},
        {"_group": {"id": "group-2", "kind": "tool_call", "index": 1, "has_reasoning": True}, "_excluded": False},
        {"_group": {"id": "group-2", "kind": "tool_call", "index": 1, "has_reasoning": True}, "_excluded": False},
    ]


def test_what_is_written_remains_when_messages_are_added() -> None:
    messages = [user(), calls("1")]
    first = annotate_message_groups(messages)
    messages[0].additional_properties["_excluded"] = True
    messages[0].additional_properties["_group"]["_summarized_by_summary_id"] = "s"
    messages += [results("1"), says()]

    second = annotate_message_groups(messages)

    assert second[:2] == first
    assert len(set(second)) == 3
    assert messages[2].additional_properties["_group"]["id"] == first[1]
    assert messages[0].additional_properties["_excluded"] is True
    assert messages[0].additional_properties["_group"]["_summarized_by_summary_id"] == "s"


def test_groups_before_an_index_are_left_as_they_are() -> None:
    messages = [user(), calls("1"), results("1")]

    ids = annotate_message_groups(messages, from_index=2)

    assert len(ids) == 2
    assert messages[0].additional_properties == {}
    assert messages[1].additional_properties["_group"]["id"] == ids[1]


def test_copies_of_a_message_do_not_see_the_marks_of_the_original() -> None:
    original = user()
    annotate_message_groups([original])
    twin = Message("user", "q", additional_properties=original.additional_properties)

    annotate_message_groups([says(), twin], tokenizer=CharacterEstimatorTokenizer())

    assert original.additional_properties["_group"]["index"] == 0
    assert "token_count" not in original.additional_properties["_group"]


class Counts:
    def __init__(self) -> None:
        self.texts: list[str] = []

    def count_tokens(self, text: str) -> int:
        self.texts.append(text)
        return len(text)


def test_tokens_are_counted_once_and_a_result_is_counted_once() -> None:
    tokenizer = Counts()
    messages = [user("grüße"), Message("tool", [Content.from_function_result("1", result="unique text")])]

    annotate_message_groups(messages, tokenizer=tokenizer)
    annotate_message_groups(messages, tokenizer=tokenizer)

    assert len(tokenizer.texts) == 2
    assert "grüße" in tokenizer.texts[0]
    assert tokenizer.texts[1].count("unique text") == 1
    annotate_message_groups(messages, tokenizer=tokenizer, force_reannotate=True)
    assert len(tokenizer.texts) == 4


def test_an_estimate_is_a_quarter_of_the_characters_and_at_least_one() -> None:
    tokenizer = CharacterEstimatorTokenizer()

    assert [tokenizer.count_tokens(text) for text in ("", "abc", "abcdefgh", "abcdefghi")] == [1, 1, 2, 2]
    assert isinstance(tokenizer, TokenizerProtocol)
    assert isinstance(lambda messages: None, CompactionStrategy)


kinds = st.one_of(
    st.builds(user),
    st.builds(says),
    st.builds(thinks),
    st.just("system").map(lambda _: Message("system", "s")),
    st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True).map(lambda ids: calls(*ids)),
    st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True).map(lambda ids: results(*ids)),
)


def pairs_of(messages: list[Message]) -> list[tuple[int, int]]:
    """Where each result stands, with the call that it answers: the last one of that id that nobody answered yet."""
    open_calls: dict[str, int] = {}
    pairs = []
    for at, message in enumerate(messages):
        for content in message.contents:
            if content.type == "function_call":
                open_calls[content.call_id or ""] = at
            elif content.type == "function_result" and content.call_id in open_calls:
                pairs.append((open_calls.pop(content.call_id), at))
    return pairs


@given(st.lists(kinds, max_size=14))
def test_every_message_is_in_one_group_and_no_call_is_parted_from_its_result(messages: list[Message]) -> None:
    groups = group_messages(messages)

    assert sorted(at for group in groups for at in group.indices) == list(range(len(messages)))
    assert all(group.indices == sorted(group.indices) for group in groups)
    assert [group.indices[0] for group in groups] == sorted(group.indices[0] for group in groups)
    of = {at: number for number, group in enumerate(groups) for at in group.indices}
    for call, result in pairs_of(messages):
        assert of[call] == of[result]


@given(st.lists(kinds, max_size=8), st.lists(kinds, max_size=8))
def test_annotating_in_steps_separates_groups(first: list[Message], second: list[Message]) -> None:
    messages = list(first)
    annotate_message_groups(messages)
    messages += second
    ids = annotate_message_groups(messages)

    assert len(set(ids)) == len(ids) == len(group_messages(messages))
    for group, id_ in zip(group_messages(messages), ids, strict=True):
        assert {messages[at].additional_properties["_group"]["id"] for at in group.indices} == {id_}


def test_ids_of_another_process_are_not_used_again() -> None:
    _clock.set_runtime_defaults(ids=_clock.CountingIds())
    messages = [user(), says()]
    annotate_message_groups(messages)
    _clock.set_runtime_defaults(ids=_clock.CountingIds())
    messages += [user(), says()]

    assert len(set(annotate_message_groups(messages))) == 4

"""Updates of a stream, folded into the response that they make."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse, ChatResponse
from agentbench.messages.update import AgentResponseUpdate, ChatResponseUpdate
from tests.messages.samples import contents, usages

#: Pieces of arguments. Those that end an object may be a call that is told again, which is a matter of its own.
open_ended = st.text(st.characters(exclude_characters="}", exclude_categories=["Cs"]), max_size=12)


def update(*given_contents: Any, **fields: Any) -> ChatResponseUpdate:
    return ChatResponseUpdate(contents=list(given_contents), **fields)


def fold(*updates: ChatResponseUpdate) -> ChatResponse[Any]:
    return ChatResponse.from_updates(updates)


def piece(call_id: str, arguments: Any = None, name: str = "", index: int | None = None) -> Content:
    properties = None if index is None else {"tool_call_index": index}
    return Content.from_function_call(call_id, name, arguments=arguments, additional_properties=properties)


def calls_of(response: ChatResponse[Any]) -> list[tuple[Any, Any, Any]]:
    found = [
        content for message in response.messages for content in message.contents if content.type == "function_call"
    ]
    return [(call.call_id, call.name, call.arguments) for call in found]


# -------------------------------------------------------------------------------------------------------- messages


@pytest.mark.parametrize(
    ("updates", "messages"),
    [
        ([], []),
        ([update("a", role="assistant"), update("b")], [Message("assistant", "ab")]),
        ([update("a"), update("b")], [Message("assistant", "ab")]),
        ([update("a"), update("b", role="assistant")], [Message("assistant", "ab")]),
        (
            [update("a", message_id="1"), update("b", message_id="2")],
            [Message("assistant", "a", message_id="1"), Message("assistant", "b", message_id="2")],
        ),
        ([update("a", message_id="1"), update("b")], [Message("assistant", "ab", message_id="1")]),
        ([update("a"), update("b", message_id="2")], [Message("assistant", "ab", message_id="2")]),
        ([update("a", message_id="1"), update("b", message_id="")], [Message("assistant", "ab", message_id="1")]),
        (
            [update("a", role="assistant"), update("b", role="tool"), update("c", role="assistant")],
            [Message("assistant", "a"), Message("tool", "b"), Message("assistant", "c")],
        ),
        ([update("a", role="tool"), update("b")], [Message("tool", "ab")]),
        ([update("a", role="")], [Message("", "a")]),
        ([update("a", author_name="x"), update("b")], [Message("assistant", "ab", author_name="x")]),
        (
            [update("a", author_name="x"), update("b", author_name="y")],
            [Message("assistant", "a", author_name="x"), Message("assistant", "b", author_name="y")],
        ),
        (
            [update("a", message_id="1", response_id="r"), update("b", message_id="1", response_id="s")],
            [Message("assistant", "a", message_id="1"), Message("assistant", "b", message_id="1")],
        ),
        ([update(finish_reason="stop")], []),
        ([update(role="assistant"), update(finish_reason="stop")], [Message("assistant")]),
    ],
)
def test_where_a_message_begins_and_whose_it_is(updates: list[ChatResponseUpdate], messages: list[Message]) -> None:
    assert fold(*updates).messages == messages


# -------------------------------------------------------------------------------------------------------- contents


def test_thoughts_with_other_ids_stay_apart_and_those_without_belong_to_the_one_before() -> None:
    thought = Content.from_text_reasoning
    given_thoughts = [
        thought(text="a"),
        thought(text="b", id="1"),
        thought(text="c"),
        thought(text="d", id="2"),
        thought(id="2", protected_data="p"),
    ]
    assert fold(*map(update, given_thoughts)).messages[0].contents == [
        thought(text="abc", id="1"),
        thought(text="d", id="2", protected_data="p"),
    ]


# ----------------------------------------------------------------------------------------------------------- calls


@pytest.mark.parametrize(
    ("pieces", "calls"),
    [
        ([piece("c1", '{"a"', "f"), piece("", ":1}")], [("c1", "f", '{"a":1}')]),
        ([piece("c1", '{"a"', "f"), piece("c1", ":1}", "f")], [("c1", "f", '{"a":1}')]),
        (
            [piece("c1", '{"a"', "f"), piece("c2", '{"b"', "g"), piece("c1", ":1}"), piece("c2", ":2}")],
            [("c1", "f", '{"a":1}'), ("c2", "g", '{"b":2}')],
        ),
        (
            [
                piece("c1", "", "f", 0),
                piece("c2", "", "g", 1),
                piece("", "{", "", 0),
                piece("", "[", "", 1),
                piece("", "}", "", 0),
                piece("", "]", "", 1),
            ],
            [("c1", "f", "{}"), ("c2", "g", "[]")],
        ),
        ([piece("", "{", "f", 0), piece("c1", "}", "", 0)], [("c1", "f", "{}")]),
        ([piece("", "{", "f", 0), piece("c1", "}", "", 0), piece("c1", "!")], [("c1", "f", "{}!")]),
        ([piece("c1", "{}", "f", 0), piece("c2", "{}", "g", 0)], [("c1", "f", "{}"), ("c2", "g", "{}")]),
        ([piece("c1", "{}", "f", 0), piece("", "[]", "g", 1)], [("c1", "f", "{}"), ("", "g", "[]")]),
        ([piece("", "{}", "f"), piece("c1", "{}", "g")], [("", "f", "{}"), ("c1", "g", "{}")]),
        ([piece("c1", "{}", "f"), piece("c1", {"a": 1}, "f")], [("c1", "f", "{}"), ("c1", "f", {"a": 1})]),
        ([piece("c1", {"a": 1}, "f"), piece("c1", {"b": 2}), piece("", {"a": 3})], [("c1", "f", {"a": 3, "b": 2})]),
        ([piece("c1", None, "f"), piece("c1", None)], [("c1", "f", None)]),
        ([piece("c1", "", "f"), piece("c1", None)], [("c1", "f", "")]),
        ([piece("c1", None, "f"), piece("c1", {"a": 1})], [("c1", "f", {"a": 1})]),
        ([piece("c1", "{}", ""), piece("c1", "", "f")], [("c1", "f", "{}")]),
        # Some services tell the whole call once more at its end.
        ([piece("c1", '{"a"', "f"), piece("c1", ":1}"), piece("c1", '{"a":1}', "f")], [("c1", "f", '{"a":1}')]),
        ([piece("c1", "{}", "f"), piece("c1", "{}", "f")], [("c1", "f", "{}")]),
        ([piece("c1", "}", "f"), piece("c1", "}")], [("c1", "f", "}}")]),
    ],
)
def test_pieces_of_calls_find_their_call(pieces: list[Content], calls: list[Any]) -> None:
    assert calls_of(fold(*map(update, pieces))) == calls
    assert calls_of(fold(update(*pieces))) == calls


def test_a_piece_without_id_after_a_text_is_a_call_of_its_own() -> None:
    response = fold(update(piece("c1", "{", "f")), update("text"), update(piece("", "}", "g")))
    assert calls_of(response) == [("c1", "f", "{"), ("", "g", "}")]


def test_a_piece_with_an_id_finds_its_call_across_a_text() -> None:
    response = fold(update(piece("c1", "{", "f")), update("text"), update(piece("c1", "}")))
    assert calls_of(response) == [("c1", "f", "{}")]
    assert response.text == "text"


def test_calls_of_two_messages_are_two_calls() -> None:
    response = fold(
        update(piece("c1", "{}", "f", 0), role="assistant"),
        update(role="tool"),
        update(piece("c1", "[]", "g", 0), role="assistant"),
    )
    assert calls_of(response) == [("c1", "f", "{}"), ("c1", "g", "[]")]


def test_the_index_of_a_call_in_the_stream_is_no_part_of_it() -> None:
    only = Content.from_function_call("c1", "f", additional_properties={"tool_call_index": 0, "x": 1})
    folded = fold(update(only)).messages[0].contents[0]
    assert folded == Content.from_function_call("c1", "f", additional_properties={"x": 1})
    assert only.additional_properties == {"tool_call_index": 0, "x": 1}


# ---------------------------------------------------------------------------------------------------------- fields


def test_of_ids_and_times_the_last_that_is_set_holds() -> None:
    response = fold(
        update("a", response_id="r1", created_at="t1", model="m1", conversation_id="c1", finish_reason="stop"),
        update("b", response_id="r2", created_at="", model=None, conversation_id="c2"),
    )
    assert (response.response_id, response.created_at, response.model) == ("r2", "t1", "m1")
    assert (response.conversation_id, response.finish_reason) == ("c2", "stop")
    agents = [
        AgentResponseUpdate(text="a", agent_id="x", response_id="r"),
        AgentResponseUpdate(text="b", finish_reason="length"),
    ]
    answer = AgentResponse.from_updates(agents)
    assert (answer.text, answer.agent_id, answer.response_id, answer.finish_reason) == ("ab", "x", "r", "length")


def test_properties_are_merged_and_what_the_service_sent_is_listed() -> None:
    response = fold(
        update(additional_properties={"x": 1, "y": 1}, raw_representation="p"),
        update(),
        update(additional_properties={"x": 2}, raw_representation="q"),
    )
    assert response.additional_properties == {"x": 2, "y": 1}
    assert response.raw_representation == ["p", None, "q"]


async def test_a_stream_of_updates_can_be_waited_for() -> None:
    async def updates() -> Any:
        for text in "ab":
            yield update(text)

    assert (await ChatResponse.from_update_generator(updates(), output_format_type={})).text == "ab"

    async def agent_updates() -> Any:
        for text in "12":
            yield AgentResponseUpdate(text=text)

    assert (await AgentResponse.from_update_generator(agent_updates(), output_format_type={})).value == 12


# ------------------------------------------------------------------------------------------------------------ laws


@given(st.lists(st.lists(contents, max_size=3), max_size=4))
def test_folding_changes_no_update(given_contents: list[list[Content]]) -> None:
    updates = [update(*some) for some in given_contents]
    before = copy.deepcopy(updates)
    fold(*updates)
    assert updates == before


def _whole(contents_of_one: list[Content]) -> list[Content]:
    """Contents as a response has them: nothing side by side that a fold would join, no usages, each call once."""
    kept: list[Content] = []
    ids = set()
    for content in contents_of_one:
        if content.type == "usage" or (kept and content.type == kept[-1].type in {"text", "text_reasoning"}):
            continue
        if content.type == "function_call":
            if content.call_id in ids or content.arguments == "":
                continue
            ids.add(content.call_id)
        kept.append(content)
    return kept


roles = st.sampled_from(["assistant", "tool"])


@given(st.lists(st.tuples(roles, st.lists(contents, max_size=4).map(_whole)), max_size=4), usages, st.data())
def test_a_response_that_was_split_into_updates_is_folded_back(
    parts: list[tuple[str, list[Content]]], usage: Any, data: st.DataObject
) -> None:
    messages = [
        Message(role, some, message_id=f"m{number}", author_name="a") for number, (role, some) in enumerate(parts)
    ]
    whole = ChatResponse[Any](messages=messages, response_id="r", model="m", finish_reason="stop", usage_details=usage)
    updates = [
        update(*pieces, role=message.role, message_id=message.message_id, author_name="a", response_id="r")
        for message in messages
        for pieces in _split(message.contents, data)
    ]
    updates.append(update(Content.from_usage(usage), model="m", finish_reason="stop"))
    if messages:
        assert fold(*updates) == whole


def _split(whole: list[Content], data: st.DataObject) -> list[list[Content]]:
    """Cut a message's contents into updates, texts and arguments also in their middle."""
    updates: list[list[Content]] = [[]]
    for content in whole:
        for part in _cut(content, data):
            if data.draw(st.booleans()):
                updates.append([])
            updates[-1].append(part)
    return updates


def _cut(content: Content, data: st.DataObject) -> list[Content]:
    if content.type == "text" and content.text:
        at = data.draw(st.integers(0, len(content.text)))
        first, second = copy.copy(content), Content.from_text(content.text[at:])
        first.text = content.text[:at]
        return [first, second]
    if content.type == "function_call" and isinstance(content.arguments, str) and "}" not in content.arguments:
        at = data.draw(st.integers(0, len(content.arguments)))
        first = copy.deepcopy(content)
        first.arguments = content.arguments[:at]
        return [first, piece(str(content.call_id), content.arguments[at:])]
    return [content]


@given(st.lists(st.lists(open_ended, min_size=1, max_size=3), min_size=1, max_size=4), st.booleans(), st.data())
def test_however_parallel_calls_are_interleaved_they_come_out_the_same(
    arguments_of: list[list[str]], by_index: bool, data: st.DataObject
) -> None:
    heads = [piece(f"c{n}", None, f"f{n}", n if by_index else None) for n in range(len(arguments_of))]
    waiting = [
        [piece("" if by_index else f"c{n}", text, "", n if by_index else None) for text in pieces]
        for n, pieces in enumerate(arguments_of)
    ]
    stream = list(heads)
    while any(waiting):
        turn = data.draw(st.sampled_from([pieces for pieces in waiting if pieces]))
        stream.append(turn.pop(0))
    expected = [(f"c{n}", f"f{n}", "".join(pieces) or "") for n, pieces in enumerate(arguments_of)]
    assert calls_of(fold(*map(update, stream))) == expected


def test_a_long_stream_is_folded_into_one_text() -> None:
    words = [f"{number} " for number in range(10_000)]
    response = fold(*(update(word) for word in words))
    assert response.messages[0].contents == [Content.from_text("".join(words))]
    calls = [piece(f"c{number % 7}", str(number)) for number in range(10_000)]
    expected = ["".join(str(number) for number in range(10_000) if number % 7 == each) for each in range(7)]
    assert [call[2] for call in calls_of(fold(*map(update, calls)))] == expected
    assert list(itertools.islice(response.raw_representation, 2)) == [None, None]


def test_calls_with_one_id_are_told_apart_by_their_index() -> None:
    updates = [
        ChatResponseUpdate(contents=[piece("x", '{"n": ', "f", 0)], role="assistant"),
        ChatResponseUpdate(contents=[piece("x", '{"n": ', "f", 1)]),
        ChatResponseUpdate(contents=[piece("", "1}", "", 0)]),
        ChatResponseUpdate(contents=[piece("x", "2}", "", 1)]),
    ]
    calls = fold(*updates).messages[0].contents
    assert [one.arguments for one in calls] == ['{"n": 1}', '{"n": 2}']

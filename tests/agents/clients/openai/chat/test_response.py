"""Answers of Chat Completions: whole ones as responses, chunks as updates."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from agentbench._clock import CountingIds, set_runtime_defaults
from agentbench.agents.clients.openai.chat.response import ChunkReader, chat_response
from agentbench.messages.content.content import Content
from agentbench.messages.response import ChatResponse
from tests.servers import openai_wire as wire


def read_all(*chunks: Any) -> list[Any]:
    reader = ChunkReader()
    return [update for chunk in chunks if (update := reader.read(chunk)) is not None]


def folded(*chunks: Any) -> ChatResponse[Any]:
    return ChatResponse.from_updates(read_all(*chunks))


# ----------------------------------------------------------------------------------------------------------- whole ones


def test_a_completion_becomes_a_response() -> None:
    counted = wire.usage(5, 3, cached=2, reasoning=1)
    raw = wire.completion("Hi.", usage=counted)
    response = chat_response(raw)
    assert response.text == "Hi."
    assert [message.role for message in response.messages] == ["assistant"]
    assert response.response_id == response.messages[0].message_id == "chatcmpl-1"
    assert response.model == "served-model"
    assert response.created_at == wire.CREATED_AT
    assert response.finish_reason == "stop"
    assert response.additional_properties == {"system_fingerprint": "fp_1"}
    assert response.usage_details == {
        "input_token_count": 5,
        "output_token_count": 3,
        "total_token_count": 8,
        "cache_read_input_token_count": 2,
        "reasoning_output_token_count": 1,
    }
    assert response.raw_representation is raw
    assert response.conversation_id is None


def test_details_of_usage_that_are_absent_are_left_out() -> None:
    assert chat_response(wire.completion(usage=wire.usage(1, 2))).usage_details == {
        "input_token_count": 1,
        "output_token_count": 2,
        "total_token_count": 3,
    }
    assert chat_response(wire.completion()).usage_details is None


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"content": "a"}, [Content.from_text("a")]),
        ({"content": None, "refusal": "No."}, [Content.from_text("No.", additional_properties={"refusal": True})]),
        (
            {"content": "a", "reasoning_content": "hm"},
            [Content.from_text_reasoning(text="hm"), Content.from_text("a")],
        ),
        ({"content": "a", "reasoning": "hm"}, [Content.from_text_reasoning(text="hm"), Content.from_text("a")]),
        (
            {"content": "", "tool_calls": [wire.call("c", "f", '{"a":1}')]},
            [Content.from_function_call("c", "f", arguments='{"a":1}')],
        ),
        (
            {"content": "a", "tool_calls": [wire.call("c", "f", ""), wire.call("d", "g", "{}")]},
            [
                Content.from_text("a"),
                Content.from_function_call("c", "f", arguments=""),
                Content.from_function_call("d", "g", arguments="{}"),
            ],
        ),
        (
            {"content": None, "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "f", "input": "x y"}}]},
            [Content.from_function_call("c", "f", arguments="x y")],
        ),
        (
            {"content": None, "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {"a": 1}}}]},
            [Content.from_function_call("c", "f", arguments='{"a": 1}')],
        ),
        (
            {"content": None, "function_call": {"name": "f", "arguments": "{}"}},
            [Content.from_function_call("call-1", "f", arguments="{}")],
        ),
        ({"content": None}, []),
        (
            {"content": "a", "annotations": [{"type": "url_citation", "url_citation": {"url": "u", "title": "t"}}]},
            [Content.from_text("a", annotations=[{"type": "citation", "title": "t", "url": "u"}])],
        ),
    ],
)
def test_a_message_holds(message: dict[str, Any], expected: list[Content]) -> None:
    set_runtime_defaults(ids=CountingIds())
    content = message.pop("content")
    assert chat_response(wire.completion(content, **message)).messages[0].contents == expected


def test_why_it_ended() -> None:
    cases: list[Any] = [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("function_call", "tool_calls"),
    ]
    for sent, expected in cases:
        assert chat_response(wire.completion(finish=sent)).finish_reason == expected


def test_each_choice_is_a_message() -> None:
    raw = wire.completion("a")
    raw["choices"].append({"index": 1, "message": {"role": "assistant", "content": "b"}, "finish_reason": "length"})
    response = chat_response(raw)
    assert [message.text for message in response.messages] == ["a", "b"]
    assert response.finish_reason == "stop"


def test_log_probabilities_are_properties() -> None:
    raw = wire.completion("a")
    raw["choices"][0]["logprobs"] = {"content": [{"token": "a", "logprob": -1.0}]}
    assert chat_response(raw).additional_properties["logprobs"] == raw["choices"][0]["logprobs"]


def test_objects_are_read_like_json() -> None:
    message = SimpleNamespace(content="a", tool_calls=None)
    choice = SimpleNamespace(message=message, finish_reason="stop")
    assert chat_response(SimpleNamespace(id="x", choices=[choice], created=None)).text == "a"


# --------------------------------------------------------------------------------------------------------------- chunks


def test_each_chunk_is_one_update_with_the_ids_of_the_answer() -> None:
    updates = read_all(wire.chunk("", role="assistant"), wire.chunk("Hel"), wire.chunk("lo"), wire.chunk(finish="stop"))
    assert [update.text for update in updates] == ["", "Hel", "lo", ""]
    assert {(u.message_id, u.response_id, u.role, u.model, u.created_at) for u in updates} == {
        ("chatcmpl-1", "chatcmpl-1", "assistant", "served-model", wire.CREATED_AT)
    }
    assert [update.finish_reason for update in updates] == [None, None, None, "stop"]


def test_a_chunk_without_choices_and_usage_is_skipped() -> None:
    chunks = [wire.bare_chunk(choices=[]), wire.bare_chunk(choices=None), None, 3, {"id": "", "choices": []}]
    assert read_all(*chunks) == []


def test_a_running_total_in_every_chunk_is_not_added_up() -> None:
    chunks = [{**wire.chunk("a"), "usage": wire.usage(5, made)} for made in (1, 2, 3)]
    response = folded(*chunks, wire.bare_chunk(choices=[], usage=wire.usage(5, 3)))
    assert response.usage_details == {"input_token_count": 5, "output_token_count": 3, "total_token_count": 8}


def test_reasoning_and_refusals_are_streamed() -> None:
    response = folded(wire.chunk(reasoning_content="h"), wire.chunk(reasoning="m"), wire.chunk(refusal="No."))
    assert response.messages[0].contents == [
        Content.from_text_reasoning(text="hm"),
        Content.from_text("No.", additional_properties={"refusal": True}),
    ]


def test_only_the_first_piece_of_a_call_has_id_and_name() -> None:
    updates = read_all(
        wire.chunk(tool_calls=[wire.call("c", "f", "", 0)]),
        wire.chunk(tool_calls=[wire.call("c", "f", '{"a"', 0)]),
        wire.chunk(tool_calls=[wire.call(None, None, ":1}", 0)]),
    )
    pieces = [update.contents[0] for update in updates]
    assert [(piece.call_id, piece.name, piece.arguments) for piece in pieces] == [
        ("c", "f", ""),
        ("", "", '{"a"'),
        ("", "", ":1}"),
    ]
    assert {piece.additional_properties["tool_call_index"] for piece in pieces} == {0}


def called(response: ChatResponse[Any]) -> list[tuple[Any, ...]]:
    return [(content.call_id, content.name, content.arguments) for content in response.messages[0].contents]


def test_ids_that_are_missing_are_made_once_per_call() -> None:
    set_runtime_defaults(ids=CountingIds())
    response = folded(
        wire.chunk(tool_calls=[wire.call(None, "f", "{", 0)]),
        wire.chunk(tool_calls=[wire.call("", "g", "{", 1)]),
        wire.chunk(tool_calls=[wire.call(None, None, "}", 0)]),
        wire.chunk(tool_calls=[wire.call("", None, "}", 1)]),
    )
    assert called(response) == [("call-1", "f", "{}"), ("call-2", "g", "{}")]


def test_calls_that_all_have_one_index_differ_by_their_ids() -> None:
    response = folded(
        wire.chunk(tool_calls=[wire.call("c1", "f", "{}", 0)]),
        wire.chunk(tool_calls=[wire.call("c2", "g", "{", 0)]),
        wire.chunk(tool_calls=[wire.call(None, None, "}", 0)]),
        wire.chunk(tool_calls=[wire.call("c3", "h", "{}", 1)]),
    )
    assert called(response) == [("c1", "f", "{}"), ("c2", "g", "{}"), ("c3", "h", "{}")]


def test_calls_without_an_index_go_on_until_the_next_id() -> None:
    response = folded(
        wire.chunk(tool_calls=[wire.call("c1", "f", "{")]),
        wire.chunk(tool_calls=[wire.call(None, None, "}")]),
        wire.chunk(tool_calls=[wire.call("c2", "g", "{}")]),
    )
    assert called(response) == [("c1", "f", "{}"), ("c2", "g", "{}")]


def test_the_old_form_of_calls_is_read() -> None:
    set_runtime_defaults(ids=CountingIds())
    response = folded(
        wire.chunk(function_call={"name": "f", "arguments": "{"}),
        wire.chunk(function_call={"arguments": "}"}, finish="function_call"),
    )
    assert called(response) == [("call-1", "f", "{}")]
    assert response.finish_reason == "tool_calls"


def test_only_the_first_of_several_choices_is_streamed(caplog: pytest.LogCaptureFixture) -> None:
    other = wire.bare_chunk(choices=[{"index": 1, "delta": {"content": "B"}, "finish_reason": None}])
    assert folded(wire.chunk("a"), other, wire.chunk("b"), other).text == "ab"
    assert [record.levelno for record in caplog.records] == [logging.WARNING]

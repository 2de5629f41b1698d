"""Chat Completions: messages as it takes them, answers as responses, and chunks as updates."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from agentbench._clock import CountingIds, set_runtime_defaults
from agentbench.agents.clients.openai.chat_messages import chat_messages
from agentbench.agents.clients.openai.chat_response import ChunkReader, chat_response
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
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


PNG = Content.from_data(b"\x89PNG", "image/png")
CALL_A = Content.from_function_call("a", "add", arguments={"x": 1})
CALL_B = Content.from_function_call("b", "sub", arguments='{"y":2}')


def wire_call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


WIRE_A, WIRE_B = wire_call("a", "add", '{"x": 1}'), wire_call("b", "sub", '{"y":2}')


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (Message("system", ["a", "b"]), [{"role": "system", "content": "a\nb"}]),
        (Message("developer", ["a"]), [{"role": "developer", "content": "a"}]),
        (Message("system", [""]), []),
        (Message("user", ["a", "b"]), [{"role": "user", "content": "a\nb"}]),
        (Message("user"), []),
        (Message("critic", ["a"]), [{"role": "critic", "content": "a"}]),
        (Message("assistant", [CALL_A, CALL_B]), [{"role": "assistant", "tool_calls": [WIRE_A, WIRE_B]}]),
        (
            Message("assistant", ["thinking", CALL_A]),
            [{"role": "assistant", "content": "thinking", "tool_calls": [WIRE_A]}],
        ),
        (
            Message("assistant", [CALL_A, Content.from_function_result("a", result="1"), "so"]),
            [
                {"role": "assistant", "tool_calls": [WIRE_A]},
                {"role": "tool", "tool_call_id": "a", "content": "1"},
                {"role": "assistant", "content": "so"},
            ],
        ),
        (
            Message("user", [Content.from_function_result("a", result="1"), "go on"]),
            [{"role": "tool", "tool_call_id": "a", "content": "1"}, {"role": "user", "content": "go on"}],
        ),
        (Message("assistant", [Content.from_text_reasoning(text="hm")]), []),
        (Message("assistant", [Content.from_function_approval_request("a", CALL_A)]), []),
    ],
)
def test_a_message_is_sent_as(message: Message, expected: list[dict[str, Any]]) -> None:
    assert chat_messages([message]) == expected


def test_arguments_that_are_missing_are_an_empty_object() -> None:
    sent = chat_messages([Message("assistant", [Content.from_function_call("a", "now")])])
    assert sent[0]["tool_calls"] == [wire_call("a", "now", "{}")]


def test_calls_of_several_messages_in_a_row_are_one_entry() -> None:
    sent = chat_messages(
        [
            Message("assistant", ["first", CALL_A]),
            Message("assistant", [CALL_B]),
            Message("tool", [Content.from_function_result("a", result="1")]),
        ]
    )
    assert [entry["role"] for entry in sent] == ["assistant", "tool"]
    assert sent[0]["tool_calls"] == [WIRE_A, WIRE_B]


def test_calls_after_results_are_a_new_entry() -> None:
    result = Message("tool", [Content.from_function_result("a", result="1")])
    sent = chat_messages([Message("assistant", [CALL_A]), result, Message("assistant", [CALL_B])])
    assert [entry["role"] for entry in sent] == ["assistant", "tool", "assistant"]


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (PNG, {"type": "image_url", "image_url": {"url": PNG.uri}}),
        (
            Content.from_data(b"x", "image/png", additional_properties={"detail": "low"}),
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,eA==", "detail": "low"}},
        ),
        (
            Content.from_uri("https://host.example/a.png", media_type="image/png"),
            {"type": "image_url", "image_url": {"url": "https://host.example/a.png"}},
        ),
        (
            Content.from_uri("https://host.example/a.jpg?size=1"),
            {"type": "image_url", "image_url": {"url": "https://host.example/a.jpg?size=1"}},
        ),
        (
            Content.from_data(b"x", "audio/wav"),
            {"type": "input_audio", "input_audio": {"data": "eA==", "format": "wav"}},
        ),
        (
            Content.from_data(b"x", "application/pdf", additional_properties={"filename": "a.pdf"}),
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,eA==", "filename": "a.pdf"}},
        ),
        (Content.from_hosted_file("file-1"), {"type": "file", "file": {"file_id": "file-1"}}),
    ],
)
def test_mixed_contents_are_a_list_of_parts(content: Content, part: dict[str, Any]) -> None:
    sent = chat_messages([Message("user", ["What is this?", content])])
    assert sent == [{"role": "user", "content": [{"type": "text", "text": "What is this?"}, part]}]


@pytest.mark.parametrize(
    ("content", "level"),
    [
        (Content.from_data(b"x", "audio/ogg"), logging.DEBUG),
        (Content.from_uri("https://host.example/a.wav", media_type="audio/wav"), logging.DEBUG),
        (Content.from_data(b"x", "video/mp4"), logging.WARNING),
        (Content.from_uri("https://host.example/a.pdf", media_type="application/pdf"), logging.WARNING),
    ],
)
def test_what_cannot_be_sent_is_left_out_and_logged(
    content: Content, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "agentbench.openai"):
        assert chat_messages([Message("user", ["a", content])]) == [{"role": "user", "content": "a"}]
    assert [record.levelno for record in caplog.records] == [level]


def test_images_in_results_are_described_to_the_model_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    result = Content.from_function_result("a", result=[Content.from_text("x"), PNG, Content.from_text("y")])
    [sent] = chat_messages([Message("tool", [result])])
    first, described, last = sent["content"].split("\n")
    assert (first, last) == ("x", "y")
    assert "image/png" in described
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "'a'" in caplog.text


def test_a_failure_without_a_text_is_sent() -> None:
    failed = Content.from_function_result("a", exception="boom")
    assert chat_messages([Message("tool", [failed])])[0]["content"] == "Error: boom"


def test_the_author_is_reduced_to_a_name_that_services_take() -> None:
    cases: list[Any] = [
        ("Anna", "Anna"),
        ("Élise B.-2", "liseB2"),
        ("a" * 80, "a" * 64),
        ("日本", None),
        ("", None),
        (None, None),
    ]
    for author, name in cases:
        sent = chat_messages([Message("user", ["a"], author_name=author)])
        assert sent == [{"role": "user", "content": "a", **({} if name is None else {"name": name})}]


def test_results_of_tools_have_no_author() -> None:
    message = Message("tool", [Content.from_function_result("a", result="1")], author_name="x")
    assert "name" not in chat_messages([message])[0]

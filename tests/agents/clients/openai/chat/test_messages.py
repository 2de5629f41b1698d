"""Messages as Chat Completions takes them: each row of the table that maps them."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from agentbench.agents.clients.openai.chat.messages import chat_messages
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message

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

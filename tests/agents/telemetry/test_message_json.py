"""Messages, arguments and results as the JSON of spans."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentbench.agents.telemetry.message_json import (
    arguments_json,
    as_json,
    instructions_json,
    messages_json,
    result_text,
)
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.settings import SecretString

KEY = "sk-not-to-be-seen"


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (Content.from_text("hi"), {"type": "text", "content": "hi"}),
        (Content.from_text_reasoning(text="hm"), {"type": "reasoning", "content": "hm"}),
        (
            Content.from_uri("http://x/y.png", media_type="image/png"),
            {"type": "uri", "uri": "http://x/y.png", "mime_type": "image/png", "modality": "image"},
        ),
        (
            Content.from_data(b"abc", "audio/wav"),
            {"type": "blob", "content": "YWJj", "mime_type": "audio/wav", "modality": "audio"},
        ),
        (
            Content.from_data(b"abc", "application/pdf"),
            {"type": "blob", "content": "YWJj", "mime_type": "application/pdf"},
        ),
        (
            Content.from_function_call("c1", "add", arguments='{"a":1}'),
            {"type": "tool_call", "id": "c1", "name": "add", "arguments": '{"a":1}'},
        ),
        (
            Content.from_function_call("c1", "add", arguments={"a": 1}),
            {"type": "tool_call", "id": "c1", "name": "add", "arguments": {"a": 1}},
        ),
        (
            Content.from_function_result("c1", result="3"),
            {"type": "tool_call_response", "id": "c1", "response": "3"},
        ),
        (Content.from_hosted_file("f1"), {"type": "hosted_file", "file_id": "f1"}),
        (Content.from_error(message="em"), {"type": "error", "message": "em"}),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_a_content_becomes_a_part(content: Content, part: dict[str, Any]) -> None:
    assert json.loads(messages_json([Message("user", [content])])) == [{"role": "user", "parts": [part]}]


def test_instructions_are_text_parts() -> None:
    cases: list[Any] = [("be nice", ["be nice"]), (["a", "b"], ["a", "b"]), ("", None), (None, None), ([], None)]
    for instructions, parts in cases:
        found = instructions_json(instructions)
        expected = None if parts is None else [{"type": "text", "content": part} for part in parts]
        assert (None if found is None else json.loads(found)) == expected


def test_arguments_may_be_a_model_of_pydantic() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Arguments(pydantic.BaseModel):  # type: ignore[name-defined]
        a: int
        key: SecretString

    assert json.loads(arguments_json(Arguments(a=1, key=KEY))) == {"a": 1, "key": "•••"}


def test_arguments_that_are_named_secret_are_masked() -> None:
    assert KEY not in arguments_json({"key": KEY, "a": 1}, ["key"])


def test_a_secret_is_masked_wherever_it_lies() -> None:
    nested = {"a": [SecretString(KEY), {"b": (SecretString(KEY),)}], "c": SecretString(KEY)}
    for text in (as_json(nested), arguments_json(nested), arguments_json(SecretString(KEY)), result_text(nested)):
        assert KEY not in text
        assert "•••" in text
    assert result_text(SecretString(KEY)) == "•••"


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("res", "res"),
        ({"a": 1}, "{'a': 1}"),
        ({"a": SecretString(KEY)}, "{'a': •••}"),
        ([1, 2], "[1, 2]"),
        (None, "None"),
        ([Content.from_text("a"), Content.from_text("b")], "a\nb"),
        ([], "[]"),
        (Content.from_function_result("c", result="r"), "r"),
    ],
    ids=str,
)
def test_a_result_is_its_text(result: Any, text: str) -> None:
    assert result_text(result) == text

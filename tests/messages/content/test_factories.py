"""Kinds of content, and how one of each is made."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench.exceptions import ContentError
from agentbench.messages.content.content import Content
from agentbench.messages.content.fields import FIELDS
from tests.parts.errors import raises

CALL = Content.from_function_call("call-1", "get_weather", arguments='{"city": "Oslo"}')
TEXT = Content.from_text("hi")


# ------------------------------------------------------------------------------------------------------- factories


@pytest.mark.parametrize(
    ("content", "kind", "fields"),
    [
        (Content.from_text("a"), "text", {"text": "a"}),
        (
            Content.from_text_reasoning(id="r", text="hm", protected_data="x"),
            "text_reasoning",
            {"id": "r", "text": "hm", "protected_data": "x"},
        ),
        (
            Content.from_data(b"abc", "image/png"),
            "data",
            {"uri": "data:image/png;base64,YWJj", "media_type": "image/png"},
        ),
        (
            Content.from_uri("https://example.org/a", media_type="image/png"),
            "uri",
            {"uri": "https://example.org/a", "media_type": "image/png"},
        ),
        (
            Content.from_error(message="m", error_code="c", error_details="d"),
            "error",
            {"message": "m", "error_code": "c", "error_details": "d"},
        ),
        (
            Content.from_function_call("c", "f", arguments={"a": 1}, exception="e"),
            "function_call",
            {"call_id": "c", "name": "f", "arguments": {"a": 1}, "exception": "e"},
        ),
        (
            Content.from_function_result("c", result="r", exception="e"),
            "function_result",
            {"call_id": "c", "result": "r", "items": [Content.from_text("r")], "exception": "e"},
        ),
        (Content.from_usage({"input_token_count": 1}), "usage", {"usage_details": {"input_token_count": 1}}),
        (
            Content.from_hosted_file("f", media_type="text/plain", name="n"),
            "hosted_file",
            {"file_id": "f", "media_type": "text/plain", "name": "n"},
        ),
        (Content.from_hosted_vector_store("v"), "hosted_vector_store", {"vector_store_id": "v"}),
        (
            Content.from_code_interpreter_tool_call(call_id="c", inputs=(TEXT,)),
            "code_interpreter_tool_call",
            {"call_id": "c", "inputs": [TEXT]},
        ),
        (
            Content.from_code_interpreter_tool_result(call_id="c", outputs=(TEXT,)),
            "code_interpreter_tool_result",
            {"call_id": "c", "outputs": [TEXT]},
        ),
        (Content.from_image_generation_tool_call(image_id="i"), "image_generation_tool_call", {"image_id": "i"}),
        (
            Content.from_image_generation_tool_result(image_id="i", outputs=TEXT),
            "image_generation_tool_result",
            {"image_id": "i", "outputs": TEXT},
        ),
        (
            Content.from_mcp_server_tool_call("c", "t", server_name="s", arguments="{}"),
            "mcp_server_tool_call",
            {"call_id": "c", "tool_name": "t", "server_name": "s", "arguments": "{}"},
        ),
        (
            Content.from_mcp_server_tool_result("c", output=[1]),
            "mcp_server_tool_result",
            {"call_id": "c", "output": [1]},
        ),
        (
            Content.from_search_tool_call("c", tool_name="t", arguments="{}", status="done"),
            "search_tool_call",
            {"call_id": "c", "tool_name": "t", "arguments": "{}", "status": "done"},
        ),
        (
            Content.from_search_tool_result("c", tool_name="t", result=1, items=(TEXT,), status="done"),
            "search_tool_result",
            {"call_id": "c", "tool_name": "t", "result": 1, "items": [TEXT], "status": "done"},
        ),
        (
            Content.from_shell_tool_call(call_id="c", commands=["ls"], timeout_ms=1, max_output_length=2, status="s"),
            "shell_tool_call",
            {"call_id": "c", "commands": ["ls"], "timeout_ms": 1, "max_output_length": 2, "status": "s"},
        ),
        (
            Content.from_shell_tool_result(call_id="c", outputs=(TEXT,), max_output_length=2),
            "shell_tool_result",
            {"call_id": "c", "outputs": [TEXT], "max_output_length": 2},
        ),
        (
            Content.from_shell_command_output(stdout="o", stderr="e", exit_code=0, timed_out=False),
            "shell_command_output",
            {"stdout": "o", "stderr": "e", "exit_code": 0, "timed_out": False},
        ),
        (
            Content.from_function_approval_request("i", CALL),
            "function_approval_request",
            {"id": "i", "function_call": CALL, "user_input_request": True},
        ),
        (
            Content.from_function_approval_response(False, "i", CALL),
            "function_approval_response",
            {"approved": False, "id": "i", "function_call": CALL},
        ),
        (
            Content.from_oauth_consent_request("https://example.org"),
            "oauth_consent_request",
            {"consent_link": "https://example.org", "user_input_request": True},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_factory_sets_the_fields_of_its_kind_and_no_others(
    content: Content, kind: str, fields: dict[str, Any]
) -> None:
    assert content.type == kind
    assert {name: getattr(content, name) for name in FIELDS} == dict.fromkeys(FIELDS) | fields
    assert content.annotations is None
    assert content.raw_representation is None
    assert content.additional_properties == {}


def test_factories_take_what_any_content_may_have() -> None:
    properties = {"a": 1}
    content = Content.from_text(
        "a", annotations=({"title": "t"},), additional_properties=properties, raw_representation=5
    )
    assert content.annotations == [{"title": "t"}]
    assert content.additional_properties == properties
    assert content.additional_properties is not properties
    assert content.raw_representation == 5
    assert Content.from_shell_command_output(annotations=[]).annotations == []


def test_any_kind_can_be_made_by_the_constructor_and_an_unknown_field_is_refused() -> None:
    assert Content("text", text="a") == Content.from_text("a")
    with raises(TypeError, "txt", "consent_link"):
        Content("text", txt="a")  # type: ignore[call-arg]


def test_there_are_no_other_attributes() -> None:
    with pytest.raises(AttributeError):
        TEXT.colour = "red"  # type: ignore[attr-defined]
    assert not hasattr(TEXT, "__dict__")


def test_fields_can_be_set_and_taken_back() -> None:
    content = Content.from_function_call("c", "f")
    content.user_input_request = True
    content.id = "c"
    assert content != Content.from_function_call("c", "f")
    content.user_input_request = content.id = None
    assert content == Content.from_function_call("c", "f")
    bare = Content.from_text("a")
    bare.id = None
    assert bare == Content.from_text("a")


# --------------------------------------------------------------------------------------------------- function results


class Odd:
    def __str__(self) -> str:
        return "odd"


IMAGE = Content.from_data(b"x", "image/png")
LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("given", "text", "items"),
    [
        (None, "", [Content.from_text("")]),
        ("", "", [Content.from_text("")]),
        ("plain", "plain", [Content.from_text("plain")]),
        (
            [Content.from_text("a"), IMAGE, Content.from_text("b")],
            "a\nb",
            [Content.from_text("a"), IMAGE, Content.from_text("b")],
        ),
        ([Content.from_text(""), Content.from_text("b")], "b", [Content.from_text(""), Content.from_text("b")]),
        ([IMAGE], "", [IMAGE]),
        ([], "", []),
        ([1, 2], "[1, 2]", [Content.from_text("[1, 2]")]),
        ([Content.from_text("a"), 1], '[{"type": "text", "text": "a", "additional_properties": {}}, 1]', None),
        ({"a": 1}, '{"a": 1}', [Content.from_text('{"a": 1}')]),
        (1.5, "1.5", [Content.from_text("1.5")]),
        (True, "true", [Content.from_text("true")]),
        ((1, 2), "[1, 2]", [Content.from_text("[1, 2]")]),
        (Odd(), '"odd"', [Content.from_text('"odd"')]),
        ({(1, 2): 3}, '{"[1, 2]": 3}', [Content.from_text('{"[1, 2]": 3}')]),
        ({"loop": LOOP}, '{"loop": ["<list>"]}', [Content.from_text('{"loop": ["<list>"]}')]),
        ({"city": "東京"}, '{"city": "東京"}', [Content.from_text('{"city": "東京"}')]),
    ],
)
def test_a_result_has_always_a_text_and_items(given: Any, text: str, items: list[Content] | None) -> None:
    content = Content.from_function_result("c", result=given)
    assert content.items == (items if items is not None else [Content.from_text(content.result)])
    assert content.result == text


# ------------------------------------------------------------------------------------------------------------- URIs


@pytest.mark.parametrize(
    ("uri", "problem"),
    [
        ("", "scheme"),
        ("abc", "scheme"),
        ("data:image/png;base64", "comma"),
        ("data:image/png;hex,AA", "hex"),
    ],
)
def test_what_is_no_uri_is_refused(uri: str, problem: str) -> None:
    with raises(ContentError, problem):
        Content.from_uri(uri)
    with raises(ContentError, problem):
        Content.from_uri(uri, media_type="image/png")


@pytest.mark.parametrize(
    ("uri", "media_type"),
    [
        ("data:image/png;base64,AAAA", "image/png"),
        ("DATA:image/png;BASE64,AAAA", "image/png"),
        ("data:text/plain;charset=utf-8;base64,AAAA", "text/plain"),
        ("data:text/plain;charset=utf-8,hello", "text/plain"),
        ("data:text/plain,hello", "text/plain"),
        ("data:,hello", None),
        ("data:;base64,AAAA", None),
    ],
)
def test_a_data_uri_becomes_data_of_the_media_type_in_it(uri: str, media_type: str | None) -> None:
    content = Content.from_uri(uri)
    assert (content.type, content.uri, content.media_type) == ("data", uri, media_type)
    assert Content.from_uri(uri, media_type="a/b").media_type == "a/b"


def test_an_address_without_a_media_type_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    assert Content.from_uri("https://x/y", media_type="image/png").type == "uri"
    assert caplog.records == []
    assert Content.from_uri("gopher://x").type == "uri"
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.parametrize("text", [5, None, b"a", ["a"]], ids=["number", "none", "bytes", "list"])
def test_a_text_is_text(text: Any) -> None:
    with raises(TypeError, type(text).__name__):
        Content.from_text(text)
    with pytest.raises(TypeError):
        Content.from_text(text, additional_properties={"a": 1})

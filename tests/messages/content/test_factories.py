"""Kinds of content, and how one of each is made."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from agentbench.exceptions import ContentError
from agentbench.messages.content.content import Content
from agentbench.messages.content.fields import FIELDS, KINDS
from tests.parts.errors import raises

CALL = Content.from_function_call("call-1", "get_weather", arguments='{"city": "Oslo"}')
TEXT = Content.from_text("hi")


# ------------------------------------------------------------------------------------------------------- factories


#: A value of each argument that is not just any text.
GIVEN: dict[str, Any] = {
    "approved": False,
    "function_call": CALL,
    "usage_details": {"input_token_count": 1},
    **{key: [TEXT] for key in ("inputs", "items", "outputs", "result")},
    **dict.fromkeys(("exit_code", "timeout_ms", "max_output_length"), 3),
    "uri": "https://example.org/a",
}
#: What a factory adds to what it is given.
ADDED: dict[str, dict[str, Any]] = {
    "data": {"uri": "data:image/png;base64,YWJj"},
    "function_result": {"result": "hi", "items": [TEXT]},
    **{key: {"user_input_request": True} for key in ("function_approval_request", "oauth_consent_request")},
}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_factory_sets_the_fields_that_it_is_given_and_no_others(kind: str) -> None:
    factory = getattr(Content, f"from_{kind}")
    given = {name: GIVEN.get(name, name) for name in inspect.signature(factory).parameters if name != "common"}
    if kind == "data":
        given = {"data": b"abc", "media_type": "image/png"}
    content = factory(**given)
    assert content.type == kind
    fields = {**given, **ADDED.get(kind, {})}
    fields.pop("data", None)
    assert {name: getattr(content, name) for name in FIELDS} == dict.fromkeys(FIELDS) | fields
    assert (content.annotations, content.raw_representation, content.additional_properties) == (None, None, {})


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

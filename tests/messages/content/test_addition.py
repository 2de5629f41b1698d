"""Which contents can be joined, and what becomes of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from agentbench.exceptions import AdditionItemMismatch, ContentError
from agentbench.messages.content.content import Content
from tests.messages.samples import arguments, common, texts
from tests.parts.errors import raises


def call(call_id: str, name: str, arguments: Any = None, **more: Any) -> Content:
    return Content.from_function_call(call_id, name, arguments=arguments, **more)


def thought(text: str | None = None, **more: Any) -> Content:
    return Content.from_text_reasoning(text=text, **more)


def test_texts_are_joined_with_what_belongs_to_them_and_the_left_wins() -> None:
    left = Content.from_text(
        "a", annotations=[{"title": "1"}], additional_properties={"x": 1, "y": 1}, raw_representation="p"
    )
    right = Content.from_text(
        "b", annotations=[{"title": "2"}], additional_properties={"x": 2, "z": 2}, raw_representation="q"
    )
    both = left + right
    assert both.text == "ab"
    assert both.annotations == [{"title": "1"}, {"title": "2"}]
    assert both.additional_properties == {"x": 1, "y": 1, "z": 2}
    assert both.raw_representation == ["p", "q"]
    assert (both + Content.from_text("c", raw_representation="r")).raw_representation == ["p", "q", "r"]
    assert (left + Content.from_text("")).raw_representation == "p"
    assert (left.text, right.text) == ("a", "b")


@pytest.mark.parametrize(
    ("left", "right", "both"),
    [
        (thought("a"), thought("b"), thought("ab")),
        (thought("a", id="1"), thought("b"), thought("ab", id="1")),
        (thought("a"), thought("b", id="2"), thought("ab", id="2")),
        (thought("a", id=""), thought("b", id="2"), thought("ab", id="2")),
        (thought("a", id="1"), thought("b", id="1"), thought("ab", id="1")),
        (thought(None), thought(None), thought(None)),
        (thought(None), thought("b"), thought("b")),
        (thought(protected_data="p"), thought(protected_data="q"), thought(protected_data="q")),
        (thought(protected_data="p"), thought("b"), thought("b", protected_data="p")),
        (call("a", "f", "{"), call("", "", "}"), call("a", "f", "{}")),
        (call("a", "f", "{"), call("a", "g", "}"), call("a", "f", "{}")),
        (call("a", "", "{"), call("", "f", "}"), call("a", "f", "{}")),
        (call("a", "f"), call("", "", "{}"), call("a", "f", "{}")),
        (call("a", "f", "{}"), call("", ""), call("a", "f", "{}")),
        (call("a", "f", {}), call("", "", "{}"), call("a", "f", "{}")),
        (call("a", "f", ""), call("", "", {"a": 1}), call("a", "f", {"a": 1})),
        (call("a", "f", {"a": 1, "b": 1}), call("", "", {"b": 2}), call("a", "f", {"a": 1, "b": 2})),
        (call("a", "f"), call("", ""), call("a", "f")),
        (call("a", "f", ""), call("", ""), call("a", "f", "")),
        (
            Content.from_usage({"input_token_count": 1}),
            Content.from_usage({"input_token_count": 2}),
            Content.from_usage({"input_token_count": 3}),
        ),
    ],
)
def test_what_belongs_together_is_joined(left: Content, right: Content, both: Content) -> None:
    assert left + right == both


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (Content.from_text("a"), thought("b")),
        (thought("a", id="1"), thought("b", id="2")),
        (call("a", "f"), call("b", "f")),
        (call("", "f"), call("b", "f")),
        (call("a", "f", "{}"), call("a", "f", {"a": 1})),
        (call("a", "f", {"a": 1}), call("a", "f", "{}")),
    ],
)
@pytest.mark.parametrize("caught", [AdditionItemMismatch, ContentError, TypeError])
def test_what_does_not_belong_together_is_a_mismatch(left: Content, right: Content, caught: type[Exception]) -> None:
    with pytest.raises(caught) as error:
        left + right
    assert type(error.value) is AdditionItemMismatch


@pytest.mark.parametrize(
    "content", [Content.from_error(), Content.from_hosted_file("f"), Content.from_data(b"", "a/b")]
)
def test_other_kinds_have_no_sum(content: Content) -> None:
    with raises(ContentError, "text_reasoning", "function_call") as error:
        content + content
    assert type(error.value) is ContentError


@given(texts, texts, texts, common)
def test_joining_texts_is_associative(one: str, two: str, three: str, more: dict[str, Any]) -> None:
    a, b, c = Content.from_text(one, **more), Content.from_text(two), Content.from_text(three, **more)
    assert (a + b) + c == a + (b + c)


@given(arguments)
def test_an_empty_piece_changes_nothing(given_arguments: Any) -> None:
    whole = call("a", "f", given_arguments)
    assert whole + call("", "") == whole

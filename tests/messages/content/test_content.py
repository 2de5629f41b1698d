"""Kinds of content: how each is written, shown, compared, copied and read."""

from __future__ import annotations

import copy
import logging
import threading
from typing import Any

import pytest

from agentbench.exceptions import ContentError
from agentbench.messages.content.content import Content
from agentbench.messages.content.fields import FIELDS
from agentbench.messages.response import AgentResponse
from tests.ids import steady
from tests.parts.errors import raises

CALL = Content.from_function_call("call-1", "get_weather", arguments='{"city": "Oslo"}')
TEXT = Content.from_text("hi")

IMAGE = Content.from_data(b"x", "image/png")


# ------------------------------------------------------------------------------------------------- dictionaries


def test_a_dictionary_has_the_type_what_is_set_and_always_the_properties() -> None:
    assert TEXT.to_dict() == {"type": "text", "text": "hi", "additional_properties": {}}
    assert CALL.to_dict(exclude={"arguments", "additional_properties"}) == {
        "type": "function_call",
        "call_id": "call-1",
        "name": "get_weather",
    }
    full = TEXT.to_dict(exclude_none=False)
    assert set(full) == {"type", "annotations", "additional_properties", *FIELDS}
    assert full["annotations"] is None


def test_contents_within_are_written_and_read_as_contents() -> None:
    request = Content.from_function_approval_request("i", CALL)
    answer = Content.from_dict(request.to_function_approval_response(True).to_dict())
    assert isinstance(answer.function_call, Content)
    assert answer.function_call == CALL
    shell = Content.from_shell_tool_result(outputs=[Content.from_shell_command_output(stdout="o")])
    assert isinstance(Content.from_dict(shell.to_dict()).outputs[0], Content)
    image = Content.from_image_generation_tool_result(outputs={"type": "image/strange", "bits": [1]})
    assert Content.from_dict(image.to_dict()).outputs == {"type": "image/strange", "bits": [1]}
    blocks = [{"type": "text", "text": "as the server wrote it"}]
    mcp = Content.from_mcp_server_tool_result("c", output=blocks)
    assert Content.from_dict(mcp.to_dict()).output == blocks


def test_a_type_that_is_no_text_within_outputs_is_left_alone() -> None:
    assert Content.from_dict({"type": "shell_tool_result", "outputs": [{"type": ["x"]}]}).outputs == [{"type": ["x"]}]


@pytest.mark.parametrize("data", [{}, {"text": "a"}, {"type": None}, {"type": ""}, {"type": 5}, "a", None])
def test_a_dictionary_without_a_type_is_refused(data: Any) -> None:
    with raises(ValueError):
        Content.from_dict(data)


def test_an_unknown_type_remains_and_an_unknown_field_becomes_a_property(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "agentbench")
    content = Content.from_dict({"type": "hologram", "text": "a", "depth": 3, "additional_properties": {"x": 1}})
    assert content.type == "hologram"
    assert content.text == "a"
    assert content.additional_properties == {"x": 1, "depth": 3}
    assert "hologram" in caplog.text
    assert Content.from_dict(content.to_dict()) == content


def test_bytes_in_a_dictionary_become_a_data_uri() -> None:
    read = Content.from_dict({"type": "data", "data": b"abc", "media_type": "image/png", "name": "n"})
    assert read == Content("data", uri="data:image/png;base64,YWJj", media_type="image/png", name="n")
    png = Content.from_dict({"type": "data", "data": b"\x89PNG\r\n\x1a\n...."})
    assert png.media_type == "image/png"
    with pytest.raises(ContentError):
        Content.from_dict({"type": "data", "data": b"???"})


# ------------------------------------------------------------------------------------------------------ as a value


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (Content.from_text("hi"), "hi"),
        (Content("text"), ""),
        (Content.from_error(message="m", error_code="7"), "Error 7: m"),
        (Content.from_error(message="m"), "m"),
        (Content.from_error(error_code="7"), "Error 7: Unknown error"),
        (Content.from_error(), "Unknown error"),
        (CALL, "Content(type=function_call)"),
    ],
)
def test_as_text(content: Content, text: str) -> None:
    assert str(content) == text


def test_a_repr_cuts_what_is_long_and_hides_bytes_and_protected_data() -> None:
    assert len(repr(Content.from_text("x" * 999))) < 120
    assert "properties={'k': 1}" in repr(AgentResponse(text="a", additional_properties={"k": 1}))
    assert "hidden" not in repr(Content.from_text_reasoning(text="hm", protected_data="hidden"))
    shown = repr(Content.from_function_result("c", result=[Content.from_text("see"), IMAGE]))
    assert "size_bytes=1, media_type='image/png'" in shown
    assert "base64" not in shown


def test_objects_without_a_repr_of_their_own_show_no_address() -> None:
    assert " at 0x" not in repr(Content.from_text("a", additional_properties={"lock": object()}))


def test_a_deep_copy_shares_what_the_service_sent_and_nothing_else() -> None:
    lock = threading.Lock()
    content = Content.from_function_call("c", "f", arguments={"a": [1]}, raw_representation=lock)
    twin = copy.deepcopy(content)
    assert twin == content
    assert twin.raw_representation is lock
    assert isinstance(twin.arguments, dict)
    twin.arguments["a"].append(2)
    assert content.arguments == {"a": [1]}


# ------------------------------------------------------------------------------------------------------ arguments


@pytest.mark.parametrize(
    ("arguments", "parsed"),
    [
        (None, None),
        ("", {}),
        ('{"a": 1}', {"a": 1}),
        ("[1]", {"raw": [1]}),
        ("null", {"raw": None}),
        ("5", {"raw": 5}),
        ("{broken", {"raw": "{broken"}),
        ({"a": 1}, {"a": 1}),
    ],
)
def test_arguments_are_parsed(arguments: Any, parsed: Any) -> None:
    assert Content.from_function_call("c", "f", arguments=arguments).parse_arguments() == parsed


def test_without_a_media_type_there_is_nothing_to_compare() -> None:
    with pytest.raises(ContentError):
        TEXT.has_top_level_media_type("text")


# ------------------------------------------------------------------------------------------------------- approvals


@pytest.mark.parametrize("approved", [True, False])
def test_an_approval_request_is_answered_with_all_that_it_has(approved: bool) -> None:
    request = Content.from_function_approval_request(
        "i", CALL, annotations=[{"title": "t"}], additional_properties={"x": 1}, raw_representation=5
    )
    answer = request.to_function_approval_response(approved)
    assert (answer.type, answer.approved, answer.id) == ("function_approval_response", approved, "i")
    assert answer.function_call is CALL
    assert answer.user_input_request is None
    assert answer.annotations == [{"title": "t"}]
    assert answer.additional_properties == {"x": 1}
    assert answer.additional_properties is not request.additional_properties


@pytest.mark.parametrize("content", [TEXT, CALL, Content("function_approval_request", id="i")])
def test_only_a_whole_approval_request_can_be_answered(content: Content) -> None:
    with pytest.raises(ContentError):
        content.to_function_approval_response(True)


@pytest.mark.parametrize("approved", ["no", "false", "", 0, 1, None, []], ids=steady)
def test_what_only_looks_like_a_permission_is_none(approved: Any) -> None:
    request = Content.from_function_approval_request("i", CALL)
    told = f"approved is {approved!r}"
    with raises(TypeError, told):
        request.to_function_approval_response(approved)
    with raises(TypeError, told):
        Content.from_function_approval_response(approved, "i", CALL)


@pytest.mark.parametrize("approved", ["no", "", 0, 1, []], ids=steady)
def test_what_only_looks_like_a_permission_is_not_read_from_a_dictionary(approved: Any) -> None:
    stored = Content.from_function_approval_response(True, "i", CALL).to_dict() | {"approved": approved}
    with pytest.raises(TypeError):
        Content.from_dict(stored)

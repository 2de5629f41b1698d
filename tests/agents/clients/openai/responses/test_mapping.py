"""What the Responses API is sent, and what it sends: messages, answers, events."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from agentbench._clock import CountingIds, set_runtime_defaults
from agentbench.agents.clients.openai.responses_output import EventReader, response_of
from agentbench.agents.clients.openai.responses_requests import response_input
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from tests.servers import openai_wire as wire

PNG = Content.from_data(b"x", "image/png")
PNG_URI = "data:image/png;base64,eA=="
CALL = Content.from_function_call("c", "add", arguments={"x": 1})
MCP_CALL = Content.from_function_call("r", "look", arguments="{}", additional_properties={"server_label": "docs"})

# ---------------------------------------------------------------------------------------------------------------- input


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (Message("system", ["a", "b"]), [{"type": "message", "role": "system", "content": "a\nb"}]),
        (Message("system", [""]), []),
        (Message("user", ["a", "b"]), [{"type": "message", "role": "user", "content": "a\nb"}]),
        (Message("assistant", ["a"], author_name="x"), [{"type": "message", "role": "assistant", "content": "a"}]),
        (
            Message("user", ["a", PNG]),
            [
                {
                    "type": "message",
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "a"},
                        {"type": "input_image", "image_url": PNG_URI, "detail": "auto"},
                    ],
                }
            ],
        ),
        (
            Message("assistant", ["so", CALL]),
            [
                {"type": "message", "role": "assistant", "content": "so"},
                {"type": "function_call", "call_id": "c", "name": "add", "arguments": '{"x": 1}'},
            ],
        ),
        (
            Message("tool", [Content.from_function_result("c", result="1")]),
            [{"type": "function_call_output", "call_id": "c", "output": "1"}],
        ),
        (
            Message("tool", [Content.from_function_result("c", result=[Content.from_text("see"), PNG])]),
            [
                {
                    "type": "function_call_output",
                    "call_id": "c",
                    "output": [
                        {"type": "input_text", "text": "see"},
                        {"type": "input_image", "image_url": PNG_URI, "detail": "auto"},
                    ],
                }
            ],
        ),
        (
            Message("assistant", [Content.from_text_reasoning(id="rs", text="hm", protected_data="xyz"), "a"]),
            [
                {
                    "type": "reasoning",
                    "id": "rs",
                    "summary": [{"type": "summary_text", "text": "hm"}],
                    "encrypted_content": "xyz",
                },
                {"type": "message", "role": "assistant", "content": "a"},
            ],
        ),
        (Message("assistant", [Content.from_text_reasoning(id="rs", text="hm")]), []),
        (
            Message("user", [Content.from_function_approval_response(True, "r", MCP_CALL)]),
            [{"type": "mcp_approval_response", "approval_request_id": "r", "approve": True}],
        ),
        (
            Message("assistant", [Content.from_function_approval_request("r", MCP_CALL)]),
            [
                {
                    "type": "mcp_approval_request",
                    "id": "r",
                    "name": "look",
                    "arguments": "{}",
                    "server_label": "docs",
                }
            ],
        ),
        (Message("assistant", [Content.from_function_approval_request("c", CALL)]), []),
        (
            Message("assistant", ["look", PNG]),
            [
                {"type": "message", "role": "assistant", "content": "look"},
                {
                    "type": "message",
                    "role": "user",
                    "content": [{"type": "input_image", "image_url": PNG_URI, "detail": "auto"}],
                },
            ],
        ),
    ],
)
def test_a_message_is_sent_as(message: Message, expected: list[dict[str, Any]]) -> None:
    assert response_input([message]) == expected


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (
            Content.from_uri(
                "https://h.example/a.png", media_type="image/png", additional_properties={"detail": "low"}
            ),
            {"type": "input_image", "image_url": "https://h.example/a.png", "detail": "low"},
        ),
        (
            Content.from_data(b"x", "application/pdf", additional_properties={"filename": "a.pdf"}),
            {"type": "input_file", "file_data": "data:application/pdf;base64,eA==", "filename": "a.pdf"},
        ),
        (
            Content.from_uri("https://h.example/a.pdf", media_type="application/pdf"),
            {"type": "input_file", "file_url": "https://h.example/a.pdf"},
        ),
        (Content.from_hosted_file("f"), {"type": "input_file", "file_id": "f"}),
        (Content.from_hosted_file("f", media_type="image/png"), {"type": "input_image", "file_id": "f"}),
    ],
)
def test_a_part_is_sent_as(content: Content, part: dict[str, Any]) -> None:
    assert response_input([Message("user", [content])]) == [{"type": "message", "role": "user", "content": [part]}]


@pytest.mark.parametrize(
    ("content", "level"),
    [
        (Content.from_data(b"x", "audio/ogg"), logging.DEBUG),
        (Content.from_data(b"x", "video/mp4"), logging.WARNING),
        (Content.from_code_interpreter_tool_call(call_id="c"), logging.DEBUG),
    ],
)
def test_what_cannot_be_sent_is_left_out_and_logged(
    content: Content, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "agentbench.openai"):
        assert response_input([Message("user", [content])]) == []
    assert [record.levelno for record in caplog.records] == [level]


def test_an_approval_request_that_the_service_stores_is_not_sent_again() -> None:
    message = Message("assistant", [Content.from_function_approval_request("r", MCP_CALL)])
    assert response_input([message], continued=True) == []


# -------------------------------------------------------------------------------------------------------------- answers


def test_an_answer_becomes_a_response() -> None:
    counted = wire.response_usage(5, 3, cached=2, reasoning=1)
    raw = wire.response(wire.output_message("Hi."), usage=counted)
    response = response_of(raw)
    assert response.text == "Hi."
    assert response.response_id == response.conversation_id == response.messages[0].message_id == "resp_1"
    assert (response.model, response.created_at, response.finish_reason) == ("served-model", wire.CREATED_AT, "stop")
    assert response.usage_details == {
        "input_token_count": 5,
        "output_token_count": 3,
        "total_token_count": 8,
        "cache_read_input_token_count": 2,
        "reasoning_output_token_count": 1,
    }
    assert response.continuation_token is None


def test_what_the_next_request_goes_on_from() -> None:
    cases: list[Any] = [
        ({}, True, "resp_1"),
        ({}, False, None),
        ({"conversation": {"id": "conv_1"}}, True, "conv_1"),
        ({"conversation": None}, True, "resp_1"),
    ]
    for fields, stored, expected in cases:
        assert response_of(wire.response(wire.output_message("a"), **fields), stored=stored).conversation_id == expected


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (
            wire.output_call("c", "f", '{"a":1}'),
            [Content.from_function_call("c", "f", arguments='{"a":1}')],
        ),
        (
            {"type": "message", "content": [{"type": "refusal", "refusal": "No."}]},
            [Content.from_text("No.", additional_properties={"refusal": True})],
        ),
        (
            {"type": "reasoning", "id": "rs", "summary": [{"text": "a"}, {"text": "b"}], "encrypted_content": "x"},
            [Content.from_text_reasoning(id="rs", text="a\nb", protected_data="x")],
        ),
        (
            {"type": "reasoning", "id": "rs", "summary": [], "content": [{"type": "reasoning_text", "text": "a"}]},
            [Content.from_text_reasoning(id="rs", text="a")],
        ),
        (
            {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "x y"},
            [Content.from_function_call("c", "f", arguments="x y")],
        ),
        (
            {
                "type": "code_interpreter_call",
                "id": "ci",
                "code": "1+1",
                "outputs": [{"type": "logs", "logs": "2"}, {"type": "image", "url": "https://h.example/a.png"}],
            },
            [
                Content.from_code_interpreter_tool_call(call_id="ci", inputs=[Content.from_text("1+1")]),
                Content.from_code_interpreter_tool_result(
                    call_id="ci",
                    outputs=[
                        Content.from_text("2"),
                        Content.from_uri("https://h.example/a.png", media_type="image/png"),
                    ],
                ),
            ],
        ),
        (
            {"type": "image_generation_call", "id": "ig", "result": "eA==", "output_format": "webp"},
            [
                Content.from_image_generation_tool_call(image_id="ig"),
                Content.from_image_generation_tool_result(
                    image_id="ig", outputs=Content.from_uri("data:image/webp;base64,eA==")
                ),
            ],
        ),
        (
            {"type": "mcp_call", "id": "m", "name": "f", "server_label": "docs", "arguments": "{}", "output": "ok"},
            [
                Content.from_mcp_server_tool_call("m", "f", server_name="docs", arguments="{}"),
                Content.from_mcp_server_tool_result("m", output=[Content.from_text("ok")]),
            ],
        ),
        (
            {"type": "mcp_approval_request", "id": "r", "name": "look", "arguments": "{}", "server_label": "docs"},
            [Content.from_function_approval_request("r", MCP_CALL)],
        ),
        (
            {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search", "query": "q"}},
            [
                Content.from_search_tool_call(
                    "ws",
                    tool_name="web_search",
                    arguments={"type": "search", "query": "q"},
                    status="completed",
                )
            ],
        ),
        (
            {
                "type": "file_search_call",
                "id": "fs",
                "status": "completed",
                "queries": ["q"],
                "results": [{"file_id": "f", "text": "t"}],
            },
            [
                Content.from_search_tool_call(
                    "fs", tool_name="file_search", arguments={"queries": ["q"]}, status="completed"
                ),
                Content.from_search_tool_result(
                    "fs", tool_name="file_search", result=[{"file_id": "f", "text": "t"}], status="completed"
                ),
            ],
        ),
        ({"type": "something_new", "id": "x"}, []),
    ],
)
def test_an_item_becomes(item: dict[str, Any], expected: list[Content]) -> None:
    messages = response_of(wire.response(item)).messages
    assert [content for message in messages for content in message.contents] == expected


def test_citations_become_annotations() -> None:
    notes = [
        {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 2},
        {"type": "file_citation", "file_id": "f", "filename": "a.txt", "index": 1},
        {"type": "container_file_citation", "container_id": "c", "file_id": "g", "start_index": 1, "end_index": 2},
    ]
    content = response_of(wire.response(wire.output_message("ab", annotations=notes))).messages[0].contents[0]
    assert content.annotations == [
        {
            "type": "citation",
            "title": "t",
            "url": "u",
            "annotated_regions": [{"type": "text_span", "start_index": 0, "end_index": 2}],
        },
        {"type": "citation", "title": "a.txt", "file_id": "f"},
        {
            "type": "citation",
            "file_id": "g",
            "annotated_regions": [{"type": "text_span", "start_index": 1, "end_index": 2}],
            "additional_properties": {"container_id": "c"},
        },
    ]


def test_why_it_ended() -> None:
    cases: list[Any] = [
        ({}, "stop"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "content_filter"),
        ({"status": "queued"}, None),
        ({"status": "in_progress"}, None),
        ({"status": "cancelled"}, None),
    ]
    for fields, expected in cases:
        assert response_of(wire.response(wire.output_message("a"), **fields)).finish_reason == expected


# --------------------------------------------------------------------------------------------------------------- events

CREATED = {"type": "response.created", "response": wire.response(status="in_progress")}


def done(*output: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": "response.completed", "response": wire.response(*output, **fields)}


def read_all(*events: dict[str, Any], **settings: Any) -> list[Any]:
    reader = EventReader(**settings)
    return [update for event in wire.events(*events) if (update := reader.read(event)) is not None]


def folded(*events: dict[str, Any], **settings: Any) -> ChatResponse[Any]:
    return ChatResponse.from_updates(read_all(*events, **settings))


def text_delta(delta: str) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "delta": delta}


def call_added(index: int, call_id: str, name: str) -> dict[str, Any]:
    item = wire.output_call(call_id, name, "", f"fc_{index}")
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def arguments_delta(index: int, delta: str) -> dict[str, Any]:
    kind = "response.function_call_arguments.delta"
    return {"type": kind, "output_index": index, "item_id": f"fc_{index}", "delta": delta}


def item_done(index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def test_text_is_streamed_with_the_ids_of_the_answer() -> None:
    updates = read_all(CREATED, text_delta("Hel"), text_delta("lo"), done(usage=wire.response_usage(2, 1)))
    assert "".join(update.text for update in updates) == "Hello"
    assert {(u.response_id, u.message_id, u.conversation_id, u.model, u.role) for u in updates} == {
        ("resp_1", "resp_1", "resp_1", "served-model", "assistant")
    }
    response = ChatResponse.from_updates(updates)
    assert (response.text, response.finish_reason, len(response.messages)) == ("Hello", "stop", 1)
    assert response.usage_details is not None
    assert response.usage_details["total_token_count"] == 3


def test_interleaved_calls_are_put_together() -> None:
    response = folded(
        CREATED,
        call_added(0, "c1", "f"),
        call_added(1, "c2", "g"),
        arguments_delta(0, '{"a"'),
        arguments_delta(1, '{"b"'),
        arguments_delta(0, ":1}"),
        arguments_delta(1, ":2}"),
        item_done(0, wire.output_call("c1", "f", '{"a":1}')),
        item_done(1, wire.output_call("c2", "g", '{"b":2}')),
        done(),
    )
    calls = [(content.call_id, content.name, content.arguments) for content in response.messages[0].contents]
    assert calls == [("c1", "f", '{"a":1}'), ("c2", "g", '{"b":2}')]
    assert response.finish_reason == "tool_calls"


def test_arguments_that_come_only_at_the_end_are_taken_then() -> None:
    set_runtime_defaults(ids=CountingIds())
    added = {"type": "response.output_item.added", "output_index": 0, "item": {"type": "function_call", "name": "f"}}
    response = folded(CREATED, added, item_done(0, wire.output_call("", "f", '{"a":1}')), done())
    calls = [(content.call_id, content.name, content.arguments) for content in response.messages[0].contents]
    assert calls == [("call-1", "f", '{"a":1}')]


def test_thoughts_refusals_and_citations_are_streamed() -> None:
    thought = {"type": "response.reasoning_summary_text.delta", "item_id": "rs", "output_index": 0}
    part = {"type": "response.reasoning_summary_part.added", "item_id": "rs"}
    item = {"type": "reasoning", "id": "rs", "summary": [{"text": "a"}, {"text": "b"}], "encrypted_content": "x"}
    note = {"type": "url_citation", "url": "u"}
    response = folded(
        CREATED,
        {**part, "summary_index": 0},
        {**thought, "summary_index": 0, "delta": "a"},
        {**part, "summary_index": 1},
        {**thought, "summary_index": 1, "delta": "b"},
        item_done(0, item),
        text_delta("so"),
        {"type": "response.output_text.annotation.added", "item_id": "msg_1", "annotation": note},
        {"type": "response.refusal.delta", "item_id": "msg_1", "delta": " no"},
        done(item),
    )
    thinking, said = response.messages[0].contents
    assert (thinking.type, thinking.id, thinking.text, thinking.protected_data) == ("text_reasoning", "rs", "a\nb", "x")
    assert said.text == "so no"
    assert said.annotations == [{"type": "citation", "url": "u"}]


def test_a_thought_that_comes_only_at_the_end_is_taken_then() -> None:
    item = {"type": "reasoning", "id": "rs", "summary": [{"text": "a"}]}
    assert folded(CREATED, item_done(0, item), done()).messages[0].contents == [
        Content.from_text_reasoning(id="rs", text="a")
    ]


def test_an_incomplete_answer_has_its_reason() -> None:
    ended = wire.response(status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    assert (
        folded(CREATED, text_delta("a"), {"type": "response.incomplete", "response": ended}).finish_reason == "length"
    )


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "server_error", "message": "m"},
        {"event": "error", "data": {"type": "error", "message": "m"}},
        {"type": "response.failed", "response": wire.response(status="failed", error={"code": "c", "message": "m"})},
    ],
)
def test_a_failure_is_reported_and_no_update(event: dict[str, Any]) -> None:
    reader = EventReader()
    assert reader.read(event) is None
    assert reader.failure["message"] == "m"

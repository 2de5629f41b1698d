"""Options, tools and forms of answers as both APIs take them."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from agentbench.agents.clients.openai.chat_completions import chat_options, is_strict, strict_schema
from agentbench.agents.clients.openai.hosted_tools import HostedTools
from agentbench.agents.clients.openai.responses_requests import response_options
from agentbench.exceptions import ContentError
from tests.parts.errors import raises

PARAMETERS = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
FUNCTION = {"name": "add", "description": "Add.", "parameters": PARAMETERS}
WIRE_TOOL = {"type": "function", "function": FUNCTION}


class FakeTool:
    def to_json_schema_spec(self) -> dict[str, Any]:
        return {"type": "function", "function": dict(FUNCTION)}


TOOL = FakeTool()


# ----------------------------------------------------------------------------------------------------- chat completions


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"temperature": 0.5, "top_p": None}, {"temperature": 0.5}),
        ({"max_tokens": 7}, {"max_completion_tokens": 7}),
        ({"max_tokens": 7, "max_completion_tokens": 9}, {"max_completion_tokens": 9}),
        ({"conversation_id": "c", "instructions": "i", "model": "m", "additional_function_arguments": {"a": 1}}, {}),
        ({"seed": 1, "verbosity": "low", "store": False}, {"seed": 1, "verbosity": "low", "store": False}),
        ({"additional_properties": {"top_k": 3, "user": "a"}, "user": "b"}, {"top_k": 3, "user": "b"}),
        ({"tools": TOOL}, {"tools": [WIRE_TOOL]}),
        (
            {"tools": [{"type": "custom", "custom": {"name": "x"}}]},
            {"tools": [{"type": "custom", "custom": {"name": "x"}}]},
        ),
        ({"tools": [TOOL], "tool_choice": {"mode": "none"}}, {"tools": [WIRE_TOOL], "tool_choice": "none"}),
        (
            {"tools": [TOOL], "tool_choice": {"mode": "required", "required_function_name": "add"}},
            {"tools": [WIRE_TOOL], "tool_choice": {"type": "function", "function": {"name": "add"}}},
        ),
        (
            {"tools": [TOOL], "tool_choice": {"type": "custom", "custom": {"name": "x"}}},
            {"tools": [WIRE_TOOL], "tool_choice": {"type": "custom", "custom": {"name": "x"}}},
        ),
        (
            {"tools": [TOOL], "allow_multiple_tool_calls": False},
            {"tools": [WIRE_TOOL], "parallel_tool_calls": False},
        ),
        ({"tools": [], "tool_choice": "auto", "allow_multiple_tool_calls": True}, {}),
        ({"tools": [{"type": "web_search"}], "tool_choice": "auto"}, {"web_search_options": {}}),
        (
            {"tools": [TOOL, {"type": "web_search_preview", "search_context_size": "low"}]},
            {"tools": [WIRE_TOOL], "web_search_options": {"search_context_size": "low"}},
        ),
        (
            {"tools": [HostedTools.get_web_search_tool(user_location={"city": "Oslo"})]},
            {"web_search_options": {"user_location": {"type": "approximate", "approximate": {"city": "Oslo"}}}},
        ),
        ({"response_format": {"type": "json_object"}}, {"response_format": {"type": "json_object"}}),
    ],
)
def test_options_of_chat_completions(options: dict[str, Any], expected: dict[str, Any]) -> None:
    before = repr(options)
    assert chat_options(options) == expected
    assert repr(options) == before


def test_allowed_tools_are_not_sent_to_chat_completions(caplog: pytest.LogCaptureFixture) -> None:
    options = {"tools": [TOOL], "tool_choice": {"mode": "auto", "allowed_tools": ["add"]}}
    assert chat_options(options)["tool_choice"] == "auto"
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_an_unknown_tool_choice_is_an_error() -> None:
    with pytest.raises(ContentError):
        chat_options({"tools": [TOOL], "tool_choice": "maybe"})


def test_a_tool_without_a_schema_is_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert chat_options({"tools": [object()]}) == {}
    assert "object" in caplog.text


# ------------------------------------------------------------------------------------------------------------ responses

FLAT_TOOL = {"type": "function", "strict": False, **FUNCTION}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"temperature": 0.5, "store": False, "top_k": 3}, {"temperature": 0.5, "store": False, "top_k": 3}),
        ({"max_tokens": 7}, {"max_output_tokens": 7}),
        ({"conversation_id": "resp_1"}, {"previous_response_id": "resp_1"}),
        ({"conversation_id": "conv_1"}, {"conversation": "conv_1"}),
        (
            {"reasoning_effort": "low", "reasoning": {"summary": "auto"}},
            {"reasoning": {"summary": "auto", "effort": "low"}},
        ),
        (
            {"verbosity": "low", "response_format": {"type": "json_object"}},
            {"text": {"verbosity": "low", "format": {"type": "json_object"}}},
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}},
            {"text": {"format": {"type": "json_schema", "name": "x", "schema": {}}}},
        ),
        (
            {"logprobs": True, "top_logprobs": 2, "include": ["a"]},
            {"top_logprobs": 2, "include": ["a", "message.output_text.logprobs"]},
        ),
        ({"tools": [TOOL], "tool_choice": "auto"}, {"tools": [FLAT_TOOL], "tool_choice": "auto"}),
        ({"tools": [WIRE_TOOL]}, {"tools": [FLAT_TOOL]}),
        ({"tools": [{"type": "function", "name": "x"}]}, {"tools": [{"type": "function", "name": "x"}]}),
        (
            {"tools": [TOOL], "tool_choice": {"mode": "required", "required_function_name": "add"}},
            {"tools": [FLAT_TOOL], "tool_choice": {"type": "function", "name": "add"}},
        ),
        (
            {"tools": [TOOL], "tool_choice": {"mode": "auto", "allowed_tools": ["add"]}},
            {
                "tools": [FLAT_TOOL],
                "tool_choice": {
                    "type": "allowed_tools",
                    "mode": "auto",
                    "tools": [{"type": "function", "name": "add"}],
                },
            },
        ),
        ({"tools": [TOOL], "allow_multiple_tool_calls": True}, {"tools": [FLAT_TOOL], "parallel_tool_calls": True}),
    ],
)
def test_options_of_the_responses_api(options: dict[str, Any], expected: dict[str, Any]) -> None:
    assert response_options(options) == expected


def test_options_that_the_responses_api_refuses_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    names = ("frequency_penalty", "logit_bias", "prediction", "presence_penalty", "seed", "stop")
    assert response_options(dict.fromkeys(names, 1)) == {}
    assert all(repr(name) in caplog.text for name in names)


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        (
            HostedTools.get_web_search_tool(user_location={"city": "Oslo"}, search_context_size="low"),
            {
                "type": "web_search",
                "user_location": {"type": "approximate", "city": "Oslo"},
                "search_context_size": "low",
            },
        ),
        (
            HostedTools.get_code_interpreter_tool(file_ids=("f",)),
            {"type": "code_interpreter", "container": {"type": "auto", "file_ids": ["f"]}},
        ),
        (HostedTools.get_code_interpreter_tool(container="c"), {"type": "code_interpreter", "container": "c"}),
        (HostedTools.get_image_generation_tool(size="1x1"), {"type": "image_generation", "size": "1x1"}),
        (
            HostedTools.get_file_search_tool(vector_store_ids=["v"], max_num_results=2),
            {"type": "file_search", "vector_store_ids": ["v"], "max_num_results": 2},
        ),
        (HostedTools.get_file_search_tool(vector_store_ids="v"), {"type": "file_search", "vector_store_ids": ["v"]}),
        (
            HostedTools.get_mcp_tool(name="my docs", url="https://x.example", approval_mode="never_require"),
            {"type": "mcp", "server_label": "my_docs", "server_url": "https://x.example", "require_approval": "never"},
        ),
        (
            HostedTools.get_mcp_tool(
                name="d", allowed_tools=("a",), headers={"A": "b"}, approval_mode={"always_require_approval": ["a"]}
            ),
            {
                "type": "mcp",
                "server_label": "d",
                "require_approval": {"always": {"tool_names": ["a"]}},
                "allowed_tools": ["a"],
                "headers": {"A": "b"},
            },
        ),
    ],
)
def test_tools_of_the_service(tool: dict[str, Any], expected: dict[str, Any]) -> None:
    assert tool == expected
    assert response_options({"tools": [tool]})["tools"] == [expected]


# ----------------------------------------------------------------------------------------------------- forms of answers


def test_a_bare_schema_is_wrapped() -> None:
    schema = {"title": "Weather in town!", "type": "object", "properties": {"a": {"type": "string"}}}
    closed = {**schema, "additionalProperties": False}
    body = {"name": "Weather_in_town", "schema": closed}
    assert chat_options({"response_format": schema})["response_format"] == {"type": "json_schema", "json_schema": body}
    assert response_options({"response_format": schema})["text"]["format"] == {
        "type": "json_schema",
        **body,
        "strict": False,
    }
    assert "additionalProperties" not in schema
    sent = chat_options({"response_format": PARAMETERS})["response_format"]["json_schema"]
    assert (sent["name"], sent["strict"]) == ("response", True)


def test_a_model_becomes_a_strict_schema() -> None:
    pydantic = pytest.importorskip("pydantic")
    inner = pydantic.create_model("Wind", speed=(float, 0.0))
    model = pydantic.create_model("Weather", city=(str, ...), wind=(inner, ...), note=(str | None, None))
    sent = chat_options({"response_format": model})["response_format"]["json_schema"]
    assert (sent["name"], sent["strict"]) == ("Weather", True)
    schema = sent["schema"]
    assert schema["required"] == ["city", "wind", "note"]
    assert schema["additionalProperties"] is False
    assert schema["$defs"]["Wind"]["required"] == ["speed"]
    assert schema["$defs"]["Wind"]["additionalProperties"] is False
    assert "default" not in repr(schema)


def test_a_model_with_free_keys_cannot_be_strict() -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Scores", by_name=(dict[str, int], ...))
    sent = chat_options({"response_format": model})["response_format"]["json_schema"]
    assert "strict" not in sent
    assert response_options({"response_format": model})["text"]["format"]["strict"] is False


def test_properties_named_like_keywords_stay() -> None:
    schema = {"type": "object", "properties": {"default": {"type": "string"}, "$ref": {"type": "string"}}}
    assert strict_schema(schema)["required"] == ["default", "$ref"]
    assert is_strict(strict_schema(schema))


def test_beside_a_reference_nothing_is_left() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A", "description": "x", "default": None}}}
    assert strict_schema(schema)["properties"]["a"] == {"$ref": "#/$defs/A"}


def test_other_values_are_no_form_of_an_answer() -> None:
    for form in (int, "json"):
        with raises(TypeError, "JSON"):
            chat_options({"response_format": form})

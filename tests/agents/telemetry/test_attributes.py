"""What spans say of agents, clients, tools, messages and answers."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from agentbench.agents.telemetry.attributes import (
    agent_attributes,
    arguments_json,
    as_json,
    chat_attributes,
    instructions_json,
    messages_json,
    result_text,
    tool_definitions,
)
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.settings import SecretString

KEY = "sk-not-to-be-seen"


@pytest.mark.parametrize(
    ("service", "option", "own", "reported"),
    [("svc", "opt", "s1", "svc"), (None, "opt", "s1", "opt"), (None, None, "s1", "s1"), (None, None, None, None)],
)
def test_the_conversation_is_the_services_then_the_options_then_the_sessions(
    service: str | None, option: str | None, own: str | None, reported: str | None
) -> None:
    session = SimpleNamespace(service_session_id=service, session_id=own)
    found = agent_attributes(SimpleNamespace(), {"conversation_id": option}, session)
    assert found.get("gen_ai.conversation.id") == reported


@pytest.mark.parametrize(
    ("url", "address", "port"),
    [
        ("https://api.example.com:8443/v1", "api.example.com", 8443),
        ("https://api.example.com/v1", "api.example.com", 443),
        (f"https://user:{KEY}@example.com/v1?key={KEY}#x", "example.com", 443),
        ("http://127.0.0.1/v1", "127.0.0.1", 80),
        ("Unknown", None, None),
        ("http://host:notaport/", None, None),
        ("", None, None),
    ],
)
def test_the_address_of_a_server_is_reported_without_credentials(
    url: str, address: str | None, port: int | None
) -> None:
    found = chat_attributes(SimpleNamespace(service_url=lambda: url), {})
    assert (found.get("server.address"), found.get("server.port")) == (address or None, port)


def test_a_client_without_a_name_and_a_model_is_unknown_unless_the_options_name_one() -> None:
    found = chat_attributes(SimpleNamespace(), None)
    assert (found["gen_ai.provider.name"], found["gen_ai.request.model"]) == ("unknown", "unknown")
    client = SimpleNamespace(OTEL_PROVIDER_NAME="class", otel_provider_name="mine", model="own")
    found = chat_attributes(client, {"stop": "x"})
    assert (found["gen_ai.provider.name"], found["gen_ai.request.model"]) == ("mine", "own")
    assert found["gen_ai.request.stop_sequences"] == ("x",)
    assert chat_attributes(client, {"model": "requested"})["gen_ai.request.model"] == "requested"


def test_tools_are_reported_as_their_definitions_without_secrets() -> None:
    hosted = {
        "type": "mcp",
        "server_url": "https://x",
        "headers": {"Authorization": f"Bearer {KEY}"},
        "Api-Key": KEY,
        "clientSecret": KEY,
        "nested": [{"access_token": KEY, "label": "l"}],
        "plain": SecretString(KEY),
    }
    function = SimpleNamespace(to_json_schema_spec=lambda: {"type": "function", "function": {"name": "add"}})
    text = tool_definitions([function, hosted, SimpleNamespace(name="other")])
    assert text is not None
    assert KEY not in text
    assert json.loads(text) == [
        {"type": "function", "function": {"name": "add"}},
        {
            "type": "mcp",
            "server_url": "https://x",
            "nested": [{"label": "l"}],
            "plain": "SecretString('**********')",
        },
        {"type": "SimpleNamespace", "name": "other"},
    ]
    assert tool_definitions(None) is None
    assert tool_definitions([]) is None
    assert json.loads(tool_definitions(hosted) or "")[0]["type"] == "mcp"


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

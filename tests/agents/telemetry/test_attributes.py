"""What spans say of agents, clients, tools and answers."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from agentbench.agents.telemetry.attributes import (
    agent_attributes,
    agent_options,
    agent_title,
    chat_attributes,
    embedding_attributes,
    metric_attributes,
    model_name,
    request_attributes,
    response_attributes,
    tool_attributes,
    tool_definitions,
)
from agentbench.settings import SecretString

KEY = "sk-not-to-be-seen"


def test_the_options_of_a_request_are_shown_where_they_are_given() -> None:
    options = {
        "model": "m",
        "temperature": 0.1,
        "top_p": 0.2,
        "max_tokens": 3,
        "seed": 4,
        "frequency_penalty": 0.5,
        "presence_penalty": 0.6,
        "stop": ["x", "y"],
        "user": KEY,
        "metadata": {"k": KEY},
    }
    assert request_attributes(options) == {
        "gen_ai.request.model": "m",
        "gen_ai.request.temperature": 0.1,
        "gen_ai.request.top_p": 0.2,
        "gen_ai.request.max_tokens": 3,
        "gen_ai.request.seed": 4,
        "gen_ai.request.frequency_penalty": 0.5,
        "gen_ai.request.presence_penalty": 0.6,
        "gen_ai.request.stop_sequences": ("x", "y"),
        "gen_ai.request.choice.count": 1,
    }
    assert request_attributes({"stop": "x", "temperature": None}) == {
        "gen_ai.request.stop_sequences": ("x",),
        "gen_ai.request.choice.count": 1,
    }


def test_an_agent_is_shown_with_its_identity() -> None:
    agent = SimpleNamespace(id="a1", name="nm", description="dd")
    session = SimpleNamespace(service_session_id=None, session_id="s1")
    assert agent_attributes(agent, {}, session) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "agentbench",
        "gen_ai.agent.id": "a1",
        "gen_ai.agent.name": "nm",
        "gen_ai.agent.description": "dd",
        "gen_ai.conversation.id": "s1",
        "gen_ai.request.choice.count": 1,
    }


@pytest.mark.parametrize(
    ("service", "option", "own", "shown"),
    [("svc", "opt", "s1", "svc"), (None, "opt", "s1", "opt"), (None, None, "s1", "s1"), (None, None, None, None)],
)
def test_the_conversation_is_the_services_then_the_options_then_the_sessions(
    service: str | None, option: str | None, own: str | None, shown: str | None
) -> None:
    session = SimpleNamespace(service_session_id=service, session_id=own)
    found = agent_attributes(SimpleNamespace(), {"conversation_id": option}, session)
    assert found.get("gen_ai.conversation.id") == shown


@pytest.mark.parametrize(
    ("agent", "title"),
    [
        (SimpleNamespace(name="nm", id="a1"), "invoke_agent nm"),
        (SimpleNamespace(name=None, id="a1"), "invoke_agent a1"),
        (SimpleNamespace(), "invoke_agent SimpleNamespace"),
    ],
)
def test_the_span_of_an_agent_is_named_by_name_else_id(agent: Any, title: str) -> None:
    assert agent_title(agent) == title


def test_the_options_of_a_run_lie_over_those_of_the_agent() -> None:
    one, two, three = {"name": "one"}, {"name": "two"}, {"name": "three"}
    agent = SimpleNamespace(
        default_options={"temperature": 0.1, "seed": 1, "instructions": "a", "tools": [one, two], "tool_choice": "auto"}
    )
    before = dict(agent.default_options)
    merged = agent_options(agent, {"temperature": 0.5, "seed": None, "instructions": "b", "tools": [two, three]})
    assert merged == {
        "temperature": 0.5,
        "seed": 1,
        "instructions": "a\nb",
        "tools": [one, two, three],
        "tool_choice": "auto",
    }
    assert agent.default_options == before
    assert agent_options(SimpleNamespace(), None) == {}


@pytest.mark.parametrize(
    ("url", "address", "port"),
    [
        ("https://api.example.com:8443/v1", "https://api.example.com:8443/v1", 8443),
        ("https://api.example.com/v1", "https://api.example.com/v1", None),
        (f"https://user:{KEY}@example.com/v1?key={KEY}#x", "https://example.com/v1", None),
        ("Unknown", "Unknown", None),
        ("http://host:notaport/", None, None),
        ("", None, None),
    ],
)
def test_a_server_is_shown_without_credentials(url: str, address: str | None, port: int | None) -> None:
    found = chat_attributes(SimpleNamespace(service_url=lambda: url), {})
    assert (found.get("server.address"), found.get("server.port")) == (address or None, port)


def test_a_client_is_shown_with_provider_and_model() -> None:
    client = SimpleNamespace(OTEL_PROVIDER_NAME="cc", model="own", service_url=lambda: "Unknown")
    assert chat_attributes(client, {"model": "asked", "conversation_id": "v1"}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "cc",
        "server.address": "Unknown",
        "gen_ai.request.model": "asked",
        "gen_ai.request.choice.count": 1,
        "gen_ai.conversation.id": "v1",
    }
    assert chat_attributes(client, None)["gen_ai.request.model"] == "own"
    assert chat_attributes(SimpleNamespace(), None) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "unknown",
        "gen_ai.request.model": "unknown",
        "gen_ai.request.choice.count": 1,
    }
    client.otel_provider_name = "mine"
    assert chat_attributes(client, None)["gen_ai.provider.name"] == "mine"
    assert model_name(SimpleNamespace(), None) == "unknown"


def test_a_tool_is_shown_with_its_call() -> None:
    tool = SimpleNamespace(name="add", description="adds")
    assert tool_attributes(tool, "c1") == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "add",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": "adds",
    }
    found = tool_attributes(SimpleNamespace(name="add", description=""), None)
    assert found["gen_ai.tool.call.id"] == "unknown"
    assert "gen_ai.tool.description" not in found


def test_an_answer_is_shown_with_its_tokens() -> None:
    response = SimpleNamespace(
        response_id="r1",
        model="mm",
        finish_reason="tool_calls",
        usage_details={"input_token_count": 5, "output_token_count": 0, "total_token_count": 5},
    )
    assert response_attributes(response) == {
        "gen_ai.response.id": "r1",
        "gen_ai.response.model": "mm",
        "gen_ai.response.finish_reasons": '["tool_calls"]',
        "gen_ai.usage.input_tokens": 5,
        "gen_ai.usage.output_tokens": 0,
    }
    assert response_attributes(None) == {}


def test_embeddings_are_shown_with_model_and_tokens_read() -> None:
    class Made(list[Any]):
        usage = {"input_token_count": 3, "output_token_count": 1}  # noqa: RUF012 - a fact of the fake

    assert embedding_attributes(Made([SimpleNamespace(model="em")])) == {
        "gen_ai.response.model": "em",
        "gen_ai.usage.input_tokens": 3,
    }
    assert embedding_attributes([]) == {}


def test_tools_are_shown_as_their_definitions_without_what_is_secret() -> None:
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


def test_a_metric_has_only_attributes_with_few_values() -> None:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "cc",
        "gen_ai.request.model": "m",
        "gen_ai.response.model": "mm",
        "gen_ai.tool.name": "add",
        "server.address": "u",
        "server.port": 1,
        "error.type": "ValueError",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.arguments": "{}",
        "gen_ai.tool.description": "d",
        "gen_ai.response.id": "r",
        "gen_ai.conversation.id": "v",
        "gen_ai.request.temperature": 0.1,
    }
    assert list(metric_attributes(attributes)) == list(attributes)[:8]

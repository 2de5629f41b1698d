"""What spans say of agents, clients, tools and answers."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from agentbench.agents.telemetry.attributes import agent_attributes, chat_attributes, tool_definitions
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

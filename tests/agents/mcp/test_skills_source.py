"""Skills of a server."""

from __future__ import annotations

import pytest

from agentbench import Agent, MCPSkillsSource, ScriptedChatClient, SkillsProvider
from agentbench.testing import Call
from tests.agents.mcp.servers import demo, raw

pytest.importorskip("mcp")
pytest.importorskip("yaml")


async def test_an_agent_loads_a_skill_of_a_server(caplog):
    async with demo() as server:
        script = [
            Call("load_skill", {"skill_name": "tides"}),
            Call("read_skill_resource", {"skill_name": "tides", "resource_name": "table.csv"}),
            "Noon.",
        ]
        client = ScriptedChatClient(script)
        agent = Agent(client, context_providers=[SkillsProvider(MCPSkillsSource(server))])
        response = await agent.run("High water in Bergen?")
    assert "About tides." in str(client.calls[0].options["instructions"])
    results = [content.result for message in response.messages for content in message.contents if content.result]
    assert "Read table.csv." in str(results[0])
    assert results[1] == "Bergen,12:00"
    assert "skill://broken/SKILL.md" in caplog.text  # those that cannot be read are left out, and named
    assert "skill://picture/SKILL.md" in caplog.text


async def test_a_server_without_resources_has_no_skills():
    async with raw('answer(request, {"tools": []})') as server:
        assert await MCPSkillsSource(server).get_skills() == []

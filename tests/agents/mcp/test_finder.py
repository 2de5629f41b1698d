"""Servers whose tools a model finds when it needs them."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench import Agent, Call, ScriptedChatClient
from tests.agents.mcp.servers import demo, text

pytest.importorskip("mcp")


def offered(client: ScriptedChatClient) -> list[list[str]]:
    return [[tool.name for tool in call.options.get("tools") or ()] for call in client.calls]


def last_result(client: ScriptedChatClient) -> Any:
    return client.calls[-1].messages[-1].contents[0].result


async def test_a_model_finds_the_tools_that_it_needs():
    client = ScriptedChatClient([Call("demo_find_tools", {"query": "add numbers"}), Call("add", {"a": 2}), "done"])
    async with demo(use_progressive_disclosure=True) as server:
        await Agent(client, tools=[server]).run("go")
    assert offered(client) == [["demo_find_tools"], *[["demo_find_tools", "add"]] * 2]
    assert last_result(client) == "3"
    assert "- add: Add two numbers." in client.calls[1].messages[-1].contents[0].result


@pytest.mark.parametrize("query", ["", "elephants"])
async def test_a_query_that_finds_nothing_gets_the_names(query: str):
    client = ScriptedChatClient([Call("d_find_tools", {"query": query}), "done"])
    options: dict[str, Any] = {"tool_name_prefix": "d", "allowed_tools": ["add", "fail"]}
    async with demo(use_progressive_disclosure=True, **options) as server:
        await Agent(client, tools=[server]).run("go")
    assert offered(client) == [["d_find_tools"]] * 2
    assert "d_add, d_fail." in last_result(client)


async def test_a_found_tool_may_need_a_person():
    client = ScriptedChatClient([Call("demo_find_tools", {"query": "add"}), Call("add", {"a": 2}), "done"])
    async with demo(use_progressive_disclosure=True, approval_mode="always_require") as server:
        agent = Agent(client, tools=[server])
        session = agent.create_session()
        [request] = (await agent.run("go", session=session)).user_input_requests
        assert request.function_call is not None
        assert request.function_call.name == "add"
        await agent.run(request.to_function_approval_response(approved=True), session=session)
    assert last_result(client) == "3"


async def test_a_named_tool_comes_first():
    async with demo(use_progressive_disclosure=True) as server:
        client = ScriptedChatClient(
            [Call("demo_find_tools", {"query": "odd-name-here"}), Call("odd-name-here"), "done"]
        )
        await Agent(client, tools=[server]).run("go")
        assert last_result(client) == "odd"
        assert text(await server.call_tool("add", a=1)) == "2"


async def test_a_name_inside_another_word_names_no_tool():
    client = ScriptedChatClient([Call("demo_find_tools", {"query": "address of an odd name"}), "done"])
    async with demo(use_progressive_disclosure=True) as server:
        await Agent(client, tools=[server]).run("go")
    assert "add" not in offered(client)[1]
    assert "odd-name-here" in offered(client)[1]
